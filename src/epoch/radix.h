/* SPDX-License-Identifier: MIT */
/*
 * radix.h - a radix tree from 64-bit index to a non-zero word, read without locks.
 *
 * Used for the pages of a file (index = page number) and for a directory's
 * ordered index (index = cookie).  64 slots a node, nodes from CACHE_576.
 * The root word holds the node's address and the height in its low bits; at
 * height 0 it holds the value of index 0 itself, so a one-page file has no node.
 * Writers hold the owner's lock.  Readers are in a read section: nodes are
 * retired through the epoch, values are the caller's business.
 * Readers: wait-free, at most 12 loads; what they find was there at some moment of the call.
 * Writers: no loop but the height.
 * Every step is a single store: a tree whose writer died between two of them is valid.
 * Limits: such a writer may leave an empty node in the tree (it goes when the whole tree is erased).
 */
#ifndef SHELF_EPOCH_RADIX_H
#define SHELF_EPOCH_RADIX_H

#include "epoch/epoch.h"

#define RADIX_BITS 6u
#define RADIX_SLOTS (1u << RADIX_BITS)
#define RADIX_LOW (RADIX_SLOTS - 1)
#define RADIX_HEIGHT_MAX 11u /* 66 bits */

struct radix {
	atomic_u64 root;
};

struct radix_node {
	struct retired retired;
	uint32_t used; /* [lock] slots in use; a death can leave it too high, never too low */
	_Alignas(CACHE_LINE) atomic_u64 slot[RADIX_SLOTS]; /* at height 1 values, above it nodes */
};
_Static_assert(sizeof(struct radix_node) == 576, "nodes come from CACHE_576");

static inline unsigned radix_height(uint64_t root)
{
	return root & RADIX_LOW;
}

static inline struct radix_node *radix_node_of(uint64_t word)
{
	return (struct radix_node *)(uintptr_t)(word & ~(uint64_t)RADIX_LOW);
}

/* Where `index` goes in a node of height h (1 and up). */
static inline unsigned radix_place(uint64_t index, unsigned h)
{
	return (index >> (RADIX_BITS * (h - 1))) & RADIX_LOW;
}

/* Can a tree of height h hold it? */
static inline bool radix_fits(uint64_t index, unsigned h)
{
	return h >= RADIX_HEIGHT_MAX || !(index >> (RADIX_BITS * h));
}

/* Values: non-zero, low 6 bits free for nobody: they are stored as they are.  Only those whose low 6
 * bits are zero live at height 0.  Pages and 64-aligned objects qualify. */
static inline void radix_init(struct radix *r)
{
	store_relaxed(&r->root, 0); /* published with its owner */
}

/* 0: nothing there */
static inline uint64_t radix_lookup_epoch(struct radix *r, uint64_t index)
{
	uint64_t word = load_acquire(&r->root); /* pairs with radix_publish: the node's contents */
	unsigned h = radix_height(word), shift;

	if (unlikely(!h))
		return index ? 0 : word;
	shift = RADIX_BITS * (h - 1);
	if (unlikely(index >> shift > RADIX_LOW)) /* never at the greatest height */
		return 0;
	for (;; shift -= RADIX_BITS) {
		word = load_acquire(&radix_node_of(word)->slot[index >> shift & RADIX_LOW]); /* the same */
		if (!shift || unlikely(!word))
			return word;
	}
}

/* The first entry at or after *index and before `end`; *index becomes its place.  0: none. */
uint64_t radix_next_epoch(struct radix *r, uint64_t *index, uint64_t end);
/* The last entry at or before *index; *index becomes its place.  0: none. */
uint64_t radix_prev_epoch(struct radix *r, uint64_t *index);
/* The first index at or after `index` and before `end` with nothing in it, else `end`. */
uint64_t radix_next_hole_epoch(struct radix *r, uint64_t index, uint64_t end);
/* The last index in use + 1; 0 when empty (and when UINT64_MAX is in use, which ranges cannot name either). */
uint64_t radix_end_epoch(struct radix *r);

/* Lock held.  0 or -ENOSPC (nothing changed).  *old (may be NULL) gets what stood there. */
int radix_store(struct slot *self, struct radix *r, uint64_t index, uint64_t value, uint64_t *old);
/* Lock held.  Takes the entry out and retires nodes that became empty.  The old value, 0 if none. */
uint64_t radix_erase(struct slot *self, struct radix *r, uint64_t index);
/* The same; the page that the value names (its low 6 bits apart) is the caller's from then on: entry *k of the ledger. */
uint64_t radix_erase_noted(struct slot *self, struct radix *r, uint64_t index, int *k);
/* Lock held.  Calls fn for every entry in [from, end), erased one by one.  The tree's height shrinks
 * with it; with from 0 and end UINT64_MAX all nodes go. */
typedef void radix_drop_fn(struct slot *self, void *ctx, uint64_t index, uint64_t value);
void radix_erase_range(struct slot *self, struct radix *r, uint64_t from, uint64_t end, radix_drop_fn *fn,
		       void *ctx);
/* Lock held, or nobody writes.  Nodes in use, for `shelf check` and the cost test. */
uint64_t radix_nodes(struct radix *r);

#endif

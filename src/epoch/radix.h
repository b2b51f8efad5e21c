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
 * Readers: wait-free, at most 11 loads.  Writers: no loop but the height.
 * Every step is a single store: a tree whose writer died between two of them is valid.
 */
#ifndef SHELF_EPOCH_RADIX_H
#define SHELF_EPOCH_RADIX_H

#include "epoch/epoch.h"

struct radix {
	atomic_u64 root;
};

/* Values: non-zero, low 6 bits free for nobody: they are stored as they are except at height 0,
 * where the low 6 bits must be zero.  Pages and 64-aligned objects qualify. */
static inline void radix_init(struct radix *r)
{
	store_relaxed(&r->root, 0); /* published with its owner */
}
uint64_t radix_lookup_epoch(struct radix *r, uint64_t index); /* 0: nothing there */
/* The first entry at or after *index and before `end`; *index becomes its place.  0: none. */
uint64_t radix_next_epoch(struct radix *r, uint64_t *index, uint64_t end);
/* The first index at or after `index` and before `end` with nothing in it, else `end`. */
uint64_t radix_next_hole_epoch(struct radix *r, uint64_t index, uint64_t end);
/* The last index in use + 1; 0 when empty. */
uint64_t radix_end_epoch(struct radix *r);

/* Lock held.  0 or -ENOSPC (nothing changed).  *old (may be NULL) gets what stood there. */
int radix_store(struct slot *self, struct radix *r, uint64_t index, uint64_t value, uint64_t *old);
/* Lock held.  Takes the entry out and retires nodes that became empty.  The old value, 0 if none. */
uint64_t radix_erase(struct slot *self, struct radix *r, uint64_t index);
/* Lock held.  Calls fn for every entry in [from, end), erased one by one. */
typedef void radix_drop_fn(struct slot *self, void *ctx, uint64_t index, uint64_t value);
void radix_erase_range(struct slot *self, struct radix *r, uint64_t from, uint64_t end, radix_drop_fn *fn,
		       void *ctx);
/* Nodes in use, for `shelf check` and the cost test. */
uint64_t radix_nodes(struct radix *r);

#endif

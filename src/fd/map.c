// SPDX-License-Identifier: MIT
/*
 * map.c - the pages of a table, and the bitmaps that find the lowest free number.
 *
 * A bit of `used` for each far number, a bit of `full` for each page of 512, and one
 * for each node of 128 pages: the lowest free one is found in at most
 * 1 + 4 + 2 + 8 words whatever the table holds, so no hint is kept.
 * Written under the table's lock.  Readers without it (fd_next_open) look
 * again at the words themselves.
 */
#include <string.h>

#include "base/bits.h"
#include "fd/fd_priv.h"
#include "segment/hand.h"

#define FD_NEAR_END FD_NEAR
#define FD_DIR_END (FD_DIR << FD_PAGE_SHIFT)
#define FD_NODE_NUMBERS (FD_NODE << FD_PAGE_SHIFT)

/* The first bit at or after `from` that is zero (skip = ~0) or one (skip = 0); `n` if none. */
static unsigned bits_scan(atomic_u64 *w, unsigned n, unsigned from, uint64_t skip)
{
	for (; from < n; from = ALIGN_DOWN(from, 64u) + 64) {
		/* relaxed: under the lock, or a snapshot that is checked at the word */
		unsigned k = bits_next_one(load_relaxed(&w[from / 64]) ^ skip, from % 64);

		if (k < 64)
			return min_of(ALIGN_DOWN(from, 64u) + k, n);
	}
	return n;
}

static unsigned zero_from(atomic_u64 *w, unsigned n, unsigned from)
{
	return bits_scan(w, n, from, ~UINT64_C(0));
}

static unsigned one_from(atomic_u64 *w, unsigned n, unsigned from)
{
	return bits_scan(w, n, from, 0);
}

/* Bitmaps are stored to by the lock's holder alone: no read-modify-write needed. */
static void bit_set(atomic_u64 *w, unsigned k)
{
	store_relaxed(&w[k / 64], load_relaxed(&w[k / 64]) | BIT_OF(k));
}

static void bit_clear(atomic_u64 *w, unsigned k)
{
	store_relaxed(&w[k / 64], load_relaxed(&w[k / 64]) & ~BIT_OF(k));
}

/* ---- memory ---------------------------------------------------------------------------- */

/* Zeroed memory, in the ledger until it is linked. */
static void *make(struct slot *self, size_t bytes, int *k)
{
	void *p = mem_alloc_noted(self, bytes, k);

	if (p)
		memset(p, 0, bytes);
	return p;
}

/* release: zeroed contents, to all that look without the lock */
#define LINK(self, at, p, k)                                                                       \
	do {                                                                                       \
		hand_begin((self), (at), (uintptr_t)(p), hand_bit(k), 0);                          \
		tracked_store((at), (p));                                                          \
		hand_end((self), hand_bit(k));                                                     \
	} while (0)

static struct fd_map *map_make(struct slot *self, atomic_ptr(struct fd_map) * at, bool low_taken)
{
	struct fd_map *map = load_relaxed(at); /* under the lock */
	int k;

	if (map)
		return map;
	map = make(self, sizeof(*map), &k);
	if (!map)
		return NULL;
	if (low_taken)
		store_relaxed(&map->used[0],
			      ~UINT64_C(0)); /* 0..63 live in the head; published below */
	LINK(self, at, map, k); /* pairs with fd_map_next_used */
	return map;
}

static struct fd_page *fd_page_ensure(struct slot *self, atomic_ptr(struct fd_page) * at,
				      atomic_ptr(struct fd_map) * map, bool low_taken)
{
	struct fd_page *page = load_relaxed(at); /* under the lock */
	int k;

	if (page || !map_make(self, map, low_taken))
		return page;
	page = make(self, sizeof(*page), &k);
	if (!page)
		return NULL;
	LINK(self, at, page, k); /* pairs with fd_word_of */
	return page;
}

static struct fd_far *fd_far_ensure(struct slot *self, struct fd_table *tab)
{
	struct fd_far *far = load_relaxed(&tab->far); /* under the lock */
	int k;

	if (far)
		return far;
	far = make(self, sizeof(*far), &k);
	if (!far)
		return NULL;
	LINK(self, &tab->far, far, k); /* pairs with fd_page_far */
	return far;
}

static struct fd_node *fd_node_ensure(struct slot *self, struct fd_far *far, unsigned place)
{
	struct fd_node *node = load_relaxed(&far->node[place]); /* under the lock */
	int k;

	if (node)
		return node;
	node = make(self, sizeof(*node), &k);
	if (!node)
		return NULL;
	if (place == 0)
		store_relaxed(&node->full[0],
			      (UINT64_C(1) << FD_DIR) - 1); /* those pages are the head's */
	LINK(self, &far->node[place], node, k); /* pairs with fd_page_far */
	return node;
}

atomic_u64 *fd_map_word_far(struct slot *self, struct fd_table *tab, unsigned fd)
{
	unsigned p = fd >> FD_PAGE_SHIFT;
	struct fd_page *page = NULL;
	struct fd_node *node = NULL;
	struct fd_far *far;

	if (fd < FD_DIR_END) {
		page = fd_page_ensure(self, &tab->page[p], &tab->map[p], p == 0);
		return page ? &page->word[fd % FD_PAGE_WORDS] : NULL;
	}
	far = fd_far_ensure(self, tab);
	if (far)
		node = fd_node_ensure(self, far, p / FD_NODE);
	if (node)
		page = fd_page_ensure(self, &node->page[p % FD_NODE], &node->map[p % FD_NODE],
				      false);
	return page ? &page->word[fd % FD_PAGE_WORDS] : NULL;
}

/* A lookup's way: no lock. */
struct fd_page *fd_page_far(struct fd_table *tab, unsigned fd)
{
	struct fd_far *far = load_acquire(&tab->far); /* pairs with fd_far_ensure */
	struct fd_node *node;

	if (!far || fd >= FD_NUMBER_MAX)
		return NULL;
	node = load_acquire(
		&far->node[fd >> (FD_NODE_SHIFT + FD_PAGE_SHIFT)]); /* pairs with fd_node_ensure */
	if (!node)
		return NULL;
	return load_acquire(
		&node->page[fd >> FD_PAGE_SHIFT & (FD_NODE - 1)]); /* pairs with fd_page_ensure */
}

/* ---- lowest free ------------------------------------------------------------------------- */

/* In `n` pages with their maps: the lowest free index at or after `at`; n pages' worth if none. */
static unsigned pages_lowest_free(atomic_ptr(struct fd_map) * maps, atomic_u64 *full, unsigned n,
				  unsigned at)
{
	unsigned p = zero_from(full, n, at >> FD_PAGE_SHIFT);

	while (p < n) {
		unsigned from = p == at >> FD_PAGE_SHIFT ? at % FD_PAGE_WORDS : 0;
		struct fd_map *map = load_relaxed(&maps[p]); /* under the lock */
		unsigned k = map ? zero_from(map->used, FD_PAGE_WORDS, from) : from;

		if (k < FD_PAGE_WORDS)
			return p << FD_PAGE_SHIFT | k;
		p = zero_from(full, n, p + 1); /* `at` lay behind the last free one of its page */
	}
	return n << FD_PAGE_SHIFT;
}

static unsigned far_lowest_free(struct fd_far *far, unsigned at)
{
	unsigned k = zero_from(far->full, FD_FAR, at / FD_NODE_NUMBERS);

	while (k < FD_FAR) {
		unsigned from = k == at / FD_NODE_NUMBERS ? at % FD_NODE_NUMBERS : 0;
		struct fd_node *node = load_relaxed(&far->node[k]); /* under the lock */
		unsigned low =
			node ? pages_lowest_free(node->map, node->full, FD_NODE, from) : from;

		if (low < FD_NODE_NUMBERS)
			return k * FD_NODE_NUMBERS + low;
		k = zero_from(far->full, FD_FAR, k + 1);
	}
	return FD_NUMBER_MAX;
}

int fd_map_lowest_free_far(struct fd_table *tab, unsigned min, unsigned end)
{
	unsigned fd = FD_DIR_END;
	struct fd_far *far;

	min = max_of(min, FD_NEAR_END);
	if (min < FD_DIR_END)
		fd = pages_lowest_free(tab->map, &tab->full, FD_DIR, min);
	if (fd == FD_DIR_END) {
		min = max_of(min, FD_DIR_END);
		far = load_relaxed(&tab->far); /* under the lock */
		/* Node 0 begins with the head's pages, marked full once it is made. */
		fd = far ? far_lowest_free(far, min) : min;
	}
	return fd < end ? (int)fd : -1;
}

/* ---- marks --------------------------------------------------------------------------------- */

static bool map_is_full(struct fd_map *map)
{
	return zero_from(map->used, FD_PAGE_WORDS, 0) == FD_PAGE_WORDS;
}

/* Only a page whose word just filled can have become full: the scan is rare. */
static bool map_mark(struct fd_map *map, unsigned k)
{
	bit_set(map->used, k);
	return load_relaxed(&map->used[k / 64]) == ~UINT64_C(0) &&
	       map_is_full(map); /* under the lock */
}

static void far_mark(struct fd_far *far, unsigned fd)
{
	struct fd_node *node =
		load_relaxed(&far->node[fd / FD_NODE_NUMBERS]); /* under the lock; made */
	unsigned p = fd >> FD_PAGE_SHIFT & (FD_NODE - 1);

	if (!map_mark(load_relaxed(&node->map[p]), fd % FD_PAGE_WORDS))
		return;
	bit_set(node->full, p);
	if (zero_from(node->full, FD_NODE, 0) == FD_NODE)
		bit_set(far->full, fd / FD_NODE_NUMBERS);
}

void fd_map_mark_far(struct fd_table *tab, unsigned fd)
{
	unsigned p = fd >> FD_PAGE_SHIFT;

	if (fd >= FD_DIR_END)
		far_mark(load_relaxed(&tab->far), fd); /* under the lock; made */
	else if (map_mark(load_relaxed(&tab->map[p]), fd % FD_PAGE_WORDS)) /* the same */
		bit_set(&tab->full, p);
}

static void far_clear(struct fd_far *far, unsigned fd)
{
	struct fd_node *node =
		load_relaxed(&far->node[fd / FD_NODE_NUMBERS]); /* under the lock; made */
	unsigned p = fd >> FD_PAGE_SHIFT & (FD_NODE - 1);
	struct fd_map *map = load_relaxed(&node->map[p]);

	bit_clear(map->used, fd % FD_PAGE_WORDS);
	bit_clear(node->full, p);
	bit_clear(far->full, fd / FD_NODE_NUMBERS);
}

void fd_map_clear_far(struct fd_table *tab, unsigned fd)
{
	unsigned p = fd >> FD_PAGE_SHIFT;

	if (fd >= FD_DIR_END) {
		far_clear(load_relaxed(&tab->far), fd); /* under the lock; made */
	} else {
		struct fd_map *map = load_relaxed(&tab->map[p]); /* under the lock; made */

		bit_clear(map->used, fd % FD_PAGE_WORDS);
		bit_clear(&tab->full, p);
	}
}

/* ---- in use -------------------------------------------------------------------------------- */

static unsigned pages_next_used(atomic_ptr(struct fd_map) * maps, unsigned n, unsigned at)
{
	unsigned p;

	for (p = at >> FD_PAGE_SHIFT; p < n; p++, at = p << FD_PAGE_SHIFT) {
		struct fd_map *map = load_acquire(&maps[p]); /* pairs with map_make */
		unsigned k = map ? one_from(map->used, FD_PAGE_WORDS, at % FD_PAGE_WORDS) :
				   FD_PAGE_WORDS;

		if (k < FD_PAGE_WORDS)
			return p << FD_PAGE_SHIFT | k;
	}
	return n << FD_PAGE_SHIFT;
}

static unsigned far_next_used(struct fd_table *tab, unsigned at)
{
	struct fd_far *far = load_acquire(&tab->far); /* pairs with fd_far_ensure */
	unsigned k = at / FD_NODE_NUMBERS;

	for (; far && k < FD_FAR; k++, at = k * FD_NODE_NUMBERS) {
		struct fd_node *node = load_acquire(&far->node[k]); /* pairs with fd_node_ensure */
		unsigned low = node ? pages_next_used(node->map, FD_NODE, at % FD_NODE_NUMBERS) :
				      FD_NODE_NUMBERS;

		if (low < FD_NODE_NUMBERS)
			return k * FD_NODE_NUMBERS + low;
	}
	return FD_NUMBER_MAX;
}

unsigned fd_map_next_used(struct fd_table *tab, unsigned from)
{
	unsigned fd;

	if (from < FD_NEAR_END) {
		for (fd = from; fd < FD_NEAR_END; fd++)
			if (load_relaxed(fd_near_word(tab, fd))) /* the caller looks again */
				return fd;
		from = FD_NEAR_END;
	}
	if (from < FD_DIR_END) {
		/* Page 0's first 64 bits are set for the lowest free number; they are no numbers of its own. */
		fd = pages_next_used(tab->map, FD_DIR, from);
		if (fd < FD_DIR_END)
			return fd;
		from = FD_DIR_END;
	}
	return far_next_used(tab, from);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* May be repeated: what is free is off the table. */
static void part_free(struct slot *self, void *at, void *part, size_t bytes)
{
	if (part)
		hand_free_from(self, at, NULL, part, bytes);
}

static void pages_free(struct slot *self, atomic_ptr(struct fd_page) * pages,
		       atomic_ptr(struct fd_map) * maps, unsigned n)
{
	unsigned p;

	/* relaxed: nobody else knows the table any more */
	for (p = 0; p < n; p++) {
		part_free(self, &pages[p], load_relaxed(&pages[p]), sizeof(struct fd_page));
		part_free(self, &maps[p], load_relaxed(&maps[p]), sizeof(struct fd_map));
	}
}

void fd_map_free(struct slot *self, struct fd_table *tab)
{
	struct fd_far *far = load_relaxed(&tab->far); /* nobody else knows the table any more */
	unsigned k;

	pages_free(self, tab->page, tab->map, FD_DIR);
	for (k = 0; far && k < FD_FAR; k++) {
		struct fd_node *node = load_relaxed(&far->node[k]);

		if (!node)
			continue;
		pages_free(self, node->page, node->map, FD_NODE);
		part_free(self, &far->node[k], node, sizeof(*node));
	}
	part_free(self, &tab->far, far, sizeof(*far));
}

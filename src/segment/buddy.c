/* SPDX-License-Identifier: MIT */
/*
 * buddy.c - free runs of pages of the whole segment: orders 0..9, split and
 * merged inside their 2 MiB chunk.
 *
 * Data: alloc_state.runs, free_pages, whole, and the word of each run's first frame.
 * Protection: alloc.lock, held by every caller.
 * Death: the frames are the truth.  Every run has its kind and order in its
 * first frame; frames inside a run mean nothing.  Splitting writes the new
 * runs' words while the old run still covers them, then shrinks the old run
 * in one store; merging grows the lower run in one store.  So a scan of the
 * frames finds whole runs at every instant, and buddy_rebuild_locked() makes the
 * lists anew.
 * Look at it: segment_space(), segment_check().
 * Limits: no run is larger than a chunk.
 */
#include "base/clock.h"
#include "segment/segment_priv.h"

static void free_pages_add(struct alloc_state *a, uint64_t n)
{
	store_relaxed(&a->free_pages, load_relaxed(&a->free_pages) + n); /* [P]; others only estimate by it */
}

static void buddy_list(struct seg_local *sl, uint32_t i, unsigned order)
{
	run_push(sl, &sl->alloc->runs[order], i);
	if (order == PAGE_MAX_ORDER)
		sl->alloc->whole++;
}

static void buddy_unlist(struct seg_local *sl, uint32_t i, unsigned order)
{
	run_remove(sl, &sl->alloc->runs[order], i);
	if (order == PAGE_MAX_ORDER)
		sl->alloc->whole--;
}

/* The largest order up to `wanted` that can be had; *found false when nothing is free at all. */
unsigned buddy_best_locked(struct seg_local *sl, unsigned wanted, bool *found)
{
	unsigned k;

	*found = true;
	for (k = 0; k <= PAGE_MAX_ORDER; k++)
		if (sl->alloc->runs[k].head)
			return min_of(k, wanted);
	*found = false;
	return 0;
}

uint32_t buddy_take_locked(struct seg_local *sl, unsigned order, uint64_t word, const struct page_note *noted)
{
	struct alloc_state *a = sl->alloc;
	unsigned k = order;
	uint32_t i;

	while (k <= PAGE_MAX_ORDER && !a->runs[k].head)
		k++;
	if (k > PAGE_MAX_ORDER)
		return FRAME_NONE;
	i = a->runs[k].head - 1;
	buddy_unlist(sl, i, k);
	while (k > order) {
		k--;
		tracked_store(&sl->frames[i + (1u << k)].word, frame_word(PAGE_FREE, k, 0));
		buddy_list(sl, i + (1u << k), k);
	}
	if (noted)
		*noted->k = ledger_add(noted->self, frame_page(sl, i), LEDGER_PAGE);
	/* From here the run is the taker's; pairs with nothing: frames are read under the lock or by their owner. */
	tracked_store(&sl->frames[i].word, word);
	free_pages_add(a, -(UINT64_C(1) << order));
	return i;
}

static bool buddy_is_free(struct seg_local *sl, uint32_t b, unsigned order)
{
	uint32_t committed = load_relaxed(&sl->infos[b / SEG_CHUNK_PAGES].committed); /* grows only before its runs are given */

	return b % SEG_CHUNK_PAGES + (1u << order) <= committed &&
	       load_relaxed(&sl->frames[b].word) == frame_word(PAGE_FREE, order, 0); /* [P] */
}

/* When a chunk became free: trim_may_go() waits for readers and for a while. */
static void buddy_note_whole(struct seg_local *sl, uint32_t i)
{
	struct chunk_info *info = &sl->infos[i / SEG_CHUNK_PAGES];

	info->stamp = grow_stamp(&sl->pub);
	info->freed_at = (uint32_t)(clock_read_ns(CLOCK_MONOTONIC_COARSE) / 1000000000);
}

/* The first of a run of 2^order pages that its owner gives back. */
void buddy_give_locked(struct seg_local *sl, uint32_t i, unsigned order)
{
	uint64_t freed = UINT64_C(1) << order;

	/* Free by its own word before it may vanish inside a larger run: stock_recover_locked looks at it. */
	tracked_store(&sl->frames[i].word, frame_word(PAGE_FREE, order, 0));
	while (order < PAGE_MAX_ORDER && buddy_is_free(sl, i ^ (1u << order), order)) {
		buddy_unlist(sl, i ^ (1u << order), order);
		i &= ~(1u << order);
		order++;
	}
	if (freed != UINT64_C(1) << order)
		tracked_store(&sl->frames[i].word, frame_word(PAGE_FREE, order, 0));
	buddy_list(sl, i, order);
	free_pages_add(sl->alloc, freed);
	if (order == PAGE_MAX_ORDER)
		buddy_note_whole(sl, i);
}

void buddy_take_whole_locked(struct seg_local *sl, uint32_t i)
{
	buddy_unlist(sl, i, PAGE_MAX_ORDER);
	free_pages_add(sl->alloc, -(uint64_t)SEG_CHUNK_PAGES);
}

/* ---- after a death ----------------------------------------------------------------------- */

/* A run that grow.c was handing over has owner 0: free. */
static bool buddy_word_is_free(uint64_t word)
{
	return frame_kind(word) == PAGE_FREE || (frame_kind(word) == PAGE_CACHED && !frame_owner(word));
}

/* Runs come in order of address, so the lower buddy is listed already and the upper one is not. */
static void buddy_relist(struct seg_local *sl, uint32_t i, unsigned order)
{
	free_pages_add(sl->alloc, UINT64_C(1) << order);
	while (i & (1u << order) && order < PAGE_MAX_ORDER && buddy_is_free(sl, i ^ (1u << order), order)) {
		i ^= 1u << order;
		buddy_unlist(sl, i, order);
		order++;
	}
	store_relaxed(&sl->frames[i].word, frame_word(PAGE_FREE, order, 0)); /* [P] */
	buddy_list(sl, i, order);
	if (order == PAGE_MAX_ORDER)
		buddy_note_whole(sl, i);
}

static bool buddy_rebuild_chunk(struct seg_local *sl, uint32_t chunk)
{
	uint32_t committed = load_acquire(&sl->infos[chunk].committed); /* pairs with grow_publish */
	uint32_t n = 0;

	while (n < committed) {
		uint32_t i = chunk * (uint32_t)SEG_CHUNK_PAGES + n;
		uint64_t word = load_relaxed(&sl->frames[i].word); /* [P] */
		unsigned order = frame_order(word);

		if (order > PAGE_MAX_ORDER || n & ((1u << order) - 1) || n + (1u << order) > committed)
			return false;
		if (buddy_word_is_free(word))
			buddy_relist(sl, i, order);
		n += 1u << order;
	}
	return true;
}

void buddy_rebuild_locked(struct seg_local *sl)
{
	struct alloc_state *a = sl->alloc;
	uint32_t chunks = load_acquire(&a->chunks_made); /* pairs with grow_pick */
	uint32_t c;

	for (c = 0; c <= PAGE_MAX_ORDER; c++)
		a->runs[c] = (struct run_list){0, 0};
	a->whole = 0;
	store_relaxed(&a->free_pages, 0); /* [P] */
	for (c = 0; c < chunks; c++)
		if (!buddy_rebuild_chunk(sl, c))
			segment_poison(&sl->pub, "page frames do not add up");
}

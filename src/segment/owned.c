/* SPDX-License-Identifier: MIT */
/*
 * owned.c - page frames as their owners see them: owned.h.
 *
 * Data: frame.word of pages in use, written by whoever has the page (segment_priv.h).
 * Shared writes: the page's own frame.  Wait-free.
 */
#include "segment/owned.h"
#include "segment/segment_priv.h"

void *page_peek(struct slot *self, unsigned k)
{
	uint32_t n = load_relaxed(&self->page_count); /* a guess: a thief may come at any time */

	return k < n ? self->pages[n - 1 - k] : NULL;
}

void page_split(struct slot *self, void *page, unsigned order)
{
	struct seg_local *sl = slot_local(self);
	uint32_t first = frame_index(sl, page), k;
	uint64_t word = load_relaxed(&sl->frames[first].word); /* the caller's page */
	uint64_t single = frame_word(frame_kind(word), 0, self->locker.id);

	/* Inside the run they mean nothing; the first one's word then hands all of them over. */
	for (k = (1u << order) - 1; k > 0; k--)
		store_relaxed(&sl->frames[first + k].word, single);
	tracked_store(&sl->frames[first].word, single); /* release: pairs with a scan of the frames under alloc.lock */
}

void page_claim(struct slot *self, void *page)
{
	struct seg_local *sl = slot_local(self);
	atomic_u64 *word = &sl->frames[frame_index(sl, page)].word;

	tracked_store(word, frame_word(frame_kind(load_relaxed(word)), 0, self->locker.id)); /* the caller's page */
}

uint32_t page_number(const struct segment *seg, const void *page)
{
	return page ? frame_index(seg_local(seg), page) + 1 : 0;
}

void *page_by_number(const struct segment *seg, uint32_t number)
{
	return number ? frame_page(seg_local(seg), number - 1) : NULL;
}

atomic_u32 *page_link(const struct segment *seg, const void *page)
{
	struct seg_local *sl = seg_local(seg);

	return &sl->frames[frame_index(sl, page)].link;
}

bool page_run_owned(struct segment *seg, const void *page, enum page_kind kind, unsigned order, uint32_t id)
{
	struct seg_local *sl = seg_local(seg);

	return page_is_inside(seg, page) &&
	       load_relaxed(&sl->frames[frame_index(sl, page)].word) == frame_word(kind, order, id); /* its owner is dead */
}

bool page_owned(struct segment *seg, const void *page, enum page_kind kind, uint32_t id)
{
	return page_run_owned(seg, page, kind, 0, id);
}

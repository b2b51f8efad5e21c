/* SPDX-License-Identifier: MIT */
/*
 * owned.c - page frames as their owners see them: owned.h.
 *
 * Data: frame.word of pages in use, written by whoever has the page (segment_priv.h).
 * Shared writes: the page's own frame.  Wait-free, page_free_unsplit() apart.
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

bool page_owned(struct segment *seg, const void *page, enum page_kind kind, uint32_t id)
{
	struct seg_local *sl = seg_local(seg);

	return page_is_inside(seg, page) &&
	       load_relaxed(&sl->frames[frame_index(sl, page)].word) == frame_word(kind, 0, id); /* its owner is dead */
}

/* alloc.lock held.  The first such run of the chunk: its place in *at. */
static bool unsplit_find_locked(struct seg_local *sl, uint32_t chunk, enum page_kind kind, uint32_t id, uint32_t *at)
{
	uint32_t committed = load_acquire(&sl->infos[chunk].committed); /* pairs with grow_publish */
	uint32_t n = 0;

	while (n < committed) {
		/* From run to run: frames inside one mean nothing.  acquire: pairs with page_split. */
		uint64_t word = load_acquire(&sl->frames[chunk * (uint32_t)SEG_CHUNK_PAGES + n].word);

		if (frame_order(word) && frame_kind(word) == kind && frame_owner(word) == id) {
			*at = chunk * (uint32_t)SEG_CHUNK_PAGES + n;
			return true;
		}
		n += 1u << frame_order(word);
	}
	return false;
}

uint64_t page_free_unsplit(struct slot *self, enum page_kind kind, uint32_t id)
{
	struct seg_local *sl = slot_local(self);
	uint32_t chunks = load_acquire(&sl->alloc->chunks_made); /* pairs with grow_pick */
	uint32_t chunk, at;
	uint64_t freed = 0;

	for (chunk = 0; chunk < chunks; chunk++) {
		lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
		while (unsplit_find_locked(sl, chunk, kind, id, &at)) {
			unsigned order = frame_order(load_relaxed(&sl->frames[at].word)); /* its owner is dead */

			buddy_give_locked(sl, at, order);
			freed += UINT64_C(1) << order;
		}
		lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	}
	return freed;
}

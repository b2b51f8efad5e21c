/* SPDX-License-Identifier: MIT */
/*
 * grow.c - takes memory from the system and gives it back, chunk by chunk.
 *
 * Data: chunk_info.committed (a chunk has memory from its start up to there),
 * chunks_made, infos_made, first_partial, committed.
 * Protection: alloc.grow, under which alloc.lock is taken to publish.
 * Growing: the first chunk in steps of at least 64 KiB, so that a small shelf stays small; from the second on a
 * whole one at a time, which is a huge page where that can be had.  Memory is committed before
 * anything says so; a death before that leaves memory that the next growth
 * of the chunk finds in place.
 * Progress: blocking.  Giving memory back is in trim.c.
 */
#include "segment/segment_priv.h"

#define GROW_MIN_PAGES 16u

static struct page_hooks page_hooks; /* [1] set while the process attaches */

void page_register_hooks(const struct page_hooks *hooks)
{
	page_hooks = *hooks;
}

uint64_t grow_stamp(struct segment *seg)
{
	return page_hooks.now && seg->hdr->epoch ? page_hooks.now(seg) : 0;
}

/* May memory with this stamp be punched out? */
bool grow_stamp_is_safe(struct segment *seg, uint64_t stamp)
{
	return !page_hooks.safe || !seg->hdr->epoch || stamp < page_hooks.safe(seg);
}

uint64_t grow_reclaim(struct slot *self)
{
	return page_hooks.reclaim ? page_hooks.reclaim(self) : 0;
}

void grow_slot_claimed(struct slot *slot)
{
	if (page_hooks.claimed)
		page_hooks.claimed(slot);
}

/* A range of pages of one chunk that is to get memory. */
struct grow_range {
	uint32_t chunk, from, to;
};

static uint32_t grow_step(struct seg_local *sl)
{
	uint64_t half = load_relaxed(&sl->alloc->committed) / 2; /* [G] */

	if (half <= GROW_MIN_PAGES)
		return GROW_MIN_PAGES;
	return half >= SEG_CHUNK_PAGES ? SEG_CHUNK_PAGES : 1u << bits_last_one(half);
}

static int grow_need_info(struct seg_local *sl, uint32_t chunk)
{
	uint32_t made = load_relaxed(&sl->alloc->infos_made); /* [G] */

	if (chunk < made)
		return 0;
	if (commit_range(sl, (uint64_t)((char *)&sl->infos[made] - (char *)sl->pub.hdr), PAGE_BYTES))
		return -ENOSPC;
	store_release(&sl->alloc->infos_made, made + (uint32_t)INFOS_A_PAGE); /* pairs with readers of chunk infos */
	return 0;
}

/* The first chunk with room for an aligned run of `order`. */
static int grow_pick(struct seg_local *sl, unsigned order, struct grow_range *r)
{
	struct alloc_state *a = sl->alloc;
	uint32_t chunks = (uint32_t)sl->pub.hdr->chunk_count;
	uint32_t c;

	for (c = a->first_partial; c < chunks; c++) {
		if (grow_need_info(sl, c))
			return -ENOSPC;
		r->from = load_relaxed(&sl->infos[c].committed); /* [G] */
		if (r->from == SEG_CHUNK_PAGES && c == a->first_partial)
			a->first_partial++;
		r->to = ALIGN_UP(r->from, 1u << order) + (1u << order);
		if (r->to > SEG_CHUNK_PAGES)
			continue;
		r->chunk = c;
		if (c >= load_relaxed(&a->chunks_made)) /* [G] */
			store_release(&a->chunks_made, c + 1); /* its info is zero; pairs with buddy_rebuild_locked */
		return 0;
	}
	return -ENOSPC;
}

/* The frames' memory first: pages of frames that earlier steps committed stay out, so undoing is safe. */
static int grow_commit(struct seg_local *sl, const struct grow_range *r)
{
	char *base = (char *)sl->pub.hdr;
	uint64_t frames = (uint64_t)((char *)&sl->frames[r->chunk * SEG_CHUNK_PAGES] - base);
	uint64_t from = ALIGN_UP(r->from * sizeof(struct frame), PAGE_BYTES);
	uint64_t to = ALIGN_UP(r->to * sizeof(struct frame), PAGE_BYTES);
	uint64_t data = (uint64_t)(sl->chunks - base) + r->chunk * SEG_CHUNK + r->from * PAGE_BYTES;

	if (commit_range(sl, frames + from, to - from))
		return -ENOSPC;
	if (r->from == 0 && r->to == SEG_CHUNK_PAGES && commit_huge(sl, data))
		return 0;
	if (commit_range(sl, data, (r->to - r->from) * PAGE_BYTES)) {
		commit_undo(sl, frames + from, to - from);
		return -ENOSPC;
	}
	return 0;
}

static unsigned grow_run_order(uint32_t from, uint32_t to)
{
	unsigned fits = bits_last_one(to - from);

	return from ? min_of(fits, bits_first_one(from)) : min_of(fits, (unsigned)PAGE_MAX_ORDER);
}

/* Runs that belong to nobody (CACHED, owner 0), then the chunk's new end, then one run after another is free. */
static void grow_publish(struct slot *self, const struct grow_range *r)
{
	struct seg_local *sl = slot_local(self);
	uint32_t first = r->chunk * (uint32_t)SEG_CHUNK_PAGES;
	uint32_t n;

	lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	for (n = r->from; n < r->to; n += 1u << grow_run_order(n, r->to))
		tracked_store(&sl->frames[first + n].word,
			      frame_word(PAGE_CACHED, grow_run_order(n, r->to), 0));
	tracked_store(&sl->infos[r->chunk].committed, r->to); /* pairs with buddy_rebuild_chunk */
	tracked_store(&sl->alloc->committed, load_relaxed(&sl->alloc->committed) + r->to - r->from); /* [G] */
	for (n = r->from; n < r->to; n += 1u << grow_run_order(n, r->to))
		buddy_give_locked(sl, first + n, grow_run_order(n, r->to));
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
}

static int grow_locked(struct slot *self, unsigned order)
{
	struct seg_local *sl = slot_local(self);
	struct grow_range r;
	uint32_t least;

	if (grow_pick(sl, order, &r))
		return -ENOSPC;
	least = r.to;
	r.to = min_of(max_of(least, ALIGN_UP(r.from + grow_step(sl), GROW_MIN_PAGES)), (uint32_t)SEG_CHUNK_PAGES);
	if (r.chunk && !r.from)
		r.to = SEG_CHUNK_PAGES;
	if (grow_commit(sl, &r)) {
		r.to = least;
		if (grow_commit(sl, &r))
			return -ENOSPC;
	}
	grow_publish(self, &r);
	touch_done(sl, r.chunk * (uint32_t)SEG_CHUNK_PAGES + r.from, r.to - r.from);
	return 0;
}

static bool grow_has_run(struct seg_local *sl, struct slot *self, unsigned order)
{
	bool found = false;
	unsigned k;

	lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	for (k = order; k <= PAGE_MAX_ORDER; k++)
		found |= sl->alloc->runs[k].head != 0;
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	return found;
}

bool grow_for(struct slot *self, unsigned order)
{
	struct seg_local *sl = slot_local(self);
	bool found;

	lock_acquire(&sl->alloc->grow, &self->locker, LOCK_LEAF);
	/* Whoever had the lock before us may have grown enough for both. */
	found = grow_has_run(sl, self, order) || grow_locked(self, order) == 0;
	lock_release(&sl->alloc->grow, &self->locker, LOCK_LEAF);
	return found;
}

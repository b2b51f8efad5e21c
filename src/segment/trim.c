/* SPDX-License-Identifier: MIT */
/*
 * trim.c - gives whole free chunks back to the system.
 *
 * A chunk may go when it has been free for a while (TRIM_AGE; pages_trim() does not wait),
 * and no reader can still look at it: its stamp is below page_hooks.safe().
 * Policy: a thread that drains its stock looks now and then whether more than
 * 1/8 of the committed memory lies in free chunks, and trims down to that.
 * Protection: alloc.grow throughout; alloc.lock to take the run off its list.
 * Death: committed goes to 0 first; memory that was not punched any more is found again
 * when the chunk grows.
 */
#include "base/clock.h"
#include "segment/segment_priv.h"

#define TRIM_AGE 2u /* seconds */
#define TRIM_EVERY 256u /* drains of a stock between two looks at the policy */

static uint32_t trim_seconds(void)
{
	return (uint32_t)(clock_read_ns(CLOCK_MONOTONIC_COARSE) / 1000000000);
}

static bool trim_may_go(struct seg_local *sl, uint32_t i, uint32_t age)
{
	struct chunk_info *info = &sl->infos[i / SEG_CHUNK_PAGES];

	return trim_seconds() - info->freed_at >= age && grow_stamp_is_safe(&sl->pub, info->stamp);
}

/* The index of a whole free chunk that was taken out of use, or FRAME_NONE. */
static uint32_t trim_take_locked(struct seg_local *sl, uint64_t keep, uint32_t age)
{
	struct alloc_state *a = sl->alloc;
	uint32_t i;

	if (a->whole <= keep)
		return FRAME_NONE;
	/* Freed last, listed first: the tail has been free longest. */
	for (i = a->runs[PAGE_MAX_ORDER].tail; i; i = sl->frames[i - 1].prev)
		if (trim_may_go(sl, i - 1, age))
			break;
	if (!i)
		return FRAME_NONE;
	tracked_store(&sl->infos[(i - 1) / SEG_CHUNK_PAGES].committed, 0); /* the frames mean nothing from here */
	buddy_take_whole_locked(sl, i - 1);
	return i - 1;
}

static bool trim_one(struct slot *self, uint64_t keep, uint32_t age)
{
	struct seg_local *sl = slot_local(self);
	struct alloc_state *a = sl->alloc;
	uint32_t i;

	lock_acquire(&a->lock, &self->locker, LOCK_LEAF);
	i = trim_take_locked(sl, keep, age);
	lock_release(&a->lock, &self->locker, LOCK_LEAF);
	if (i == FRAME_NONE)
		return false;
	tracked_store(&a->committed, load_relaxed(&a->committed) - SEG_CHUNK_PAGES); /* [G] */
	a->first_partial = min_of(a->first_partial, i / (uint32_t)SEG_CHUNK_PAGES);
	commit_undo(sl, (uint64_t)((char *)frame_page(sl, i) - (char *)sl->pub.hdr), SEG_CHUNK);
	return true;
}

/* alloc.grow held. */
static uint64_t trim_chunks_locked(struct slot *self, uint64_t keep, uint32_t age)
{
	uint64_t n = 0;

	while (trim_one(self, keep, age))
		n++;
	return n * SEG_CHUNK_PAGES;
}

/* Called after a drain, outside of the stock. */
void trim_policy(struct slot *self)
{
	struct alloc_state *a = slot_local(self)->alloc;
	uint64_t committed, whole;

	if (++self->drains % TRIM_EVERY)
		return;
	committed = load_relaxed(&a->committed) / SEG_CHUNK_PAGES; /* an estimate is enough */
	whole = load_relaxed(&a->free_pages) / SEG_CHUNK_PAGES; /* an upper bound for whole chunks */
	/*
	 * By a try: a thread that grows may come upon a dead one whose recovery frees pages, and then it has the lock
	 * itself.
	 */
	if (whole <= committed / 8 + 1 || !lock_try(&a->grow, &self->locker, LOCK_LEAF))
		return;
	trim_chunks_locked(self, committed / 8 + 1, TRIM_AGE);
	lock_release(&a->grow, &self->locker, LOCK_LEAF);
}

uint64_t pages_trim(struct slot *self)
{
	struct lock *grow = &slot_local(self)->alloc->grow;
	unsigned id;
	uint64_t n;

	magazines_flush(self);
	for (id = 0; id < CACHE_IDS; id++)
		slab_release_empties(self, (enum cache_id)id, 0);
	stock_drain(self, load_relaxed(&self->reserved)); /* own field */
	lock_acquire(grow, &self->locker, LOCK_LEAF);
	n = trim_chunks_locked(self, 0, 0);
	lock_release(grow, &self->locker, LOCK_LEAF);
	return n;
}

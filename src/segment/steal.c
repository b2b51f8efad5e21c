/* SPDX-License-Identifier: MIT */
/*
 * steal.c - what happens when no page is free: nobody gets ENOSPC while
 * pages lie in other threads' stocks.
 *
 * In this order: own magazines and empty slabs, own stock; dead threads' and
 * living threads' stocks (less what they reserved); what waits for an epoch.
 * `pressure` makes every stock stay empty until memory is there again.
 *
 * The owner of a stock must not pay for this, so the two-flag handshake is
 * lopsided: the owner stores busy and looks at steal with only a compiler fence between;
 * the thief takes steal, makes every running thread fence (membarrier), and waits for
 * busy == 0.  Either the owner saw steal, or the thief sees busy.
 * The thief holds nothing but steal locks while it waits, and an owner that waits for
 * steal has busy == 0, so they cannot wait for each other.  A thief takes its own steal
 * first, and waits for it while it holds no other; so nobody steals from thieves, and two of
 * them cannot wait for each other's stocks.
 * Limits: objects in other threads' magazines stay there (at most 1.6 MiB a thread where threads are few,
 * less in a small segment), and so do the pages that threads reserved.
 */
#include <linux/membarrier.h>

#include "base/syscall.h"
#include "segment/segment_priv.h"

#define STEAL_BATCH 8u /* stocks locked at a time: a thread may hold LOCK_HELD_MAX locks */
#define STEAL_PATIENCE 2000u /* looks at busy, a yield each, before its owner is given up */

/* False: the kernel has no memory for it, so that nobody's stock may be touched now. */
static bool steal_fence(void)
{
	fence_full(); /* pairs with fence_full in stock_enter */
	/* In any case: an owner may have looked at need_fence just before it was set. */
	return sys_call3(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != -ENOMEM;
}

/* The owner is out, and sees `steal` before it comes in again; or it is dead. */
static bool steal_wait(struct slot *victim)
{
	unsigned n;

	for (n = 0; n < STEAL_PATIENCE; n++) {
		if (!load_acquire(&victim->busy)) /* pairs with stock_leave */
			return true;
		if (n > 16)
			sys_call3(SYS_sched_yield, 0, 0, 0);
		cpu_relax();
	}
	return false;
}

/* What a living thread has reserved stays its own. */
static uint32_t steal_keep(struct slot *victim)
{
	if (slot_state_of(victim) != SLOT_LIVE ||
	    !slot_number_in_use(load_relaxed(&victim->pid), load_relaxed(&victim->tid), /* ordered by the state */
				load_relaxed(&victim->start_time)))
		return 0;
	return load_relaxed(&victim->reserved); /* ordered by busy == 0 */
}

/* alloc.lock and victim->steal held, the victim out. */
static uint64_t steal_pages_locked(struct slot *self, struct slot *victim)
{
	struct seg_local *sl = slot_local(self);
	uint32_t n = load_relaxed(&victim->page_count); /* ours for the moment */
	uint32_t keep = steal_keep(victim);
	uint64_t got = 0;

	for (; n > keep; n--) {
		void *page = victim->pages[n - 1];
		uint32_t i = frame_index(sl, page);

		store_release(&self->busy, (uint64_t)(uintptr_t)page | 1); /* for stock_stolen_locked */
		tracked_store(&victim->page_count, n - 1);
		if (load_relaxed(&sl->frames[i].word) != frame_cached(victim)) /* a dead owner's torn stock */
			continue;
		tracked_store(&sl->frames[i].word, frame_cached(self));
		buddy_give_locked(sl, i, 0);
		got++;
	}
	return got;
}

LOCK_NO_ANALYSIS static uint64_t steal_batch(struct slot *self, struct slot **victims, unsigned n)
{
	struct seg_local *sl = slot_local(self);
	bool fenced = steal_fence();
	uint64_t got = 0;
	unsigned k;

	for (k = 0; k < n; k++) {
		if (fenced && steal_wait(victims[k])) {
			stock_enter_locked(self, &sl->alloc->lock);
			got += steal_pages_locked(self, victims[k]);
			stock_leave(self);
			lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
		}
		lock_release(&victims[k]->steal, &self->locker, LOCK_STEAL);
	}
	return got;
}

LOCK_NO_ANALYSIS static bool steal_lock(struct slot *self, struct slot *victim)
{
	return victim != self && load_relaxed(&victim->page_count) && /* a hint */
	       lock_try(&victim->steal, &self->locker, LOCK_STEAL);
}

/* Pages that came back to the lists from all other stocks. */
uint64_t steal_stocks(struct slot *self)
{
	uint32_t id, last = slot_limit(self->seg);
	struct slot *victims[STEAL_BATCH];
	unsigned n = 0;
	uint64_t got = 0;

	lock_acquire(&self->steal, &self->locker, LOCK_STEAL);
	for (id = 1; id <= last; id++) {
		victims[n] = slot_by_id(self->seg, id);
		if (!steal_lock(self, victims[n]) || ++n < STEAL_BATCH)
			continue;
		got += steal_batch(self, victims, n);
		n = 0;
	}
	if (n)
		got += steal_batch(self, victims, n);
	lock_release(&self->steal, &self->locker, LOCK_STEAL);
	return got;
}

/* True: pages came back, so trying again makes sense. */
bool pages_scarce(struct slot *self, unsigned order)
{
	struct seg_local *sl = slot_local(self);
	uint64_t got = 0;
	unsigned id;

	store_relaxed(&sl->alloc->pressure, 1); /* a hint to all; pressure_off clears it */
	magazines_flush(self);
	for (id = 0; id < CACHE_IDS; id++)
		got += slab_release_empties(self, (enum cache_id)id, 0);
	if (order && load_relaxed(&self->page_count) > load_relaxed(&self->reserved)) { /* [o] */
		stock_drain(self, load_relaxed(&self->reserved)); /* [o] */
		got++;
	}
	got += steal_stocks(self);
	return got || grow_reclaim(self);
}

/* SPDX-License-Identifier: MIT */
/*
 * gone.c - what the layer below asks of the epoch: threads that are gone, and
 * memory that must not be taken from under a reader.
 */
#include "epoch/epoch_priv.h"

/* At a thread's exit (gone == self), or for a dead one whose slot `self` holds. */
static void epoch_slot_gone(struct slot *self, struct slot *gone)
{
	if (!epoch_root_of(self))
		return; /* a segment that could not be made: this process has others */
	if (gone == self) {
		if (bags_count(self)) /* who only read interrupts nobody */
			epoch_reclaim(self);
		return;
	}
	bags_repair(gone);
	bags_put_noted(gone);
	bags_free_last(self, gone);
	gone->nest = 0;
	gone->reclaiming = 0;
	store_release(&gone->epoch, 0); /* after its intent was finished; pairs with epoch_scan */
}

/* The stamp of memory freed now: as a mark on a bag (race C in advance.c). */
static uint64_t epoch_stamp_now(struct segment *seg)
{
	fence_full(); /* unlinking before the load */
	return load_acquire(&seg->hdr->epoch->global); /* pairs with the CAS of epoch_advance_try */
}

/* A stamp e is safe from global epoch e + 2 on: everything below global - 1. */
static uint64_t epoch_stamp_safe(struct segment *seg)
{
	uint64_t now = load_acquire(&seg->hdr->epoch->global); /* pairs with the CAS of epoch_advance_try */

	return now - 1;
}

static uint64_t epoch_reclaim_if_free(struct slot *self)
{
	if (epoch_inside(self) || load_relaxed(&self->locker.n_held)) /* own fields */
		return 0;
	return epoch_reclaim(self);
}

static const struct page_hooks epoch_page_hooks = {
	.now = epoch_stamp_now,
	.safe = epoch_stamp_safe,
	.reclaim = epoch_reclaim_if_free,
	.claimed = bags_claimed,
};

void epoch_register_hooks(void)
{
	static atomic_u32 done;

	page_register_hooks(&epoch_page_hooks);
	if (!xchg_acq_rel(&done, 1u)) /* a process may attach to several segments */
		slot_register_gone(epoch_slot_gone);
}

/* SPDX-License-Identifier: MIT */
/* epoch_inline.h - the two halves of a read section, inlined into every lookup. */
#ifndef SHELF_EPOCH_EPOCH_INLINE_H
#define SHELF_EPOCH_EPOCH_INLINE_H

#include "epoch/epoch.h"
#include "segment/header.h"

/* With the segment's root at hand: two loads less. */
static inline void epoch_enter_root(struct slot *self, struct epoch_root *root)
{
	if (self->nest++)
		return;
	/*
	 * The global epoch relaxed: an old value only holds the reclaimer back.  The store is a release for the
	 * sections before this one: a scan that misses their exit reads it from here.  Pairs with epoch_scan.
	 */
	store_release(&self->epoch, load_relaxed(&root->global) << 1 | 1);
	fence_compiler(); /* the store before what follows; the CPU half is membarrier() in epoch_fence_all */
	/* relaxed: the first seen late is covered by the hand-over in attach.c, the second by race I in advance.c */
	if (unlikely(load_relaxed(&root->need_fence) | load_relaxed(&self->asleep)))
		epoch_enter_fenced(self);
	fence_compiler(); /* what follows is not read before these looks, either */
}

static inline void epoch_enter(struct slot *self)
{
	epoch_enter_root(self, self->seg->hdr->epoch);
}

static inline void epoch_exit(struct slot *self)
{
	shelf_assert((self->nest & ~EPOCH_WORK) != 0);
	if (unlikely(--self->nest)) {
		if (self->nest == EPOCH_WORK)
			epoch_exit_work(self);
		return;
	}
	store_release(&self->epoch, 0); /* reads of the section before it; pairs with epoch_scan */
}

static inline void epoch_catch_up(struct slot *self)
{
	if (unlikely(self->owes))
		epoch_catch_up_slow(self);
}

#endif

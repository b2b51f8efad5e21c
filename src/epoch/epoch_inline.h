/* SPDX-License-Identifier: MIT */
/* epoch_inline.h - the two halves of a read section, inlined into every lookup. */
#ifndef SHELF_EPOCH_EPOCH_INLINE_H
#define SHELF_EPOCH_EPOCH_INLINE_H

#include "epoch/epoch.h"
#include "segment/header.h"

static inline void epoch_enter(struct slot *self)
{
	struct epoch_root *root = self->seg->hdr->epoch;

	if (self->nest++)
		return;
	/* Relaxed: an old value only holds the reclaimer back. */
	store_relaxed(&self->epoch, load_relaxed(&root->global) << 1 | 1);
	if (unlikely(load_relaxed(&root->need_fence)))
		fence_full(); /* pairs with the fence in epoch_advance_try */
	else
		fence_compiler(); /* pairs with membarrier() in epoch_advance_try */
}

static inline void epoch_exit(struct slot *self)
{
	if (--self->nest)
		return;
	store_release(&self->epoch, 0); /* reads of the section before it; pairs with the scan in epoch_advance_try */
}

#endif

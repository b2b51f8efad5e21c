/* SPDX-License-Identifier: MIT */
/*
 * attach.c - making the epoch root, and joining it from a process.
 *
 * Joining with membarrier costs one registration, which fork's children inherit.
 * A process that cannot register (an old kernel, a seccomp filter) makes everybody fence:
 *
 *	need_fence	entries			advancing
 *	NONE		store			membarrier
 *	SET		store, fence; some that	membarrier, then -> DONE; without membarrier: not at all
 *			began before: store
 *	DONE		store, fence		fence
 *
 * The joining process waits for DONE before it enters any section.  SET -> DONE
 * needs every entry that read NONE to have left its store buffer: a membarrier by
 * somebody who can; else the slow membarrier command, which needs no registration;
 * else (no membarrier at all in this process) FENCE_DRAIN_NS: store buffers drain by themselves, and in
 * nanoseconds.  A creator without membarrier starts at DONE: nobody is inside.
 */
#include "base/copy.h"
#include "base/syscall.h"
#include "epoch/epoch_priv.h"

#include <linux/membarrier.h>
#include <time.h>

_Static_assert(sizeof(struct epoch_root) <= 192, "it comes from CACHE_192");

#define FENCE_DRAIN_NS 20000000L

static long membarrier_call(int command)
{
	return sys_call3(SYS_membarrier, command, 0, 0);
}

bool epoch_membarrier(void)
{
	return membarrier_call(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

struct epoch_root *epoch_root_of(struct slot *self)
{
	return self->seg->hdr->epoch;
}

static bool epoch_join(struct segment *seg)
{
	epoch_register_types();
	epoch_register_hooks();
	seg->membarrier = membarrier_call(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
	return seg->membarrier;
}

int epoch_init(struct segment *seg)
{
	struct slot *self = slot_self(seg);
	struct epoch_root *root = self ? cache_alloc(self, CACHE_192) : NULL;

	if (!root)
		return -ENOSPC;
	zero_bytes(root, sizeof(*root));
	store_relaxed(&root->global, 1); /* published with the segment */
	if (!epoch_join(seg))
		store_relaxed(&root->need_fence, EPOCH_FENCE_DONE);
	seg->hdr->epoch = root;
	segment_set_root(seg, SEG_ROOT_EPOCH, root);
	return 0;
}

static void epoch_wait_drained(void)
{
	struct timespec drain = {0, FENCE_DRAIN_NS};

	if (membarrier_call(MEMBARRIER_CMD_GLOBAL) != 0)
		sys_call3(SYS_nanosleep, (long)&drain, 0, 0);
}

void epoch_use_fence(struct epoch_root *root)
{
	uint32_t fence = EPOCH_FENCE_NONE;

	/* Seen by every entry behind the drain; pairs with the loads in epoch_enter and epoch_fence_all. */
	cas_acq_rel(&root->need_fence, &fence, (uint32_t)EPOCH_FENCE_SET);
	if (fence == EPOCH_FENCE_DONE)
		return;
	epoch_wait_drained();
	fence = EPOCH_FENCE_SET;
	cas_acq_rel(&root->need_fence, &fence, (uint32_t)EPOCH_FENCE_DONE);
}

int epoch_attach(struct segment *seg)
{
	struct epoch_root *root = seg->hdr->epoch;

	if (epoch_join(seg) || load_acquire(&root->need_fence) == EPOCH_FENCE_DONE) /* pairs with epoch_use_fence */
		return 0;
	if (seg->read_only)
		return -EROFS; /* it cannot tell the others to fence */
	epoch_use_fence(root);
	return 0;
}

void epoch_inherit(struct slot *child, const struct slot *parent)
{
	uint32_t nest = parent->nest & ~EPOCH_WORK;

	if (!nest)
		return;
	child->nest = 0;
	epoch_enter(child);
	child->nest = nest;
}

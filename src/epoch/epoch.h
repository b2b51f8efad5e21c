/* SPDX-License-Identifier: MIT */
/*
 * epoch.h - read sections and deferred freeing across threads and processes.
 *
 * Data: one global epoch in the segment, one word per thread in its slot.
 * Entering stores the global epoch in the own slot, nothing else.  The full
 * fence that must follow is done for the reader by the reclaimer's membarrier
 * (GLOBAL_EXPEDITED, registered by every process at attach); a process or kernel
 * without it sets SEG_EPOCH_FENCE in the header for ever and every entry fences.
 * An object retired in epoch e is freed once the global epoch is e + 2.
 * Progress: readers wait-free; retire is lock-free and does the reclaiming.
 * A section must not sleep, and may take LOCK_LEAF locks only.
 */
#ifndef SHELF_EPOCH_EPOCH_H
#define SHELF_EPOCH_EPOCH_H

#include "segment/slot.h"

struct epoch_root { /* SEG_ROOT_EPOCH */
	_Alignas(CACHE_LINE) atomic_u64 global; /* starts at 1 */
	atomic_u32 need_fence; /* sticky: some process could not register for membarrier */
	_Alignas(CACHE_LINE) atomic_u64 waiting; /* objects in bags, for back-pressure and statistics */
};

int epoch_init(struct segment *seg); /* creator: makes the root.  0 or -ENOSPC */
int epoch_attach(struct segment *seg); /* every process: registers for membarrier */

struct epoch_root *epoch_root_of(struct slot *self);

/* Sections nest (a counter in the slot that only its owner touches). */
static inline void epoch_enter(struct slot *self);
static inline void epoch_exit(struct slot *self);
static inline bool epoch_inside(const struct slot *self)
{
	return self->nest != 0;
}

enum retire_type {
	RETIRE_NONE,
	RETIRE_NODE, /* radix node */
	RETIRE_MEM, /* aux = size: mem_free */
	RETIRE_PAGES, /* page run; aux = order; the object holds its struct retired at its start */
	RETIRE_FD_TABLE,
	RETIRE_FILE,
	RETIRE_INODE,
	RETIRE_DENTRY,
	RETIRE_FLOCK,
	RETIRE_TASK,
	RETIRE_SPECIAL,
	RETIRE_USER, /* files of a library user's kind (fdtable.h) */
	RETIRE_TYPES
};
typedef void retire_fn(struct slot *self, struct retired *r);
/* Process-local table; every process that attaches registers the same functions. */
void retire_register(enum retire_type type, retire_fn *fn);
/* Free `r`'s object after a grace period.  The object is unreachable for new readers already. */
void epoch_retire(struct slot *self, struct retired *r, enum retire_type type, uint32_t aux);
/* Try to advance and free what is ripe now; objects freed.  Not inside a section. */
uint64_t epoch_reclaim(struct slot *self);
/* Wait until everything retired before the call is freed or named stalled: for tests, detach and full segments. */
int epoch_barrier(struct slot *self, int64_t timeout_ns);

#include "epoch/epoch_inline.h"

#endif

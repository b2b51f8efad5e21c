/* SPDX-License-Identifier: MIT */
/*
 * epoch.h - read sections and deferred freeing across threads and processes.
 *
 * Data: one global epoch in the segment, one word per thread in its slot, three bags of retired
 * objects in each slot.
 * Protection: slot.epoch and slot.bags belong to the slot's owner, or to whoever has claimed
 * the slot of a dead or departed one; epoch_root is changed by atomics.
 * Entering stores the global epoch in the own slot, nothing else.  The full
 * fence that must follow is done for the reader by the reclaimer's membarrier
 * (GLOBAL_EXPEDITED, registered by every process at attach); a process or kernel
 * without it sets epoch_root.need_fence for ever and every entry fences.  No membarrier is needed while all others
 * pass (they retire too, and say now and then that they are in no section) or are asleep (their next entry fences).
 * An object retired in epoch e is freed once the global epoch is e + 2, or as
 * soon as nobody at all is inside a section.  Why that is enough: epoch/advance.c.
 * Progress: readers wait-free; retire is lock-free.  Retirers do the reclaiming, a batch
 * (EPOCH_PASS objects while nobody need be interrupted; else slot_batch(): 2048 with a few threads, 256 with many) at a time,
 * at the end of the section if they are in one.  While more than EPOCH_WAITING_HIGH
 * objects wait, a retirer that is outside sections and holds no lock is slowed down
 * (EPOCH_PRESSURE_NS a batch at most), and only such a one takes over dead readers' slots; whose batches come due under
 * locks does so at its next call.
 * A section must not sleep, and may take LOCK_LEAF locks only.
 * Look at it: epoch_stalled() names the reader that keeps the epoch from moving.
 * Limits: a stopped reader inside a section keeps everything retired from then on; nothing but its going on
 * or its death helps. A process killed while it frees a library user's file may leave parts of that: shelf_verify().
 */
#ifndef SHELF_EPOCH_EPOCH_H
#define SHELF_EPOCH_EPOCH_H

#include "segment/slot.h"

#define EPOCH_BATCH SLOT_BATCH_MAX /* most objects retired between two tries to advance, where few threads are */
#define EPOCH_PASS 128u /* the same for tries that interrupt nobody */
#define EPOCH_WAITING_HIGH 65536u
#define EPOCH_PRESSURE_NS 10000000L
#define EPOCH_STALL_NS 50000000L /* blocked for longer: look whether the blocker is dead */

enum epoch_fence { EPOCH_FENCE_NONE, EPOCH_FENCE_SET, EPOCH_FENCE_DONE };

struct epoch_root { /* SEG_ROOT_EPOCH */
	_Alignas(CACHE_LINE) atomic_u64 global; /* starts at 1 */
	atomic_u32 need_fence; /* enum epoch_fence; never goes back: some process has no membarrier */
	_Alignas(CACHE_LINE) atomic_u64 waiting; /* objects in sealed bags, for back-pressure and statistics */
	atomic_u64 blocked; /* since when (ms) and in which epoch advancing fails; see advance.c */
	atomic_u64 advances, freed, lost; /* statistics; lost: of a type this process cannot free */
};

int epoch_init(struct segment *seg); /* creator: makes the root.  0 or -ENOSPC */
int epoch_attach(struct segment *seg); /* every process: registers for membarrier.  0, or -EROFS (see attach.c) */

struct epoch_root *epoch_root_of(struct slot *self);

/* Bit in slot.nest, set inside a section only: a batch is due when the outermost section ends. */
#define EPOCH_WORK 0x80000000u

/* Sections nest (a counter in the slot that only its owner touches). */
static inline void epoch_enter(struct slot *self);
static inline void epoch_exit(struct slot *self);
void epoch_exit_work(struct slot *self);
void epoch_enter_fenced(struct slot *self);
static inline bool epoch_inside(const struct slot *self)
{
	return self->nest != 0;
}

/*
 * fork inside a section: the child's fresh slot gets the parent's nesting, so that its exits
 * balance.  What the parent had looked up before may be freed by now; look it up again.
 */
void epoch_inherit(struct slot *child, const struct slot *parent);

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
/* Called in any retirer, perhaps under its locks: may take LOCK_LEAF only; may retire more. */
typedef void retire_fn(struct slot *self, struct retired *r);
/*
 * What hangs on the object and goes with it is freed while that still is in its bag, by `parts` (may be NULL).  A death in
 * there lets it run again, so it takes each part off before it frees it: hand_free_from().
 */
void retire_register_parts(enum retire_type type, retire_fn *parts);
/* Process-local table; every process that attaches registers the same functions. */
void retire_register(enum retire_type type, retire_fn *fn);
/* Free `r`'s object after a grace period.  The object is unreachable for new readers already. */
void epoch_retire(struct slot *self, struct retired *r, enum retire_type type, uint32_t aux);
/* The same in two parts: from the first on it is in the ledger of `owner`, and a death does the rest. */
int retire_note(struct slot *owner, struct retired *r, enum retire_type type, uint32_t aux);
/* The first part around the one store that takes it out of a structure: as hand_begin_got(). */
int retire_begin(struct slot *self, const volatile void *where, uint64_t word, uint32_t given, struct retired *r,
		 enum retire_type type, uint32_t aux);
void epoch_retire_noted(struct slot *self, struct retired *r, int k);
/* What has another entry `k` (-1: none), which becomes `entry` once it is in the bag, and is counted no more with that. */
void epoch_retire_swapped(struct slot *self, struct retired *r, int k, uint64_t entry, atomic_i64 *count);
/* With a store once it is in the bag, before bags change: until that is seen epoch_retired_last() knows. */
void epoch_retire_step(struct slot *self, struct retired *r, enum retire_type type, uint32_t aux, atomic_u32 *step,
		       uint32_t value);
/* Is it what the dead thread retired last?  Until bags change. */
bool epoch_retired_last(struct slot *gone, const struct retired *r);
/*
 * Where a call begins that may retire under locks, and may wait itself: what its batches could not do there, taking over a
 * dead reader's slot and slowing down.
 */
static inline void epoch_catch_up(struct slot *self);
void epoch_catch_up_slow(struct slot *self);
/* Try to advance and free what is ripe now; objects freed.  Not inside a section. */
uint64_t epoch_reclaim(struct slot *self);
/*
 * Wait until everything that this thread, dead threads and departed threads retired before the call is
 * freed: for tests, detach and full segments.  Not inside a section.  0, or -ETIMEDOUT: see epoch_stalled().
 * Other live threads keep up to a batch in their own hands.
 */
int epoch_barrier(struct slot *self, int64_t timeout_ns);

/* Has advancing failed for EPOCH_STALL_NS?  Then whose section is it, and for how long. */
bool epoch_stalled(struct segment *seg, uint32_t *slot_id, int64_t *age_ns);

#include "epoch/epoch_inline.h"

#endif

/* SPDX-License-Identifier: MIT */
/*
 * lock.h - futex locks that know their owner, and sequence counts.
 *
 * Data: struct lock is 4 bytes inside any shared object; zero is unlocked.
 * Word: the owner's slot number + 1 in bits 0..30, bit 31 "somebody waits".
 * Fast path: one CAS to take, one exchange to release, both on the lock's line,
 * plus two stores to the thread's own struct locker.
 * Progress: blocking.  A waiter spins for as long as spinning paid off lately
 * (at most LOCK_SPIN_MAX pauses), then sleeps in FUTEX_WAIT, and asks
 * hooks->owner_dead() when one owner has kept it for LOCK_PATIENCE.  When the owner is
 * dead it runs hooks->recover(), which takes over the dead thread's slot,
 * finishes or undoes what it was doing and releases its locks; so callers never
 * see state that a dead owner left half made.
 * Look at it: locker.held_lock[] in each slot names the locks a thread has.
 * The order in which locks may be taken is in lock_order.h; debug builds check it.
 * Limits: not recursive; a section of epoch.h may only take leaf locks (LOCK_LEAF);
 * a thread holds at most LOCK_HELD_MAX locks.
 *
 * Why only whoever claimed the dead slot changes a dead owner's word: ids are
 * reused.  A waiter that saw "owner 7 is dead" may be delayed until slot 7 has
 * been recovered and belongs to a new thread that took the same lock; were the waiter
 * to swap its number in then, it would rob a live owner.  A slot's id cannot be
 * reused while the slot is claimed, so the recoverer's swap is safe.
 */
#ifndef SHELF_LOCK_LOCK_H
#define SHELF_LOCK_LOCK_H

#include "base/assert.h"
#include "base/base.h"
#include "lock/lock_order.h"

#if defined(__clang__)
#define LOCK_CAPABILITY __attribute__((capability("lock")))
#define LOCK_ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define LOCK_RELEASES(...) __attribute__((release_capability(__VA_ARGS__)))
#define LOCK_TRY_ACQUIRES(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define LOCK_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define LOCK_NO_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define LOCK_CAPABILITY
#define LOCK_ACQUIRES(...)
#define LOCK_RELEASES(...)
#define LOCK_TRY_ACQUIRES(...)
#define LOCK_REQUIRES(...)
#define LOCK_NO_ANALYSIS
#endif

#define LOCK_WAITERS 0x80000000u
#define LOCK_PATIENCE_NS 50000000L
#define LOCK_SPIN_MAX 100u
#define LOCK_HELD_MAX 16u

struct lock {
	atomic_u32 word;
} LOCK_CAPABILITY;

struct locker;

/* What the lock layer asks of the layer that knows who the slots are.  Neither is called in a section. */
struct lock_hooks {
	/* Is the thread behind this slot number gone?  May read /proc. */
	bool (*owner_dead)(struct locker *self, uint32_t id);
	/*
	 * Slot `id`, which still owns `l`, is dead: claim the slot (or wait for whoever did), finish or
	 * undo its intent - lock_adopt() gives the recovering thread the locks this needs -, then
	 * lock_release_dead().  The caller of lock_acquire() queues for `l` again afterwards.
	 */
	void (*recover)(struct locker *self, uint32_t id, struct lock *l);
};

/* One per thread slot; `hooks` is meaningful in the owning process only. */
struct locker {
	uint32_t id; /* slot number + 1; never 0 */
	uint32_t held; /* debug: bit n = a lock of class n is held */
	const struct lock_hooks *hooks;
	/*
	 * Written by the owner, read by whoever recovers its slot.  held_lock[0 .. n_held] (n_held
	 * included: the one being taken) hold every lock whose word has our id, and perhaps others.
	 */
	atomic_u32 n_held;
	uint32_t spin; /* running mean of pauses after which spinning succeeded */
	atomic_ptr(struct lock) held_lock[LOCK_HELD_MAX + 1];
	uint8_t held_class[LOCK_HELD_MAX]; /* debug */
};

static inline void lock_acquire(struct lock *l, struct locker *self, enum lock_class cls) LOCK_ACQUIRES(l);
static inline bool lock_try(struct lock *l, struct locker *self, enum lock_class cls) LOCK_TRY_ACQUIRES(true, l);
static inline void lock_release(struct lock *l, struct locker *self, enum lock_class cls) LOCK_RELEASES(l);
static inline bool lock_held_by(const struct lock *l, const struct locker *self);
/* Two locks of one class, by address, lower first; a == b takes one. */
void lock_acquire_pair(struct lock *a, struct lock *b, struct locker *self, enum lock_class cls);
void lock_release_pair(struct lock *a, struct lock *b, struct locker *self, enum lock_class cls);

/* A fresh thread in a fresh or recycled slot: holds nothing. */
void locker_init(struct locker *self, uint32_t id, const struct lock_hooks *hooks);
/*
 * Inside hooks->recover() only, with the dead slot claimed.  lock_adopt(): hand `l` to `self` if the dead
 * thread has it, else take it the usual way; give it back with lock_release().
 */
void lock_adopt(struct lock *l, struct locker *dead, struct locker *self, enum lock_class cls);
/*
 * The same for a recoverer that died: what `from` has and `to` may have had (it is on its list) is `to`'s again, so
 * that nobody gets it before `to` is recovered.
 */
void lock_hand_back(struct locker *from, struct locker *to);
/* `l` alone, if the dead thread holds it, is unlocked. */
void lock_release_one(struct locker *dead, struct lock *l);
/* Everything the dead thread still holds is unlocked, waiters are woken.  Returns how many. */
unsigned lock_release_dead(struct locker *dead);

/*
 * Sleep until *word != expected, woken by futex_wake(), or timeout_ns (<0: none).
 * 0 (woken, perhaps for no reason), -EINTR, -EAGAIN (it was not `expected`), -ETIMEDOUT.
 */
int futex_wait(atomic_u32 *word, uint32_t expected, int64_t timeout_ns);
/* Wake at most `count` sleepers; how many were woken. */
int futex_wake(atomic_u32 *word, int count);

#include "lock/lock_inline.h"
#include "lock/seqcount.h"

#endif

/* SPDX-License-Identifier: MIT */
/*
 * spin.h - the spinning locks of the schemes biglock, spinlock and rwlock.
 *
 * They exist to be compared with, so they are built as their authors had them,
 * and where user space differs from a kernel the difference is in their favour:
 *   - test, then test-and-set, with pause: a waiter reads its own copy of the
 *     line until the lock is free (2.4's "decb; js; rep nop; cmpb").
 *   - release is a plain store, as the kernel's movb was: no second atomic.
 *   - a kernel holds these locks with preemption off.  We cannot, so a waiter
 *     that has spun for FD_SPIN_TURNS goes to sleep for a short time and is woken by
 *     the release; otherwise one preempted holder would cost the others a whole
 *     time slice.  The release looks at one word of the line it owns to know.
 *   - each lock has a line of its own; nothing else that is hot lies on it.
 *   - rwlock: one counter with a writer's bias, one atomic in and one out, as
 *     rwlock_t until queued locks; readers pass a waiting writer.
 * A wake-up may be lost (no fence between store and look): sleeps are 100 us long.
 * Limit: they do not know their owner; a process killed inside leaves them held.
 * No scheme but these three uses them.
 */
#ifndef SHELF_FD_SPIN_H
#define SHELF_FD_SPIN_H

#include "lock/lock.h"

#define FD_SPIN_TURNS 200
#define FD_SPIN_NAP_NS 100000
#define FD_RW_WRITER 0x01000000u /* RW_LOCK_BIAS */

struct fd_spin {
	atomic_u32 word; /* spin: 0 free, 1 held; rw: readers + FD_RW_WRITER */
	atomic_u32 sleepers;
};

/* spin.c: the contended paths, out of line as in a kernel. */
void fd_spin_lock_slow(struct fd_spin *s) __attribute__((cold));
void fd_read_lock_slow(struct fd_spin *s) __attribute__((cold));
void fd_write_lock_slow(struct fd_spin *s) __attribute__((cold));

static inline void fd_spin_wake(struct fd_spin *s)
{
	if (unlikely(load_relaxed(&s->sleepers))) /* a hint: sleeps are short */
		futex_wake(&s->word, 1);
}

static inline void fd_spin_lock(struct fd_spin *s)
{
	if (unlikely(xchg_acq_rel(&s->word, 1u))) /* pairs with fd_spin_unlock */
		fd_spin_lock_slow(s);
}

static inline void fd_spin_unlock(struct fd_spin *s)
{
	store_release(&s->word, 0u); /* pairs with fd_spin_lock */
	fd_spin_wake(s);
}

static inline void fd_read_lock(struct fd_spin *s)
{
	if (unlikely(add_acq_rel(&s->word, 1u) >= FD_RW_WRITER)) /* pairs with fd_write_unlock */
		fd_read_lock_slow(s);
}

static inline void fd_read_unlock(struct fd_spin *s)
{
	sub_acq_rel(&s->word, 1u); /* pairs with fd_write_lock */
	fd_spin_wake(s);
}

static inline void fd_write_lock(struct fd_spin *s)
{
	uint32_t none = 0;

	if (unlikely(!cas_acq_rel(&s->word, &none, FD_RW_WRITER))) /* pairs with the two unlocks */
		fd_write_lock_slow(s);
}

static inline void fd_write_unlock(struct fd_spin *s)
{
	sub_acq_rel(&s->word, FD_RW_WRITER); /* readers may be trying; pairs with fd_read_lock */
	fd_spin_wake(s);
}

#endif

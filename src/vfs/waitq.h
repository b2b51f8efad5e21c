/* SPDX-License-Identifier: MIT */
/*
 * waitq.h - sleeping until something may have changed, for objects in the segment.
 *
 * Data: two words inside the object that is waited for; zero is a valid start.
 * Use:
 *	ticket = waitq_prepare(q);		the waker stores what it changed, by a locked
 *	if (the condition holds)		instruction or under a lock that it then releases;
 *		done;				then waitq_wake(q)
 *	err = waitq_sleep(self, q, ticket, timeout);
 *	and again from the start: a return of 0 promises nothing
 * Cost: a wake with nobody waiting is one load.
 * Progress: no wake-up is lost.  Either the waker sees the flag that prepare set, then it moves the
 * ticket on and the sleep ends at once; or it does not, then its change came before
 * the flag in the order of locked instructions and the waiter sees the change.
 * Death: there is no count to be left wrong.  A sleeper that dies leaves at most a raised flag, which
 * costs the next waker one system call.  Who dies after having been chosen by waitq_wake(q, 1) takes
 * that wake-up along; so nobody sleeps longer than WAITQ_NAP_NS without having another look.
 * Limit: never inside a read section (debug builds check).
 */
#ifndef SHELF_VFS_WAITQ_H
#define SHELF_VFS_WAITQ_H

#include "segment/slot.h"

#define WAITQ_NAP_NS 500000000L

struct waitq {
	atomic_u32 ticket; /* moved on by every wake that found somebody */
	atomic_u32 waiting; /* somebody may be asleep */
};

static inline void waitq_init(struct waitq *q)
{
	store_relaxed(&q->ticket, 0); /* published with its object */
	store_relaxed(&q->waiting, 0);
}

static inline uint32_t waitq_prepare(struct waitq *q)
{
	uint32_t ticket = load_acquire(&q->ticket); /* pairs with waitq_wake_slow: what it announced is visible */

	/* A full fence on x86-64: the flag before the look at the condition.  Pairs with the waker's locked change. */
	xchg_acq_rel(&q->waiting, 1u);
	return ticket;
}

/* 0, -EINTR (a signal, and the interrupt hook says so), -ETIMEDOUT.  timeout_ns < 0: none. */
int waitq_sleep(struct slot *self, struct waitq *q, uint32_t ticket, int64_t timeout_ns);
void waitq_wake_slow(struct waitq *q, int count);

/* INT_MAX: all.  Wakes of 1 are for waiters that each consume what was announced. */
static inline void waitq_wake(struct waitq *q, int count)
{
	if (unlikely(load_relaxed(&q->waiting))) /* relaxed: ordered by the locked instruction of the caller's change */
		waitq_wake_slow(q, count);
}

/*
 * A signal has interrupted a sleep.  The hook (process-local, one) answers whether the call has to
 * return EINTR (true) or goes on sleeping, as with SA_RESTART.  Without one: EINTR.
 */
typedef bool wait_interrupt_fn(struct slot *self);
void wait_register_interrupt(wait_interrupt_fn *fn);
bool wait_interrupted(struct slot *self);
/*
 * Who keeps signals back while a call runs (shelf run) has a hook of another kind: is one kept?  It is asked after every
 * sleep, as the signal may have come between the last look and the sleep: then the end of the nap shows it.
 */
void wait_register_pending(wait_interrupt_fn *fn);
/* After a sleep that ended with `err`: does the call return EINTR? */
bool wait_ends(struct slot *self, int err);

#endif

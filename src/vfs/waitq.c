/* SPDX-License-Identifier: MIT */
/* waitq.c - the slow halves of waitq.h, and the hook that tells what a signal means to a sleeper. */
#include "vfs/waitq.h"

#include "epoch/epoch.h"

static atomic_ptr(void) interrupt_hook, pending_hook;

static wait_interrupt_fn *hook(atomic_ptr(void) * at)
{
	return (wait_interrupt_fn *)(uintptr_t)load_acquire(at); /* pairs with register */
}

void wait_register_pending(wait_interrupt_fn *fn)
{
	store_release(&pending_hook, (void *)(uintptr_t)fn); /* pairs with hook */
}

void wait_register_interrupt(wait_interrupt_fn *fn)
{
	store_release(&interrupt_hook, (void *)(uintptr_t)fn); /* pairs with hook */
}

bool wait_interrupted(struct slot *self)
{
	wait_interrupt_fn *fn = hook(&interrupt_hook);

	return !fn || fn(self);
}

bool wait_ends(struct slot *self, int err)
{
	wait_interrupt_fn *pending = hook(&pending_hook);

	return pending ? pending(self) : err == -EINTR && wait_interrupted(self);
}

int waitq_sleep(struct slot *self, struct waitq *q, uint32_t ticket, int64_t timeout_ns)
{
	bool whole = timeout_ns >= 0 && timeout_ns <= WAITQ_NAP_NS;
	int err;

	shelf_assert(!epoch_inside(self));
	err = futex_wait(&q->ticket, ticket, whole ? timeout_ns : WAITQ_NAP_NS);
	if (wait_ends(self, err))
		return -EINTR;
	if (err == -ETIMEDOUT && whole)
		return -ETIMEDOUT;
	return 0; /* woken, late, or time for another look */
}

void waitq_wake_slow(struct waitq *q, int count)
{
	int woken;

	xchg_acq_rel(&q->waiting, 0u); /* whoever comes from here on raises it again */
	add_acq_rel(&q->ticket, 1u); /* release: pairs with waitq_prepare */
	woken = futex_wake(&q->ticket, count);
	if (woken >= count)
		xchg_acq_rel(&q->waiting, 1u); /* there may be more of them */
}

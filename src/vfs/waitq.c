/* SPDX-License-Identifier: MIT */
/* waitq.c - the slow halves of waitq.h, and the hook that tells what a signal means to a sleeper. */
#include "vfs/waitq.h"

#include "epoch/epoch.h"

static atomic_ptr(void) interrupt_hook;

void wait_register_interrupt(wait_interrupt_fn *fn)
{
	store_release(&interrupt_hook, (void *)(uintptr_t)fn); /* pairs with wait_interrupted */
}

bool wait_interrupted(struct slot *self)
{
	wait_interrupt_fn *fn = (wait_interrupt_fn *)(uintptr_t)load_acquire(&interrupt_hook); /* pairs with register */

	return !fn || fn(self);
}

bool wait_ends(struct slot *self, int err)
{
	if (err == -EINTR)
		return wait_interrupted(self);
	return load_relaxed(&interrupt_hook) && wait_interrupted(self); /* relaxed: only whether there is one */
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

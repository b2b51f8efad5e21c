/* SPDX-License-Identifier: MIT */
/*
 * intent.c - the record of a multi-step update, the ledger of references, and
 * the points at which a test build kills the process.
 *
 * The short ways are inlined in slot.h.
 * Data: slot.intent and slot.ledger, written by the owner alone, read by whoever
 * recovers the slot.  Cost: plain stores to the own slot.  Wait-free.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/syscall.h"
#include "segment/intent_ops.h"
#include "segment/segment_priv.h"

int ledger_free(struct slot *self)
{
	int k;

	for (k = 0; k < SLOT_LEDGER; k++)
		if (!load_relaxed(&self->ledger[k])) /* [o] */
			return k;
	return -EAGAIN;
}

int ledger_add_slow(struct slot *self, void *obj, enum ledger_kind kind)
{
	int k = ledger_free(self);

	if (k >= 0)
		store_release(&self->ledger[k], (uint64_t)(uintptr_t)obj | kind); /* read after our death */
	return k;
}

void ledger_del_slow(struct slot *self, void *obj)
{
	int k;

	for (k = 0; k < SLOT_LEDGER; k++) {
		if ((load_relaxed(&self->ledger[k]) & ~UINT64_C(7)) != (uintptr_t)obj) /* [o] */
			continue;
		store_release(&self->ledger[k], 0); /* read after our death */
		return;
	}
}

void ledger_inherit(struct slot *self, struct slot *dead, void *obj, enum ledger_kind kind)
{
	int k;

	for (k = 0; k < SLOT_LEDGER; k++)
		if (load_relaxed(&dead->ledger[k]) == ((uint64_t)(uintptr_t)obj | kind)) /* its owner is dead */
			return;
	if (ledger_add_slow(dead, obj, kind) < 0)
		segment_poison(self->seg, "a dead thread owes more than its ledger holds");
}

#ifdef SHELF_KILL_POINTS
static atomic_u64 kill_count, kill_at;
static atomic_u32 kill_ready;

void kill_point_arm(uint64_t n)
{
	store_relaxed(&kill_count, 0); /* a test's own thread */
	store_relaxed(&kill_at, n);
	store_release(&kill_ready, 1); /* pairs with kill_point */
}

uint64_t kill_point_count(void)
{
	return load_relaxed(&kill_count);
}

void kill_point(void)
{
	if (unlikely(!load_acquire(&kill_ready))) { /* pairs with kill_point_arm */
		const char *env = getenv("SHELF_KILL_AT");

		kill_point_arm(env ? strtoull(env, NULL, 10) : 0);
	}
	if (add_relaxed(&kill_count, 1) + 1 == load_relaxed(&kill_at)) /* only counted */
		sys_call3(SYS_kill, sys_call3(SYS_getpid, 0, 0, 0), SIGKILL, 0);
}
#endif

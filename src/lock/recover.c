/* SPDX-License-Identifier: MIT */
/*
 * recover.c - the locks of a dead thread.
 *
 * The caller has claimed the dead thread's slot, so its id belongs to nobody
 * new, and it has seen the death in the kernel's answer, which orders all that
 * the dead thread stored before what is read here.
 * Limit: a thread that dies between the release of a lock and the store that
 * shortens its list leaves an entry for a lock it no longer has.  Should that memory have been freed and
 * made file data by then, and hold exactly the dead id there, it is zeroed.
 */
#include "lock/lock.h"

void locker_init(struct locker *self, uint32_t id, const struct lock_hooks *hooks)
{
	unsigned i;

	self->id = id;
	self->held = 0;
	self->hooks = hooks;
	self->spin = 0;
	store_relaxed(&self->n_held, 0); /* nobody else looks at a live thread's list */
	for (i = 0; i <= LOCK_HELD_MAX; i++)
		store_relaxed(&self->held_lock[i], NULL);
}

/* Change the owner of `l` from the dead thread to `to` (0: nobody); false if the dead one does not have it. */
static bool lock_pass_on(struct lock *l, struct locker *dead, uint32_t to)
{
	uint32_t word = load_acquire(&l->word); /* pairs with the dead owner's CAS */

	/* Retries only when a waiter sets its bit in between. */
	while ((word & ~LOCK_WAITERS) == dead->id) {
		uint32_t next = to ? to | (word & LOCK_WAITERS) : 0;

		/* release: what recovery repaired, to the next owner */
		if (!cas_acq_rel(&l->word, &word, next))
			continue;
		if (!to && (word & LOCK_WAITERS))
			futex_wake(&l->word, 1);
		return true;
	}
	return false;
}

LOCK_NO_ANALYSIS void lock_adopt(struct lock *l, struct locker *dead, struct locker *self, enum lock_class cls)
{
	lock_note_taking(self, l, cls);
	if (lock_pass_on(l, dead, self->id))
		lock_note_taken(self);
	else
		lock_acquire(l, self, cls);
}

static bool lock_is_noted(struct locker *dead, const struct lock *l)
{
	uint32_t n = min_of(load_relaxed(&dead->n_held), LOCK_HELD_MAX); /* ordered by the death, here and below */
	uint32_t i;

	for (i = 0; i <= n; i++)
		if (load_relaxed(&dead->held_lock[i]) == l)
			return true;
	return false;
}

void lock_hand_back(struct locker *from, struct locker *to)
{
	uint32_t n = min_of(load_relaxed(&from->n_held), LOCK_HELD_MAX); /* ordered by the death, both */
	uint32_t i;

	for (i = 0; i <= n; i++) {
		struct lock *l = load_relaxed(&from->held_lock[i]);

		if (l && lock_is_noted(to, l))
			lock_pass_on(l, from, to->id);
	}
}

void lock_release_one(struct locker *dead, struct lock *l)
{
	if (lock_is_noted(dead, l))
		lock_pass_on(l, dead, 0);
}

unsigned lock_release_dead(struct locker *dead)
{
	uint32_t n = min_of(load_relaxed(&dead->n_held), LOCK_HELD_MAX); /* ordered by the death */
	unsigned released = 0;
	uint32_t i;

	for (i = 0; i <= n; i++) {
		struct lock *l = load_relaxed(&dead->held_lock[i]); /* ordered by the death */

		if (l && lock_pass_on(l, dead, 0))
			released++;
	}
	locker_init(dead, dead->id, dead->hooks);
	return released;
}

/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the contended paths of lock.h.
 *
 * No wake-up is lost: whoever goes to sleep has set LOCK_WAITERS in the very
 * value it sleeps on, and whoever takes the lock after having slept takes it
 * with LOCK_WAITERS set, for it cannot know whether others sleep.  A releaser
 * that sees the bit wakes one.  Should it die between its exchange and
 * its wake, the sleepers find the word changed after LOCK_PATIENCE at the latest.
 */
#include "base/clock.h"
#include "lock/lock.h"

/* Spins while that has a chance: somebody else has it, and nobody sleeps yet. */
static bool lock_spin(struct lock *l, struct locker *self)
{
	uint32_t limit = min_of(2 * self->spin + 10, LOCK_SPIN_MAX);
	uint32_t i;

	for (i = 0; i < limit; i++) {
		uint32_t word = load_relaxed(&l->word); /* a hint; the CAS decides */

		if (word & LOCK_WAITERS)
			return false;
		if (!word && cas_acq_rel(&l->word, &word, self->id)) { /* pairs with lock_release */
			self->spin += (int32_t)(i - self->spin) / 8;
			return true;
		}
		cpu_relax();
	}
	self->spin -= self->spin / 8; /* it did not pay: try for less next time */
	return false;
}

/* Which owner a waiter has been waiting for, and since when. */
struct lock_patience {
	uint32_t owner;
	int64_t since;
};

/* The owner has kept us for LOCK_PATIENCE: true when it was dead and its locks have been released. */
static bool lock_owner_recovered(struct lock *l, struct locker *self, uint32_t owner, struct lock_patience *p)
{
	int64_t now = clock_now_monotonic();

	if (owner != p->owner) {
		p->owner = owner;
		p->since = now;
		return false;
	}
	if (now - p->since < LOCK_PATIENCE_NS)
		return false;
	p->since = now;
	if (owner == self->id)
		shelf_panic("a thread waits for a lock that it holds", __FILE__, __LINE__);
	if (!self->hooks || !self->hooks->owner_dead(self, owner))
		return false;
	self->hooks->recover(self, owner, l);
	return true;
}

void lock_acquire_slow(struct lock *l, struct locker *self)
{
	struct lock_patience patience = {0, 0};
	uint32_t word;

	if (lock_spin(l, self))
		return;
	for (;;) {
		word = 0;
		/* With the bit: others may sleep.  acquire: pairs with lock_release. */
		if (cas_acq_rel(&l->word, &word, self->id | LOCK_WAITERS))
			return;
		if (!(word & LOCK_WAITERS) && !cas_acq_rel(&l->word, &word, word | LOCK_WAITERS))
			continue;
		if (lock_owner_recovered(l, self, word & ~LOCK_WAITERS, &patience))
			continue;
		futex_wait(&l->word, word | LOCK_WAITERS, LOCK_PATIENCE_NS);
	}
}

/* Out of order: close the gap with the last entry.  Dying in between leaves one entry twice. */
void lock_note_removed(struct locker *self, struct lock *l)
{
	uint32_t n = load_relaxed(&self->n_held); /* own fields throughout */
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (load_relaxed(&self->held_lock[i]) != l)
			continue;
		store_relaxed(&self->held_lock[i], load_relaxed(&self->held_lock[n - 1]));
		self->held_class[i] = self->held_class[n - 1];
		store_relaxed(&self->n_held, n - 1);
		return;
	}
	shelf_panic("a thread releases a lock that it does not hold", __FILE__, __LINE__);
}

LOCK_NO_ANALYSIS void lock_acquire_pair(struct lock *a, struct lock *b, struct locker *self, enum lock_class cls)
{
	lock_acquire(a < b ? a : b, self, cls);
	if (a != b)
		lock_acquire(a < b ? b : a, self, cls);
}

LOCK_NO_ANALYSIS void lock_release_pair(struct lock *a, struct lock *b, struct locker *self, enum lock_class cls)
{
	if (a != b)
		lock_release(a < b ? b : a, self, cls);
	lock_release(a < b ? a : b, self, cls);
}

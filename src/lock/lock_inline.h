/* SPDX-License-Identifier: MIT */
/* lock_inline.h - the uncontended paths of lock.h. */
#ifndef SHELF_LOCK_LOCK_INLINE_H
#define SHELF_LOCK_LOCK_INLINE_H

#include "lock/lock.h"

void lock_acquire_slow(struct lock *l, struct locker *self);
void lock_note_removed(struct locker *self, struct lock *l);

#ifdef SHELF_DEBUG
void lock_check_order(struct lock *l, struct locker *self, enum lock_class cls);
void lock_check_release(struct lock *l, struct locker *self, enum lock_class cls);
void lock_mark_class(struct locker *self);
#else
static inline void lock_check_order(struct lock *l, struct locker *self, enum lock_class cls)
{
	(void)l, (void)self, (void)cls;
}
static inline void lock_check_release(struct lock *l, struct locker *self, enum lock_class cls)
{
	(void)l, (void)self, (void)cls;
}
static inline void lock_mark_class(struct locker *self)
{
	(void)self;
}
#endif

/*
 * Before the CAS: a thread that dies with the lock has it in its list.  Relaxed: the list is read after
 * its owner's death, and the CAS (a release too) keeps this store before it.
 */
static inline void lock_note_taking(struct locker *self, struct lock *l, enum lock_class cls)
{
	uint32_t n = load_relaxed(&self->n_held); /* own field */

	if (unlikely(n >= LOCK_HELD_MAX))
		shelf_panic("a thread holds too many locks", __FILE__, __LINE__);
#ifdef SHELF_DEBUG
	self->held_class[n] = (uint8_t)cls;
#else
	(void)cls;
#endif
	store_relaxed(&self->held_lock[n], l);
}

static inline void lock_note_taken(struct locker *self)
{
	store_relaxed(&self->n_held, load_relaxed(&self->n_held) + 1); /* own field, see lock_note_taking */
	lock_mark_class(self);
}

LOCK_NO_ANALYSIS static inline void lock_acquire(struct lock *l, struct locker *self, enum lock_class cls)
{
	uint32_t word = 0;

	lock_check_order(l, self, cls);
	lock_note_taking(self, l, cls);
	if (unlikely(!cas_acq_rel(&l->word, &word, self->id))) /* acquire: pairs with the xchg of lock_release */
		lock_acquire_slow(l, self);
	lock_note_taken(self);
}

LOCK_NO_ANALYSIS static inline bool lock_try(struct lock *l, struct locker *self, enum lock_class cls)
{
	uint32_t word = 0;

	lock_note_taking(self, l, cls);
	if (!cas_acq_rel(&l->word, &word, self->id)) /* acquire: pairs with the xchg of lock_release */
		return false;
	lock_note_taken(self);
	return true;
}

LOCK_NO_ANALYSIS static inline void lock_release(struct lock *l, struct locker *self, enum lock_class cls)
{
	uint32_t n = load_relaxed(&self->n_held); /* own field */

	lock_check_release(l, self, cls);
	/* release: what the holder wrote, to the next one's CAS in lock_acquire */
	if (unlikely(xchg_acq_rel(&l->word, 0u) & LOCK_WAITERS))
		futex_wake(&l->word, 1);
	if (likely(n && load_relaxed(&self->held_lock[n - 1]) == l))
		store_relaxed(&self->n_held, n - 1); /* own field, after the xchg: see lock_note_taking */
	else
		lock_note_removed(self, l);
	lock_mark_class(self);
}

static inline bool lock_held_by(const struct lock *l, const struct locker *self)
{
	struct lock *m = (struct lock *)(uintptr_t)l;

	return (load_relaxed(&m->word) & ~LOCK_WAITERS) == self->id; /* only we make it so or otherwise */
}

#endif

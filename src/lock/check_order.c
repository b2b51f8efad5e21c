/* SPDX-License-Identifier: MIT */
/*
 * check_order.c - debug builds: every lock is taken below the ones held.
 * Two of one class: directories (parent, then child) or the higher address second.
 */
#include "lock/lock.h"

#ifdef SHELF_DEBUG

static void lock_check_against(struct lock *l, enum lock_class cls, struct lock *held, enum lock_class held_cls)
{
	if (held == l)
		shelf_panic("a thread takes a lock that it holds", __FILE__, __LINE__);
	if (held_cls > cls)
		shelf_panic("locks taken against lock_order.h", __FILE__, __LINE__);
	if (held_cls == cls && cls != LOCK_DIR && l < held)
		shelf_panic("two locks of one class, the higher address first", __FILE__, __LINE__);
}

void lock_check_order(struct lock *l, struct locker *self, enum lock_class cls)
{
	uint32_t n = load_relaxed(&self->n_held); /* own field */
	uint32_t i;

	for (i = 0; i < n; i++)
		lock_check_against(l, cls, load_relaxed(&self->held_lock[i]),
				   (enum lock_class)self->held_class[i]);
}

void lock_check_release(struct lock *l, struct locker *self, enum lock_class cls)
{
	uint32_t n = load_relaxed(&self->n_held); /* own field */
	uint32_t i;

	shelf_assert(lock_held_by(l, self));
	for (i = 0; i < n; i++)
		if (load_relaxed(&self->held_lock[i]) == l)
			shelf_assert(self->held_class[i] == cls);
}

void lock_mark_class(struct locker *self)
{
	uint32_t n = load_relaxed(&self->n_held); /* own field */
	uint32_t i;

	self->held = 0;
	for (i = 0; i < n; i++)
		self->held |= 1u << self->held_class[i];
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * scheme_spinlock.h - as Linux 2.6 before 2.6.14: files->file_lock, a spinning
 * lock in each table, around the lookup and the count, and around every change.
 * Shared stores of a lookup: the lock taken and released, the count up and down:
 * 3 atomics and 1 store.  The single user takes none of them (fget_light).
 */
#ifndef SHELF_FD_SCHEME_SPINLOCK_H
#define SHELF_FD_SCHEME_SPINLOCK_H

#include "fd/scheme.h"

#define FD_SCHEME_NAME "spinlock"

static inline void fd_table_lock(struct slot *self, struct fd_table *tab)
{
	(void)self;
	fd_spin_lock(&tab->spin);
}

static inline void fd_table_unlock(struct slot *self, struct fd_table *tab)
{
	(void)self;
	fd_spin_unlock(&tab->spin);
}

static inline void fd_lookup_lock(struct slot *self, struct fd_table *tab)
{
	fd_table_lock(self, tab);
}

static inline void fd_lookup_unlock(struct slot *self, struct fd_table *tab)
{
	fd_table_unlock(self, tab);
}

static inline void scheme_names_enter(struct slot *self)
{
	(void)self;
}

static inline void scheme_names_exit(struct slot *self)
{
	(void)self;
}

#include "fd/scheme_locked.h"

#endif

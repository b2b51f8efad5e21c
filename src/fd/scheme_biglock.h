/* SPDX-License-Identifier: MIT */
/*
 * scheme_biglock.h - as before Linux 2.4: one lock in a segment around the
 * descriptor calls of all tables and around all name calls.
 *
 * Recursive for the thread that has it, as lock_kernel() was: a name call looks
 * descriptors up.  The depth is thread-local (kernel: task->lock_depth).
 * The count is dropped without the lock, which is kinder than 2.2's fput and
 * lets callers put a file while they hold an inode's lock.
 * Shared stores of a lookup: the lock taken and released, the count up and down:
 * 3 atomics and 1 store, the lock's line shared by all tables of the segment.
 * There is no light rule: the big lock knew none.
 */
#ifndef SHELF_FD_SCHEME_BIGLOCK_H
#define SHELF_FD_SCHEME_BIGLOCK_H

#ifndef SHELF_FD_NO_LIGHT
#define SHELF_FD_NO_LIGHT
#endif

#include "fd/scheme.h"

#define FD_SCHEME_NAME "biglock"

extern __thread unsigned fd_big_depth;

static inline void scheme_names_enter(struct slot *self)
{
	if (!fd_big_depth++)
		fd_spin_lock(&fd_root_of(self)->big);
}

static inline void scheme_names_exit(struct slot *self)
{
	if (!--fd_big_depth)
		fd_spin_unlock(&fd_root_of(self)->big);
}

static inline void fd_table_lock(struct slot *self, struct fd_table *tab)
{
	(void)tab;
	scheme_names_enter(self);
}

static inline void fd_table_unlock(struct slot *self, struct fd_table *tab)
{
	(void)tab;
	scheme_names_exit(self);
}

static inline void fd_lookup_lock(struct slot *self, struct fd_table *tab)
{
	fd_table_lock(self, tab);
}

static inline void fd_lookup_unlock(struct slot *self, struct fd_table *tab)
{
	fd_table_unlock(self, tab);
}

#include "fd/scheme_locked.h"

#endif

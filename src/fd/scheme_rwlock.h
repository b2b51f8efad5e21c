/* SPDX-License-Identifier: MIT */
/*
 * scheme_rwlock.h - as Linux 2.4 (rwlock_t file_lock): lookups share the table's
 * lock, changes take it alone.
 * Shared stores of a lookup: the lock's counter up and down, the file's count up
 * and down: 4 atomics.  The single user takes none of them: 2.4 had no such rule,
 * and -DSHELF_FD_NO_LIGHT gives its state.
 */
#ifndef SHELF_FD_SCHEME_RWLOCK_H
#define SHELF_FD_SCHEME_RWLOCK_H

#include "fd/scheme.h"

#define FD_SCHEME_NAME "rwlock"

static inline void fd_table_lock(struct slot *self, struct fd_table *tab)
{
	(void)self;
	fd_write_lock(&tab->spin);
}

static inline void fd_table_unlock(struct slot *self, struct fd_table *tab)
{
	(void)self;
	fd_write_unlock(&tab->spin);
}

static inline void fd_lookup_lock(struct slot *self, struct fd_table *tab)
{
	(void)self;
	fd_read_lock(&tab->spin);
}

static inline void fd_lookup_unlock(struct slot *self, struct fd_table *tab)
{
	(void)self;
	fd_read_unlock(&tab->spin);
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

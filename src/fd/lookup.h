/* SPDX-License-Identifier: MIT */
/*
 * lookup.h - from a number to a file: the scheme that this build uses.
 *
 * One is chosen when compiling (-DSHELF_SCHEME_...; none: BORROW, the product),
 * so no branch on it is left.  Each scheme_*.h gives the same functions; scheme.h
 * says which, and has what does not differ.
 *
 *	scheme		lookup				release		year
 *	BIGLOCK		one lock in a segment, count	count		before 2.4
 *	SPINLOCK	one lock in a table, count	count		2.4, 2.6
 *	RWLOCK		the same, shared by readers	count		2.4
 *	REFCOUNT	section, count by CAS, recheck	count		2.6.14
 *	FILEREF		section, count by add, recheck	count		6.13
 *	BORROW		section				end of section	shelf
 */
#ifndef SHELF_FD_LOOKUP_H
#define SHELF_FD_LOOKUP_H

#include "fd/scheme.h"

#if defined(SHELF_SCHEME_BIGLOCK)
#include "fd/scheme_biglock.h"
#elif defined(SHELF_SCHEME_SPINLOCK)
#include "fd/scheme_spinlock.h"
#elif defined(SHELF_SCHEME_RWLOCK)
#include "fd/scheme_rwlock.h"
#elif defined(SHELF_SCHEME_REFCOUNT)
#include "fd/scheme_refcount.h"
#elif defined(SHELF_SCHEME_FILEREF)
#include "fd/scheme_fileref.h"
#else
#include "fd/scheme_borrow.h"
#endif

#ifndef FD_SCHEME_NEAR_FREE
#define FD_SCHEME_NEAR_FREE 0
#endif

/*
 * A loan inside a section that the caller entered before and leaves after the return: where the section is all that a loan
 * takes, nothing remains but the word's load, whoever else has the table.
 */
#ifndef FD_LOAN_IS_SECTION
static inline int fd_borrow_epoch(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	return fd_borrow(self, tab, fd, out);
}

static inline void fd_return_epoch(struct slot *self, struct fd_table *tab, struct fd_file *file)
{
	fd_return(self, tab, file);
}
#endif

/* -EBADF: no such number; -EINVAL: a file of another kind. */
static inline int fd_get_typed(struct slot *self, struct fd_table *tab, int fd, uint32_t type,
			       struct fd_file **out)
{
	int err = fd_get(self, tab, fd, out);

	if (likely(!err) && unlikely((*out)->type != type)) {
		fd_put(self, *out);
		err = -EINVAL;
	}
	return err;
}

#endif

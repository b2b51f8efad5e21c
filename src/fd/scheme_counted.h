/* SPDX-License-Identifier: MIT */
/*
 * scheme_counted.h - borrow and return of every scheme that counts: the single
 * user reads the word (fget_light, Linux 2.5 and later), others fd_get and fd_put.
 * -DSHELF_FD_NO_LIGHT leaves the light rule out, as 2.4 had it.
 */
#ifndef SHELF_FD_SCHEME_COUNTED_H
#define SHELF_FD_SCHEME_COUNTED_H

#include "fd/scheme.h"

#ifdef FD_SCHEME_NAME /* by the scheme that includes this */

#ifdef SHELF_FD_NO_LIGHT
#define FD_SCHEME_LIGHT false
#else
#define FD_SCHEME_LIGHT true
#endif

static inline int fd_borrow(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	uint64_t word;

	if (!FD_SCHEME_LIGHT || !fd_table_is_sole(self, tab))
		return fd_get(self, tab, fd, out);
	word = fd_word_load(tab, fd);
	*out = fd_word_file(word);
	return likely(word & FD_WORD_OPEN) ? 0 : -EBADF;
}

static inline void fd_return(struct slot *self, struct fd_table *tab, struct fd_file *file)
{
	if (!FD_SCHEME_LIGHT || !fd_table_is_sole(self, tab))
		fd_put(self, file);
}

#endif
#endif

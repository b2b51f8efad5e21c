/* SPDX-License-Identifier: MIT */
/*
 * scheme_locked.h - what the schemes with a lock around the lookup share.
 *
 * They define fd_lookup_lock and fd_lookup_unlock first.  Under the lock the slot
 * holds a reference, so the count is never zero when it is raised: a plain
 * increment, and a plain decrement to drop it, as fget and fput had it.
 * The locks do not know their owner: these schemes do not survive kill -9 inside.
 */
#ifndef SHELF_FD_SCHEME_LOCKED_H
#define SHELF_FD_SCHEME_LOCKED_H

#include "fd/scheme.h"

#ifdef FD_SCHEME_NAME /* by the scheme that includes this */

#define FD_SCHEME_PUBLISH_LOCKED 1

static inline bool fd_ref_drop(struct fd_file *file)
{
	return sub_acq_rel(&file->count.n, 1u) == 1;
}

static inline void fd_put(struct slot *self, struct fd_file *file)
{
	if (unlikely(fd_ref_drop(file)))
		fd_release(self, file);
}

static inline int fd_get(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	uint64_t word;

	fd_lookup_lock(self, tab);
	word = fd_word_load(tab, fd);
	*out = fd_word_file(word);
	if (likely(word & FD_WORD_OPEN))
		add_acq_rel(&(*out)->count.n, 1u);
	fd_lookup_unlock(self, tab);
	return likely(word & FD_WORD_OPEN) ? 0 : -EBADF;
}

#include "fd/scheme_counted.h"

#endif
#endif

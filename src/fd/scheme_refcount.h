/* SPDX-License-Identifier: MIT */
/*
 * scheme_refcount.h - as Linux from 2.6.14 to 6.12: a read section, and a count
 * that goes up by compare-and-swap unless it is zero, with the slot checked again.
 * Zero is dead, so a put is one subtraction and needs no section.
 * Shared stores of a lookup: the file's count, up and down: 2 atomics (more when
 * threads meet on one file: the CAS repeats).  The single user takes neither.
 */
#ifndef SHELF_FD_SCHEME_REFCOUNT_H
#define SHELF_FD_SCHEME_REFCOUNT_H

#include "fd/scheme.h"

#define FD_SCHEME_NAME "refcount"
#define FD_SCHEME_PUBLISH_LOCKED 0

static inline void fd_table_lock(struct slot *self, struct fd_table *tab) LOCK_ACQUIRES(&tab->lock)
{
	lock_acquire(&tab->lock, &self->locker, LOCK_TABLE);
}

static inline void fd_table_unlock(struct slot *self, struct fd_table *tab)
	LOCK_RELEASES(&tab->lock)
{
	lock_release(&tab->lock, &self->locker, LOCK_TABLE);
}

static inline bool fd_ref_drop(struct fd_file *file)
{
	return sub_acq_rel(&file->count.n, 1u) == 1;
}

static inline void fd_put(struct slot *self, struct fd_file *file)
{
	if (unlikely(fd_ref_drop(file)))
		fd_release(self, file);
}

/* atomic_inc_not_zero */
static inline bool fd_ref_get_live(struct fd_file *file)
{
	uint32_t n = load_relaxed(&file->count.n); /* the CAS decides */

	while (n)
		if (cas_acq_rel(&file->count.n, &n, n + 1))
			return true;
	return false;
}

static inline int fd_get(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	uint64_t word;

	for (;;) {
		epoch_enter(self);
		word = fd_word_load(tab, fd);
		*out = fd_word_file(word);
		if (unlikely(!(word & FD_WORD_OPEN)))
			break;
		if (likely(fd_ref_get_live(*out))) {
			if (likely(!((fd_word_load(tab, fd) ^ word) & ~(uint64_t)FD_WORD_BITS)))
				break;
			epoch_exit(self);
			fd_put(self, *out);
			continue;
		}
		epoch_exit(self);
	}
	epoch_exit(self);
	return likely(word & FD_WORD_OPEN) ? 0 : -EBADF;
}

static inline void scheme_names_enter(struct slot *self)
{
	(void)self;
}

static inline void scheme_names_exit(struct slot *self)
{
	(void)self;
}

#include "fd/scheme_counted.h"

#endif

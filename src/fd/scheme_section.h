/* SPDX-License-Identifier: MIT */
/*
 * scheme_section.h - counting by unconditional add inside a read section, and
 * the table's lock as the lock layer has it: what borrow and fileref share.
 */
#ifndef SHELF_FD_SCHEME_SECTION_H
#define SHELF_FD_SCHEME_SECTION_H

#include "fd/scheme.h"

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

/* In a read section, as ref_put asks. */
static inline bool fd_ref_drop(struct fd_file *file)
{
	return ref_put(&file->count);
}

static inline void fd_section_put(struct slot *self, struct fd_file *file)
{
	bool last;

	if (unlikely(!ref_put_at_once(&file->count, &last))) {
		epoch_enter(self);
		last = fd_ref_drop(file);
		epoch_exit(self);
	}
	if (unlikely(last))
		fd_release(self, file);
}

/* Add, recheck the slot, look again. */
static inline int fd_section_get(struct slot *self, struct fd_table *tab, int fd,
				 struct fd_file **out)
{
	struct fd_file *file = NULL, *stale = NULL;
	uint64_t word;

	epoch_enter(self);
	for (;;) {
		word = fd_word_load(tab, fd);
		if (unlikely(!(word & FD_WORD_OPEN)))
			break;
		file = fd_word_file(word);
		if (unlikely(!ref_get(&file->count)))
			continue; /* race C */
		if (likely(!((fd_word_load(tab, fd) ^ word) & ~(uint64_t)FD_WORD_BITS)))
			break;
		if (fd_ref_drop(file)) { /* race D, and its other holders left meanwhile */
			stale = file;
			break;
		}
	}
	epoch_exit(self);
	if (unlikely(stale != NULL)) {
		fd_release(self, stale);
		return fd_section_get(self, tab, fd, out);
	}
	*out = file;
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

#endif

/* SPDX-License-Identifier: MIT */
/*
 * scheme.h - what every lookup scheme shares: the note of counted references,
 * and the counted lookup of the schemes that take it inside a read section.
 *
 * A scheme_*.h defines
 *	FD_SCHEME_NAME
 *	FD_SCHEME_PUBLISH_LOCKED	fd_publish takes the table's lock (lookups hold it)
 *	FD_SCHEME_NEAR_FREE	if it does: near numbers change without the table's lock
 *	fd_borrow fd_return fd_get fd_put	see fd.h
 *	fd_ref_drop(file)		true: that was the last reference
 *	fd_table_lock fd_table_unlock	around every change of the table
 *	scheme_names_enter scheme_names_exit
 */
#ifndef SHELF_FD_SCHEME_H
#define SHELF_FD_SCHEME_H

#include "fd/table.h"
#include "fd/root.h"

/* Last reference gone: count it out and call the release hook of its type. */
void fd_release(struct slot *self, struct fd_file *file) __attribute__((cold));
/* The same where the ledger has that reference still. */
void fd_release_last(struct slot *self, struct fd_file *file);
/* The same where it has it unless it is full (k = -1). */
static inline void fd_release_entry(struct slot *self, struct fd_file *file, int k)
{
	if (likely(k >= 0))
		fd_release_last(self, file);
	else
		fd_release(self, file);
}

/* Which entry of the ledger it is, -1: none. */
static inline int fd_entry(struct slot *self, struct fd_file *file)
{
	uint64_t entry = hand_entry_of(file, LEDGER_FILE);

	return likely(load_relaxed(&self->ledger[0]) == entry) ? 0 : hand_find(self, file, LEDGER_FILE); /* own */
}

#if defined(SHELF_SCHEME_BIGLOCK) || defined(SHELF_SCHEME_SPINLOCK) ||                             \
	defined(SHELF_SCHEME_RWLOCK) || defined(SHELF_SCHEME_REFCOUNT) ||                          \
	defined(SHELF_SCHEME_FILEREF)
#define FD_LEDGER                                                                                  \
	false /* their authors had no need of one: the comparison is with what they built */
#else
#define FD_LEDGER true
#endif

/*
 * The ledger names the references in a thread's hands, so that they can be
 * dropped for it when it dies.  They come and go with the count (tally.h).
 * A full ledger (calls nested deeper than it is long) only forgets the note.
 */
static inline void fd_note(struct slot *self, struct fd_file *file)
{
	uint64_t entry = (uint64_t)(uintptr_t)file | LEDGER_FILE;
	unsigned k = 0;

	if (!FD_LEDGER)
		return;
	while (unlikely(load_relaxed(&self->ledger[k]))) /* own field */
		if (++k == SLOT_LEDGER)
			return;
	store_release(&self->ledger[k], entry); /* read by whoever recovers, after it saw us dead */
}

static inline void fd_forget(struct slot *self, struct fd_file *file)
{
	uint64_t entry = (uint64_t)(uintptr_t)file | LEDGER_FILE;
	unsigned k;

	for (k = 0; FD_LEDGER && k < SLOT_LEDGER; k++) {
		if (load_relaxed(&self->ledger[k]) != entry) /* own field */
			continue;
		store_release(&self->ledger[k], 0); /* see fd_note */
		return;
	}
}

/* In the schemes without a ledger, and of the host's file, whose count is saturated. */
static inline bool fd_ref_take(struct fd_file *file, int *k)
{
	*k = -1;
	return FD_LEDGER || ref_get(&file->count);
}

#ifndef SHELF_SCHEME_BORROW
/* As that of scheme_borrow.h. */
static inline bool fd_ref_get(struct slot *self, struct fd_file *file, int *k)
{
	(void)self;
	return fd_ref_take(file, k);
}
#endif

#endif

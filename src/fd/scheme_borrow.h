/* SPDX-License-Identifier: MIT */
/*
 * scheme_borrow.h - the product: a lookup that stores to no shared line.
 *
 * fd_borrow enters a read section and loads one word; the file it names is not
 * freed before the section ends.  The races:
 *   A. close or dup2 takes the file off the slot while it is borrowed: the last
 *      put marks the count dead and retires the file through the epoch, so its
 *      memory and its contents stay until fd_return.  The call is as if it had run
 *      before the close.
 *   B. a number is closed and opened again between the load and the use: the
 *      borrower has the old file, which it found at a moment inside its call.
 *   C. fd_get would add to a count that just died: tally_get says so and we look again;
 *      EBADF is only ever said of a word that was seen empty.
 *   D. fd_get adds to a live count of a file that has left the slot meanwhile: the
 *      recheck sees it and looks again.  With files freed through the epoch
 *      this is not needed for safety; it keeps files free to be reused at once.
 *   E. the single user: see fd_table_is_sole.
 * Progress: borrow is wait-free; get is lock-free (it repeats only when the slot changed).
 */
#ifndef SHELF_FD_SCHEME_BORROW_H
#define SHELF_FD_SCHEME_BORROW_H

#include "fd/scheme_section.h"

#define FD_SCHEME_NAME "borrow"
#define FD_SCHEME_NEAR_FREE 1 /* the others had the table's lock for every change */

static inline int fd_borrow(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	bool sole = fd_table_is_sole(self, tab);
	uint64_t word;

	if (!sole)
		epoch_enter(self);
	word = fd_word_load(tab, fd);
	if (likely(word & FD_WORD_OPEN)) {
		*out = fd_word_file(word);
		return 0;
	}
	if (!sole)
		epoch_exit(self);
	return -EBADF;
}

static inline void fd_return(struct slot *self, struct fd_table *tab, struct fd_file *file)
{
	(void)file;
	if (!fd_table_is_sole(self, tab))
		epoch_exit(self);
}

#define FD_LOAN_IS_SECTION /* see lookup.h */

static inline int fd_borrow_epoch(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	uint64_t word = fd_word_load(tab, fd);

	(void)self;
	*out = fd_word_file(word);
	return likely(word & FD_WORD_OPEN) ? 0 : -EBADF;
}

static inline void fd_return_epoch(struct slot *self, struct fd_table *tab, struct fd_file *file)
{
	(void)self, (void)tab, (void)file;
}

/* In a section: one reference more, in entry *k of the ledger.  False: it is being freed. */
static inline bool fd_ref_get(struct slot *self, struct fd_file *file, int *k)
{
	return tally_get(self, &file->tally, hand_entry_of(file, LEDGER_FILE), k);
}

static inline int fd_get(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	uint64_t word;
	int k;

	for (;;) {
		epoch_enter(self);
		word = fd_word_load(tab, fd);
		*out = fd_word_file(word);
		if (unlikely(!(word & FD_WORD_OPEN)))
			break;
		if (likely(fd_ref_get(self, *out, &k))) { /* else race C */
			if (likely(!((fd_word_load(tab, fd) ^ word) & ~(uint64_t)FD_WORD_BITS)))
				break;
			if (tally_put(self, &(*out)->tally, k)) { /* race D, and its other holders left meanwhile */
				epoch_exit(self);
				fd_release_entry(self, *out, k);
				continue;
			}
		}
		epoch_exit(self);
	}
	epoch_exit(self);
	return likely(word & FD_WORD_OPEN) ? 0 : -EBADF;
}

/* The last reference stays in the ledger: a recoverer sees by the count that it was dropped, and goes on from there. */
static inline void fd_put(struct slot *self, struct fd_file *file)
{
	bool last = tally_put_only(self, &file->tally);
	int k = fd_entry(self, file);

	if (unlikely(!last)) {
		epoch_enter(self); /* as tally.h asks */
		last = tally_put(self, &file->tally, k);
		epoch_exit(self);
	}
	if (last)
		fd_release_entry(self, file, k);
}

#endif

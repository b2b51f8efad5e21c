/* SPDX-License-Identifier: MIT */
/*
 * fd_priv.h - shared by the files of this folder and its tests.
 *
 * How a change of a table runs: the table's lock; an intent record; words by
 * tracked stores; bitmaps; the record cleared; the lock.  Whoever recovers from a
 * death in between (recover.c) has the lock and finds the words as the dead left
 * them, so it can tell from them what was done.
 */
#ifndef SHELF_FD_FD_PRIV_H
#define SHELF_FD_FD_PRIV_H

#include "base/assert.h"
#include "fd/fd.h"
#include "segment/intent_ops.h"

/* What the arguments of INTENT_FD_* mean. */
enum fd_intent_arg {
	FD_ARG_TABLE,
	FD_ARG_NUMBER,
	FD_ARG_FILE, /* a reference that has no other home while the record stands */
	FD_ARG_OLD, /* DUP2: the word replaced; SHARE, LEAVE: the number of users before */
	FD_ARG_MADE, /* and three more: memory not linked to the table yet */
	FD_ARG_MADE_END = FD_ARG_MADE + 4,
	FD_ARG_HOME = FD_ARG_MADE_END, /* where the table's address is kept; 0: nowhere */
	FD_INTENT_ARGS
};

/* INTENT_FD_COPY with the table as its own source is share; INTENT_FD_CLOSE of this number is leave. */
#define FD_NO_NUMBER (-1)

/* INTENT_FD_*: how far it went. */
enum fd_intent_step {
	FD_STEP_BEGUN,
	FD_STEP_COUNTED, /* FD_ARG_FILE's count was raised for the record */
	FD_STEP_HANDED, /* the reference is the caller's, in its ledger */
};

/* A record that the layer above opened stays: its recovery then covers this update as well. */
bool fd_intent_begin(struct slot *self, uint32_t op, struct fd_table *tab, int fd,
		     struct fd_file *file);
void fd_intent_end(struct slot *self, bool begun);

/* Change an argument, if the record is one of ours. */
static inline void fd_intent_note(struct slot *self, unsigned k, uint64_t v)
{
	uint32_t op = load_relaxed(&self->intent.op); /* own field */

	if (op >= INTENT_FD_INSTALL && op <= INTENT_FD_COPY)
		intent_set(self, k, v);
}

/* map.c; all but fd_map_next_used with the table's lock held */
/* The lowest free number in [min, end), -1 if none. */
int fd_map_lowest_free_locked(struct fd_table *tab, unsigned min, unsigned end);
/* The word of `fd` (below FD_NUMBER_MAX), with its page made if need be; NULL: no memory. */
atomic_u64 *fd_map_word_locked(struct slot *self, struct fd_table *tab, unsigned fd);
void fd_map_mark_locked(struct fd_table *tab, unsigned fd);
void fd_map_clear_locked(struct fd_table *tab, unsigned fd);
/* The lowest number >= from whose word is not empty, FD_NUMBER_MAX if none.  A snapshot without the lock. */
unsigned fd_map_next_used(struct fd_table *tab, unsigned from);
void fd_map_free(struct slot *self, struct fd_table *tab);

/* layer.c */
bool fd_file_counted(struct slot *self); /* one more open file; false: past the limit */
void fd_file_uncounted(struct slot *self);

/* public.c: files of a library user can be freed in every process */
void fd_users_attach(void);

/* recover.c */
void fd_recover_register(void);

void fd_table_retire_fn(struct slot *self, struct retired *r);

/* A reference from the table to the caller's hands: noted, then the record gives it up. */
static inline void fd_hand_over(struct slot *self, struct fd_file *file, bool begun)
{
	fd_note(self, file);
	if (begun)
		intent_step(self, FD_STEP_HANDED);
}

static inline bool fd_word_is_open(uint64_t word)
{
	return word & FD_WORD_OPEN;
}

#endif

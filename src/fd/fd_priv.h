/* SPDX-License-Identifier: MIT */
/*
 * fd_priv.h - shared by the files of this folder and its tests.
 *
 * How a change of far numbers and of whole tables runs: the table's lock; an intent
 * record; words by tracked stores; bitmaps; the record cleared; the lock.  Whoever
 * recovers from a death in between (recover.c) has the lock and finds the words as the
 * dead left them, so it can tell from them what was done.  Near numbers: near.c.
 */
#ifndef SHELF_FD_FD_PRIV_H
#define SHELF_FD_FD_PRIV_H

#include "base/assert.h"
#include "base/bits.h"
#include "fd/fd.h"
#include "fd/root.h"
#include "segment/count.h"
#include "segment/intent_ops.h"

/* What the arguments of INTENT_FD_* mean. */
enum fd_intent_arg {
	FD_ARG_TABLE,
	FD_ARG_NUMBER,
	FD_ARG_FILE, /* a reference that has no other home while the record stands */
	FD_ARG_OLD, /* DUP2: the word replaced; SHARE, LEAVE: the number of users before */
	FD_ARG_HOME, /* where the table's address is kept; 0: nowhere */
	FD_INTENT_ARGS
};

/* INTENT_FD_COPY with the table as its own source is share; INTENT_FD_CLOSE of this number is leave. */
#define FD_NO_NUMBER (-1)

/* INTENT_FD_*: how far it went. */
enum fd_intent_step {
	FD_STEP_BEGUN,
	FD_STEP_COUNTED, /* FD_ARG_FILE's count was raised for the record */
	FD_STEP_GIVEN, /* INSTALL: the reference left the ledger, or is about to, for FD_ARG_FILE */
	FD_STEP_HANDED, /* the reference is the caller's, in its ledger */
};

/* A record that the layer above opened stays: its recovery then covers this update as well. */
static inline bool fd_intent_begin(struct slot *self, uint32_t op, struct fd_table *tab, int fd,
				   struct fd_file *file)
{
	const uint64_t args[FD_INTENT_ARGS] = {
		[FD_ARG_TABLE] = (uint64_t)(uintptr_t)tab,
		[FD_ARG_NUMBER] = (uint64_t)(unsigned)fd,
		[FD_ARG_FILE] = (uint64_t)(uintptr_t)file,
	};

	if (unlikely(load_relaxed(&self->intent.op))) /* own field */
		return false;
	intent_begin(self, op, FD_INTENT_ARGS, args);
	return true;
}

/* For one near word; only the first arguments have a meaning. */
static inline_always bool fd_near_begin(struct slot *self, struct fd_table *tab, unsigned fd, struct fd_file *file)
{
	const uint64_t args[] = {
		[FD_ARG_TABLE] = (uint64_t)(uintptr_t)tab,
		[FD_ARG_NUMBER] = fd,
		[FD_ARG_FILE] = (uint64_t)(uintptr_t)file,
	};

	if (unlikely(load_relaxed(&self->intent.op))) /* own field */
		return false;
	intent_begin(self, INTENT_FD_NEAR, ARRAY_SIZE(args), args);
	return true;
}

static inline void fd_intent_end(struct slot *self, bool begun)
{
	if (likely(begun))
		intent_end(self);
}

/* Change an argument, if the record is one of ours. */
static inline void fd_intent_note(struct slot *self, unsigned k, uint64_t v)
{
	uint32_t op = load_relaxed(&self->intent.op); /* own field */

	if (op >= INTENT_FD_INSTALL && op <= INTENT_FD_COPY)
		intent_set(self, k, v);
}

/* map.c; all but fd_map_next_used with the table's lock held */
/* The first four: of far numbers; below are theirs for all. */
int fd_map_lowest_free_far(struct fd_table *tab, unsigned min, unsigned end);
atomic_u64 *fd_map_word_far(struct slot *self, struct fd_table *tab, unsigned fd);
void fd_map_mark_far(struct fd_table *tab, unsigned fd);
void fd_map_clear_far(struct fd_table *tab, unsigned fd);
/* The lowest number >= from whose word is not empty, FD_NUMBER_MAX if none.  A snapshot without the lock. */
unsigned fd_map_next_used(struct fd_table *tab, unsigned from);
void fd_map_free(struct slot *self, struct fd_table *tab);

/* The word of `fd` (below FD_NUMBER_MAX), with its page made if need be; NULL: no memory. */
static inline atomic_u64 *fd_map_word_locked(struct slot *self, struct fd_table *tab, unsigned fd)
{
	return likely(fd < FD_NEAR) ? fd_near_word(tab, fd) : fd_map_word_far(self, tab, fd);
}

/* Near numbers have no bit. */
static inline void fd_map_mark_locked(struct fd_table *tab, unsigned fd)
{
	if (fd >= FD_NEAR)
		fd_map_mark_far(tab, fd);
}

static inline void fd_map_clear_locked(struct fd_table *tab, unsigned fd)
{
	if (fd >= FD_NEAR)
		fd_map_clear_far(tab, fd);
}

/* slots.c: far numbers, under the table's lock.  `end` is above FD_NEAR. */
int fd_far_reserve(struct slot *self, struct fd_table *tab, unsigned min, unsigned end);
int fd_far_install(struct slot *self, struct fd_table *tab, struct fd_file *file, unsigned min, unsigned end,
		   unsigned bits);
void fd_far_publish(struct slot *self, struct fd_table *tab, int fd, struct fd_file *file, unsigned bits);
void fd_far_cancel(struct slot *self, struct fd_table *tab, int fd);
void fd_far_cancel_dead(struct slot *self, struct fd_table *tab, int fd);
/* Which numbers a removal means. */
enum fd_remove { FD_REMOVE_ANY, FD_REMOVE_HOST, FD_REMOVE_OURS };
int fd_far_remove(struct slot *self, struct fd_table *tab, int fd, enum fd_remove what, atomic_u64 *parked,
		  struct fd_file **out);

static inline_always bool fd_is_meant(struct slot *self, uint64_t word, enum fd_remove what)
{
	return what == FD_REMOVE_ANY || (fd_word_file(word) == fd_host_file(self)) == (what == FD_REMOVE_HOST);
}

/* The word is ours, and not free yet. */
static inline_always void fd_park(atomic_u64 *parked, unsigned fd)
{
	if (parked)
		or_acq_rel(parked, 1ULL << fd % 64); /* ordered by the word: whoever takes the number sees the bit */
}

/* near.c */
/* fd_install from number `min` on. */
int fd_install_from(struct slot *self, struct fd_table *tab, struct fd_file *file, unsigned min, uint64_t limit,
		    unsigned bits);
/* Lock held: until the gate is opened no near word changes but by the caller; see near.c for the exceptions. */
void fd_gate_close(struct slot *self, struct fd_table *tab);
void fd_gate_open(struct fd_table *tab);
/* No lock held: until the word is not what was seen, which had MOVING. */
void fd_near_wait(struct slot *self, atomic_u64 *word, uint64_t seen);

static inline unsigned fd_limit_of(uint64_t limit)
{
	return (unsigned)min_of(limit, (uint64_t)FD_NUMBER_MAX);
}

/* layer.c */
bool fd_files_full(struct slot *self); /* all slots' counts together are past the limit */

/* One more open file, which entry `k` of the ledger will be; false: past the limit. */
static inline bool fd_file_counted(struct slot *self, int k)
{
	int64_t limit = (int64_t)load_relaxed(&fd_root_of(self)->limit); /* a plain number */

	count_up(&self->files, k);
	if (likely(count_read(&self->files) * slot_limit(self->seg) <= limit) || !fd_files_full(self))
		return true;
	count_undo(&self->files);
	return false;
}

/* tables.c: every file of it, one after another. */
void fd_table_drop_all(struct slot *self, struct fd_table *tab, fd_drop_fn *drop, void *ctx);

/* public.c: files of a library user can be freed in every process */
void fd_users_attach(void);

/* layer.c: the file is in the ledger, its count dead */
void fd_uncount(struct slot *self, struct fd_file *file);
/* Entry `k` of the dead one's names it, and it is in the bag. */
void fd_go_on_retiring(struct slot *self, struct slot *gone, int k, struct fd_file *file);

/* recover.c */
void fd_recover_register(void);

/* A dead thread's reservation, if `fd` is that: others cancel it too, and reserve the number again. */
void fd_cancel_dead(struct slot *self, struct fd_table *tab, int fd);

/* What hangs on a table, and the table. */
void fd_table_free_parts(struct slot *self, struct retired *r);
void fd_table_free(struct slot *self, struct retired *r);

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

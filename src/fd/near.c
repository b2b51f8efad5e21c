// SPDX-License-Identifier: MIT
/*
 * near.c - the numbers 0..63: taken and given back without the table's lock.
 *
 * A number is free if its word is 0; there is no bitmap, no count and no hint that
 * could disagree with it, and that two threads would both store to.  An open reads the
 * words from the lowest on; what it writes is the word it takes.
 *
 * What may happen to a near word, and who may do it:
 *	0 -> moving		a CAS: install, which then owns the word
 *	moving -> open		by its owner
 *	0 -> reserved		a CAS: reserve
 *	reserved -> moving	by its reserver: publish
 *	reserved -> 0		by its reserver: cancel; of a dead one by whoever leaves the table for it
 *	open -> moving		a CAS: close, which then owns the word, and the file's reference with it
 *	moving -> 0		by its owner
 *	open -> open'		a CAS: flags, anybody; dup2, by the holder of lock and gate
 *	0 -> open		a CAS: dup2, the same
 * Reserved and moving words have their owner's id; lookups take both for EBADF.  Nobody
 * but the owner stores to them.
 *
 * Which number: an open passes over k only after it saw k's word not 0: k was open, or being
 * opened, or being closed by a call that had not returned.  So no number below the one
 * returned was free all the while, and with calls that do not overlap it is the lowest
 * free one.  Opens and closes that overlap are ordered number by number; they
 * are no single snapshot of the table.
 *
 * Death, between any two stores.  The record (INTENT_FD_NEAR) names table, number, file;
 * the ledger entry of a file is a reference too.  Recovery puts a file that it drops into the dead one's
 * ledger.  What it finds, and does:
 *	install	the record; CAS 0 -> moving; the ledger's entry cleared; word open; no record
 *	  before the CAS	the word is not the dead one's: nothing; the ledger drops the file
 *	  after it		the dead one's, file in the ledger: word 0; the ledger drops the file
 *	  entry cleared		the dead one's, not in the ledger: word 0, and the file dropped
 *	  word open		not the dead one's, nor in the ledger: nothing: done
 *	publish	the record; reserved -> moving; entry cleared; word open; no record: the same
 *	close	the record; CAS open -> moving; file into the ledger; word 0; no record
 *	  before the CAS	not the dead one's: nothing: never begun
 *	  after it		the dead one's, not in the ledger: word 0, and the file dropped
 *	  in the ledger		the dead one's: word 0; the ledger drops the file
 *	  word 0		not the dead one's: nothing; the ledger drops the file
 * Others may take and leave the number before recovery comes: they never write the dead
 * one's id, so the answers above stay.  A table outlives the recovery of its dead
 * users (task/sweep.c).  reserve and cancel are one store each: a death leaves a
 * reservation, as it does between the two calls, and whoever leaves the table for
 * the dead cancels it.
 *
 * The gate.  dup2 over an open number is one store that others may undo before a record
 * of it is settled, and fork wants a picture of the table.  Both take the lock and
 * close the gate; while it is closed near words are taken and left under the lock.  A close
 * loads the word, then the gate, then does its CAS: so one that found the gate open can only
 * succeed on a word that it saw before the gate closed.  dup2 puts its word in by CAS:
 * after that such a late close fails, or found the very word that dup2 put in, the same
 * file: then which of its two references goes makes no difference.  A late
 * open finds a word that is not 0.  A picture for fork may have late ones in it or not, each
 * thread's last call at most.
 * Who finds the gate closed takes the lock; if it is still closed then, its closer died: it is opened.
 *
 * A table's only user (fd_table_is_sole) makes the same stores in the same order, plain ones in place of each CAS.
 * Progress: lock-free while the gate is open.  Who wants to put a file over a moving word waits for its owner.
 * Shared lines written: the word's, once to take it and once to leave it.
 * Limits: with 64 numbers open each open reads 64 words before it takes the lock for a far one.
 */
#include <sys/syscall.h>

#include "base/syscall.h"
#include "fd/fd_priv.h"

#define WAIT_TURNS 256u /* pauses between two looks whether the owner lives */

enum near_way { NEAR_SHARED, NEAR_ALONE, NEAR_LOCKED };

static inline uint64_t mark_of(struct slot *self)
{
	return FD_WORD_RESERVED | (uint64_t)self->locker.id << 32;
}

/* ---- the gate ----------------------------------------------------------------------------------- */

void fd_gate_close(struct slot *self, struct fd_table *tab)
{
	if (FD_SCHEME_NEAR_FREE && !fd_table_is_sole(self, tab)) {
		store_release(&tab->gate, 1u); /* pairs with near_enter, directly or through dup2's CAS */
		fence_full(); /* before the words are looked at: fork's picture has what came before */
	}
}

void fd_gate_open(struct fd_table *tab)
{
	if (FD_SCHEME_NEAR_FREE && load_relaxed(&tab->gate)) /* under the lock */
		store_release(&tab->gate, 0u); /* pairs with near_enter: what was changed meanwhile */
}

LOCK_NO_ANALYSIS static enum near_way near_enter_locked(struct slot *self, struct fd_table *tab)
{
	fd_table_lock(self, tab);
	fd_gate_open(tab);
	return NEAR_LOCKED;
}

static inline_always enum near_way near_enter(struct slot *self, struct fd_table *tab)
{
	if (FD_SCHEME_NEAR_FREE && fd_table_is_sole(self, tab))
		return NEAR_ALONE;
	if (FD_SCHEME_NEAR_FREE && likely(!load_acquire(&tab->gate))) /* pairs with fd_gate_close and _open */
		return NEAR_SHARED;
	return near_enter_locked(self, tab);
}

LOCK_NO_ANALYSIS static inline_always void near_exit(struct slot *self, struct fd_table *tab, enum near_way way)
{
	if (way == NEAR_LOCKED)
		fd_table_unlock(self, tab);
}

/* Where nobody else can change it a store will do. */
static inline_always bool near_change(atomic_u64 *word, uint64_t from, uint64_t to, enum near_way way)
{
	if (FD_SCHEME_NEAR_FREE && way != NEAR_ALONE)
		return tracked_cas(word, &from, to); /* acquire: what the one before us did to the number */
	if (load_relaxed(word) != from) /* alone, or under the lock */
		return false;
	tracked_store(word, to);
	return true;
}

void fd_near_wait(struct slot *self, atomic_u64 *word, uint64_t seen)
{
	unsigned turn;

	for (turn = 1; load_acquire(word) == seen; turn++) { /* pairs with the owner's last store */
		cpu_relax();
		if (turn % WAIT_TURNS)
			continue;
		if (!slot_alive(self->seg, (uint32_t)(seen >> 32)))
			slot_takeover(self, (uint32_t)(seen >> 32));
		sys_call3(SYS_sched_yield, 0, 0, 0);
	}
}

/* ---- install ------------------------------------------------------------------------------------ */

/* The lowest free number in [min, end), its word marked; -1 if none.  A record begins if there is a file. */
static inline_always int near_claim(struct slot *self, struct fd_table *tab, unsigned min, unsigned end,
				    struct fd_file *file, uint64_t mark, enum near_way way, bool *begun)
{
	unsigned fd;

	for (fd = min; fd < min_of(end, FD_NEAR); fd++) {
		atomic_u64 *word = fd_near_word(tab, fd);

		if (load_relaxed(word)) /* the CAS decides */
			continue;
		*begun = file && fd_near_begin(self, tab, fd, file);
		if (likely(near_change(word, 0, mark, way)))
			return (int)fd;
		fd_intent_end(self, *begun);
	}
	return -1;
}

/* The word is ours, moving, and the record stands: the reference goes from the ledger through the record to the word. */
static inline_always void near_open(struct slot *self, atomic_u64 *word, struct fd_file *file, unsigned bits)
{
	fd_forget(self, file);
	kill_point();
	tracked_store(word, fd_word_make(file, bits)); /* release: the file; pairs with fd_word_load */
}

int fd_install_from(struct slot *self, struct fd_table *tab, struct fd_file *file, unsigned min, uint64_t limit,
		    unsigned bits)
{
	unsigned end = fd_limit_of(limit);
	enum near_way way = near_enter(self, tab);
	bool begun;
	int fd = near_claim(self, tab, min, end, file, mark_of(self) | FD_WORD_MOVING, way, &begun);

	if (likely(fd >= 0)) {
		near_open(self, fd_near_word(tab, (unsigned)fd), file, bits);
		fd_intent_end(self, begun);
	}
	near_exit(self, tab, way);
	if (unlikely(fd < 0))
		return end > FD_NEAR ? fd_far_install(self, tab, file, min, end, bits) : -EMFILE;
	return fd;
}

int fd_install(struct slot *self, struct fd_table *tab, struct fd_file *file, uint64_t limit, unsigned bits)
{
	return fd_install_from(self, tab, file, 0, limit, bits);
}

/* ---- reserve, publish, cancel ------------------------------------------------------------------- */

int fd_reserve(struct slot *self, struct fd_table *tab, int min, uint64_t limit)
{
	unsigned end = fd_limit_of(limit);
	enum near_way way;
	bool begun;
	int fd;

	if (min < 0 || (min > 0 && (uint64_t)min >= limit))
		return -EINVAL;
	way = near_enter(self, tab);
	fd = near_claim(self, tab, (unsigned)min, end, NULL, mark_of(self), way, &begun);
	near_exit(self, tab, way);
	if (unlikely(fd < 0))
		return end > FD_NEAR ? fd_far_reserve(self, tab, (unsigned)min, end) : -EMFILE;
	return fd;
}

/* Moving, so that nobody cancels it for us before our record is settled. */
void fd_publish(struct slot *self, struct fd_table *tab, int fd, struct fd_file *file, unsigned bits)
{
	atomic_u64 *word = fd_near_word(tab, (unsigned)fd);
	bool begun;

	if (unlikely((unsigned)fd >= FD_NEAR)) {
		fd_far_publish(self, tab, fd, file, bits);
		return;
	}
	shelf_assert(load_relaxed(word) == mark_of(self)); /* ours: nobody else stores to it */
	begun = fd_near_begin(self, tab, (unsigned)fd, file);
	tracked_store(word, mark_of(self) | FD_WORD_MOVING);
	if (FD_SCHEME_PUBLISH_LOCKED)
		fd_table_lock(self, tab);
	near_open(self, word, file, bits);
	if (FD_SCHEME_PUBLISH_LOCKED)
		fd_table_unlock(self, tab);
	fd_intent_end(self, begun);
}

void fd_cancel(struct slot *self, struct fd_table *tab, int fd)
{
	atomic_u64 *word = fd_near_word(tab, (unsigned)fd);

	if (unlikely((unsigned)fd >= FD_NEAR)) {
		fd_far_cancel(self, tab, fd);
		return;
	}
	shelf_assert(load_relaxed(word) == mark_of(self)); /* as in fd_publish */
	tracked_store(word, 0);
}

void fd_cancel_dead(struct slot *self, struct fd_table *tab, int fd)
{
	atomic_u64 *word = fd_near_word(tab, (unsigned)fd);
	uint64_t now;

	if ((unsigned)fd >= FD_NEAR) {
		fd_far_cancel_dead(self, tab, fd);
		return;
	}
	now = load_acquire(word); /* pairs with the reserver's CAS */
	if (now & FD_WORD_RESERVED && !(now & FD_WORD_MOVING) && !slot_alive(self->seg, (uint32_t)(now >> 32)))
		(void)tracked_cas(word, &now, 0); /* several may leave at once */
}

/* ---- close -------------------------------------------------------------------------------------- */

/* False: not open.  The word first, the gate after it: see the top. */
static inline_always bool near_look(struct slot *self, struct fd_table *tab, atomic_u64 *word, uint64_t *old,
				    enum near_way *way)
{
	*old = load_acquire(word); /* the file; pairs with near_open */
	*way = near_enter(self, tab);
	if (*way == NEAR_LOCKED)
		*old = load_acquire(word); /* the same */
	if (likely(*old & FD_WORD_OPEN))
		return true;
	near_exit(self, tab, *way);
	return false;
}

static inline_always int remove_as(struct slot *self, struct fd_table *tab, int fd, enum fd_remove what,
				   atomic_u64 *parked, struct fd_file **out)
{
	atomic_u64 *word = fd_near_word(tab, (unsigned)fd);
	bool begun, closed = false;
	enum near_way way;
	uint64_t old;

	if (unlikely((unsigned)fd >= FD_NEAR))
		return fd_far_remove(self, tab, fd, what, parked, out);
	while (likely(!closed)) { /* again if flags, dup2 or another close came between */
		if (unlikely(!near_look(self, tab, word, &old, &way)))
			return -EBADF;
		if (!fd_is_meant(self, old, what)) {
			near_exit(self, tab, way);
			return -EBADF;
		}
		*out = fd_word_file(old);
		begun = fd_near_begin(self, tab, (unsigned)fd, *out);
		closed = near_change(word, old, mark_of(self) | FD_WORD_MOVING, way);
		if (likely(closed)) {
			fd_note(self, *out);
			kill_point();
			fd_park(parked, (unsigned)fd);
			tracked_store(word, 0); /* release: that we are done with it; pairs with near_change */
		}
		fd_intent_end(self, begun);
		near_exit(self, tab, way);
	}
	return 0;
}

int fd_remove(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	return remove_as(self, tab, fd, FD_REMOVE_ANY, NULL, out);
}

int fd_remove_host(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	return remove_as(self, tab, fd, FD_REMOVE_HOST, NULL, out);
}

int fd_remove_parking(struct slot *self, struct fd_table *tab, int fd, atomic_u64 *parked, struct fd_file **out)
{
	return remove_as(self, tab, fd, FD_REMOVE_OURS, parked, out);
}

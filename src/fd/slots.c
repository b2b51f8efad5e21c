// SPDX-License-Identifier: MIT
/*
 * slots.c - far numbers one at a time, dup, dup2 and flags.  Near numbers: near.c.
 *
 * What may happen to a far word, and who may do it:
 *	0 -> open		fd_install, under the lock
 *	0 -> reserved		fd_reserve, under the lock
 *	reserved -> open	fd_publish, by the reserver; no lock needed: nobody else
 *				may store to a reserved word
 *	reserved -> 0		fd_cancel, under the lock
 *	open -> open'		flags: CAS, no lock; dup2: CAS, under the lock
 *	open -> 0		close: store, under the lock
 * The flags' CAS fails when close or dup2 came between and looks again, so it
 * never marks the next file.  dup2 is one CAS: no moment with EBADF.
 * Close needs none: which file stands there changes under the lock only, and flags
 * that are set at the same moment go with it.
 */
#include "fd/fd_priv.h"

/* ---- reserve, publish, cancel ---------------------------------------------------------------- */

/* The lowest free number and its word; the record names it. */
static inline_always int claim_locked(struct slot *self, struct fd_table *tab, unsigned min, unsigned end,
				       atomic_u64 **word)
{
	int fd = fd_map_lowest_free_far(tab, min, end);

	if (fd < 0)
		return -EMFILE;
	fd_intent_note(self, FD_ARG_NUMBER, (uint64_t)fd);
	*word = fd_map_word_locked(self, tab, (unsigned)fd);
	return *word ? fd : -ENOMEM;
}

int fd_far_reserve(struct slot *self, struct fd_table *tab, unsigned min, unsigned end)
{
	atomic_u64 *word;
	bool begun;
	int fd;

	fd_table_lock(self, tab);
	begun = fd_intent_begin(self, INTENT_FD_INSTALL, tab, -1, NULL);
	fd = claim_locked(self, tab, min, end, &word);
	if (fd >= 0) {
		tracked_store(word, FD_WORD_RESERVED | (uint64_t)self->locker.id << 32);
		fd_map_mark_locked(tab, (unsigned)fd);
	}
	fd_intent_end(self, begun);
	fd_table_unlock(self, tab);
	return fd;
}

void fd_far_publish(struct slot *self, struct fd_table *tab, int fd, struct fd_file *file, unsigned bits)
{
	atomic_u64 *word = fd_word_of(tab, fd);
	bool begun = fd_intent_begin(self, INTENT_FD_INSTALL, tab, fd, file);

	shelf_assert(word &&
		     load_relaxed(word) & FD_WORD_RESERVED); /* ours: nobody else stores to it */
	fd_forget(self, file); /* the record has it now */
	if (FD_SCHEME_PUBLISH_LOCKED)
		fd_table_lock(self, tab);
	tracked_store(word,
		      fd_word_make(file, bits)); /* release: the file; pairs with fd_word_load */
	if (FD_SCHEME_PUBLISH_LOCKED)
		fd_table_unlock(self, tab);
	fd_intent_end(self, begun);
}

static void cancel_locked(struct slot *self, struct fd_table *tab, int fd, atomic_u64 *word)
{
	bool begun = fd_intent_begin(self, INTENT_FD_INSTALL, tab, fd, NULL);

	tracked_store(word, 0);
	fd_map_clear_locked(tab, (unsigned)fd);
	fd_intent_end(self, begun);
}

void fd_far_cancel(struct slot *self, struct fd_table *tab, int fd)
{
	atomic_u64 *word = fd_word_of(tab, fd);

	fd_table_lock(self, tab);
	shelf_assert(word && load_relaxed(word) & FD_WORD_RESERVED); /* under the lock */
	cancel_locked(self, tab, fd, word);
	fd_table_unlock(self, tab);
}

void fd_far_cancel_dead(struct slot *self, struct fd_table *tab, int fd)
{
	atomic_u64 *word = fd_word_of(tab, fd);
	uint64_t now;

	fd_table_lock(self, tab);
	now = load_relaxed(word); /* under the lock; only its reserver could publish it */
	if (now & FD_WORD_RESERVED && !slot_alive(self->seg, (uint32_t)(now >> 32)))
		cancel_locked(self, tab, fd, word);
	fd_table_unlock(self, tab);
}

/* ---- both in one ----------------------------------------------------------------------------- */

/* From the ledger to the record; in this order a death never drops it twice (recover.c asks the ledger). */
static inline void file_to_record(struct slot *self, struct fd_file *file, bool begun)
{
	if (begun)
		intent_step(self, FD_STEP_GIVEN);
	kill_point();
	fd_forget(self, file);
	kill_point();
}

int fd_far_install(struct slot *self, struct fd_table *tab, struct fd_file *file, unsigned min, unsigned end,
		   unsigned bits)
{
	atomic_u64 *word;
	bool begun;
	int fd;

	fd_table_lock(self, tab);
	begun = fd_intent_begin(self, INTENT_FD_INSTALL, tab, -1, file);
	fd = claim_locked(self, tab, min, end, &word);
	if (likely(fd >= 0)) {
		file_to_record(self, file, begun);
		tracked_store(word, fd_word_make(file, bits)); /* release: the file; pairs with fd_word_load */
		fd_map_mark_locked(tab, (unsigned)fd);
	}
	fd_intent_end(self, begun);
	fd_table_unlock(self, tab);
	return fd;
}

/* ---- dup ---------------------------------------------------------------------------------------- */

/* The file may lose its number while we look for another: so it is held. */
int fd_dup(struct slot *self, struct fd_table *tab, int fd, int min, uint64_t limit, unsigned bits)
{
	struct fd_file *file;
	int err = fd_get(self, tab, fd, &file);

	if (err)
		return err;
	if (min < 0 || (uint64_t)min >= limit)
		err = -EINVAL;
	else
		err = fd_install_from(self, tab, file, (unsigned)min, limit, bits);
	if (err < 0)
		fd_put(self, file);
	return err;
}

/* From the caller's ledger to the record and back: in both orders it is known, and dropped once, at any moment. */
static void file_to_dup2(struct slot *self, struct fd_file *file, bool begun)
{
	if (begun) {
		intent_set(self, FD_ARG_FILE, (uint64_t)(uintptr_t)file);
		intent_step(self, FD_STEP_COUNTED);
	}
	kill_point();
	fd_forget(self, file);
	kill_point();
}

static void file_from_dup2(struct slot *self, struct fd_file *file, bool begun)
{
	fd_note(self, file);
	kill_point();
	if (begun)
		intent_step(self, FD_STEP_BEGUN);
}

/*
 * The file into the word.  0; -EBUSY: *old is reserved.  Between look and CAS flags may change, and of a near word
 * one late close or open may come (near.c).
 */
static int dup2_swap(struct slot *self, atomic_u64 *word, struct fd_file *file, unsigned bits, uint64_t *old, bool begun)
{
	bool given = false;

	*old = load_acquire(word); /* the file that goes; pairs with fd_publish */
	while (!(*old & FD_WORD_RESERVED)) {
		fd_intent_note(self, FD_ARG_OLD, *old);
		if (!given)
			file_to_dup2(self, file, begun);
		given = true;
		if (tracked_cas(word, old, fd_word_make(file, bits))) /* release: the file; pairs with fd_word_load */
			return 0;
	}
	if (given)
		file_from_dup2(self, file, begun);
	return -EBUSY;
}

static int dup2_locked(struct slot *self, struct fd_table *tab, struct fd_file *file, int newfd, unsigned bits,
		       uint64_t *old, struct fd_file **replaced)
{
	bool begun = fd_intent_begin(self, INTENT_FD_DUP2, tab, newfd, NULL);
	atomic_u64 *word = fd_map_word_locked(self, tab, (unsigned)newfd);
	int err = -ENOMEM;

	*old = 0;
	if (word) {
		fd_gate_close(self, tab);
		err = dup2_swap(self, word, file, bits, old, begun);
	}
	if (!err) {
		fd_map_mark_locked(tab, (unsigned)newfd);
		*replaced = fd_word_file(*old);
		if (*replaced)
			fd_hand_over(self, *replaced, begun);
		err = newfd;
	}
	fd_intent_end(self, begun);
	fd_gate_open(tab); /* after the record: see near.c */
	return err;
}

/*
 * Takes the caller's reference, which is in the ledger, unless it fails.  Onto a number that is being closed or opened
 * at this moment: once that is done.
 */
static int dup2_held(struct slot *self, struct fd_table *tab, struct fd_file *file, int newfd, unsigned bits,
		     struct fd_file **replaced)
{
	uint64_t old;
	int err;

	do {
		fd_table_lock(self, tab);
		err = dup2_locked(self, tab, file, newfd, bits, &old, replaced);
		fd_table_unlock(self, tab);
		if (err == -EBUSY && old & FD_WORD_MOVING)
			fd_near_wait(self, fd_near_word(tab, (unsigned)newfd), old);
	} while (err == -EBUSY && old & FD_WORD_MOVING);
	if (err < 0)
		fd_put(self, file);
	return err;
}

int fd_dup2(struct slot *self, struct fd_table *tab, int oldfd, int newfd, uint64_t limit,
	    unsigned bits, struct fd_file **replaced)
{
	struct fd_file *file;
	int err;

	*replaced = NULL;
	if (newfd < 0 || (unsigned)newfd >= fd_limit_of(limit))
		return -EBADF;
	if (oldfd == newfd)
		return fd_word_is_open(fd_word_load(tab, oldfd)) ? newfd : -EBADF;
	err = fd_get(self, tab, oldfd, &file);
	return err ? err : dup2_held(self, tab, file, newfd, bits, replaced);
}

int fd_mark_host(struct slot *self, struct fd_table *tab, int fd, struct fd_file **replaced)
{
	struct fd_file *host = fd_host_file(self);
	int k;

	*replaced = NULL;
	if (fd < 0 || (unsigned)fd >= FD_NUMBER_MAX)
		return -EBADF;
	if (fd_word_file(fd_word_load(tab, fd)) == host)
		return fd;
	(void)fd_ref_take(host, &k); /* as a file that the caller holds */
	fd_note(self, host);
	return dup2_held(self, tab, host, fd, 0, replaced);
}

int fd_mark_free(struct slot *self, struct fd_table *tab, int fd)
{
	struct fd_file *host = fd_host_file(self);
	int k;

	if (fd < 0 || (unsigned)fd >= FD_NUMBER_MAX)
		return -EBADF;
	fd = fd_reserve(self, tab, fd, (uint64_t)fd + 1);
	if (fd < 0)
		return fd;
	(void)fd_ref_take(host, &k); /* as in fd_mark_host */
	fd_note(self, host);
	fd_publish(self, tab, fd, host, 0);
	return fd;
}

enum fd_number fd_number_kind(struct slot *self, struct fd_table *tab, int fd)
{
	uint64_t word = fd_word_load(tab, fd);

	if (!fd_word_is_open(word))
		return FD_NUMBER_NONE;
	return fd_word_file(word) == fd_host_file(self) ? FD_NUMBER_HOST : FD_NUMBER_OURS;
}

/* ---- close -------------------------------------------------------------------------------------- */

int fd_far_remove(struct slot *self, struct fd_table *tab, int fd, enum fd_remove what, atomic_u64 *parked,
		  struct fd_file **out)
{
	atomic_u64 *word;
	uint64_t old = 0;
	bool begun, is;

	fd_table_lock(self, tab);
	word = fd_word_of(tab, fd);
	if (word)
		old = load_acquire(word); /* the file; pairs with fd_publish */
	is = fd_word_is_open(old) && fd_is_meant(self, old, what);
	if (likely(is)) {
		begun = fd_intent_begin(self, INTENT_FD_CLOSE, tab, fd, fd_word_file(old));
		fd_park(parked, (unsigned)fd);
		tracked_store(word, 0); /* release: nothing of ours, but a later get's recheck sees it; see the top */
		fd_map_clear_locked(tab, (unsigned)fd);
		*out = fd_word_file(old);
		fd_hand_over(self, *out, begun);
		fd_intent_end(self, begun);
	}
	fd_table_unlock(self, tab);
	return is ? 0 : -EBADF;
}

/* ---- flags ---------------------------------------------------------------------------------------- */

int fd_get_bits(struct slot *self, struct fd_table *tab, int fd)
{
	uint64_t word = fd_word_load(tab, fd);

	(void)self;
	return fd_word_is_open(word) ? (int)(word & FD_WORD_BITS) : -EBADF;
}

/* CAS until the word held still between look and store: a closed or replaced number is seen. */
int fd_set_bits(struct slot *self, struct fd_table *tab, int fd, unsigned bits)
{
	atomic_u64 *word = fd_word_of(tab, fd);
	uint64_t old = word ? load_acquire(word) : 0; /* pairs with fd_publish */

	(void)self;
	while (fd_word_is_open(old))
		if (tracked_cas(word, &old,
				(old & ~(uint64_t)FD_WORD_BITS) | (bits & FD_WORD_BITS)))
			return 0;
	return -EBADF;
}

int fd_next_open(struct slot *self, struct fd_table *tab, int from)
{
	unsigned fd = from < 0 ? 0 : (unsigned)from;

	(void)self;
	for (;; fd++) {
		fd = fd_map_next_used(tab, fd);
		if (fd >= FD_NUMBER_MAX)
			return -1;
		if (fd_word_is_open(fd_word_load(tab, (int)fd)))
			return (int)fd;
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * fd.h - descriptor tables for the layers above (public face: <shelf/fdtable.h>).
 *
 * Files of every kind begin with struct fd_file.  Slots hold counted references.
 * A function that takes a reference off a slot hands it to the caller, who does
 * what a close of its kind needs (record locks) and then fd_put()s it.
 * All return 0 (or a number) or -errno.  `limit` is the caller's RLIMIT_NOFILE.
 *
 * Data: tables (table.h has the layout), the count of open files, the types.
 * Protection: words are atomic; what may happen to a near word (below 64): near.c; bitmaps and
 * what may happen to a far word, the table's lock (slots.c has the list); numbers of users, see fd_table_set_users.
 * Fast path: a borrow stores to the thread's own slot and nowhere else; opening and closing a near
 * number to that number's word.
 * Progress: borrow wait-free; get, put, flags lock-free, and open and close of near numbers while nobody runs dup2
 * or copies the table; the rest takes one table's lock.
 * References in hands: what fd_file_init, fd_get, fd_remove and fd_dup2 give is noted
 * in the thread's ledger, and dropped for it if it dies.  Who keeps one in a structure
 * (an epoll item) calls fd_forget() then, and fd_note() before it puts it.
 * To look at it: `shelf fds`, fd_next_open(), fd_files_open().
 * Limits: numbers below FD_NUMBER_MAX (16,777,216).
 */
#ifndef SHELF_FD_FD_H
#define SHELF_FD_FD_H

#include "fd/file.h"

/* Process-local.  Called on the last put, outside any section of its own; frees through epoch_retire. */
typedef void fd_release_fn(struct slot *self, struct fd_file *file);
void fd_register_type(uint32_t type, fd_release_fn *release);
/*
 * How a release ends.  Until then it may be run again for a thread that died in it, since the file is in the ledger.  From
 * then on the inode that the file held (NULL: none) is the caller's, and in the ledger in its place.
 */
void fd_retire(struct slot *self, struct fd_file *file, enum retire_type type, void *held);
/* For a thread that died in the middle of it: what the file held, or NULL; and what lets entry `k` of its ledger go, which is that. */
typedef void *fd_held_fn(struct fd_file *file);
typedef void fd_let_go_fn(struct slot *self, struct slot *gone, int k);
void fd_register_held(fd_held_fn *held, fd_let_go_fn *let_go);

int fd_layer_init(struct segment *seg); /* creator: segment-wide count and limit */
int fd_layer_attach(struct segment *seg);
int64_t fd_files_open(struct segment *seg);
/* Alone, all parts of the table there: do its maps agree with its words, and is no change under way?  `repair`: from now on. */
bool fd_check_table(struct slot *self, struct fd_table *tab, bool repair);
void fd_set_segment_limit(struct segment *seg, uint64_t limit); /* past it: ENFILE */

int fd_table_create(struct slot *self, struct fd_table **out);
/*
 * `home` is where the table's address is kept in the segment (a task's field), and changes together with
 * it: whoever recovers from a death in between finds both as before or both as after.
 */
typedef atomic_ptr(struct fd_table) fd_table_home;
/* At a place that is empty and the caller's: there, or nowhere, at any moment. */
int fd_table_create_at(struct slot *self, fd_table_home *home);
/* One more task uses it: no single-user borrow from now on. */
void fd_table_share(struct slot *self, struct fd_table *tab);
void fd_table_share_to(struct slot *self, struct fd_table *tab, fd_table_home *home);
/* fork: a new table with the same files, those with CLOFORK left out.  -ENOMEM. */
int fd_table_copy(struct slot *self, struct fd_table *src, struct fd_table **out);
int fd_table_copy_to(struct slot *self, struct fd_table *src, fd_table_home *home);
/* A reference handed over by the table; `fd` is the number it stood at. */
typedef void fd_drop_fn(struct slot *self, void *ctx, int fd, struct fd_file *file);
/* One task less; the last one out hands every file to drop and frees the table. */
void fd_table_leave(struct slot *self, struct fd_table *tab, fd_drop_fn *drop, void *ctx);
/* The table at `home`, if any. */
void fd_table_leave_at(struct slot *self, fd_table_home *home, fd_drop_fn *drop, void *ctx);
/* exec: everything marked CLOEXEC. */
void fd_table_exec(struct slot *self, struct fd_table *tab, fd_drop_fn *drop, void *ctx);
/*
 * Threads that may use the table at once: 1, told by that thread itself between two calls, allows the
 * single-user borrow to it; anything else, told by it before the second thread starts, ends that.
 * A new table counts as used by many.
 */
void fd_table_set_users(struct slot *self, struct fd_table *tab, uint32_t users);

/* Initialise the head; count 1, owned by the caller.  -ENFILE past the segment's limit. */
int fd_file_init(struct slot *self, struct fd_file *file, uint32_t type);
/* The same for memory in entry `k` of the ledger (hand.h), where the file is noted instead; on failure it stays there. */
int fd_file_init_noted(struct slot *self, struct fd_file *file, uint32_t type, int k);

/* The number, which is the caller's alone from now on.  EMFILE, EINVAL, ENOMEM. */
int fd_reserve(struct slot *self, struct fd_table *tab, int min, uint64_t limit);
/* Takes the caller's reference. */
void fd_publish(struct slot *self, struct fd_table *tab, int fd, struct fd_file *file,
		unsigned bits);
/* Reserve and publish in one, from number 0.  On EMFILE and ENOMEM the reference stays the caller's. */
int fd_install(struct slot *self, struct fd_table *tab, struct fd_file *file, uint64_t limit,
	       unsigned bits);
/* Undo fd_reserve. */
void fd_cancel(struct slot *self, struct fd_table *tab, int fd);

int fd_dup(struct slot *self, struct fd_table *tab, int fd, int min, uint64_t limit, unsigned bits);
/* *replaced (NULL if none) is handed to the caller.  EBADF, EBUSY (newfd reserved). */
int fd_dup2(struct slot *self, struct fd_table *tab, int oldfd, int newfd, uint64_t limit,
	    unsigned bits, struct fd_file **replaced);
/*
 * A number that the kernel's own table has (shelf run): marked, so that it is not free; no lookup but a bare borrow
 * sees the mark.  As fd_dup2; an equal mark stays.
 */
int fd_mark_host(struct slot *self, struct fd_table *tab, int fd, struct fd_file **replaced);
int fd_mark_free(struct slot *self, struct fd_table *tab, int fd); /* only a free one; else -EMFILE */
/* A snapshot.  None: free, or being taken. */
enum fd_number { FD_NUMBER_NONE, FD_NUMBER_HOST, FD_NUMBER_OURS };
enum fd_number fd_number_kind(struct slot *self, struct fd_table *tab, int fd);
int fd_remove(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out); /* close */
/*
 * The same for a number that is marked, and for one that is not: then its bit in the word `parked` (NULL: none) is set
 * before others find the number free.
 */
int fd_remove_host(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out);
int fd_remove_parking(struct slot *self, struct fd_table *tab, int fd, atomic_u64 *parked, struct fd_file **out);
#define FD_RANGE_CLOEXEC 1u
int fd_close_range(struct slot *self, struct fd_table *tab, unsigned first, unsigned last,
		   unsigned flags, fd_drop_fn *drop, void *ctx);
int fd_get_bits(struct slot *self, struct fd_table *tab, int fd); /* FD_*_BIT or EBADF */
int fd_set_bits(struct slot *self, struct fd_table *tab, int fd, unsigned bits);
/* The lowest number >= from that is open, -1 if none: /proc/self/fd, shelf fds. */
int fd_next_open(struct slot *self, struct fd_table *tab, int from);

/*
 * The lookups.  fd_borrow: between it and fd_return the file is good and the
 * thread may not block (in `borrow` it is a read section; other schemes hold a
 * lock or a count).  fd_get: a counted reference, for calls that may block.
 * Defined in fd/lookup.h by the scheme the build chose:
 *	int fd_borrow(self, tab, fd, struct fd_file **out);	0 or -EBADF
 *	void fd_return(self, tab, file);
 *	int fd_get(self, tab, fd, struct fd_file **out);	0 or -EBADF
 *	int fd_get_typed(self, tab, fd, type, &out);		-EBADF, -EINVAL
 *	void fd_put(self, file);
 *	void fd_note(self, file); void fd_forget(self, file);	see above
 * and for the biglock scheme, empty in the others:
 *	scheme_names_enter(self); scheme_names_exit(self);	around every name call (api/)
 */
#ifndef SHELF_ANY_SCHEME /* this file is compiled once for all schemes */
#include "fd/lookup.h"
#endif

#endif

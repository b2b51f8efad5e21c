/* SPDX-License-Identifier: MIT */
/*
 * fdtable.h - tables of descriptors for files of your own kind.
 *
 * For authors of library operating systems, language runtimes, network stacks
 * and simulators who need what a kernel has behind a file descriptor: small
 * numbers, lowest free first, dup and dup2, close-on-exec, tables shared by
 * threads or copied at fork, and a lookup that costs nothing when many threads
 * do it at once.  All state is in a segment of shared memory; processes that
 * attach it use the same tables.  A segment made by shelf_create() has this
 * layer too, and its tables may hold your files beside its own.
 *
 *	struct conn { int peer; };			your kind
 *	static const struct shelf_file_type conn_type = { .name = "conn", .release = conn_release };
 *
 *	shelf_fdspace_create("demo", 64 << 20, &space, why);
 *	shelf_file_type_register(SHELF_FILE_USER, &conn_type);
 *	shelf_fdtable_create(space, &tab);
 *	shelf_file_alloc(space, SHELF_FILE_USER, sizeof(struct conn), &file);
 *	fd = shelf_fd_install(space, tab, file, 0, 1024, 0);
 *	if (!shelf_fd_borrow(space, tab, fd, &file)) {
 *		use(shelf_file_payload(file));
 *		shelf_fd_return(space, tab, file);
 *	}
 *	shelf_fd_close(space, tab, fd);
 *
 * examples/fdtable.c is a whole program.
 *
 * Results: 0, or a number, or -errno as Linux's system calls have it; errno is
 * not touched.  No call uses malloc or a lock of libc.  Any call may also give -ENFILE
 * when more threads use the segment at once than it has room for (4096).
 * Signals: not async-signal-safe; a handler must not call in while its thread is inside a call.
 *
 * Guarantees, for any number of threads and processes:
 *   G1 a number is handed out once, and it is the lowest that was free: no lower one was free
 *      from the call's begin to its end.
 *   G2 a lookup that runs beside dup2 over an open number finds the old file
 *      or the new one, never -EBADF.
 *   G3 a file found by a lookup is good, contents too, until it is returned
 *      or put, whoever closes its number meanwhile.
 *   G4 each reference that leaves a slot is dropped once; the release hook of a
 *      file runs once.
 *   G5 a process killed inside a call leaves each number as it was before
 *      the call or as it is after.  Its tables stay until someone leaves them for it.
 * Progress: borrow and return are wait-free and store to no line that other
 * threads use; get, put, flags are lock-free, and so are install, reserve, publish, cancel and
 * close for numbers below 64 while no dup2 or copy of the same table is under way; all else takes the
 * lock of one table.
 */
#ifndef SHELF_FDTABLE_H
#define SHELF_FDTABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shelf_fdspace; /* an attached segment, in this process */
struct shelf_fdtable; /* a table, in the segment: one address in all processes */
struct shelf_file; /* a file, in the segment */

/* ---- segments ---------------------------------------------------------------------------- */

#define SHELF_FD_WHY 256 /* bytes of `why`; it may be NULL, else gets one sentence on failure */

/*
 * Make the segment NAME of `bytes` (0: half of RAM; rounded up to 2 MiB, at least 4 MiB) and attach it.
 * NAME is a file name without '/'.  -EEXIST; -EINVAL; -ENOSPC /dev/shm is full; -EOPNOTSUPP it is not a tmpfs.
 */
int shelf_fdspace_create(const char *name, uint64_t bytes, struct shelf_fdspace **out, char *why);
/* -ENOENT; -EINVAL not a segment, or of another version; -EBUSY its addresses are taken in this process. */
int shelf_fdspace_attach(const char *name, struct shelf_fdspace **out, char *why);
/* Unlink the name; memory goes when the last process has detached.  -ENOENT. */
int shelf_fdspace_remove(const char *name, char *why);
/* No call of this process may be inside, or come after. */
void shelf_fdspace_detach(struct shelf_fdspace *space);
/* Files that may exist at once; past it -ENFILE, with up to a factor of two when threads race. Default: 1 for each 10 KiB. */
void shelf_fdspace_set_limit(struct shelf_fdspace *space, uint64_t files);
int64_t shelf_fdspace_files(struct shelf_fdspace *space); /* that exist now */

/*
 * Wait until all files whose last reference went before the call have been reclaimed, at most `ms` milliseconds.
 * 0; -ETIMEDOUT: some thread stays inside a borrow.  Not inside a borrow.
 */
int shelf_fdspace_quiesce(struct shelf_fdspace *space, int ms);

#define SHELF_FD_ANCHORS 16
/* A place where another process finds a table: set one, look it up by its index.  -EINVAL; NULL. */
int shelf_fdspace_set_anchor(struct shelf_fdspace *space, unsigned index,
			     struct shelf_fdtable *tab);
struct shelf_fdtable *shelf_fdspace_anchor(struct shelf_fdspace *space, unsigned index);

/* ---- kinds of files, and files -------------------------------------------------------------- */

#define SHELF_FILE_USER 32u /* your types: from here .. */
#define SHELF_FILE_TYPES 64u /* .. to below this */

/* Functions are addresses of one process: every process registers its own, before it uses files of the type. */
struct shelf_file_type {
	const char *name;
	/*
	 * The last reference is gone.  Threads that borrowed the file before may
	 * still read the payload.  Runs in whichever process dropped it; one that
	 * registered nothing runs nothing.  May sleep.  NULL: nothing to do.
	 * Of a process that died this is called for it, by another: the payload may
	 * be as the dead left it, zeroed or half filled, if it was not installed yet.
	 */
	void (*release)(struct shelf_file *file, void *payload);
	/* Nobody looks at it any more; its memory goes next.  Must not sleep.  NULL: nothing to do.  Not run again if its
	 * process dies in it. */
	void (*reclaim)(void *payload);
	const void *operations; /* yours: see shelf_file_operations */
};

/* -EINVAL: no user's type.  `type` must stay valid; NULL takes it back. */
int shelf_file_type_register(unsigned number, const struct shelf_file_type *type);

/*
 * A file with `bytes` of zeroed payload, aligned to 16, up to 2 MiB.  The caller
 * has the one reference: shelf_fd_install takes it over, shelf_fd_put drops it.
 * -ENOMEM; -ENFILE; -EINVAL.
 */
int shelf_file_alloc(struct shelf_fdspace *space, unsigned type, size_t bytes,
		     struct shelf_file **out);
void *shelf_file_payload(struct shelf_file *file); /* of your types only */
unsigned shelf_file_type_of(const struct shelf_file *file);
const void *
shelf_file_operations(const struct shelf_file *file); /* of its type in this process; NULL */

/* ---- tables ----------------------------------------------------------------------------------- */

/* An empty table with one user, for any number of threads.  1 KiB.  -ENOMEM. */
int shelf_fdtable_create(struct shelf_fdspace *space, struct shelf_fdtable **out);
/* One more user (clone with CLONE_FILES): it takes one more leave to end the table. */
void shelf_fdtable_share(struct shelf_fdspace *space, struct shelf_fdtable *tab);
/* fork(2): a table with the same files at the same numbers, without those marked CLOFORK.  -ENOMEM. */
int shelf_fdtable_copy(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		       struct shelf_fdtable **out);
/* execve(2): close all that is marked CLOEXEC. */
void shelf_fdtable_exec(struct shelf_fdspace *space, struct shelf_fdtable *tab);
/* One user less; the last one's leave closes all. */
void shelf_fdtable_leave(struct shelf_fdspace *space, struct shelf_fdtable *tab);
/*
 * How many threads may use the table from now on.  1 lets the calling thread,
 * and no other, look up without even a read section.  Call it with 2 (or share)
 * before a second thread comes, from the one that is there, outside any borrow.
 * 0, the state of a new table: unknown, treated as many.
 */
void shelf_fdtable_set_threads(struct shelf_fdspace *space, struct shelf_fdtable *tab,
			       unsigned threads);

/* ---- numbers ----------------------------------------------------------------------------------- */

#define SHELF_FD_CLOEXEC 1
#define SHELF_FD_CLOFORK 2 /* POSIX.1-2024 FD_CLOFORK */
#define SHELF_FD_MAX                                                                               \
	16777216 /* numbers are below this, and below the caller's `limit` (RLIMIT_NOFILE) */

/* reserve + publish.  The number; on failure the caller keeps its reference.  Errors of reserve. */
int shelf_fd_install(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		     struct shelf_file *file, int min, uint64_t limit, unsigned flags);
/*
 * The lowest free number >= min, kept for the caller: lookups give -EBADF, dup2
 * onto it -EBUSY.  publish or cancel follows, by the same thread.
 * -EMFILE; -EINVAL min is negative or not below limit; -ENOMEM.
 */
int shelf_fd_reserve(struct shelf_fdspace *space, struct shelf_fdtable *tab, int min,
		     uint64_t limit);
/* Takes the caller's reference.  -EINVAL: not reserved. */
int shelf_fd_publish(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		     struct shelf_file *file, unsigned flags);
int shelf_fd_cancel(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		    int fd); /* -EINVAL: not reserved */

/* fcntl(2) F_DUPFD: the number.  -EBADF; -EINVAL min is negative or not below limit; -EMFILE; -ENOMEM. */
int shelf_fd_dup(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd, int min,
		 uint64_t limit, unsigned flags);
/* dup3(2), and dup2(2)'s rule that a number may be put onto itself (flags stay).  -EBADF; -EBUSY reserved; -ENOMEM. */
int shelf_fd_dup2(struct shelf_fdspace *space, struct shelf_fdtable *tab, int oldfd, int newfd,
		  uint64_t limit, unsigned flags);
int shelf_fd_close(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		   int fd); /* close(2).  -EBADF */
#define SHELF_RANGE_CLOEXEC 1u /* mark, do not close */
/* close_range(2), both ends included.  -EINVAL: first > last, or an unknown flag. */
int shelf_fd_close_range(struct shelf_fdspace *space, struct shelf_fdtable *tab, unsigned first,
			 unsigned last, unsigned flags);
int shelf_fd_flags(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		   int fd); /* F_GETFD.  -EBADF */
int shelf_fd_set_flags(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		       unsigned flags); /* F_SETFD.  -EBADF */
/* The lowest open number >= from, -1 if none. */
int shelf_fd_next(struct shelf_fdspace *space, struct shelf_fdtable *tab, int from);

/* ---- lookups -------------------------------------------------------------------------------------- */

/*
 * Borrow: no count.  The thread must not sleep before it returns the file, since
 * memory is held back for all meanwhile, and must not call shelf_fdtable_set_threads
 * or _share on the table.  Borrows nest; return them in any order.  -EBADF.
 */
int shelf_fd_borrow(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		    struct shelf_file **out);
void shelf_fd_return(struct shelf_fdspace *space, struct shelf_fdtable *tab,
		     struct shelf_file *file);
/* A counted reference, for calls that sleep.  Dropped by shelf_fd_put, by the same thread.  -EBADF. */
int shelf_fd_get(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		 struct shelf_file **out);
/* The same, if the file is of this type.  -EBADF no such number; -EINVAL another type (timerfd_settime(2)). */
int shelf_fd_get_typed(struct shelf_fdspace *space, struct shelf_fdtable *tab, int fd,
		       unsigned type, struct shelf_file **out);
void shelf_fd_put(struct shelf_fdspace *space, struct shelf_file *file);

#ifdef __cplusplus
}
#endif

#endif

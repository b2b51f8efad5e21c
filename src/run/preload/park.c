/* SPDX-License-Identifier: MIT */
/*
 * park.c - placeholders: made, kept for the next open, given up.
 *
 * What holds for each number N when no call is under way, by its word in the shelf's table:
 *	a file of ours	the kernel has a placeholder at N, and N is not parked
 *	a mark		the kernel has a descriptor of the program's
 *	free		the kernel has nothing, or N is parked and it has a placeholder
 * A mark may be missing; that is noticed when the shelf gives N out (place).  One too many, or a placeholder that is no
 * longer there, would not be noticed.
 *
 * Among threads.  A number is reserved in the shelf, then placed, then published; so a file of ours has its placeholder.
 * Who has N reserved is the only one who may unpark or place it; a close sets the bit while nobody else can take N.
 * All else that changes what the kernel has at a number of ours - placing, giving up, dup2 - is done under `moving`,
 * which opens and closes of parked numbers do not take, and which is not held where the kernel may wait.  The
 * program's own descriptors come and go without it:
 *	the kernel gives N to us while N is reserved	it is not marked; the reserver finds N taken, leaves it and marks it
 *	the kernel's N is closed, its mark still there	a file that is placed at N takes the mark's place, and unmarking finds none
 *	N is marked for another thread's descriptor,	whoever marks looks whether it is still there; the closer unmarks
 *	which is closed just then			after its close
 */
#include <sys/sysmacros.h>

#include "run/preload/serve.h"

/* ---- the lock --------------------------------------------------------------------------------- */

static bool alone(void)
{
	return load_relaxed(&runtime.threads) == 1; /* a second thread is started by the one that asks */
}

void numbers_lock(void)
{
	struct run_proc *p = proc_here();
	uint32_t none = 0;

	call_enter();
	if (alone())
		return;
	while (!cas_acq_rel(&p->moving, &none, 1u)) { /* pairs with numbers_unlock */
		none = 0;
		sys_call3(SYS_sched_yield, 0, 0, 0);
	}
}

void numbers_unlock(void)
{
	if (!alone())
		store_release(&proc_here()->moving, 0u); /* pairs with numbers_lock */
	call_leave();
}

/* ---- parking ----------------------------------------------------------------------------------- */

bool number_unpark(int fd)
{
	atomic_u64 *word;
	uint64_t bit = 1ULL << fd % 64;

	if ((unsigned)fd >= PARKED_NUMBERS)
		return false;
	word = &proc_here()->parked[fd / 64];
	/* Set before the number was free; whoever has it by now took it after that. */
	return load_relaxed(word) & bit && and_acq_rel(word, ~bit) & bit;
}

long number_close(int fd)
{
	struct run_proc *p = proc_here();
	long err;

	if ((unsigned)fd < PARKED_NUMBERS)
		return task_close_parking(p->task, fd, &p->parked[fd / 64]);
	numbers_lock();
	err = task_close_parking(p->task, fd, NULL);
	if (!err)
		sys_call3(SYS_close, fd, 0, 0);
	numbers_unlock();
	return err;
}

static void release_word(struct run_proc *p, unsigned w)
{
	uint64_t bits = xchg_acq_rel(&p->parked[w], 0ULL); /* as in number_unpark */

	for (; bits; bits &= bits - 1)
		sys_call3(SYS_close, (long)(w * 64 + (unsigned)__builtin_ctzll(bits)), 0, 0);
}

void numbers_release_locked(void)
{
	struct run_proc *p = proc_here();

	for (unsigned w = 0; w < PARKED_NUMBERS / 64; w++)
		if (load_relaxed(&p->parked[w])) /* the exchange decides */
			release_word(p, w);
}

void numbers_release(void)
{
	numbers_lock();
	numbers_release_locked();
	numbers_unlock();
}

/* ---- marks --------------------------------------------------------------------------------------- */

static bool kernel_has(int fd)
{
	return sys_call3(SYS_fcntl, fd, F_GETFD, 0) >= 0;
}

void number_mark(int fd)
{
	watch_gone(fd); /* it was closed by a call that went past us */
	if (attached())
		SERVED(task_mark_host(task_here(), fd)); /* -EBUSY: see the top */
}

void number_unmark(int fd)
{
	if (attached()) {
		call_enter();
		task_unmark_host(task_here(), fd);
		call_leave();
	}
}

/* Numbers in [from, to) are taken in the kernel, or were a moment ago. */
static void mark_range(struct shelf_task *t, int from, int to)
{
	for (int fd = from; fd < to; fd++)
		if (!number_parked(fd) && task_mark_free(t, fd) >= 0 && !alone() && !kernel_has(fd))
			task_unmark_host(t, fd);
}

/* ---- placeholders ----------------------------------------------------------------------------------- */

static long placeholder(void)
{
	long fd = sys_call3(SYS_open, (long)"/dev/null", O_PATH, 0);

	return fd == -EMFILE || fd >= 0 ? fd : sys_call3(SYS_open, (long)runtime.prefix, O_PATH, 0);
}

/* A placeholder at the lowest number from `min` on. */
static long placeholder_from(int min)
{
	long at, fd = placeholder();

	if (fd < 0 || fd >= min)
		return fd;
	at = sys_call3(SYS_fcntl, fd, F_DUPFD, min);
	sys_call3(SYS_close, fd, 0, 0);
	return at;
}

/* The placeholder at `at` goes to the lowest number from `min` on. */
static long placeholder_moves(long at, int min)
{
	long to = sys_call3(SYS_fcntl, at, F_DUPFD, min);

	sys_call3(SYS_close, at, 0, 0);
	return to;
}

/*
 * Locked.  The kernel gave `at` where the reserved `fd` was wanted.  The number that is reserved instead, at best `at`
 * itself; but if that is lower, and another thread has it in the shelf, `fd` stays.
 */
static int follow(struct who *w, int fd, int at)
{
	struct fd_file *host;
	int to;

	if (!fd_remove_host(w->self, w->files, at, &host)) /* its descriptor is gone: the kernel gave the number away */
		task_drop_file(w->self, w, at, host);
	to = fd_reserve(w->self, w->files, at, nofile_of(w));
	if (at < fd && to != at) {
		if (to >= 0)
			fd_cancel(w->self, w->files, to);
		return fd;
	}
	fd_cancel(w->self, w->files, fd);
	if (fd < at)
		mark_range(w->task, fd, at);
	return to;
}

/* Locked. */
static int place(struct who *w, int fd, int min)
{
	long at = placeholder_from(min);

	while (at >= 0 && at != fd) {
		fd = follow(w, fd, (int)at);
		if (fd < 0) {
			sys_call3(SYS_close, at, 0, 0);
			return fd;
		}
		if (at != fd)
			at = placeholder_moves(at, fd);
	}
	if (at < 0)
		fd_cancel(w->self, w->files, fd);
	return (int)at;
}

static int number_place(struct who *w, int fd, int min)
{
	if (likely(number_unpark(fd)))
		return fd;
	numbers_lock();
	fd = place(w, fd, min);
	numbers_unlock();
	return fd;
}

static void number_cancel(struct who *w, int fd)
{
	if ((unsigned)fd < PARKED_NUMBERS)
		or_acq_rel(&proc_here()->parked[fd / 64], 1ULL << fd % 64); /* before it is free: as fd_remove_parking */
	else
		sys_call3(SYS_close, fd, 0, 0);
	fd_cancel(w->self, w->files, fd);
}

void numbers_init(void)
{
	api_numbers.place = number_place;
	api_numbers.cancel = number_cancel;
}

/* ---- a child of a process with threads ---------------------------------------------------------------- */

/* A placeholder is what can be neither read nor written, and is /dev/null. */
static bool kernel_has_placeholder(int fd)
{
	struct stat st;
	long flags = sys_call3(SYS_fcntl, fd, F_GETFL, 0);

	return flags >= 0 && flags & O_PATH && !sys_call3(SYS_fstat, fd, (long)&st, 0) &&
	       ((S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) ||
		(st.st_dev == runtime.prefix_dev && st.st_ino == runtime.prefix_ino));
}

static void repair_ours(int fd)
{
	long at;

	if (kernel_has_placeholder(fd))
		return;
	sys_call3(SYS_close, fd, 0, 0);
	at = placeholder_from(fd);
	if (at >= 0 && at != fd) {
		sys_call3(SYS_dup3, at, fd, 0);
		sys_call3(SYS_close, at, 0, 0);
	}
}

/* What the kernel has at a number that is not ours decides. */
static void repair_other(struct run_proc *p, int fd)
{
	enum fd_number kind = task_number_kind(p->task, fd);

	if (kind == FD_NUMBER_NONE && kernel_has_placeholder(fd)) {
		if ((unsigned)fd < PARKED_NUMBERS)
			or_acq_rel(&p->parked[fd / 64], 1ULL << fd % 64); /* the process has one thread */
		else
			sys_call3(SYS_close, fd, 0, 0);
		return;
	}
	number_unpark(fd);
	if (kind == FD_NUMBER_NONE && kernel_has(fd))
		task_mark_free(p->task, fd);
	else if (kind == FD_NUMBER_HOST && !kernel_has(fd))
		task_unmark_host(p->task, fd);
}

/* Numbers behind the last one that either knows of are not looked at further than this. */
#define LOOK_BEYOND 16

void numbers_after_fork(void)
{
	struct run_proc *p = proc_here();
	int end = LOOK_BEYOND;

	call_enter();
	for (int fd = 0; fd < end; fd++) {
		enum fd_number kind = task_number_kind(p->task, fd);

		if (kind == FD_NUMBER_OURS)
			repair_ours(fd);
		else
			repair_other(p, fd);
		if (kind != FD_NUMBER_NONE || kernel_has(fd))
			end = max_of(end, fd + 1 + LOOK_BEYOND);
		if (fd + 1 == end && task_next_number(p->task, end) >= 0 && task_next_number(p->task, end) < HIDDEN_NUMBERS)
			end = task_next_number(p->task, end) + 1;
	}
	call_leave();
}

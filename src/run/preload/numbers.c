/* SPDX-License-Identifier: MIT */
/*
 * numbers.c - one row of descriptor numbers for the shelf and the kernel.
 *
 * Each number of the shelf's has a placeholder in the kernel's table: an O_PATH descriptor of /dev/null, which can
 * be neither read nor written, so that a call that goes past us fails with EBADF.  Each number of the kernel's has a mark in
 * the shelf's table.  So the lowest free number is free in both.
 *
 * A closed number of the shelf's is parked: free in the shelf's table, placeholder kept.  Opened again it costs no
 * system call.  Parked numbers do not exist for the program: pass_number() answers EBADF for them, and they are
 * given up before the kernel gives out a number (numbers_release).  park.c has this, and what holds among threads.
 */
#include <linux/close_range.h>
#include <sys/resource.h>

#include "run/preload/serve.h"

#define NUMBERS_MORE 512u

long number_host_call(struct run_regs *r)
{
	uint64_t a[6];
	long fd;

	if (!attached())
		return run_pass(r);
	regs_args(r, a);
	numbers_release();
	fd = host_call((long)r->nr, a);
	if (fd >= 0)
		number_mark((int)fd);
	return fd;
}

/* ---- one for ourselves ---------------------------------------------------------------------------------- */

/* False: there is none, as the program may not raise its own limit.  Another thread may see the higher one. */
bool numbers_stretch(struct rlimit *old)
{
	struct rlimit more;

	if (sys_call6(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)old, 0, 0))
		return false;
	more = *old;
	if (more.rlim_cur == more.rlim_max)
		more.rlim_max += NUMBERS_MORE;
	more.rlim_cur = more.rlim_max;
	return !sys_call6(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&more, 0, 0, 0);
}

void numbers_shrink(const struct rlimit *old)
{
	sys_call6(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)old, 0, 0, 0);
}

bool numbers_any_ours(void)
{
	struct shelf_task *t = task_here();
	bool any = false;
	int fd;

	call_enter();
	for (fd = task_next_number(t, 0); fd >= 0 && !any; fd = task_next_number(t, fd + 1))
		any = task_number_kind(t, fd) == FD_NUMBER_OURS;
	call_leave();
	return any;
}

/* ---- exec --------------------------------------------------------------------------------------------- */

static void placeholders_cloexec(bool set)
{
	struct shelf_task *t = task_here();

	for (int fd = task_next_number(t, 0); fd >= 0 && fd < HIDDEN_NUMBERS;
	     fd = task_next_number(t, fd + 1)) {
		if (task_number_kind(t, fd) != FD_NUMBER_OURS)
			continue;
		if (shelf_fcntl(t, fd, F_GETFD, 0) & FD_CLOEXEC)
			sys_call3(SYS_fcntl, fd, F_SETFD, set ? FD_CLOEXEC : 0);
	}
}

void numbers_before_exec(void)
{
	numbers_release();
	call_enter();
	placeholders_cloexec(true);
	watches_before_exec();
	call_leave();
}

void numbers_exec_failed(void)
{
	call_enter();
	placeholders_cloexec(false);
	call_leave();
}

/* ---- close, dup ------------------------------------------------------------------------------------------ */

static long close_ours(int fd)
{
	long err;

	call_enter();
	err = number_close(fd);
	call_leave();
	return err;
}

static long serve_close(struct run_regs *r)
{
	int fd = (int)r->di;
	long err;

	if (!attached())
		return run_pass(r);
	if (likely(number_is_ours(fd)))
		return close_ours(fd);
	if (number_parked(fd))
		return -EBADF;
	watch_gone(fd);
	err = sys_call3(SYS_close, fd, 0, 0);
	if (err != -EBADF) /* closed, whatever it says */
		number_unmark(fd);
	return err;
}

/* A second number for one of ours. */
static long dup_ours(int fd, int min, bool cloexec)
{
	return SERVED(api_dup_placed(task_here(), fd, min, cloexec));
}

/* dup and its kin of a number of the kernel's. */
static long dup_host(struct run_regs *r, int fd)
{
	long to = number_parked(fd) ? -EBADF : number_host_call(r);

	if (to >= 0 && number_watches(fd))
		watch_follows(task_here(), fd, (int)to);
	return to;
}

static long serve_dup(struct run_regs *r)
{
	if (attached() && number_is_ours((int)r->di))
		return dup_ours((int)r->di, 0, false);
	return dup_host(r, (int)r->di);
}

/* Locked.  Numbers that get our file want a placeholder: dup2 of the old one's takes what the kernel has there away. */
static long dup2_ours(int old, int new, int flags)
{
	struct shelf_task *t = task_here();
	bool placed = task_number_kind(t, new) == FD_NUMBER_OURS || number_unpark(new);
	long at;

	if (!placed) {
		at = sys_call3(SYS_dup3, old, new, 0);
		if (at < 0)
			return at;
	}
	at = shelf_dup3(t, old, new, flags);
	if (at >= 0)
		watch_gone(new);
	if (at < 0 && !placed) {
		sys_call3(SYS_close, new, 0, 0);
		task_unmark_host(t, new);
	}
	return at;
}

static long dup2_host(int old, int new, int flags)
{
	long at;

	numbers_lock();
	at = sys_call3(SYS_dup3, old, new, flags);
	if (at >= 0) {
		number_unpark(new);
		task_mark_host(task_here(), new);
		watch_follows(task_here(), old, new);
	}
	numbers_unlock();
	return at;
}

static long dup_onto(int old, int new, int flags)
{
	bool ours = number_is_ours(old);
	long at;

	if (!ours && number_parked(old))
		return -EBADF;
	if (!ours)
		return dup2_host(old, new, flags);
	numbers_lock();
	at = dup2_ours(old, new, flags);
	numbers_unlock();
	return at;
}

static long serve_dup2(struct run_regs *r)
{
	int old = (int)r->di, new = (int)r->si;

	if (!attached())
		return run_pass(r);
	if (old == new)
		return number_is_ours(old) ? new : pass_number(r, old);
	return dup_onto(old, new, 0);
}

static long serve_dup3(struct run_regs *r)
{
	int old = (int)r->di, new = (int)r->si, flags = (int)r->dx;

	if (!attached())
		return run_pass(r);
	if (old == new || flags & ~O_CLOEXEC)
		return -EINVAL;
	return dup_onto(old, new, flags);
}

/* What a command's argument points to: the library gets NULL for what cannot be had. */
static uint64_t fcntl_given(int cmd, uint64_t arg)
{
	switch (cmd) {
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return (uint64_t)user_given(arg, sizeof(struct flock));
	case F_GETLK:
	case F_OFD_GETLK:
		return user_writable((void *)arg, sizeof(struct flock)) ? 0 : arg;
	case F_SETOWN_EX:
	case F_SET_RW_HINT:
	case F_SET_FILE_RW_HINT:
		return (uint64_t)user_given(arg, sizeof(uint64_t));
	case F_GETOWN_EX:
	case 17: /* F_GETOWNER_UIDS */
	case F_GET_RW_HINT:
	case F_GET_FILE_RW_HINT:
		return user_writable((void *)arg, sizeof(uint64_t)) ? 0 : arg;
	}
	return arg;
}

static long serve_fcntl(struct run_regs *r)
{
	int fd = (int)r->di, cmd = (int)r->si;

	if (!attached())
		return run_pass(r);
	if (!number_is_ours(fd)) {
		if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
			return dup_host(r, fd);
		return pass_number(r, fd);
	}
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return dup_ours(fd, (int)r->dx, cmd == F_DUPFD_CLOEXEC);
	if (cmd == SHELF_F_DUPFD_CLOFORK)
		return -EINVAL; /* the library's own: the kernel's descriptors have none */
	return SERVED_WAIT(shelf_fcntl(task_here(), fd, cmd, fcntl_given(cmd, r->dx)));
}

/* ---- close_range ---------------------------------------------------------------------------------------- */

/* The shelf's numbers in [first, last] are closed or marked; the kernel does the same to placeholders. */
static long serve_close_range(struct run_regs *r)
{
	unsigned first = (unsigned)r->di, last = (unsigned)r->si, flags = (unsigned)r->dx;
	long err;

	if (!attached())
		return run_pass(r);
	if (flags & ~(unsigned)(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) || first > last)
		return -EINVAL;
	numbers_lock();
	numbers_release_locked();
	if (flags & CLOSE_RANGE_CLOEXEC) {
		/* Placeholders take the flag only at exec, marks not at all: opens may use them again. */
		err = sys_call3(SYS_close_range, first, last, flags);
		for (int fd = task_next_number(task_here(), (int)min_of(first, (unsigned)INT_MAX));
		     !err && fd >= 0 && (unsigned)fd <= last; fd = task_next_number(task_here(), fd + 1))
			if (number_is_ours(fd))
				sys_call3(SYS_fcntl, fd, F_SETFD, 0);
	} else {
		err = sys_call3(SYS_close_range, first, last, flags);
	}
	if (!err)
		err = first >= HIDDEN_NUMBERS && !(flags & CLOSE_RANGE_UNSHARE) ? 0 :
		      shelf_close_range(task_here(), first, min_of(last, (unsigned)HIDDEN_NUMBERS - 1), flags);
	if (!err && !(flags & CLOSE_RANGE_CLOEXEC))
		watches_gone(first, last);
	numbers_unlock();
	return err;
}

/* ---- pairs --------------------------------------------------------------------------------------------------- */

static long serve_pair(struct run_regs *r, uint64_t at)
{
	int fds[2];
	uint64_t a[6];
	long err;

	if (!attached())
		return run_pass(r);
	regs_args(r, a);
	numbers_release();
	err = host_call((long)r->nr, a);
	if (err >= 0 && !copy_from_user(fds, (void *)at, sizeof(fds))) {
		number_mark(fds[0]);
		number_mark(fds[1]);
	}
	return err;
}

static long serve_pipe(struct run_regs *r)
{
	return serve_pair(r, r->di);
}

static long serve_socketpair(struct run_regs *r)
{
	return serve_pair(r, r->r10);
}

AT_START void serve_numbers_init(void)
{
	static const uint16_t givers[] = {
		SYS_socket, SYS_epoll_create, SYS_epoll_create1, SYS_eventfd, SYS_eventfd2,
		SYS_timerfd_create, SYS_memfd_create,
		SYS_userfaultfd, SYS_perf_event_open, SYS_pidfd_open, SYS_mq_open, SYS_memfd_secret,
		SYS_fanotify_init, SYS_bpf, SYS_fsopen, SYS_fsmount, SYS_open_by_handle_at,
	};

	for (size_t i = 0; i < ARRAY_SIZE(givers); i++)
		serve_table[givers[i]] = number_host_call;
	serve_table[SYS_close] = serve_close;
	serve_table[SYS_close_range] = serve_close_range;
	serve_table[SYS_dup] = serve_dup;
	serve_table[SYS_dup2] = serve_dup2;
	serve_table[SYS_dup3] = serve_dup3;
	serve_table[SYS_fcntl] = serve_fcntl;
	serve_table[SYS_pipe] = serve_pipe;
	serve_table[SYS_pipe2] = serve_pipe;
	serve_table[SYS_socketpair] = serve_socketpair;
}

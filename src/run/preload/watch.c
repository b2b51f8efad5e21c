/* SPDX-License-Identifier: MIT */
/*
 * watch.c - inotify on files of the shelf and on the kernel's, through one descriptor.
 *
 * The descriptor is the kernel's own, so poll, select, epoll and signals are the kernel's affair, whenever and by whomever
 * they were set up.  Beside the kernel's number N stands the shelf's instance, at the hidden number WATCH_NUMBERS + N, so
 * that it is copied by fork and goes with its last holder, however that ends.  The first watch on a file of the shelf
 * arms it: a file beside the shelf, shelf-wake.S.I for instance I, that the kernel's descriptor watches; special/inotify_host.c has the rest.
 * Reading asks the kernel first, in the program's own way (waiting or not), and puts the shelf's events in place of the
 * token.  Numbers of watches are those that one kernel would give.
 *
 * Limits: a descriptor that has watches on a shelf cannot be sent in a message (EINVAL).  FIONREAD may be off by one
 * event's head while another thread reads.
 */
#include <sys/ioctl.h>

#include "run/preload/nodes.h"
#include "special/inotify.h"

#define WATCH_NUMBERS (HIDDEN_NUMBERS + (1 << 22))
#define WATCH_LAST ((1 << 22) - 1)

/* ---- the instance of a number ------------------------------------------------------------------ */

static int hidden(int fd)
{
	return WATCH_NUMBERS + fd;
}

bool number_watches(int fd)
{
	return unlikely(load_relaxed(&runtime.watching)) && fd >= 0 && fd <= WATCH_LAST && number_is_ours(hidden(fd)); /* set for good */
}

void watches_look(struct shelf_task *t)
{
	if (task_next_number(t, WATCH_NUMBERS) >= 0)
		store_relaxed(&runtime.watching, 1u); /* before the call that needs it; other threads' numbers come with their calls */
}

void watch_gone(int fd)
{
	if (number_watches(fd))
		SERVED(shelf_close(task_here(), hidden(fd)));
}

void watches_gone(unsigned first, unsigned last)
{
	if (load_relaxed(&runtime.watching) && first <= WATCH_LAST)
		SERVED(shelf_close_range(task_here(), (unsigned)WATCH_NUMBERS + first,
					 (unsigned)WATCH_NUMBERS + min_of(last, (unsigned)WATCH_LAST), 0));
}

/* The kernel's `to` is now what number `from` of task `t` is. */
void watch_follows(struct shelf_task *t, int from, int to)
{
	int at;

	watch_gone(to);
	if (from < 0 || from > WATCH_LAST || to > WATCH_LAST || task_number_kind(t, hidden(from)) != FD_NUMBER_OURS)
		return;
	store_relaxed(&runtime.watching, 1u);
	at = (int)SERVED(task_give(t, hidden(from), task_here(), hidden(to)));
	if (at >= 0 && at != hidden(to)) /* another thread's dup2 was faster, and it is not ours any more */
		SERVED(shelf_close(task_here(), at));
}

/* An instance beside the new number `fd`. */
static long make(int fd)
{
	long err;

	if (fd > WATCH_LAST)
		return -EMFILE;
	store_relaxed(&runtime.watching, 1u);
	err = SERVED(api_inotify_make(task_here(), hidden(fd)));
	return err == -ENOSPC ? -ENOMEM : err == -EMFILE ? 0 : err; /* the last: another thread's first watch was faster */
}

void watches_before_exec(void)
{
	struct shelf_task *t = task_here();
	int fd = load_relaxed(&runtime.watching) ? task_next_number(t, WATCH_NUMBERS) : -1;

	for (; fd >= 0; fd = task_next_number(t, fd + 1))
		SERVED(shelf_fcntl(t, fd, F_SETFD, (uintptr_t)sys_call3(SYS_fcntl, fd - WATCH_NUMBERS, F_GETFD, 0) & FD_CLOEXEC));
}

bool watch_is_armed(int fd)
{
	uint64_t id;

	return number_watches(fd) && SERVED(api_inotify_token(task_here(), hidden(fd), &id)) > 0;
}

/* ---- making one ------------------------------------------------------------------------------------ */

static long serve_instance(struct run_regs *r)
{
	long fd, err;

	if (!attached() && !run_attach_try())
		return run_pass(r); /* with other rights than the shelf's owner's: it can watch nothing of it */
	fd = number_host_call(r);
	if (fd < 0)
		return fd;
	err = make((int)fd);
	if (!err)
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	number_unmark((int)fd);
	return err;
}

/* In a call.  The instance of `fd`, made and armed at need: 0, or what the kernel says of such a descriptor. */
static long arm(int fd)
{
	struct shelf_task *t = task_here();
	char path[NODE_PATH];
	uint64_t id;
	long wd, err;

	if (!number_watches(fd)) {
		err = sys_call3(SYS_inotify_rm_watch, fd, -1, 0); /* which is no watch's: EINVAL, if it is an instance at all */
		if (err == -EBADF)
			return err;
		err = make(fd);
		if (err)
			return err;
	}
	wd = api_inotify_token(t, hidden(fd), &id);
	if (wd)
		return min_of(wd, 0L);
	err = token_make(path, id);
	if (err)
		return err;
	wd = sys_call3(SYS_inotify_add_watch, fd, (long)path, IN_ATTRIB);
	if (wd >= 0)
		err = api_inotify_arm(t, hidden(fd), path, (int)wd);
	else
		sys_call3(SYS_unlink, (long)path, 0, 0);
	return wd < 0 ? wd : err == -EEXIST ? 0 : err;
}

/* ---- watches --------------------------------------------------------------------------------------------- */

struct watch_find {
	int fd;
	uint32_t mask;
	bool ours;
};

/* In a call; a[5] is the struct watch_find. */
static long do_watch(struct shelf_task *t, const uint64_t a[6], const struct route *rt)
{
	struct watch_find *find = (struct watch_find *)a[5];
	long err = inotify_check_mask(find->mask);

	find->ours = true;
	if (!err && number_is_ours(find->fd))
		err = -EINVAL;
	if (!err)
		err = arm(find->fd);
	return err ? err : api_inotify_add(t, hidden(find->fd), rt->dirfd, rt->path, find->mask);
}

static enum route_last watch_last(const uint64_t a[6])
{
	return ((struct watch_find *)a[5])->mask & IN_DONT_FOLLOW ? LAST_NOT_FOLLOWED : LAST_FOLLOWED;
}

/* The kernel's watch as the program knows it. */
static long add_kernels(struct run_regs *r)
{
	int fd = (int)r->di;
	uint64_t a[6];
	long wd, mine;

	if (!number_watches(fd))
		return pass_number(r, fd);
	regs_args(r, a);
	wd = host_call(SYS_inotify_add_watch, a);
	if (wd < 0)
		return wd;
	mine = SERVED(api_inotify_host_wd(task_here(), hidden(fd), (int)wd));
	if (mine < 0)
		sys_call3(SYS_inotify_rm_watch, fd, wd, 0);
	return mine;
}

/* Whose path it is, is found by a stat, which the kernel answers for its own. */
static long serve_add(struct run_regs *r)
{
	static const struct path_call look[] = {{SYS_stat, NONE, 0, watch_last, do_watch, FILLS_STAT, 1},
						{SYS_lstat, NONE, 0, watch_last, do_watch, FILLS_STAT, 1}};
	struct watch_find find = {.fd = (int)r->di, .mask = (uint32_t)r->dx};
	struct stat st;
	const uint64_t a[6] = {r->si, (uint64_t)(uintptr_t)&st, 0, 0, 0, (uint64_t)(uintptr_t)&find};
	long wd;

	if (number_parked(find.fd))
		return -EBADF;
	wd = path_call(&look[find.mask & IN_DONT_FOLLOW ? 1 : 0], a);
	if (find.ours)
		return wd;
	return number_is_ours(find.fd) ? -EINVAL : add_kernels(r);
}

static long serve_remove(struct run_regs *r)
{
	int fd = (int)r->di, host = 0;
	long err;

	if (number_is_ours(fd))
		return -EINVAL;
	if (!watch_is_armed(fd))
		return pass_number(r, fd);
	err = SERVED(api_inotify_rm(task_here(), hidden(fd), (int)r->si, &host));
	return err > 0 ? sys_call3(SYS_inotify_rm_watch, fd, host, 0) : err;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* The kernel waits, if the program wants that; what it says may be for us alone. */
long watch_read(int fd, void *buf, size_t size)
{
	long n, got;

	do {
		n = sys_call3(SYS_read, fd, (long)buf, (long)size);
		if (n < 0 && n != -EAGAIN)
			return n;
		/* Nothing waits in the kernel: somebody who could not touch the token may have left something. */
		got = SERVED(api_inotify_merge(task_here(), hidden(fd), buf, (size_t)max_of(n, 0L), size));
	} while (got == -EAGAIN && n >= 0);
	return got == -EBADF ? n : got; /* closed by another thread meanwhile */
}

/* As the kernel does for a file that has no read of its own for several buffers. */
long watch_readv(int fd, const struct iovec *user, unsigned count)
{
	long n = count > IOV_MAX ? -EINVAL : 0, done = 0;
	struct iovec one;

	for (unsigned k = 0; k < count && n >= 0; k++) {
		n = copy_from_user(&one, &user[k], sizeof(one));
		if (!n)
			n = watch_read(fd, one.iov_base, one.iov_len);
		done += max_of(n, 0L);
		if (n >= 0 && (size_t)n < one.iov_len)
			break;
	}
	return done ? done : n;
}

long watch_readable(int fd, void *user)
{
	int here = 0;
	int64_t mine;
	long err = sys_call3(SYS_ioctl, fd, FIONREAD, (long)&here);

	if (err)
		return err;
	mine = SERVED(api_inotify_bytes(task_here(), hidden(fd)));
	here = (int)max_of(here + mine, (int64_t)0);
	return copy_to_user(user, &here, sizeof(here));
}

AT_START void serve_watch_init(void)
{
	serve_table[SYS_inotify_init] = serve_instance;
	serve_table[SYS_inotify_init1] = serve_instance;
	serve_table[SYS_inotify_add_watch] = serve_add;
	serve_table[SYS_inotify_rm_watch] = serve_remove;
}

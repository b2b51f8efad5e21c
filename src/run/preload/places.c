/* SPDX-License-Identifier: MIT */
/*
 * places.c - calls with two paths, and where the process stands.
 *
 * While the process stands in the shelf, the kernel's working directory is the prefix: an empty directory, so that a call that
 * goes past us finds nothing.
 */
#include <string.h>

#include "run/preload/paths.h"

/* ---- rename and link ------------------------------------------------------------------------- */

struct two_paths {
	uint16_t nr;
	int8_t dirfd[2], path[2];
	int8_t flags; /* argument, or NONE */
	long (*shelf)(struct shelf_task *t, const struct route rt[2], unsigned flags);
	bool links;
};

static long do_rename(struct shelf_task *t, const struct route rt[2], unsigned flags)
{
	return shelf_renameat2(t, rt[0].dirfd, rt[0].path, rt[1].dirfd, rt[1].path, flags);
}

static long do_link(struct shelf_task *t, const struct route rt[2], unsigned flags)
{
	if (rt[0].magic >= 0)
		flags |= AT_EMPTY_PATH;
	return shelf_linkat(t, rt[0].dirfd, rt[0].path, rt[1].dirfd, rt[1].path, (int)flags);
}

static const struct two_paths two_paths[] = {
	{SYS_rename, {NONE, NONE}, {0, 1}, NONE, do_rename, false},
	{SYS_renameat, {0, 2}, {1, 3}, NONE, do_rename, false},
	{SYS_renameat2, {0, 2}, {1, 3}, 4, do_rename, false},
	{SYS_link, {NONE, NONE}, {0, 1}, NONE, do_link, true},
	{SYS_linkat, {0, 2}, {1, 3}, 4, do_link, true},
};

/* In a call.  *left: which of the two goes on outside. */
static long both_in_shelf(const struct two_paths *tp, struct route rt[2], unsigned flags, int *left)
{
	unsigned links = rt[0].border.links;
	long n;

	rt[0].border.links = 0; /* it is for both of them */
	walk_border = &rt[0].border;
	n = tp->shelf(task_here(), rt, flags);
	walk_border = NULL;
	rt[0].border.links = links;
	if (n != WALK_LEFT)
		return n;
	*left = rt[0].border.origin != rt[0].path;
	if (*left) {
		memcpy(rt[1].border.left, rt[0].border.left, strlen(rt[0].border.left) + 1);
		rt[1].border.followed = rt[0].border.followed;
		rt[0].border.followed = 0;
	}
	return n;
}

static long both_in_kernel(const struct two_paths *tp, const uint64_t args[6], struct route rt[2])
{
	uint64_t a[6];

	memcpy(a, args, sizeof(a));
	for (int k = 0; k < 2; k++) {
		a[tp->path[k]] = (uint64_t)(uintptr_t)rt[k].path;
		if (tp->dirfd[k] != NONE)
			a[tp->dirfd[k]] = (uint64_t)(int64_t)rt[k].dirfd;
	}
	return host_call(tp->nr, a);
}

/* A path of the kernel's that was not found may lead here by links. */
static bool missed_either(struct route rt[2], long err, const enum route_last last[2])
{
	return route_missed(&rt[0], err, last[0]) || route_missed(&rt[1], err, last[1]);
}

/* Both directories must be there before the kernel says that they are not of one file system.  The route is used up. */
static long parent_missing(struct route *rt)
{
	char *text = rt->border.left;
	long len = rt->path ? user_strnlen(rt->path, PATH_LIMIT) : -EFAULT;
	size_t n = (size_t)len;

	if (len <= 0 || n >= PATH_LIMIT)
		return len < 0 ? len : n ? -ENAMETOOLONG : -ENOENT;
	memmove(text, rt->path, n);
	while (n > 1 && text[n - 1] == '/')
		n--;
	while (n && text[n - 1] != '/')
		n--;
	memcpy(text + n, ".", 2);
	if (rt->kind == ROUTE_HOST)
		return sys_call6(SYS_faccessat, rt->dirfd, (long)text, F_OK, 0, 0, 0);
	if (!attached())
		run_attach_shelf();
	return SERVED(shelf_faccessat2(task_here(), rt->dirfd, text, F_OK, 0));
}

static long two_paths_call(const struct two_paths *tp, const uint64_t a[6], struct route rt[2],
			   const enum route_last last[2])
{
	unsigned flags = tp->flags == NONE ? 0 : (unsigned)a[tp->flags];
	int left = 0;
	long n;

	for (unsigned hops = 0; hops < SYMLINK_LIMIT; hops++) {
		if (rt[0].kind == ROUTE_HOST && rt[1].kind == ROUTE_HOST) {
			n = both_in_kernel(tp, a, rt);
			if (n >= 0 || !missed_either(rt, n, last))
				return n;
			continue;
		}
		if (rt[0].kind != rt[1].kind) {
			n = parent_missing(&rt[0]);
			n = n ? n : parent_missing(&rt[1]);
			return n ? n : -EXDEV;
		}
		if (!attached())
			run_attach_shelf();
		n = SERVED(both_in_shelf(tp, rt, flags, &left));
		if (n != WALK_LEFT)
			return n;
		n = route_again(&rt[left], last[left]);
		if (n)
			return n;
	}
	return -ELOOP;
}

/* The kernel looks at flags before it looks at names. */
static bool flags_are_good(const struct two_paths *tp, unsigned flags)
{
	if (tp->links)
		return !(flags & ~(unsigned)(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH));
	return !(flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT)) &&
	       !(flags & RENAME_EXCHANGE && flags & (RENAME_NOREPLACE | RENAME_WHITEOUT));
}

static long serve_two_paths(const struct two_paths *tp, const uint64_t a[6], struct route_room *room)
{
	enum route_last last[2] = {LAST_NOT_FOLLOWED, LAST_NOT_FOLLOWED};
	struct route rt[2];
	long err;

	if (tp->flags != NONE && !flags_are_good(tp, (unsigned)a[tp->flags]))
		return -EINVAL;
	if (tp->links && tp->flags != NONE && a[tp->flags] & AT_SYMLINK_FOLLOW)
		last[0] = LAST_FOLLOWED;
	for (int k = 0; k < 2; k++) {
		err = route_begin(&rt[k], room, k, tp->dirfd[k] == NONE ? AT_FDCWD : (int)a[tp->dirfd[k]],
				  (const char *)a[tp->path[k]], last[k]);
		if (err)
			return err;
	}
	return two_paths_call(tp, a, rt, last);
}

static long serve_two(struct run_regs *r)
{
	struct route_room *room = route_room_take();
	unsigned k = 0;
	uint64_t a[6];
	long err;

	if (!room)
		return -ENOMEM;
	regs_args(r, a);
	while (two_paths[k].nr != r->nr)
		k++;
	err = serve_two_paths(&two_paths[k], a, room);
	route_room_give(room);
	return err;
}

/* ---- where the process stands ---------------------------------------------------------------------- */

/* In the shelf now: the kernel's place is the prefix. */
static void stand_in_shelf(void)
{
	struct run_proc *p = proc_here();

	if (!p->cwd_in)
		sys_call3(SYS_chdir, (long)runtime.prefix, 0, 0);
	p->cwd_in = p->cwd_moved = true;
}

static long do_chdir(struct shelf_task *t, const uint64_t a[6], const struct route *rt)
{
	long err = rt->magic >= 0 ? shelf_fchdir(t, rt->magic) : shelf_chdir(t, rt->path);

	(void)a;
	if (!err)
		stand_in_shelf();
	return err;
}

static enum route_last chdir_follows(const uint64_t a[6])
{
	(void)a;
	return LAST_FOLLOWED;
}

/* Does the kernel stand at the prefix by a way that was not seen?  Then it is the shelf. */
static bool kernel_stands_at_prefix(void)
{
	struct stat st;

	return !sys_call3(SYS_stat, (long)".", (long)&st, 0) && st.st_dev == runtime.prefix_dev &&
	       st.st_ino == runtime.prefix_ino;
}

static void left_shelf(void)
{
	proc_here()->cwd_in = false;
	if (!kernel_stands_at_prefix())
		return;
	if (!attached())
		run_attach_shelf();
	if (!SERVED(shelf_chdir(task_here(), "/")))
		proc_here()->cwd_in = true;
}

static long serve_chdir(struct run_regs *r)
{
	static const struct path_call chdir_call = {SYS_chdir, NONE, 0, chdir_follows, do_chdir, PLAIN, 0};
	uint64_t a[6];
	long err;

	regs_args(r, a);
	proc_here()->cwd_moved = false;
	err = path_call(&chdir_call, a);
	if (!err && !proc_here()->cwd_moved)
		left_shelf();
	return err;
}

static long serve_fchdir(struct run_regs *r)
{
	int fd = (int)r->di;
	long err;

	if (attached() && number_is_ours(fd)) {
		err = SERVED(shelf_fchdir(task_here(), fd));
		if (!err)
			stand_in_shelf();
		return err;
	}
	if (number_parked(fd))
		return -EBADF;
	err = sys_call3(SYS_fchdir, fd, 0, 0);
	if (!err)
		left_shelf();
	return err;
}

static long cwd_path(char *buf, size_t size)
{
	long n = SERVED(shelf_getcwd(task_here(), buf, size));

	return n < 0 ? n : route_spell(buf, size, buf);
}

static long serve_getcwd(struct run_regs *r)
{
	struct route_room *room;
	long n;

	if (!proc_here()->cwd_in)
		return run_pass(r);
	room = route_room_take();
	if (!room)
		return -ENOMEM;
	n = cwd_path(room->left[0], sizeof(room->left[0]));
	if (n >= 0)
		n = (size_t)n + 1 > r->si ? -ERANGE : copy_to_user((char *)r->di, room->left[0], (size_t)n + 1) ? -EFAULT : n + 1;
	route_room_give(room);
	return n;
}

/* Of both sides, whatever other threads do: none attaches in between, and two calls are one after the other on either side. */
static long serve_umask(struct run_regs *r)
{
	bool alone = proc_here()->borrowed || load_relaxed(&runtime.threads) == 1; /* only we could change it */
	long old;

	if (alone) {
		if (attached())
			SERVED(shelf_umask(task_here(), (mode_t)r->di));
		return run_pass(r);
	}
	run_attach_lock();
	if (attached())
		shelf_umask(task_here(), (mode_t)r->di);
	old = sys_call3(SYS_umask, (int)r->di, 0, 0);
	run_attach_unlock();
	return old;
}

/* The path of an open file as the kernel would show it. */
long number_path(int fd, char *buf, size_t size)
{
	long n = SERVED(api_path_of(task_here(), fd, buf, size));

	if (n < 0)
		return n;
	return route_spell(buf, size, buf);
}

AT_START void serve_places_init(void)
{
	for (unsigned k = 0; k < ARRAY_SIZE(two_paths); k++)
		serve_table[two_paths[k].nr] = serve_two;
	serve_table[SYS_chdir] = serve_chdir;
	serve_table[SYS_fchdir] = serve_fchdir;
	serve_table[SYS_getcwd] = serve_getcwd;
	serve_table[SYS_umask] = serve_umask;
}

/* SPDX-License-Identifier: MIT */
/*
 * paths.c - calls that take a path.
 *
 * One table says where in a call the path and its directory stand, how its last component is meant, and which function
 * has the shelf do it.  path_call() routes, calls, and routes again when a walk crosses the border either way.
 */
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <utime.h>

#include "run/preload/nodes.h"

/* ---- what the shelf does: A the call's arguments, RT where the path leads ------------------------ */

#define SHELF_DOES(name, call)                                                      \
	static long do_##name(struct shelf_task *t, const uint64_t a[6], const struct route *rt) \
	{                                                                           \
		(void)t, (void)a, (void)rt;                                         \
		return (call);                                                      \
	}

#define AT_ rt->dirfd, rt->path
#define PTR(k) ((void *)(uintptr_t)a[k])

/* A number of ours named by /proc/self/fd, or by "" with AT_EMPTY_PATH, is meant itself. */
static int at_flags(const struct route *rt, uint64_t flags)
{
	return (int)flags | (rt->magic >= 0 ? AT_EMPTY_PATH : 0);
}

/* The shelf fills the program's buffer itself, if that is one; else only whether there is such a file is of interest. */
static long stat_into(struct shelf_task *t, const struct route *rt, struct stat *st, int flags)
{
	struct stat spare;
	bool good = !user_writable(st, sizeof(*st));
	long err = shelf_fstatat(t, AT_, good ? st : &spare, flags);

	return err || good ? err : -EFAULT;
}

static long statx_into(struct shelf_task *t, const struct route *rt, const uint64_t a[6])
{
	struct statx spare, *out = PTR(4);
	bool good = !user_writable(out, sizeof(*out));
	long err = shelf_statx(t, AT_, at_flags(rt, a[2]), (unsigned)a[3], good ? out : &spare);

	return err || good ? err : -EFAULT;
}

/* Programs that know a tmpfs do what they would do there: tail -f asks for events, and does not look each second. */
long statfs_give(struct statfs *fs, struct statfs *user)
{
	fs->f_type = TMPFS_MAGIC;
	return copy_to_user(user, fs, sizeof(*fs));
}

static long statfs_into(struct shelf_task *t, const struct route *rt, struct statfs *out)
{
	struct statfs spare;
	long err = rt->magic >= 0 ? shelf_fstatfs(t, rt->magic, &spare) : shelf_statfs(t, rt->path, &spare);

	return err ? err : statfs_give(&spare, out);
}

SHELF_DOES(stat, stat_into(t, rt, PTR(1), at_flags(rt, 0)))
SHELF_DOES(lstat, stat_into(t, rt, PTR(1), at_flags(rt, AT_SYMLINK_NOFOLLOW)))
SHELF_DOES(newfstatat, stat_into(t, rt, PTR(2), at_flags(rt, a[3])))
SHELF_DOES(statx, statx_into(t, rt, a))
SHELF_DOES(access, shelf_faccessat2(t, AT_, (int)a[1], at_flags(rt, 0)))
SHELF_DOES(faccessat, shelf_faccessat2(t, AT_, (int)a[2], at_flags(rt, 0)))
SHELF_DOES(faccessat2, shelf_faccessat2(t, AT_, (int)a[2], at_flags(rt, a[3])))
SHELF_DOES(mkdir, shelf_mkdirat(t, AT_, (mode_t)a[1]))
SHELF_DOES(mkdirat, shelf_mkdirat(t, AT_, (mode_t)a[2]))
SHELF_DOES(rmdir, shelf_unlinkat(t, AT_, AT_REMOVEDIR))
SHELF_DOES(unlink, shelf_unlinkat(t, AT_, 0))
SHELF_DOES(unlinkat, shelf_unlinkat(t, AT_, (int)a[2]))
SHELF_DOES(symlink, shelf_symlinkat(t, PTR(0), AT_))
SHELF_DOES(symlinkat, shelf_symlinkat(t, PTR(0), AT_))
SHELF_DOES(chmod, shelf_fchmodat2(t, AT_, (mode_t)a[1], at_flags(rt, 0)))
SHELF_DOES(fchmodat, shelf_fchmodat2(t, AT_, (mode_t)a[2], at_flags(rt, 0)))
SHELF_DOES(fchmodat2, shelf_fchmodat2(t, AT_, (mode_t)a[2], at_flags(rt, a[3])))
SHELF_DOES(chown, shelf_fchownat(t, AT_, (uid_t)a[1], (gid_t)a[2], at_flags(rt, 0)))
SHELF_DOES(lchown, shelf_fchownat(t, AT_, (uid_t)a[1], (gid_t)a[2], at_flags(rt, AT_SYMLINK_NOFOLLOW)))
SHELF_DOES(fchownat, shelf_fchownat(t, AT_, (uid_t)a[2], (gid_t)a[3], at_flags(rt, a[4])))
SHELF_DOES(mknod, shelf_mknodat(t, AT_, (mode_t)a[1], (dev_t)a[2]))
SHELF_DOES(mknodat, shelf_mknodat(t, AT_, (mode_t)a[2], (dev_t)a[3]))
SHELF_DOES(open, rt->magic >= 0 ? api_reopen(t, rt->magic, (int)a[1]) : shelf_openat(t, AT_, (int)a[1], (mode_t)a[2]))
SHELF_DOES(openat, rt->magic >= 0 ? api_reopen(t, rt->magic, (int)a[2]) : shelf_openat(t, AT_, (int)a[2], (mode_t)a[3]))
SHELF_DOES(creat, rt->magic >= 0 ? api_reopen(t, rt->magic, O_WRONLY | O_TRUNC) :
				   shelf_openat(t, AT_, O_CREAT | O_WRONLY | O_TRUNC, (mode_t)a[1]))
SHELF_DOES(openat2, shelf_openat2(t, AT_, a[3] <= PAGE_BYTES ? user_given(a[2], a[3]) : PTR(2), a[3]))
/* These have no form for a descriptor: a path is made of it (path_of_magic). */
SHELF_DOES(statfs, statfs_into(t, rt, PTR(1)))
SHELF_DOES(truncate, rt->magic >= 0 ? shelf_ftruncate(t, rt->magic, (off_t)a[1]) : shelf_truncate(t, rt->path, (off_t)a[1]))
SHELF_DOES(getxattr, rt->magic >= 0 ? shelf_fgetxattr(t, rt->magic, PTR(1), PTR(2), a[3]) :
				      shelf_getxattr(t, rt->path, PTR(1), PTR(2), a[3]))
SHELF_DOES(lgetxattr, shelf_lgetxattr(t, rt->path, PTR(1), PTR(2), a[3]))
SHELF_DOES(setxattr, rt->magic >= 0 ? shelf_fsetxattr(t, rt->magic, PTR(1), PTR(2), a[3], (int)a[4]) :
				      shelf_setxattr(t, rt->path, PTR(1), PTR(2), a[3], (int)a[4]))
SHELF_DOES(lsetxattr, shelf_lsetxattr(t, rt->path, PTR(1), PTR(2), a[3], (int)a[4]))
SHELF_DOES(listxattr, rt->magic >= 0 ? shelf_flistxattr(t, rt->magic, PTR(1), a[2]) : shelf_listxattr(t, rt->path, PTR(1), a[2]))
SHELF_DOES(llistxattr, shelf_llistxattr(t, rt->path, PTR(1), a[2]))
SHELF_DOES(removexattr, rt->magic >= 0 ? shelf_fremovexattr(t, rt->magic, PTR(1)) : shelf_removexattr(t, rt->path, PTR(1)))
SHELF_DOES(lremovexattr, shelf_lremovexattr(t, rt->path, PTR(1)))
SHELF_DOES(no_handle, -EOPNOTSUPP)
SHELF_DOES(not_permitted, -EPERM)

static long do_utimensat(struct shelf_task *t, const uint64_t a[6], const struct route *rt)
{
	if (a[2] && !user_given(a[2], sizeof(struct timespec[2])))
		return -EFAULT;
	if (!a[1]) /* no path: the descriptor itself */
		return shelf_utimensat(t, (int)a[0], NULL, PTR(2), (int)a[3]);
	if (rt->magic >= 0)
		return a[3] & ~(uint64_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) ? -EINVAL : shelf_futimens(t, rt->magic, PTR(2));
	return shelf_utimensat(t, AT_, PTR(2), (int)a[3]);
}

/* utime, utimes, futimesat: older forms of times. */
static long do_utimes(struct shelf_task *t, const struct timeval *tv, const struct route *rt)
{
	struct timeval v[2];
	struct timespec ts[2];

	if (!tv)
		return rt->magic >= 0 ? shelf_futimens(t, rt->magic, NULL) : shelf_utimensat(t, AT_, NULL, 0);
	if (copy_from_user(v, tv, sizeof(v)))
		return -EFAULT;
	for (int k = 0; k < 2; k++) {
		if (v[k].tv_usec < 0 || v[k].tv_usec > 999999)
			return -EINVAL;
		ts[k] = (struct timespec){v[k].tv_sec, v[k].tv_usec * 1000};
	}
	return rt->magic >= 0 ? shelf_futimens(t, rt->magic, ts) : shelf_utimensat(t, AT_, ts, 0);
}

SHELF_DOES(utimes_, do_utimes(t, PTR(1), rt))
SHELF_DOES(futimesat, do_utimes(t, PTR(2), rt))

static long do_utime(struct shelf_task *t, const uint64_t a[6], const struct route *rt)
{
	struct utimbuf u;
	struct timespec ts[2] = {0};

	if (a[1] && copy_from_user(&u, PTR(1), sizeof(u)))
		return -EFAULT;
	if (a[1]) {
		ts[0].tv_sec = u.actime;
		ts[1].tv_sec = u.modtime;
	}
	return shelf_utimensat(t, AT_, a[1] ? ts : NULL, 0);
}

/* A link's text, or the name of a descriptor. */
static long link_text(struct shelf_task *t, const struct route *rt, char *buf, size_t size)
{
	char *name = rt->room->left[1]; /* such a call has one path */
	long n;

	if (rt->magic < 0 && !rt->link)
		return shelf_readlinkat(t, AT_, buf, size);
	n = rt->link ? proc_link_text(rt->link, name, PATH_LIMIT) : number_path(rt->magic, name, PATH_LIMIT);
	if (n < 0)
		return n;
	n = min_of(n, (long)size);
	return copy_to_user(buf, name, (size_t)n) ? -EFAULT : n;
}

SHELF_DOES(readlink, (int)a[2] <= 0 ? -EINVAL : link_text(t, rt, PTR(1), (size_t)(int)a[2]))
SHELF_DOES(readlinkat, (int)a[3] <= 0 ? -EINVAL : link_text(t, rt, PTR(2), (size_t)(int)a[3]))

/* ---- how the last component is meant ------------------------------------------------------------------ */

static enum route_last followed(const uint64_t a[6])
{
	(void)a;
	return LAST_FOLLOWED;
}

static enum route_last itself(const uint64_t a[6])
{
	(void)a;
	return LAST_NOT_FOLLOWED;
}

static enum route_last by_flags(uint64_t flags)
{
	return flags & AT_SYMLINK_NOFOLLOW ? LAST_NOT_FOLLOWED : LAST_FOLLOWED;
}

static enum route_last by_arg2(const uint64_t a[6])
{
	return by_flags(a[2]);
}

static enum route_last by_arg3(const uint64_t a[6])
{
	return by_flags(a[3]);
}

static enum route_last by_arg4(const uint64_t a[6])
{
	return by_flags(a[4]);
}

static enum route_last by_open_flags(uint64_t flags)
{
	bool own = flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);

	return own ? LAST_NOT_FOLLOWED : LAST_FOLLOWED;
}

static enum route_last by_open1(const uint64_t a[6])
{
	return by_open_flags(a[1]);
}

static enum route_last by_open2(const uint64_t a[6])
{
	return by_open_flags(a[2]);
}

static enum route_last by_open_how(const uint64_t a[6])
{
	struct open_how how;

	return copy_from_user(&how, PTR(2), sizeof(how)) ? LAST_FOLLOWED : by_open_flags(how.flags);
}

/* ---- the table ------------------------------------------------------------------------------------------- */

static const struct path_call path_calls[] = {
	{SYS_open, NONE, 0, by_open1, do_open, GIVES_NUMBER, 1},
	{SYS_openat, 0, 1, by_open2, do_openat, GIVES_NUMBER, 2},
	{SYS_openat2, 0, 1, by_open_how, do_openat2, GIVES_NUMBER, 0},
	{SYS_creat, NONE, 0, followed, do_creat, GIVES_NUMBER, 0},
	{SYS_stat, NONE, 0, followed, do_stat, FILLS_STAT, 1},
	{SYS_lstat, NONE, 0, itself, do_lstat, FILLS_STAT, 1},
	{SYS_newfstatat, 0, 1, by_arg3, do_newfstatat, FILLS_STAT, 2},
	{SYS_statx, 0, 1, by_arg2, do_statx, FILLS_STATX, 4},
	{SYS_statfs, NONE, 0, followed, do_statfs, 0, 0},
	{SYS_access, NONE, 0, followed, do_access, 0, 0},
	{SYS_faccessat, 0, 1, followed, do_faccessat, 0, 0},
	{SYS_faccessat2, 0, 1, by_arg3, do_faccessat2, 0, 0},
	{SYS_truncate, NONE, 0, followed, do_truncate, 0, 0},
	{SYS_mkdir, NONE, 0, itself, do_mkdir, 0, 0},
	{SYS_mkdirat, 0, 1, itself, do_mkdirat, 0, 0},
	{SYS_rmdir, NONE, 0, itself, do_rmdir, 0, 0},
	{SYS_unlink, NONE, 0, itself, do_unlink, 0, 0},
	{SYS_unlinkat, 0, 1, itself, do_unlinkat, 0, 0},
	{SYS_symlink, NONE, 1, itself, do_symlink, 0, 0},
	{SYS_symlinkat, 1, 2, itself, do_symlinkat, 0, 0},
	{SYS_readlink, NONE, 0, itself, do_readlink, READS_LINK, 0},
	{SYS_readlinkat, 0, 1, itself, do_readlinkat, READS_LINK, 0},
	{SYS_chmod, NONE, 0, followed, do_chmod, 0, 0},
	{SYS_fchmodat, 0, 1, followed, do_fchmodat, 0, 0},
	{NR_fchmodat2, 0, 1, by_arg3, do_fchmodat2, 0, 0},
	{SYS_chown, NONE, 0, followed, do_chown, 0, 0},
	{SYS_lchown, NONE, 0, itself, do_lchown, 0, 0},
	{SYS_fchownat, 0, 1, by_arg4, do_fchownat, 0, 0},
	{SYS_mknod, NONE, 0, itself, do_mknod, 0, 0},
	{SYS_mknodat, 0, 1, itself, do_mknodat, 0, 0},
	{SYS_utime, NONE, 0, followed, do_utime, 0, 0},
	{SYS_utimes, NONE, 0, followed, do_utimes_, 0, 0},
	{SYS_futimesat, 0, 1, followed, do_futimesat, 0, 0},
	{SYS_utimensat, 0, 1, by_arg3, do_utimensat, 0, 0},
	{SYS_getxattr, NONE, 0, followed, do_getxattr, 0, 0},
	{SYS_lgetxattr, NONE, 0, itself, do_lgetxattr, 0, 0},
	{SYS_setxattr, NONE, 0, followed, do_setxattr, 0, 0},
	{SYS_lsetxattr, NONE, 0, itself, do_lsetxattr, 0, 0},
	{SYS_listxattr, NONE, 0, followed, do_listxattr, 0, 0},
	{SYS_llistxattr, NONE, 0, itself, do_llistxattr, 0, 0},
	{SYS_removexattr, NONE, 0, followed, do_removexattr, 0, 0},
	{SYS_lremovexattr, NONE, 0, itself, do_lremovexattr, 0, 0},
	{SYS_name_to_handle_at, 0, 1, followed, do_no_handle, 0, 0},
	{SYS_chroot, NONE, 0, followed, do_not_permitted, 0, 0},
	{SYS_umount2, NONE, 0, followed, do_not_permitted, 0, 0},
	{SYS_acct, NONE, 0, followed, do_not_permitted, 0, 0},
	{SYS_swapon, NONE, 0, followed, do_not_permitted, 0, 0},
};


/* ---- the kernel's half -------------------------------------------------------------------------------------- */

static bool filled_is_prefix(const struct path_call *pc, const uint64_t a[6], struct route *rt)
{
	const struct stat *st = PTR(pc->arg);
	const struct statx *sx = PTR(pc->arg);

	if (pc->kind == FILLS_STAT)
		return S_ISDIR(st->st_mode) && route_is_prefix(rt, st->st_dev, st->st_ino);
	return S_ISDIR(sx->stx_mode) &&
	       route_is_prefix(rt, makedev(sx->stx_dev_major, sx->stx_dev_minor), sx->stx_ino);
}

/* An opened directory that is the prefix is no directory of the kernel's. */
static bool opened_prefix(const struct path_call *pc, const uint64_t a[6], struct route *rt, long fd)
{
	struct stat st;

	if (!pc->arg || !(a[pc->arg] & O_DIRECTORY))
		return false;
	if (sys_call3(SYS_fstat, fd, (long)&st, 0) || !route_is_prefix(rt, st.st_dev, st.st_ino))
		return false;
	sys_call3(SYS_close, fd, 0, 0);
	return true;
}

/* *again: the path turned out to lead into the shelf. */
static long kernel_does(const struct path_call *pc, const uint64_t args[6], struct route *rt, enum route_last last,
			bool *again)
{
	uint64_t a[6];
	long n;

	memcpy(a, args, sizeof(a));
	a[pc->path] = (uint64_t)(uintptr_t)rt->path;
	if (pc->dirfd != NONE)
		a[pc->dirfd] = (uint64_t)(int64_t)rt->dirfd;
	if (pc->kind == GIVES_NUMBER && attached())
		numbers_release();
	n = host_call(pc->nr, a);
	if (unlikely(n < 0)) {
		*again = rt->path && *rt->path && route_missed(rt, n, last);
		return n;
	}
	if (pc->kind == FILLS_STAT || pc->kind == FILLS_STATX)
		*again = rt->path && filled_is_prefix(pc, a, rt);
	if (pc->kind == GIVES_NUMBER) {
		*again = opened_prefix(pc, a, rt, n);
		if (!*again)
			number_mark((int)n);
	}
	return n;
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

/* In a call. */
static long shelf_does_locked(const struct path_call *pc, const uint64_t a[6], struct route *rt)
{
	long n;

	walk_border = &rt->border;
	n = pc->shelf(task_here(), a, rt);
	walk_border = NULL;
	return n;
}

static long shelf_does(const struct path_call *pc, const uint64_t a[6], struct route *rt)
{
	if (unlikely(!attached()))
		run_attach_shelf();
	return SERVED(shelf_does_locked(pc, a, rt));
}

/* The kernel's own link names our placeholder: it is a link for lstat, and what it names for everybody else. */
static bool wants_link_itself(const struct path_call *pc, const struct route *rt, enum route_last last)
{
	return (rt->magic >= 0 || rt->link) && last == LAST_NOT_FOLLOWED && pc->kind != READS_LINK;
}

static long open_flags(const struct path_call *pc, const uint64_t a[6])
{
	struct open_how how;

	if (pc->nr == SYS_openat2)
		return copy_from_user(&how, PTR(2), sizeof(how)) ? O_PATH : (long)how.flags;
	return pc->nr == SYS_creat ? O_WRONLY : (long)(int)a[pc->arg];
}

static long path_call_with(const struct path_call *pc, const uint64_t a[6], struct route_room *room)
{
	enum route_last last = pc->last(a);
	const char *path = PTR(pc->path);
	int dirfd = pc->dirfd == NONE ? AT_FDCWD : (int)a[pc->dirfd];
	struct route rt;
	long n = route_begin(&rt, room, 0, dirfd, path, last);

	for (unsigned hops = 0; !n && hops < SYMLINK_LIMIT; hops++) {
		bool again = false;

		if (rt.kind == ROUTE_HOST && rt.link && pc->kind == READS_LINK)
			return pc->shelf(NULL, a, &rt); /* the text of such a link needs no task */
		if (rt.kind == ROUTE_HOST || wants_link_itself(pc, &rt, last)) {
			if (wants_link_itself(pc, &rt, last))
				rt.dirfd = dirfd, rt.path = path;
			n = kernel_does(pc, a, &rt, last, &again);
			if (!again)
				return n;
			n = 0;
			continue;
		}
		n = shelf_does(pc, a, &rt);
		if (unlikely(n == -ENXIO) && pc->kind == GIVES_NUMBER)
			return node_open(&rt, open_flags(pc, a));
		if (likely(n != WALK_LEFT))
			return n;
		n = route_again(&rt, last);
	}
	return n ? n : -ELOOP;
}

long path_call(const struct path_call *pc, const uint64_t a[6])
{
	struct route_room *room = route_room_take();
	long n;

	if (unlikely(!room))
		return -ENOMEM;
	n = path_call_with(pc, a, room);
	route_room_give(room);
	return n;
}

static long serve_path(struct run_regs *r)
{
	uint64_t a[6];

	regs_args(r, a);
	return path_call(&path_calls[path_index[r->nr & (RUN_NUMBERS - 1)]], a);
}

AT_START void serve_paths_init(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(path_calls); i++) {
		path_index[path_calls[i].nr] = (uint8_t)i;
		serve_table[path_calls[i].nr] = serve_path;
	}
	serve_places_init();
	serve_nodes_init();
}

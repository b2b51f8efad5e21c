/* SPDX-License-Identifier: MIT */
/*
 * route.c - whose is a path: the shelf's or the kernel's.
 *
 * An absolute path is the shelf's if it begins with the prefix; a relative one if the directory it starts at is.
 * A walk that leaves the shelf (".." above the root, an absolute link) comes back with what is left of the path,
 * which is routed again.  The other way round - the kernel's names, with symbolic links or "..", that lead to the
 * prefix - is not seen by looking at the text:
 *	- a path that names the prefix's last component anywhere, or has "..", is resolved here, component by
 *	  component, with the kernel's readlink;
 *	- any other one goes to the kernel, which finds an empty directory at the prefix.  Where it says
 *	  ENOENT or the like, one more call asks whether a symbolic link was on the way; then it is resolved here.
 *
 * Data: none but the caller's struct route.  Limits: a path whose symbolic links change while it is resolved here is
 * resolved in steps, not in one instant.
 */
#include <linux/openat2.h>
#include <string.h>

#include "run/preload/serve.h"

static void to_shelf(struct route *rt, int dirfd, const char *path)
{
	rt->kind = ROUTE_SHELF;
	rt->dirfd = dirfd;
	rt->path = path;
}

static void to_host(struct route *rt, int dirfd, const char *path)
{
	rt->kind = ROUTE_HOST;
	rt->dirfd = dirfd;
	rt->path = path;
}

/* Behind the prefix: "" is its root. */
static void to_inside(struct route *rt, const char *rest)
{
	to_shelf(rt, AT_FDCWD, *rest ? rest : "/");
}

static const char *after_prefix(const char *path)
{
	size_t n = runtime.prefix_len;

	return !strncmp(path, runtime.prefix, n) && (!path[n] || path[n] == '/') ? path + n : NULL;
}

/* ---- does the text raise doubts? -------------------------------------------------------------- */

static size_t component_length(const char *p)
{
	const char *at = p;

	while (*at && *at != '/')
		at++;
	return (size_t)(at - p);
}

static bool is_last_of_prefix(const char *p, size_t len)
{
	return !strncmp(p, runtime.prefix_last, len) && !runtime.prefix_last[len];
}

static bool is_dotdot(const char *p, size_t len)
{
	return len == 2 && p[0] == '.' && p[1] == '.';
}

static bool doubtful(const char *path)
{
	for (;;) {
		size_t len;

		while (*path == '/')
			path++;
		len = component_length(path);
		if (!len)
			return false;
		if (is_last_of_prefix(path, len) || is_dotdot(path, len))
			return true;
		path += len;
	}
}

/* ---- resolving here ------------------------------------------------------------------------------ */

struct resolver {
	size_t len; /* of the canonical directory so far, in `at`; "" is the root */
	char *at, *rest, *link; /* PATH_LIMIT bytes each; `rest` is still to go */
	unsigned links;
	bool looped; /* there were more than SYMLINK_LIMIT */
	enum route_last last;
};

static bool start_at_descriptor(struct resolver *v, int dirfd)
{
	char name[32];
	long n;

	if (dirfd == AT_FDCWD)
		n = sys_call3(SYS_getcwd, (long)v->at, PATH_LIMIT, 0) - 1;
	else {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", dirfd);
		n = sys_call3(SYS_readlink, (long)name, (long)v->at, PATH_LIMIT - 1);
	}
	if (n < 1 || v->at[0] != '/')
		return false;
	v->len = n == 1 ? 0 : (size_t)n;
	v->at[v->len] = '\0';
	return true;
}

static bool push(struct resolver *v, const char *name, size_t len)
{
	if (v->len + len + 2 > PATH_LIMIT)
		return false;
	v->at[v->len] = '/';
	memcpy(v->at + v->len + 1, name, len);
	v->len += len + 1;
	v->at[v->len] = '\0';
	return true;
}

static void pop(struct resolver *v)
{
	while (v->len && v->at[v->len - 1] != '/')
		v->len--;
	if (v->len)
		v->len--;
	v->at[v->len] = '\0';
}

/* The link's target goes in front of the rest.  False: too long, or too many. */
static bool splice_link(struct resolver *v, size_t n, const char *rest)
{
	size_t more = strlen(rest);

	v->looped = ++v->links > SYMLINK_LIMIT;
	if (v->looped || n + more + 2 > PATH_LIMIT)
		return false;
	if (v->link[0] == '/')
		v->at[v->len = 0] = '\0';
	else
		pop(v);
	memmove(v->rest + n, rest, more + 1); /* begins with a slash, or is empty */
	memcpy(v->rest, v->link, n);
	return true;
}

/* One component off `rest`.  1: go on; 0: the kernel's; -1: at the prefix, with `rest` below it. */
static int resolve_step(struct resolver *v)
{
	const char *p = v->rest;
	size_t len;
	long n = -1;

	while (*p == '/')
		p++;
	len = component_length(p);
	if (!len)
		return 0;
	if (len == 1 && *p == '.')
		goto next;
	if (is_dotdot(p, len)) {
		pop(v);
		goto next;
	}
	if (!push(v, p, len))
		return 0;
	if (!strcmp(v->at, runtime.prefix)) {
		memmove(v->rest, p + len, strlen(p + len) + 1);
		return -1;
	}
	if (p[len] || v->last == LAST_FOLLOWED)
		n = sys_call3(SYS_readlink, (long)v->at, (long)v->link, PATH_LIMIT - 1);
	if (n >= 0)
		return splice_link(v, (size_t)n, p + len);
	if (n == -ENOENT && p[len])
		return 0;
next:
	memmove(v->rest, p + len, strlen(p + len) + 1);
	return 1;
}

/* True: the path leads into the shelf, and the route says where. */
static bool resolve(struct route *rt, int dirfd, const char *path, enum route_last last)
{
	struct resolver v = {
		.at = rt->room->at, .rest = rt->room->rest, .link = rt->room->link, .links = rt->border.links, .last = last};
	size_t n = strlen(path);
	int step = 1;

	if (n >= PATH_LIMIT || (*path != '/' && !start_at_descriptor(&v, dirfd)))
		return false;
	if (*path == '/')
		v.at[0] = '\0';
	memcpy(v.rest, path, n + 1);
	if (*path != '/' && !strcmp(v.at, runtime.prefix))
		step = -1;
	while (step > 0)
		step = resolve_step(&v);
	rt->looped = v.looped && rt->border.links; /* else the kernel finds it out */
	if (!step)
		return false;
	rt->border.links = v.links;
	memcpy(rt->made, "/", 1);
	memcpy(rt->made + (v.rest[0] != '/'), v.rest, strlen(v.rest) + 1);
	to_inside(rt, rt->made);
	rt->moved = true;
	return true;
}

/* ---- /proc/self/fd and its kin --------------------------------------------------------------------- */

/* Behind the component TEXT, which P begins with, and the slashes and dots after it; or NULL. */
static const char *step(const char *p, const char *text)
{
	size_t n = strlen(text);

	if (!p || strncmp(p, text, n) || (p[n] && p[n] != '/'))
		return NULL;
	for (p += n; *p == '/' || (*p == '.' && (!p[1] || p[1] == '/')); p++)
		;
	return p;
}

/* The same for a decimal number. */
static const char *step_number(const char *p, int *number)
{
	char text[16];
	size_t n = 0;

	*number = 0;
	for (; p && p[n] >= '0' && p[n] <= '9' && n < 9; n++) {
		*number = *number * 10 + (p[n] - '0');
		text[n] = p[n];
	}
	text[n] = '\0';
	return n ? step(p, text) : NULL;
}

static const char *from_root(const char *path)
{
	while (*path == '/' || (*path == '.' && path[1] == '/'))
		path++;
	return path;
}

/* Behind "/proc/self" in whatever spelling, or NULL. */
static const char *own_proc(const char *path)
{
	const char *p = step(from_root(path), "proc"), *q = step(p, "self");
	int pid;

	if (!q)
		q = step(p, "thread-self");
	if (q)
		return q;
	q = step_number(p, &pid);
	return q && pid == sys_call3(SYS_getpid, 0, 0, 0) ? q : NULL;
}

/* Where a path of descriptors goes on behind the number; NULL: it is none. */
static const char *descriptor_text(const char *path, int *number)
{
	static const char *const standard[] = {"stdin", "stdout", "stderr"};
	const char *p = step(from_root(path), "dev"), *q;

	for (int fd = 0; p && fd < 3; fd++)
		if (!strcmp(p, standard[fd])) {
			*number = fd;
			return "";
		}
	q = step(p, "fd");
	if (!q)
		q = step(own_proc(path), "fd");
	return step_number(q, number);
}

/* /proc/self/cwd and what is below it; /proc/self/exe. */
static int route_own_link(struct route *rt, const char *path)
{
	const char *own = own_proc(path), *p = proc_here()->cwd_in ? step(own, "cwd") : NULL;

	if (p) {
		rt->link = *p || path[strlen(path) - 1] == '/' ? LINK_NONE : LINK_CWD;
		to_shelf(rt, AT_FDCWD, *p ? p : ".");
	} else if (own && runtime.exe && !strcmp(own, "exe")) {
		rt->link = LINK_EXE;
		to_shelf(rt, AT_FDCWD, runtime.exe + runtime.prefix_len);
	} else if (own && runtime.host_exe && !strcmp(own, "exe")) {
		rt->link = LINK_EXE;
		to_host(rt, AT_FDCWD, runtime.host_exe);
	} else {
		return 0;
	}
	rt->moved = true;
	return 1;
}

/* 0: not a path of this kind, or not ours; 1: routed; or -errno. */
static int route_proc(struct route *rt, const char *path)
{
	int n;
	const char *p = descriptor_text(path, &n);

	if (!p)
		return route_own_link(rt, path);
	if (number_parked(n))
		return -ENOENT;
	if (!number_is_ours(n))
		return 0;
	to_shelf(rt, n, p);
	rt->moved = true;
	rt->magic = *p ? -1 : n;
	return 1;
}

/* ---- the routes --------------------------------------------------------------------------------------- */

/* A program of the shelf's runs from a memfd of its name (exec.c), of which the loader makes $ORIGIN. */
static const char *after_memfd(const char *path)
{
	static const char memfd[] = "/memfd:";

	return strncmp(path, memfd, sizeof(memfd) - 1) ? NULL : after_prefix(path + sizeof(memfd) - 1);
}

/* One that the loader was told to load: $ORIGIN is then where it found it. */
static bool route_loaded(struct route *rt, const char *path)
{
	const char *rest = path + strlen(LOADED_AT);
	size_t folder;

	if (strncmp(path, LOADED_AT, strlen(LOADED_AT)) || (*rest >= '0' && *rest <= '9') || !after_prefix(runtime.loaded))
		return false;
	folder = (size_t)(strrchr(runtime.loaded, '/') + 1 - runtime.loaded);
	if (folder + strlen(rest) >= PATH_LIMIT)
		return false;
	memmove(rt->made + folder, rest, strlen(rest) + 1);
	memcpy(rt->made, runtime.loaded, folder);
	to_inside(rt, after_prefix(rt->made));
	rt->moved = true;
	return true;
}

static int route_absolute(struct route *rt, int dirfd, const char *path, enum route_last last)
{
	const char *inside;
	int found;

	while (path[0] == '/' && path[1] == '/')
		path++;
	inside = after_prefix(path);
	if (unlikely(!inside && path[1] == 'm'))
		inside = after_memfd(path);
	if (inside) {
		to_inside(rt, inside);
		return 0;
	}
	if (unlikely(runtime.loaded != NULL) && route_loaded(rt, path))
		return 0;
	if ((attached() || unlikely(runtime.host_exe != NULL)) && (path[1] == 'p' || path[1] == 'd')) {
		found = route_proc(rt, path);
		if (found)
			return min_of(found, 0);
	}
	/* What was followed in the shelf counts here, too. */
	if ((!rt->border.links && !doubtful(path)) || !resolve(rt, dirfd, path, last))
		to_host(rt, dirfd, path);
	return rt->looped ? -ELOOP : 0;
}

static int route_relative(struct route *rt, int dirfd, const char *path, enum route_last last)
{
	if (dirfd == AT_FDCWD ? proc_here()->cwd_in : number_is_ours(dirfd)) {
		to_shelf(rt, dirfd, path);
		return 0;
	}
	if (dirfd != AT_FDCWD && number_parked(dirfd))
		return -EBADF;
	if (!*path || !doubtful(path) || !resolve(rt, dirfd, path, last))
		to_host(rt, dirfd, path);
	return 0;
}

int route_begin(struct route *rt, struct route_room *room, int which, int dirfd, const char *path, enum route_last last)
{
	long len = 0;

	rt->room = room;
	rt->border.left = room->left[which];
	rt->made = room->made[which];
	rt->border.links = rt->border.followed = 0;
	rt->moved = rt->looped = false;
	rt->link = LINK_NONE;
	rt->magic = -1;
	rt->border.prefix = runtime.prefix;
	rt->border.prefix_len = runtime.prefix_len;
	if (path)
		len = user_strnlen(path, PATH_LIMIT);
	if (len < 0)
		return -EFAULT;
	if (!path || len == PATH_LIMIT) { /* whoever has the directory says what is wrong */
		bool in = path && *path == '/' ? after_prefix(path) != NULL :
			  dirfd == AT_FDCWD    ? proc_here()->cwd_in :
						 number_is_ours(dirfd);

		(in ? to_shelf : to_host)(rt, dirfd, path);
		return 0;
	}
	if (*path == '/')
		return route_absolute(rt, dirfd, path, last);
	return route_relative(rt, dirfd, path, last);
}

int route_again(struct route *rt, enum route_last last)
{
	rt->moved = true;
	rt->link = LINK_NONE;
	rt->magic = -1;
	rt->border.links += rt->border.followed;
	rt->border.followed = 0;
	memcpy(rt->made, rt->border.left, strlen(rt->border.left) + 1);
	return route_absolute(rt, AT_FDCWD, rt->made, last);
}

bool route_missed(struct route *rt, long err, enum route_last last)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_NO_SYMLINKS};
	long fd;

	if (err != -ENOENT && err != -ENOTDIR && err != -EROFS && err != -EACCES)
		return false;
	if (last == LAST_FOLLOWED)
		how.flags &= ~(uint64_t)O_NOFOLLOW;
	fd = sys_call6(SYS_openat2, rt->dirfd, (long)rt->path, (long)&how, sizeof(how), 0, 0);
	if (fd >= 0)
		sys_call3(SYS_close, fd, 0, 0);
	/* With no number free it is not known, and looked for. */
	return (fd == -ELOOP || fd == -EMFILE) && resolve(rt, rt->dirfd, rt->path, last);
}

bool route_is_prefix(struct route *rt, uint64_t dev, uint64_t ino)
{
	if (ino != runtime.prefix_ino || dev != runtime.prefix_dev)
		return false;
	to_inside(rt, "");
	rt->moved = true;
	rt->link = LINK_NONE;
	rt->magic = -1;
	return true;
}

long route_spell(char *buf, size_t size, const char *inside)
{
	size_t n = runtime.prefix_len, more = inside[1] ? strlen(inside) : 0;

	if (n + more + 1 > size)
		return -ENAMETOOLONG;
	memmove(buf + n, inside, more);
	memcpy(buf, runtime.prefix, n);
	buf[n + more] = '\0';
	return (long)(n + more);
}

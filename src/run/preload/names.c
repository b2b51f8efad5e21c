/* SPDX-License-Identifier: MIT */
/*
 * names.c - addresses of AF_UNIX sockets below the prefix.
 *
 * bind makes the name in the shelf and binds the kernel's socket to the inode's hidden file (nodes.c), which has a link
 * I-B.n beside it with the address as the program wrote it. connect and sendto go the same way, after the shelf has said
 * that the caller may write there; what getsockname, accept, recvfrom and the like report is put back by the link.
 * Messages are in carry.c.
 *
 * Limits: once the name in the shelf is removed, getsockname tells the hidden file.
 */
#include <stddef.h>
#include <string.h>

#include "run/preload/nodes.h"

#define NAME_AT offsetof(struct sockaddr_un, sun_path)

/* ---- to the kernel ----------------------------------------------------------------------------- */

struct node_find {
	struct name_in *in;
	bool bind;
};

static long node_stat(struct shelf_task *t, const struct route *rt, bool follow, struct statx *sx)
{
	return shelf_statx(t, rt->dirfd, rt->path, follow ? 0 : AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, sx);
}

static long hidden_name(const struct statx *sx, struct sockaddr_un *out)
{
	uint64_t btime = (uint64_t)sx->stx_btime.tv_sec * 1000000000u + sx->stx_btime.tv_nsec;

	out->sun_family = AF_UNIX;
	return node_path(out->sun_path, sx->stx_ino, btime, true);
}

static long find_bound(struct shelf_task *t, const struct route *rt, struct name_in *in)
{
	struct statx sx;
	long err = node_stat(t, rt, true, &sx);

	if (!err)
		err = shelf_faccessat2(t, rt->dirfd, rt->path, W_OK, AT_EACCESS);
	if (!err && !S_ISSOCK(sx.stx_mode))
		err = -ECONNREFUSED;
	return err ? err : hidden_name(&sx, &in->addr);
}

static long make_bound(struct shelf_task *t, const struct route *rt, struct name_in *in)
{
	struct statx sx;
	long err = shelf_mknodat(t, rt->dirfd, rt->path, S_IFSOCK | 0777, 0);

	if (err)
		return err == -EEXIST ? -EADDRINUSE : err;
	err = node_stat(t, rt, false, &sx);
	return err ? err : hidden_name(&sx, &in->addr);
}

/* In a call; a[5] is the struct node_find. */
static long do_find(struct shelf_task *t, const uint64_t a[6], const struct route *rt)
{
	struct node_find *find = (struct node_find *)a[5];

	find->in->ours = true;
	return find->bind ? make_bound(t, rt, find->in) : find_bound(t, rt, find->in);
}

static enum route_last bound_last(const uint64_t a[6])
{
	return ((struct node_find *)a[5])->bind ? LAST_NOT_FOLLOWED : LAST_FOLLOWED;
}

/* A path of the kernel's is only asked about: `ours` stays false. */
static long find(struct name_in *in, const struct sockaddr_un *un, bool bind)
{
	static const struct path_call call = {SYS_access, NONE, 0, bound_last, do_find, PLAIN, 0};
	struct node_find f = {in, bind};
	const uint64_t a[6] = {(uint64_t)(uintptr_t)un->sun_path, F_OK, 0, 0, 0, (uint64_t)(uintptr_t)&f};
	long err = path_call(&call, a);

	if (!in->ours)
		return 0;
	in->len = (socklen_t)(NAME_AT + strlen(in->addr.sun_path) + 1);
	return err;
}

/* One byte more than a name has, for its NUL. */
union named {
	struct sockaddr_un un;
	char bytes[sizeof(struct sockaddr_un) + 1];
};

/* The address as text that ends; false: not one with a path. */
static bool copy_name(union named *to, uint64_t user, uint64_t len)
{
	struct sockaddr_un *un = &to->un;

	if (!user || len <= NAME_AT || len > sizeof(struct sockaddr_un))
		return false;
	memset(to, 0, sizeof(*to));
	return !copy_from_user(un, (const void *)user, len) && un->sun_family == AF_UNIX && un->sun_path[0];
}

long name_take(struct name_in *in, uint64_t user, uint64_t len)
{
	union named from;

	in->ours = false;
	return copy_name(&from, user, len) ? find(in, &from.un, false) : 0;
}

/* ---- from the kernel ------------------------------------------------------------------------------- */

/* Is this a hidden name?  Then what was bound, with its length. */
static long name_behind(const struct sockaddr_un *got, char *out, size_t size)
{
	char folder[NODE_FOLDER], link[NODE_PATH + 4];
	size_t n;

	if (nodes_folder(folder, false))
		return -ENOENT;
	n = strlen(folder);
	if (strncmp(got->sun_path, folder, n) || got->sun_path[n] != '/')
		return -ENOENT;
	snprintf(link, sizeof(link), "%s.n", got->sun_path);
	return sys_call3(SYS_readlink, (long)link, (long)out, (long)size);
}

void name_give(uint64_t user, uint32_t room, uint64_t user_len)
{
	char bound[NODE_PATH + 1];
	union named got;
	uint32_t len;
	long n;

	if (!attached() || !user || copy_from_user(&len, (const void *)user_len, sizeof(len)) || len > sizeof(got.un) ||
	    room < len || !copy_name(&got, user, len))
		return;
	n = name_behind(&got.un, bound, sizeof(bound) - 1);
	if (n < 0)
		return;
	bound[n] = '\0';
	len = (uint32_t)(NAME_AT + (size_t)n + 1);
	if (copy_to_user((char *)user + NAME_AT, bound, min_of((size_t)n + 1, room - NAME_AT)) ||
	    copy_to_user((void *)user_len, &len, sizeof(len)))
		return; /* the kernel could write there a moment ago */
}

/* ---- the calls --------------------------------------------------------------------------------------- */

static bool no_socket(int fd, long *err)
{
	if (!attached())
		return false;
	*err = number_is_ours(fd) ? -ENOTSOCK : number_parked(fd) ? -EBADF : 0;
	return *err;
}

static void unmake(const struct sockaddr_un *un)
{
	struct run_regs r = {.nr = SYS_unlink, .di = (uint64_t)(uintptr_t)un->sun_path};

	serve_table[SYS_unlink](&r);
}

static long serve_bind(struct run_regs *r)
{
	struct name_in in = {.ours = false};
	char link[NODE_PATH + 4];
	union named from;
	long err;

	if (no_socket((int)r->di, &err))
		return err;
	if (!copy_name(&from, r->si, r->dx))
		return run_pass(r);
	err = find(&in, &from.un, true);
	if (err || !in.ours)
		return err ? err : run_pass(r);
	snprintf(link, sizeof(link), "%s.n", in.addr.sun_path);
	err = sys_call3(SYS_bind, (int)r->di, (long)&in.addr, in.len);
	if (err)
		unmake(&from.un);
	else
		sys_call3(SYS_symlink, (long)from.un.sun_path, (long)link, 0);
	return err;
}

static long serve_connect(struct run_regs *r)
{
	struct name_in in;
	long err;

	if (no_socket((int)r->di, &err))
		return err;
	err = name_take(&in, r->si, r->dx);
	if (err || !in.ours)
		return err ? err : run_pass(r);
	err = sys_call3(SYS_connect, (int)r->di, (long)&in.addr, in.len);
	return err == -ENOENT ? -ECONNREFUSED : err; /* a name that nobody is bound to */
}

static long serve_sendto(struct run_regs *r)
{
	struct name_in in;
	long n;

	if (no_socket((int)r->di, &n))
		return n;
	n = r->r8 ? name_take(&in, r->r8, r->r9) : 0;
	if (n || !r->r8 || !in.ours)
		return n ? n : run_pass(r);
	n = sys_call6(SYS_sendto, (int)r->di, (long)r->si, (long)r->dx, (long)r->r10, (long)&in.addr, in.len);
	return n == -ENOENT ? -ECONNREFUSED : n;
}

/* Calls that report an address: by argument `addr`, with its length behind it. */
static long reports(struct run_regs *r, unsigned addr, bool gives_number)
{
	uint64_t a[6];
	uint32_t room = 0;
	long n;

	if (no_socket((int)r->di, &n))
		return n;
	if (!attached())
		return run_pass(r);
	regs_args(r, a);
	if (!gives_number && (!a[addr] || !a[addr + 1]))
		return run_pass(r);
	if (a[addr] && a[addr + 1] && copy_from_user(&room, (const void *)a[addr + 1], sizeof(room)))
		return -EFAULT;
	n = gives_number ? number_host_call(r) : host_call((long)r->nr, a);
	if (n >= 0 && a[addr] && a[addr + 1])
		name_give(a[addr], room, a[addr + 1]);
	return n;
}

static long serve_accept(struct run_regs *r)
{
	return reports(r, 1, true);
}

static long serve_getname(struct run_regs *r)
{
	return reports(r, 1, false);
}

static long serve_recvfrom(struct run_regs *r)
{
	return reports(r, 4, false);
}

AT_START void serve_names_init(void)
{
	serve_table[SYS_bind] = serve_bind;
	serve_table[SYS_connect] = serve_connect;
	serve_table[SYS_sendto] = serve_sendto;
	serve_table[SYS_accept] = serve_accept;
	serve_table[SYS_accept4] = serve_accept;
	serve_table[SYS_getsockname] = serve_getname;
	serve_table[SYS_getpeername] = serve_getname;
	serve_table[SYS_recvfrom] = serve_recvfrom;
}

/* SPDX-License-Identifier: MIT */
/* lockstep_fd.c - operations on descriptors and open files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "lockstep_ops.h"

/* ---- open ------------------------------------------------------------------------------------------ */

static int open_flags(uint32_t r, uint32_t q)
{
	static const struct {
		int flag;
		unsigned of_64;
	} maybe[] = {
		{ O_CREAT, 30 }, { O_EXCL, 6 },	   { O_TRUNC, 8 },    { O_APPEND, 10 }, { O_DIRECTORY, 5 },
		{ O_NOFOLLOW, 6 }, { O_PATH, 4 },  { O_NOATIME, 3 },  { O_CLOEXEC, 12 }, { O_NONBLOCK, 3 },
		{ O_DIRECT, 2 }, { O_SYNC, 2 }, { O_DSYNC, 2 }, { O_NOCTTY, 2 },
	};
	unsigned mode = r % 64;
	int flags = mode < 24 ? O_RDONLY : mode < 34 ? O_WRONLY : mode < 62 ? O_RDWR : 3;

	for (size_t i = 0; i < sizeof(maybe) / sizeof(maybe[0]); i++) {
		q = q * 1664525u + 1013904223u;
		if (q >> 26 < maybe[i].of_64)
			flags |= maybe[i].flag;
	}
	return flags;
}

static mode_t open_mode(uint32_t r)
{
	static const mode_t modes[] = { 0644, 0600, 0666, 0444, 0755, 0, 0222, 04755, 02770, 01777, 0700, 0077 };

	return modes[r % 12];
}

void ls_do_open(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = ls_openat(s, o->at, o->path, open_flags(o->r[0], o->r[1]), open_mode(o->r[2]));
}

void ls_do_creat(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_creat(s->task, o->path, open_mode(o->r[2])),
			 KERNEL4(SYS_openat, AT_FDCWD, o->path, O_CREAT | O_WRONLY | O_TRUNC, open_mode(o->r[2])));
}

void ls_do_tmpfile(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	int flags = O_TMPFILE | (o->r[0] % 8 ? O_RDWR : O_WRONLY) | (o->r[1] % 4 ? 0 : O_EXCL);

	r->ret = ls_openat(s, o->at, o->r[3] % 2 ? "." : o->path, o->r[4] % 20 ? flags : O_TMPFILE,
			   open_mode(o->r[2]));
}

void ls_do_openat2(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	/* Not RESOLVE_NO_XDEV: the kernel says EXDEV of an absolute link when it has not met the root before. */
	static const unsigned resolve[] = { RESOLVE_BENEATH,   RESOLVE_IN_ROOT, RESOLVE_NO_SYMLINKS,
					    RESOLVE_IN_ROOT,   RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS,
					    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH | RESOLVE_IN_ROOT,
					    0,		       0x1000 };
	struct open_how how[2] = { { .flags = (uint32_t)open_flags(o->r[0], o->r[1]) } };
	size_t size = o->r[4] % 16 ? sizeof(how[0]) : o->r[4] / 16 % 40;

	how[0].resolve = resolve[o->r[2] % 10];
	if (how[0].flags & O_CREAT)
		how[0].mode = open_mode(o->r[3]);
	if (o->r[5] % 32 == 0)
		how[0].flags |= 1ULL << 40;
	if (o->r[5] % 32 == 1)
		how[0].mode = 0644;
	r->ret = LS_CALL(s, shelf_openat2(s->task, o->at, o->path, how, size),
			 KERNEL4(SYS_openat2, o->at, o->path, how, size));
}

/* ---- numbers --------------------------------------------------------------------------------------- */

void ls_do_close(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = ls_close(s, o->fd);
}

void ls_do_close_range(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	unsigned first = (unsigned)o->fd, last = o->r[0] % 8 ? first + o->r[1] % 6 : ~0u;
	unsigned flags = o->r[2] % 3 == 0 ? 4 : o->r[2] % 16 == 1 ? 2 : o->r[2] % 16 == 2 ? 8 : 0;

	r->ret = LS_CALL(s, shelf_close_range(s->task, first, last, flags),
			 KERNEL3(SYS_close_range, first, last, flags));
}

void ls_do_dup(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_dup(s->task, o->fd), KERNEL1(SYS_dup, o->fd));
}

void ls_do_dup2(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_dup2(s->task, o->fd, o->fd2), KERNEL2(SYS_dup2, o->fd, o->fd2));
}

void ls_do_dup3(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	int flags = o->r[0] % 2 ? O_CLOEXEC : o->r[0] % 16 ? 0 : O_APPEND;

	r->ret = LS_CALL(s, shelf_dup3(s->task, o->fd, o->fd2, flags), KERNEL3(SYS_dup3, o->fd, o->fd2, flags));
}

static int64_t do_fcntl(struct ls_side *s, int fd, int cmd, uintptr_t arg)
{
	return LS_CALL(s, shelf_fcntl(s->task, fd, cmd, arg), KERNEL3(SYS_fcntl, fd, cmd, arg));
}

void ls_do_dupfd(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = do_fcntl(s, o->fd, o->r[0] % 2 ? F_DUPFD : F_DUPFD_CLOEXEC, (uintptr_t)(unsigned)o->fd2);
}

void ls_do_getfd(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = do_fcntl(s, o->fd, F_GETFD, 0);
}

void ls_do_setfd(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = do_fcntl(s, o->fd, F_SETFD, o->r[0] % 2);
}

void ls_do_getfl(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = do_fcntl(s, o->fd, F_GETFL, 0);
}

void ls_do_setfl(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = do_fcntl(s, o->fd, F_SETFL, (unsigned)open_flags(o->r[0], o->r[1]) & ~(unsigned)O_ASYNC);
}

void ls_do_fcntl_misc(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	static const int commands[] = { F_GET_SEALS, F_ADD_SEALS, F_GETPIPE_SZ, F_SETPIPE_SZ, F_GETLEASE, F_GETOWN,
					F_GETSIG, F_GET_RW_HINT, F_SET_RW_HINT, 12345, 1027, F_NOTIFY };
	int cmd = commands[o->r[0] % 12];
	uint64_t hint = o->r[1] % 7;
	uintptr_t arg = cmd == F_GET_RW_HINT || cmd == F_SET_RW_HINT ? (uintptr_t)&hint :
			cmd == 1027				      ? (uintptr_t)(unsigned)o->fd2 :
			cmd == F_NOTIFY				      ? 0 :
									o->r[1] % 128;

	r->ret = do_fcntl(s, o->fd, cmd, arg);
	r->hash = hint;
}

void ls_do_ioctl(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	static const unsigned long requests[] = { FIOCLEX, FIONCLEX, FIONBIO, FIOASYNC, FIONREAD, 0x5460, FIGETBSZ,
						  FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR, 0x5401, FS_IOC_GETVERSION,
						  FICLONE, FS_IOC_FIEMAP };
	unsigned long request = requests[o->r[0] % 13];
	long long arg[16] = { request == FIONBIO ? o->r[1] % 2 : 0 };

	r->ret = LS_CALL(s, shelf_ioctl(s->task, o->fd, request, request == FICLONE ? (uintptr_t)o->fd2 : (uintptr_t)arg),
			 KERNEL3(SYS_ioctl, o->fd, request, request == FICLONE ? (long)o->fd2 : (long)arg));
	if (request != FS_IOC_FIEMAP)
		r->hash = ls_hash(1, arg, sizeof(arg));
}

#define GETLK_END INT64_MAX

/* ---- locks ------------------------------------------------------------------------------------------- */

static void fill_lock(const struct ls_op *o, struct flock *fl)
{
	static const short types[] = { F_RDLCK, F_WRLCK, F_UNLCK, F_WRLCK, F_RDLCK, 7 };

	memset(fl, 0, sizeof(*fl));
	fl->l_type = types[o->r[0] % 31 ? o->r[0] % 5 : 5];
	fl->l_whence = (short)(o->r[1] % 5 ? SEEK_SET : (int)(o->r[1] / 5 % 4));
	fl->l_start = o->r[2] % 16 ? o->r[2] / 16 % 200 : o->off;
	fl->l_len = o->r[3] % 16 ? o->r[3] / 16 % 60 : (o->r[4] % 2 ? o->off2 : -(int64_t)(o->r[4] % 50));
	fl->l_pid = o->r[5] % 16 ? 0 : 5;
}

static void lock_call(struct ls_side *s, const struct ls_op *o, struct ls_result *r, int cmd)
{
	struct flock fl;

	fill_lock(o, &fl);
	r->ret = do_fcntl(s, o->fd, cmd, (uintptr_t)&fl);
	if (!r->ret)
		snprintf(r->text, sizeof(r->text), "type %d whence %d start %lld len %lld pid %s", fl.l_type,
			 fl.l_whence, (long long)fl.l_start, (long long)fl.l_len,
			 fl.l_pid > 0 ? "one" : fl.l_pid ? "-1" : "0");
}

void ls_do_lock(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	lock_call(s, o, r, F_SETLK);
}

void ls_do_ofd_lock(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	lock_call(s, o, r, F_OFD_SETLK);
}

/*
 * Where several locks are in the way POSIX leaves open which of them is told.  So ask again to both sides of each
 * one told: what is compared is which bytes are held, and how.
 */
struct getlk {
	struct ls_side *s;
	const struct ls_op *o;
	struct ls_result *r;
	int cmd;
	short type;
	struct held {
		int64_t start, end, how; /* its type; of a write lock, which no other overlaps, whether it is a process's */
	} held; /* told last: neighbours are one */
};

static void getlk_note(struct getlk *g, int64_t start, int64_t end, int64_t how)
{
	struct ls_result *r = g->r;
	size_t used = strlen(r->text);

	if (g->held.end == start && g->held.how == how) {
		g->held.end = end;
		return;
	}
	if (g->held.end) {
		r->hash = ls_hash(r->hash, &g->held, sizeof(g->held));
		snprintf(r->text + used, sizeof(r->text) - used, " %lld:%lld-%lld", (long long)g->held.how,
			 (long long)g->held.start, (long long)g->held.end); /* may be cut: the hash has all */
	}
	g->held = (struct held){start, end, how};
}

static void getlk_range(struct getlk *g, int64_t from, int64_t to)
{
	struct flock fl = {.l_type = g->type, .l_whence = SEEK_SET, .l_start = from, .l_len = to - from};
	int64_t start, end;

	if (from >= to)
		return;
	if (do_fcntl(g->s, g->o->fd, g->cmd, (uintptr_t)&fl))
		g->r->ret = -EIO;
	if (g->r->ret || fl.l_type == F_UNLCK)
		return;
	start = fl.l_start > from ? fl.l_start : from;
	end = fl.l_len && fl.l_start + fl.l_len < to ? fl.l_start + fl.l_len : to;
	if (start >= end || (fl.l_pid <= 0 && fl.l_pid != -1)) { /* none of the bytes asked about, or nobody's */
		g->r->ret = -EIO;
		return;
	}
	getlk_range(g, from, start);
	getlk_note(g, start, end, fl.l_type + (fl.l_type == F_WRLCK && fl.l_pid > 0 ? 10 : 0));
	getlk_range(g, end, to);
}

void ls_do_getlk(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct getlk g = {.s = s, .o = o, .r = r, .cmd = o->r[6] % 2 ? F_GETLK : F_OFD_GETLK};
	struct flock fl;

	fill_lock(o, &fl);
	g.type = fl.l_type;
	r->ret = do_fcntl(s, o->fd, g.cmd, (uintptr_t)&fl);
	if (r->ret)
		return;
	snprintf(r->text, sizeof(r->text), "type %d whence %d", fl.l_type, fl.l_whence);
	if (fl.l_type == F_UNLCK) {
		r->hash = ls_hash(1, &fl.l_start, sizeof(fl.l_start));
		r->hash = ls_hash(r->hash, &fl.l_len, sizeof(fl.l_len));
		return;
	}
	getlk_range(&g, 0, GETLK_END);
	getlk_note(&g, 0, 0, F_UNLCK); /* the last one */
}

void ls_do_flock(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	static const int operations[] = { LOCK_SH | LOCK_NB, LOCK_EX | LOCK_NB, LOCK_UN, LOCK_UN | LOCK_NB, LOCK_NB, 0,
					  LOCK_SH | LOCK_EX | LOCK_NB };
	int operation = operations[o->r[0] % 16 < 12 ? o->r[0] % 3 : o->r[0] % 7];

	r->ret = LS_CALL(s, shelf_flock(s->task, o->fd, operation), KERNEL2(SYS_flock, o->fd, operation));
}

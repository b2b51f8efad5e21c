/* SPDX-License-Identifier: MIT */
/* lockstep_calls.c - single calls, on whichever side. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lockstep.h"

static unsigned ids_now[2]; /* by side */

int64_t ls_kernel(long nr, long a, long b, long c, long d, long e, long f)
{
	long r = syscall(nr, a, b, c, d, e, f);

	return r == -1 ? -errno : r;
}

uint64_t ls_hash(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

int64_t ls_openat(struct ls_side *s, int at, const char *path, int flags, mode_t mode)
{
	return s->task ? shelf_openat(s->task, at, path, flags, mode) :
			 KERNEL4(SYS_openat, at, path, flags & O_PATH ? flags : flags | 0100000, mode);
}

int64_t ls_close(struct ls_side *s, int fd)
{
	return s->task ? shelf_close(s->task, fd) : KERNEL1(SYS_close, fd);
}

int64_t ls_getdents(struct ls_side *s, int fd, void *buf, size_t size)
{
	return s->task ? shelf_getdents64(s->task, fd, buf, size) : KERNEL3(SYS_getdents64, fd, buf, size);
}

int64_t ls_lseek(struct ls_side *s, int fd, int64_t off, int whence)
{
	return s->task ? shelf_lseek(s->task, fd, off, whence) : KERNEL3(SYS_lseek, fd, off, whence);
}

int64_t ls_pread(struct ls_side *s, int fd, void *buf, size_t n, int64_t off)
{
	return s->task ? shelf_pread(s->task, fd, buf, n, off) : KERNEL4(SYS_pread64, fd, buf, n, off);
}

int64_t ls_fstatat(struct ls_side *s, int at, const char *path, struct stat *st, int flags)
{
	return s->task ? shelf_fstatat(s->task, at, path, st, flags) :
			 KERNEL4(SYS_newfstatat, at, path, st, flags);
}

int64_t ls_readlinkat(struct ls_side *s, int at, const char *path, char *buf, size_t size)
{
	return s->task ? shelf_readlinkat(s->task, at, path, buf, size) :
			 KERNEL4(SYS_readlinkat, at, path, buf, size);
}

int64_t ls_unlinkat(struct ls_side *s, int at, const char *path, int flags)
{
	return s->task ? shelf_unlinkat(s->task, at, path, flags) : KERNEL3(SYS_unlinkat, at, path, flags);
}

int64_t ls_setlimit(struct ls_side *s, unsigned nofile)
{
	struct rlimit limit = { nofile, 4096 };

	return s->task ? shelf_task_setrlimit_nofile(s->task, nofile) :
			 KERNEL4(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
}

/* Root, and users who share groups in various ways. */
static const struct {
	uid_t uid;
	gid_t gid;
	unsigned ngroups;
	gid_t groups[2];
} people[] = {
	{ 0, 0, 0, { 0 } },
	{ 1000, 1000, 1, { 100 } },
	{ 1001, 1000, 0, { 0 } },
	{ 1002, 1002, 2, { 1000, 100 } },
};

static int64_t kernel_ids(unsigned who)
{
	int64_t err = KERNEL3(SYS_setresuid, 0, 0, 0);

	if (!err)
		err = KERNEL2(SYS_setgroups, people[who].ngroups, people[who].groups);
	if (!err)
		err = KERNEL3(SYS_setresgid, people[who].gid, people[who].gid, 0);
	if (!err)
		err = KERNEL3(SYS_setresuid, people[who].uid, people[who].uid, 0);
	return err;
}

static int64_t shelf_ids(struct shelf_task *t, unsigned who, bool privileged)
{
	struct shelf_cred c = { .uid = people[who].uid, .gid = people[who].gid };

	c.euid = c.fsuid = c.uid;
	c.egid = c.fsgid = c.gid;
	c.ngroups = people[who].ngroups;
	memcpy(c.groups, people[who].groups, sizeof(people[who].groups));
	c.caps = privileged && !c.uid ? SHELF_CAP_ALL : 0;
	return shelf_task_setcred(t, &c);
}

int64_t ls_setids(struct ls_side *s, unsigned who)
{
	static bool set;

	who %= sizeof(people) / sizeof(people[0]);
	if (!s->many_ids && (!s->task || set))
		return 0; /* always the same: other credentials would be no less new */
	set = true;
	if (!s->many_ids)
		who = 0;
	ids_now[!s->task] = who;
	if (s->task)
		return shelf_ids(s->task, who, s->many_ids);
	return kernel_ids(who);
}

unsigned ls_ids(const struct ls_side *s)
{
	return ids_now[!s->task];
}

/* Times that an operation set are long past and must agree; all others are "now". */
static void time_text(const struct timespec *t, char *out, size_t size)
{
	if (t->tv_sec < 1000000000)
		snprintf(out, size, "%lld.%09ld", (long long)t->tv_sec, t->tv_nsec);
	else
		snprintf(out, size, "now");
}

void ls_stat_text(const struct stat *st, char *text, size_t size)
{
	char atime[40], mtime[40], ctime[40];

	time_text(&st->st_atim, atime, sizeof(atime));
	time_text(&st->st_mtim, mtime, sizeof(mtime));
	time_text(&st->st_ctim, ctime, sizeof(ctime));
	snprintf(text, size, "mode %06o nlink %lu ids %u %u size %lld blocks %lld of %ld rdev %lx times %s %s %s",
		 st->st_mode, (unsigned long)st->st_nlink, st->st_uid, st->st_gid, (long long)st->st_size,
		 (long long)st->st_blocks, (long)st->st_blksize, (unsigned long)st->st_rdev, atime, mtime, ctime);
}

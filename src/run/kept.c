/* SPDX-License-Identifier: MIT */
/*
 * kept.c - files that are kept: their names, whom they belong to, writing them, and removing old ones.
 *
 * A file's modification time says when it was last used, to a day: who opens it sees to that.  So what no start has wanted for KEPT_DAYS,
 * as that of a libc which is gone, is known by its age, whoever shares the folder and whatever libraries he has.  It may be removed
 * while others open or map it: they have it, or make another.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/dir_each.h"
#include "base/syscall.h"
#include "run/kept.h"

/* Appends TEXT at *len; a text that does not fit makes *len PATH_MAX. */
static void append(char *path, size_t *len, const char *text)
{
	for (; *text && *len < PATH_MAX; text++)
		path[(*len)++] = *text;
}

static void append_hex(char *path, size_t *len, uint64_t value, unsigned int digits)
{
	char text[17];

	for (unsigned int i = 0; i < digits; i++)
		text[i] = "0123456789abcdef"[value >> 4 * (digits - 1 - i) & 15];
	text[digits] = 0;
	append(path, len, text);
}

static int append_end(char *path, size_t len)
{
	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	path[len] = 0;
	return 0;
}

int kept_path(const struct run_image *im, const char *dir, uint64_t key, unsigned int digits, const char *ending,
	      char *path)
{
	size_t len = 0;

	append(path, &len, dir);
	append(path, &len, "/");
	for (unsigned int i = 0; i < im->id_len; i++)
		append_hex(path, &len, im->id[i], 2);
	append(path, &len, "-");
	append_hex(path, &len, key, digits);
	append(path, &len, ending);
	return append_end(path, len);
}

#define DAY (24 * 60 * 60)
#define KEPT_DAYS 30
#define FRESH_SECONDS (60 * 60) /* a file that is not finished by then never will be */

static int64_t now(void)
{
	return clock_now_coarse() / 1000000000;
}

static int check_file(int fd, size_t max, size_t *size)
{
	struct stat st;
	long rc = sys_call3(SYS_fstat, fd, (long)&st, 0);

	if (rc < 0)
		return (int)rc;
	if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	if (st.st_uid && st.st_uid != (uid_t)sys_call3(SYS_geteuid, 0, 0, 0))
		return -EPERM;
	if (st.st_size <= 0 || (size_t)st.st_size > max)
		return -EBADMSG;
	*size = (size_t)st.st_size;
	if (now() - st.st_mtim.tv_sec > DAY)
		sys_call6(SYS_utimensat, fd, 0, 0, 0, 0, 0); /* another user's stays as it is */
	return 0;
}

long kept_open(const char *path, size_t max, size_t *size)
{
	long fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	int rc = fd < 0 ? 0 : check_file((int)fd, max, size);

	if (!rc)
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	return rc;
}

static int write_all(long fd, const char *p, size_t size)
{
	while (size) {
		long n = sys_call3(SYS_write, fd, (long)p, (long)size);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n ? (int)n : -EIO;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

/* A write past the limit would not only fail, but bring the program SIGXFSZ. */
static bool within_limit(size_t size)
{
	struct rlimit limit;

	return !sys_call6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) && size <= limit.rlim_cur;
}

/* Of a file in the making: no two have the same, whatever their pids are in, and whatever one that died has left. */
static uint64_t random_number(void)
{
	struct timespec ts = {0};
	uint64_t n;

	if (sys_call3(SYS_getrandom, (long)&n, sizeof(n), GRND_NONBLOCK) == (long)sizeof(n))
		return n;
	sys_call3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0);
	return (uint64_t)ts.tv_nsec << 32 ^ (uint64_t)ts.tv_sec << 16 ^ (uint64_t)sys_call3(SYS_gettid, 0, 0, 0) ^ (uintptr_t)&ts;
}

int kept_begin(struct kept_new *k, const char *path)
{
	size_t len = 0;

	append(k->name, &len, path);
	append(k->name, &len, ".");
	append_hex(k->name, &len, random_number(), 16);
	k->fd = append_end(k->name, len);
	if (!k->fd)
		k->fd = sys_call3(SYS_open, (long)k->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return k->fd < 0 ? (int)k->fd : 0;
}

void kept_drop(const struct kept_new *k)
{
	sys_call3(SYS_close, k->fd, 0, 0);
	sys_call3(SYS_unlink, (long)k->name, 0, 0);
}

int kept_end(const struct kept_new *k, const char *path, const void *buf, size_t size, bool sync)
{
	int rc = within_limit(size) ? write_all(k->fd, buf, size) : -EFBIG;

	if (!rc && sync)
		rc = (int)sys_call3(SYS_fsync, k->fd, 0, 0);
	if (!rc)
		rc = (int)sys_call3(SYS_rename, (long)k->name, (long)path, 0);
	if (rc)
		kept_drop(k);
	else
		sys_call3(SYS_close, k->fd, 0, 0);
	return rc;
}

int kept_save(const char *path, const void *buf, size_t size, bool sync)
{
	struct kept_new k;
	int rc = kept_begin(&k, path);

	return rc ? rc : kept_end(&k, path, buf, size, sync);
}

/* ---- old ones ----------------------------------------------------------------------------------- */

/* Behind the hexadecimal digits that NAME begins with; NULL: there are none. */
static const char *after_hex(const char *name)
{
	const char *p = name;

	while ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'))
		p++;
	return p == name ? NULL : p;
}

static const char *after_text(const char *p, const char *text)
{
	while (p && *text)
		p = *p == *text++ ? p + 1 : NULL;
	return p;
}

/* How old one of such a name may become; 0: it is none of ours. */
static int64_t age_limit(const char *name)
{
	static const char *const endings[] = {".so", ".sites"};
	const char *p = after_hex(name), *q;

	p = p ? after_text(p, "-") : NULL;
	p = p ? after_hex(p) : NULL;
	for (size_t i = 0; p && i < ARRAY_SIZE(endings); i++) {
		q = after_text(p, endings[i]);
		if (q && !*q)
			return (int64_t)KEPT_DAYS * DAY;
		q = after_text(q, ".");
		q = q ? after_hex(q) : NULL;
		if (q && !*q)
			return FRESH_SECONDS;
	}
	return 0;
}

static bool remove_if_old(void *ctx, long dir, const char *name)
{
	int64_t limit = age_limit(name);
	struct stat st;

	(void)ctx;
	if (limit && !sys_call6(SYS_newfstatat, dir, (long)name, (long)&st, AT_SYMLINK_NOFOLLOW, 0, 0) && S_ISREG(st.st_mode) &&
	    now() - st.st_mtim.tv_sec > limit)
		sys_call3(SYS_unlinkat, dir, (long)name, 0);
	return true;
}

void kept_sweep(const char *dir)
{
	dir_each_in(dir, remove_if_old, NULL);
}

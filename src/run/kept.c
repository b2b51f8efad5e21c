/* SPDX-License-Identifier: MIT */
/* kept.c - files that are kept: their names, whom they belong to, and writing them. */
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>

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
	return 0;
}

long kept_open(const char *path, size_t max, size_t *size)
{
	long fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
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

int kept_save(const char *path, const void *buf, size_t size, bool sync)
{
	char fresh[PATH_MAX];
	size_t len = 0;
	long fd;
	int rc;

	append(fresh, &len, path);
	append(fresh, &len, ".");
	append_hex(fresh, &len, (uint64_t)sys_call3(SYS_gettid, 0, 0, 0), 8);
	rc = append_end(fresh, len);
	if (!rc && !within_limit(size))
		rc = -EFBIG;
	if (rc)
		return rc;
	fd = sys_call3(SYS_open, (long)fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return (int)fd;
	rc = write_all(fd, buf, size);
	if (!rc && sync)
		rc = (int)sys_call3(SYS_fsync, fd, 0, 0);
	sys_call3(SYS_close, fd, 0, 0);
	if (!rc)
		rc = (int)sys_call3(SYS_rename, (long)fresh, (long)path, 0);
	if (rc)
		sys_call3(SYS_unlink, (long)fresh, 0, 0);
	return rc;
}

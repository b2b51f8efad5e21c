/* SPDX-License-Identifier: MIT */
/* table_file.c - tables as files, one for each build id, by raw system calls. */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/syscall.h"
#include "run/table.h"

/* Appends TEXT at *len; a text that does not fit makes *len PATH_MAX. */
static void append(char *path, size_t *len, const char *text)
{
	for (; *text && *len < PATH_MAX; text++)
		path[(*len)++] = *text;
}

static void append_hex(char *path, size_t *len, unsigned long value, unsigned int digits)
{
	char text[17];

	for (unsigned int i = 0; i < digits; i++)
		text[i] = "0123456789abcdef"[value >> 4 * (digits - 1 - i) & 15];
	text[digits] = 0;
	append(path, len, text);
}

int table_path(const struct run_image *im, const char *dir, char *path)
{
	size_t len = 0;

	append(path, &len, dir);
	append(path, &len, "/");
	for (unsigned int i = 0; i < im->id_len; i++)
		append_hex(path, &len, im->id[i], 2);
	append(path, &len, ".sites");
	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	path[len] = 0;
	return 0;
}

/* Only a plain file of ours or root's that nobody else may write. */
static int check_owner(int fd, size_t *size)
{
	struct stat st;
	long rc = sys_call3(SYS_fstat, fd, (long)&st, 0);

	if (rc < 0)
		return (int)rc;
	if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	if (st.st_uid && st.st_uid != (uid_t)sys_call3(SYS_geteuid, 0, 0, 0))
		return -EPERM;
	if (st.st_size <= 0 || st.st_size > (long)TABLE_SITES_MAX * (SITE_HEAD + WINDOW_MAX))
		return -EBADMSG;
	*size = (size_t)st.st_size;
	return 0;
}

int table_load(const struct run_image *im, const char *dir, const void **buf, size_t *size)
{
	char path[PATH_MAX];
	long fd, map;
	int rc = table_path(im, dir, path);

	if (rc)
		return rc;
	fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return (int)fd;
	rc = check_owner((int)fd, size);
	if (!rc) {
		/* A copy, so that the bytes that were checked are the bytes that are used. */
		map = sys_call6(SYS_mmap, 0, (long)*size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (map < 0 && map > -4096) {
			rc = (int)map;
		} else if (sys_call3(SYS_read, fd, map, (long)*size) != (long)*size) {
			sys_call3(SYS_munmap, map, (long)*size, 0);
			rc = -EBADMSG;
		} else {
			*buf = (const void *)map;
		}
	}
	sys_call3(SYS_close, fd, 0, 0);
	return rc;
}

void table_unload(const void *buf, size_t size)
{
	sys_call3(SYS_munmap, (long)buf, (long)size, 0);
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

int table_save(const struct run_image *im, const struct run_sites *sites, const char *dir)
{
	size_t size = table_size(sites), len;
	char path[PATH_MAX], fresh[PATH_MAX];
	int rc = table_path(im, dir, path);
	long fd, map;

	if (rc)
		return rc;
	len = 0;
	append(fresh, &len, path);
	append(fresh, &len, ".");
	append_hex(fresh, &len, (unsigned long)sys_call3(SYS_gettid, 0, 0, 0), 8);
	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	fresh[len] = 0;
	map = sys_call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map < 0 && map > -4096)
		return (int)map;
	table_write(im, sites, (void *)map);
	fd = sys_call3(SYS_open, (long)fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rc = (int)fd;
	if (fd >= 0) {
		rc = write_all(fd, (const char *)map, size);
		sys_call3(SYS_close, fd, 0, 0);
		if (!rc)
			rc = (int)sys_call3(SYS_rename, (long)fresh, (long)path, 0);
		if (rc)
			sys_call3(SYS_unlink, (long)fresh, 0, 0);
	}
	sys_call3(SYS_munmap, map, (long)size, 0);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * proc.c - what /proc shows of a process on a shelf, where the kernel's own view would show us.
 *
 * Listings of /proc/self/fd and fdinfo leave parked numbers out: for the program they are free. What links there name is
 * answered by path (route.c). A listing is looked at only if it begins as these do, with a number that is a
 * link or a file, so other directories cost nothing.
 * Limits: another process's /proc/PID/fd shows its parked numbers, and placeholders as /dev/null. fdinfo of a
 * number of ours shows the placeholder's. /proc/self/exe names where the program lay when it was started.
 */
#include <dirent.h>
#include <string.h>

#include "run/preload/serve.h"

long proc_link_text(enum route_link link, char *buf, size_t size)
{
	long n;

	if (link == LINK_EXE) {
		const char *exe = runtime.exe ? runtime.exe : runtime.host_exe;

		n = (long)strlen(exe);
		if ((size_t)n >= size)
			return -ENAMETOOLONG;
		memcpy(buf, exe, (size_t)n + 1);
		return n;
	}
	n = SERVED(shelf_getcwd(task_here(), buf, size));
	return n < 0 ? n : route_spell(buf, size, buf);
}

/* The number that an entry's name is, or -1. */
static int entry_number(const struct dirent64 *e)
{
	int n = 0;
	const char *p = e->d_name;

	if (e->d_type != DT_LNK && e->d_type != DT_REG)
		return -1;
	for (; *p >= '0' && *p <= '9' && n < INT_MAX / 16; p++)
		n = n * 10 + (*p - '0');
	return *p || p == e->d_name ? -1 : n;
}

static const struct dirent64 *first_entry(const char *list, long n)
{
	const struct dirent64 *e = NULL;

	for (long at = 0; at < n; at += e->d_reclen) {
		e = (const struct dirent64 *)(list + at);
		if (e->d_name[0] != '.')
			return e;
	}
	return NULL;
}

/* Ends in "/fd" or "/fdinfo" of this process, or of one of its threads. */
static bool is_own_table(int fd)
{
	char link[64], path[128];
	long n, pid = sys_call3(SYS_getpid, 0, 0, 0);
	int own;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = sys_call3(SYS_readlink, (long)link, (long)path, sizeof(path) - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	own = snprintf(link, sizeof(link), "/proc/%ld/", pid);
	if (strncmp(path, link, (size_t)own))
		return false;
	return !strcmp(strrchr(path, '/'), "/fd") || !strcmp(strrchr(path, '/'), "/fdinfo");
}

static long without_parked(char *list, long n)
{
	long kept = 0;

	for (long at = 0, len; at < n; at += len) {
		const struct dirent64 *e = (const struct dirent64 *)(list + at);
		int fd = entry_number(e);

		len = e->d_reclen;
		if (fd >= 0 && number_parked(fd))
			continue;
		memmove(list + kept, list + at, (size_t)len);
		kept += len;
	}
	return kept;
}

long proc_listed(int fd, void *list, long n)
{
	const struct dirent64 *e = n > 0 ? first_entry(list, n) : NULL;

	if (!e || entry_number(e) < 0 || !is_own_table(fd))
		return n;
	return without_parked(list, n);
}

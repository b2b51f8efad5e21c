/* SPDX-License-Identifier: MIT */
/* dir_each.h - the names in a folder of the kernel's, without libc. */
#ifndef SHELF_BASE_DIR_EACH_H
#define SHELF_BASE_DIR_EACH_H

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/base.h"
#include "base/syscall.h"

/* False: no more. */
typedef bool dir_each_fn(void *ctx, long dir, const char *name);

/* All but "." and "..", which may be removed as they come.  1: FN had enough; 0: that was all; or -errno. */
static inline long dir_each(long dir, dir_each_fn *fn, void *ctx)
{
	_Alignas(8) char list[2048];
	long n;

	while ((n = sys_call3(SYS_getdents64, dir, (long)list, sizeof(list))) > 0)
		for (long at = 0; at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(list + at);

			at += e->d_reclen;
			if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !fn(ctx, dir, e->d_name))
				return 1;
		}
	return n;
}

/* The same of the folder PATH. */
static inline long dir_each_in(const char *path, dir_each_fn *fn, void *ctx)
{
	long dir = sys_call3(SYS_open, (long)path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), rc;

	if (dir < 0)
		return dir;
	rc = dir_each(dir, fn, ctx);
	sys_call3(SYS_close, dir, 0, 0);
	return rc;
}

#endif

/* SPDX-License-Identifier: MIT */
/* refuse.c - the sentence that says why not: file, reason, what to do. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tmpfs.h"
#include "segment/segment_priv.h"

int refuse(char *why, int err, const char *fmt, ...)
{
	va_list ap;

	if (why) {
		va_start(ap, fmt);
		vsnprintf(why, SEG_WHY_MAX, fmt, ap);
		va_end(ap);
	}
	return -err;
}

/* A process finds the file again by this path after it has changed its directory. */
static int refuse_dir(const char *dir, char *why)
{
	if (!dir || !*dir)
		return 0;
	if (*dir != '/')
		return refuse(why, EINVAL, "SHELF_SHM_DIR is '%.100s'; set it to an absolute path, or unset it", dir);
	if (strlen(dir) >= SEG_DIR_MAX)
		return refuse(why, ENAMETOOLONG, "SHELF_SHM_DIR has %zu bytes; use at most %u", strlen(dir), SEG_DIR_MAX - 1);
	return 0;
}

int refuse_name(const char *name, char *why)
{
	size_t n = name ? strlen(name) : 0;

	if (why)
		why[0] = 0;
	if (!n)
		return refuse(why, EINVAL, "the shelf's name is empty; give it one");
	if (n > SEG_NAME_MAX)
		return refuse(why, ENAMETOOLONG, "the shelf's name has %zu bytes; use at most %u", n, SEG_NAME_MAX);
	if (memchr(name, '/', n))
		return refuse(why, EINVAL, "the shelf's name '%.60s' contains '/'; use a plain name", name);
	return refuse_dir(secure_getenv("SHELF_SHM_DIR"), why);
}

int refuse_place(const char *dir, char *why)
{
	if (tmpfs_is(dir))
		return 0;
	return refuse(why, EOPNOTSUPP, "%.70s: is not on a tmpfs; a full disk would end programs by SIGBUS; "
		      "mount a tmpfs there, or set SHELF_SHM_DIR to a directory on one", dir);
}

/* SPDX-License-Identifier: MIT */
/* refuse.c - the sentence that says why not: file, reason, what to do. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
	return 0;
}

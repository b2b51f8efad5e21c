/* SPDX-License-Identifier: MIT */
/*
 * kept.h - what was found out about a library once and is kept for the next start: files in a folder,
 * named by its build id, by raw system calls.
 *
 * What they say is believed as far as their readers tell, so a file counts only if it is ours or
 * root's and nobody else may write to it.
 */
#ifndef SHELF_RUN_KEPT_H
#define SHELF_RUN_KEPT_H

#include <limits.h>

#include "run/image.h"

/* DIR/BUILD-ID-KEY.ENDING, the key in DIGITS hexadecimal digits.  PATH holds PATH_MAX bytes.  -ENAMETOOLONG. */
int kept_path(const struct run_image *im, const char *dir, uint64_t key, unsigned int digits, const char *ending,
	      char *path);

/* The file, for reading, and its size, at most MAX.  -EPERM: not to be trusted; -EBADMSG: not such a file. */
long kept_open(const char *path, size_t max, size_t *size);

/* A file in the making, under a name of its own. */
struct kept_new {
	long fd;
	char name[PATH_MAX];
};

/* Says at once whether there can be one; then kept_end or kept_drop. */
int kept_begin(struct kept_new *k, const char *path);
void kept_drop(const struct kept_new *k);
/* Writes it, and it has its name; SYNC: it is on the disk before. */
int kept_end(const struct kept_new *k, const char *path, const void *buf, size_t size, bool sync);
/* Both. */
int kept_save(const char *path, const void *buf, size_t size, bool sync);

/* Removes from a folder what has not been used for long, and what was never finished. */
void kept_sweep(const char *dir);

#endif

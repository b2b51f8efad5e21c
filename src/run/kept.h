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

#include "run/image.h"

/* DIR/BUILD-ID-KEY.ENDING, the key in DIGITS hexadecimal digits.  PATH holds PATH_MAX bytes.  -ENAMETOOLONG. */
int kept_path(const struct run_image *im, const char *dir, uint64_t key, unsigned int digits, const char *ending,
	      char *path);

/* The file, for reading, and its size, at most MAX.  -EPERM: not to be trusted; -EBADMSG: not such a file. */
long kept_open(const char *path, size_t max, size_t *size);

/* Writes it under a name of its own first; SYNC: it is on the disk before it has its name. */
int kept_save(const char *path, const void *buf, size_t size, bool sync);

#endif

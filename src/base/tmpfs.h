/* SPDX-License-Identifier: MIT */
/*
 * tmpfs.h - is a directory of the kernel's on a tmpfs?
 *
 * A shelf lies nowhere else.  Where pages are written back, a store to one that was clean may need space again and, on a full
 * disk, ends the process by SIGBUS; and after a crash of the machine the file is a mixture of old and new pages.
 */
#ifndef SHELF_BASE_TMPFS_H
#define SHELF_BASE_TMPFS_H

#include <linux/magic.h>
#include <sys/statfs.h>

#include "base/syscall.h"

/* True also when the kernel does not say: who opens a file there learns why. */
static inline bool tmpfs_is(const char *dir)
{
	struct statfs fs;

	return sys_call3(SYS_statfs, (long)dir, (long)&fs, 0) || fs.f_type == TMPFS_MAGIC;
}

#endif

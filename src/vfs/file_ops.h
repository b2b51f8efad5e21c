/* SPDX-License-Identifier: MIT */
/*
 * file_ops.h - what a kind of file above the tree (pipe, eventfd, ...) answers to the public calls.
 *
 * Process-local: shared files carry a type number, and each process has its own table.  Regular files and
 * directories are not in it: the calls know them.  Every function may sleep: the file is counted and no section is open.
 * A NULL function: the call fails as Linux does for a file without it.
 */
#ifndef SHELF_VFS_FILE_OPS_H
#define SHELF_VFS_FILE_OPS_H

#include "vfs/vfs.h"

struct file_ops {
	ssize_t (*read)(struct who *w, struct file *f, const struct iovec *iov, int iovcnt, size_t total);
	ssize_t (*write)(struct who *w, struct file *f, const struct iovec *iov, int iovcnt, size_t total);
	int (*ioctl)(struct who *w, struct file *f, unsigned long request, uintptr_t arg); /* -ENOTTY: not mine */
	int (*fcntl)(struct who *w, struct file *f, int cmd, uintptr_t arg); /* -EINVAL: not mine */
	void (*attr)(struct who *w, struct file *f, struct attr *out);
};

void file_ops_register(uint32_t type, const struct file_ops *ops); /* once, at attach */
const struct file_ops *file_ops_of(const struct file *f); /* never NULL; empty for an unknown type */

#endif

/* SPDX-License-Identifier: MIT */
/*
 * file.h - the head that files of every kind begin with, and what a number may carry.
 * The layers above include fd.h, which has this.
 */
#ifndef SHELF_FD_FILE_H
#define SHELF_FD_FILE_H

#include "base/refcount.h"
#include "epoch/epoch.h"
#include "segment/tally.h"

struct fd_table;

struct fd_file {
	union { /* table slots + counted users */
		struct ref count; /* as the schemes that are compared count; and for a look */
		struct tally tally; /* as the product does; its count lies where the other is */
	};
	uint32_t type; /* enum fd_type; fixed while the file lives */
	struct retired retired;
};

/* Types below FD_TYPE_USER are shelf's own; a user of fdtable.h takes FD_TYPE_USER and up. */
enum fd_type {
	FD_TYPE_NONE,
	FD_TYPE_REG,
	FD_TYPE_DIR,
	FD_TYPE_PATH, /* O_PATH */
	FD_TYPE_NODE, /* fifo, socket, device special file opened below the shelf */
	FD_TYPE_PIPE,
	FD_TYPE_EVENTFD,
	FD_TYPE_TIMERFD,
	FD_TYPE_SIGNALFD,
	FD_TYPE_EPOLL,
	FD_TYPE_INOTIFY,
	FD_TYPE_HOST, /* a number that the kernel's own table has: fd_mark_host() */
	FD_TYPE_MAP, /* keeps a file whose pages a process has mapped: ramfs/map.c; no call takes it */
	FD_TYPE_USER = 32,
	FD_TYPES = 64
};

#define FD_CLOEXEC_BIT 1u
#define FD_CLOFORK_BIT 2u

#endif

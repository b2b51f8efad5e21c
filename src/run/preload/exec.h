/* SPDX-License-Identifier: MIT */
/* exec.h - what exec.c looks at before a new image starts. */
#ifndef SHELF_RUN_PRELOAD_EXEC_H
#define SHELF_RUN_PRELOAD_EXEC_H

#include <stdbool.h>

struct exec_room;

#define EXEC_SCRIPTS 5 /* scripts whose interpreters are scripts, as the kernel has it */

struct exec_call {
	int dirfd;
	const char *path;
	char *const *argv, *const *envp;
	int flags; /* AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW */
	bool early; /* the program may want a library of the shelf's: run/library.h */
	struct exec_room *room; /* this call's, by exec_path() */
};

/* Comes back only with what went wrong. */
long exec_path(struct exec_call *c, unsigned depth);

#endif

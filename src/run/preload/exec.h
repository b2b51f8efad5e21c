/* SPDX-License-Identifier: MIT */
/* exec.h - what exec.c looks at before a new image starts. */
#ifndef SHELF_RUN_PRELOAD_EXEC_H
#define SHELF_RUN_PRELOAD_EXEC_H

#define EXEC_SCRIPTS 5 /* scripts whose interpreters are scripts, as the kernel has it */

struct exec_call {
	int dirfd;
	const char *path;
	char *const *argv, *const *envp;
	int flags; /* AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW */
};

/* The first bytes: the kernel looks at as many. */
struct exec_head {
	long len;
	_Alignas(8) char bytes[256];
};

enum image_kind {
	IMAGE_PLAIN,
	IMAGE_SCRIPT,
	IMAGE_OTHER,
	IMAGE_STATIC, /* no loader, so no preloaded library */
	IMAGE_RIGHTS, /* setuid or setgid: the loader would leave the library out */
	IMAGE_FOREIGN, /* another machine's */
};

/* Comes back only with what went wrong. */
long exec_path(struct exec_call *c, unsigned depth);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * static.h - the runtime as a program that loads a statically linked one, in place of a library that such a program
 * has nobody to load for.
 *
 * exec and `shelf run` start `shelf-static` for it, with the program's own arguments, and an open descriptor of it in the
 * environment (STATIC_VARIABLE). It becomes the program's memory: the segments are mapped where they belong, the sites
 * rewritten as libc's are, and the stack that the kernel made is the program's, but for what the auxiliary vector says of it.
 *
 *	start.c		the process: thread-local data, settings, what the kernel said
 *	load.c		the program: segments, the functions in it, its sites
 *	thread.c	a thread's own data, before it runs
 *
 * FS is the program's. The runtime's thread-local data is found by GS, which no libc uses: its code is compiled as ever, and
 * the assembler (static/as) puts the one in place of the other.
 */
#ifndef SHELF_RUN_STATIC_H
#define SHELF_RUN_STATIC_H

#include "run/image.h"
#include "run/preload/serve.h"
#include "run/static/offsets.h"

#define STATIC_TLS 4096 /* of each thread, at most */

/* Behind the variables, where the thread pointer points. */
struct static_thread {
	void *self; /* as the compiler wants it */
	struct static_thread *child; /* STATIC_CHILD: being born of this thread */
	uint64_t raw; /* where the child's call goes on */
	uint64_t mask; /* its signals then */
	atomic_u32 taken; /* [a] by the child, which has looked at all of it */
	atomic_u32 tid; /* [a] 0: nobody's */
	struct static_thread *next; /* of all, newest first: only grows */
};

_Static_assert(offsetof(struct static_thread, child) == STATIC_CHILD, "enter.S");

/* What was loaded. */
struct static_program {
	struct run_image image;
	uintptr_t entry, headers;
	unsigned header_count;
};

/* Maps FD's segments, and makes the stack's page executable where it wants that; on failure says why of PATH and ends the process. */
void static_load(struct static_program *p, int fd, const char *path, void *stack);
/* The variables of a thread begin as the file has them. */
struct static_thread *static_thread_make(void);
void static_thread_init(struct static_thread *first);

_Noreturn void static_enter(long *stack, uintptr_t entry); /* enter.S */

#endif

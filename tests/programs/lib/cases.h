/* SPDX-License-Identifier: MIT */
/*
 * cases.h - a program of test cases that is run on a shelf and on tmpfs, and whose output is compared.
 *
 * Each case runs in a process of its own, started by exec in an empty directory, with nothing open above 2.  What it says
 * must be the same on both sides, so it says no pid, no time and no inode number.
 * Lines are kept in memory and written at the end, so that saying something opens no descriptor in between.
 */
#ifndef TESTS_PROGRAMS_CASES_H
#define TESTS_PROGRAMS_CASES_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct program_case {
	const char *name;
	void (*run)(void);
	unsigned seconds; /* 0: 60 */
};

#define CASE(fn) {#fn, fn, 0}

/* Each program defines them; the last one's name is NULL. */
extern const struct program_case program_cases[];

/* A line of output. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* SAY(call): the call, its result and errno.  Its result. */
long say_result(const char *what, long result);
#define SAY(call) (errno = 0, say_result(#call, (long)(call)))
/* Says WHAT only if it is not so. */
#define MUST(what) ((what) ? (void)0 : say("%s:%d: not so: %s (%s)", __func__, __LINE__, #what, strerrorname_np(errno)))

/* What was said is written out: before _exit, exec and the like. */
void say_flush(void);

/* A child that runs FN and leaves; how it ended is said. */
pid_t child_start(void (*fn)(void *), void *arg);
void child_end(const char *what, pid_t pid);
void child_run(const char *what, void (*fn)(void *), void *arg);

/* Files. */
void put_file(const char *path, const char *text);
/* Its contents, said. */
void say_file(const char *path);
/* The rest of what FD reads, said. */
void say_rest(const char *what, int fd);
/* The names in a directory, in order, said. */
void say_names(const char *path);
/* The open descriptors, as the program finds them by fcntl up to 63. */
void say_numbers(const char *what);

/* The factor on amounts of work. */
unsigned scaled(unsigned n);
/* A directory on another file system than the case's. */
const char *host_dir(void);
/* This program's file, to be started again with the arguments of a helper (main_helper). */
extern const char *self_path;
/* Called when the program is started with "--help-case NAME ARG...": the other side of an exec. */
int main_helper(int argc, char **argv) __attribute__((weak));

#endif

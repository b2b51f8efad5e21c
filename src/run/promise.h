/* SPDX-License-Identifier: MIT */
/*
 * promise.h - a scratch shelf that `shelf run` has promised, and that is made by the process which first needs it.
 *
 * Most processes under `shelf run` never do, and making a shelf and throwing it away takes longer than starting a program.
 * The promise is an empty file, SHM-DIR/shelf-promise.NAME; that it is there says that the run goes on, and its owner and group are
 * the shelf's.  It has two locks, which the kernel drops when their holders die: its flock says who makes the shelf, and a record lock
 * that `shelf run` holds says that it lives.  A scratch shelf that is made at once has such a file as well.
 *
 *	who needs it	attaches; if it is not there or not finished: lock, look once more, remove what a dead maker left,
 *			make, unlock
 *	the run ends	removes the shelf, the promise, and the shelf again if it was made in between
 *	it is killed	the next `shelf run`, `shelf ls` or `shelf rm` of the user does the same, once no process has the shelf (cli/runs.h)
 *	who made it	looks behind itself: if the promise has lost its name meanwhile, the shelf is removed again
 *
 * The task that keeps what is in flight between processes (carry.c) is made by who first sends something.
 *
 * So no shelf outlives its run, whoever comes first, unless its maker dies between the last two steps of a run that has ended.
 * Limits: who needs the shelf while its maker is stopped (SIGSTOP) waits for it to go on.
 */
#ifndef SHELF_RUN_PROMISE_H
#define SHELF_RUN_PROMISE_H

#include <fcntl.h>
#include <stdio.h>

#include <shelf/shelf.h>

#include "base/syscall.h"

#define PROMISE_PATH_MAX 512
#define PROMISE_START "shelf-promise."

/* DIR: of the shelves, NULL or "" is the usual one. */
static inline const char *promise_dir(const char *dir)
{
	return dir && *dir ? dir : "/dev/shm";
}

/* Its length; PROMISE_PATH_MAX or more: too long. */
static inline int promise_path(char path[PROMISE_PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PROMISE_PATH_MAX, "%s/%s%s", promise_dir(dir), PROMISE_START, name);
}

/* The record lock, for as long as FD is open anywhere.  0, or -errno: another has it. */
static inline long promise_hold(long fd)
{
	struct flock all = {.l_type = F_WRLCK};

	return sys_call3(SYS_fcntl, fd, F_OFD_SETLK, (long)&all);
}

/* Attaches the shelf, and makes it if it is not there.  0 or -errno, with a sentence in WHY.  -EACCES: the promise is another
 * user's, who can be asked (key.h). */
int promise_attach(const char *dir, const char *name, struct shelf **shelf, char why[SHELF_WHY]);

#endif

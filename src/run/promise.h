/* SPDX-License-Identifier: MIT */
/*
 * promise.h - a scratch shelf that `shelf run` has promised, and that is made by the process which first needs it.
 *
 * Most processes under `shelf run` never do, and making a shelf and throwing it away takes longer than starting a program.
 * The promise is an empty file, SHM-DIR/shelf-promise.NAME; that it is there says that the run goes on, its owner and group are
 * the shelf's, and its flock, which the kernel drops when its holder dies, says who makes the shelf.
 *
 *	who needs it	attaches; if it is not there or not finished: lock, look once more, remove what a dead maker left,
 *			make, unlock
 *	the run ends	removes the promise, then the shelf
 *	who made it	looks behind itself: if the promise has lost its name meanwhile, the shelf is removed again
 *
 * The task that keeps what is in flight between processes (carry.c) is made by who first sends something.
 *
 * So no shelf outlives its run, whoever comes first, unless its maker dies between the last two steps of a run that has ended.
 */
#ifndef SHELF_RUN_PROMISE_H
#define SHELF_RUN_PROMISE_H

#include <stdio.h>

#include <shelf/shelf.h>

#define PROMISE_PATH_MAX 512

/* DIR: of the shelves, NULL or "" is the usual one.  Its length; PROMISE_PATH_MAX or more: too long. */
static inline int promise_path(char path[PROMISE_PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PROMISE_PATH_MAX, "%s/shelf-promise.%s", dir && *dir ? dir : "/dev/shm", name);
}

/* Attaches the shelf, and makes it if it is not there.  0 or -errno, with a sentence in WHY.  -EACCES: the promise is another
 * user's, who can be asked (key.h). */
int promise_attach(const char *dir, const char *name, struct shelf **shelf, char why[SHELF_WHY]);

#endif

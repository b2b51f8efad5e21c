/* SPDX-License-Identifier: MIT */
/*
 * inotify.h - watching files and directories, for the calls.
 *
 * Data: instances, each an open file of type FD_TYPE_INOTIFY with a queue of events; watches, each one instance's on one
 * inode, whatever its names; one lock in the segment (SEG_ROOT_SPECIAL) for all of it.
 * What others pay: one load while nobody watches in the segment; docs/decisions/0007-inotify.md has what it is else.
 * Progress: blocking, for one lock held for a bounded time; reading waits.
 * Death: inotify_priv.h.  To look at it: inotify_check_each().
 * Limits: INOTIFY_EVENTS_MAX events wait in an instance, then one IN_Q_OVERFLOW.  No memory for an event counts as that.
 */
#ifndef SHELF_SPECIAL_INOTIFY_H
#define SHELF_SPECIAL_INOTIFY_H

#include <sys/inotify.h>

#include "vfs/vfs.h"

#define INOTIFY_EVENTS_MAX 16384u /* as the kernel's default */
#define INOTIFY_TOKEN_PATH 108 /* as NODE_PATH of the runtime */

int inotify_init_root(struct slot *self); /* creator */
int inotify_attach(struct segment *seg); /* every process */

/* A new instance as an open file, in the caller's ledger.  NULL with *err. */
struct file *inotify_new(struct slot *self, uint32_t flags, int *err);

/* What is wrong with a mask whatever the path: -EINVAL or 0. */
int inotify_check_mask(uint32_t mask);
/* The inode is counted.  Its wd, -EEXIST (IN_MASK_CREATE), -ENOSPC. */
int inotify_add(struct slot *self, struct file *f, struct inode *inode, uint32_t mask);
/* -EINVAL: no such watch.  1: it is the kernel's: *host, and its end will come as an event (inotify_give). */
int inotify_remove(struct slot *self, struct file *f, int wd, int *host);

/* The next events that fit, without waiting: bytes, -EAGAIN: none, -EINVAL: not even one fits, -EFAULT. */
ssize_t inotify_take(struct slot *self, struct file *f, void *buf, size_t size);
int64_t inotify_bytes(struct slot *self, struct file *f); /* of all that waits, less the token that the kernel has */

/*
 * With a descriptor of the kernel's beside it (shelf run).  The kernel's own watch `wd` on the file `path` is the instance's
 * token: whoever queues an event on an empty queue touches that file, so that the kernel's descriptor becomes readable.
 * Watches of the kernel's have numbers of the instance's, as programs know them.
 */
struct inotify_token {
	uint64_t id; /* of the instance, unique in the segment */
	int wd; /* 0: none yet */
};
void inotify_token_get(struct file *f, struct inotify_token *out);
/* False: another thread has set one. */
bool inotify_token_set(struct slot *self, struct file *f, const char *path, int wd);
/* The number of the kernel's watch `wd`, made at need.  -ENOSPC */
int inotify_host_wd(struct slot *self, struct file *f, int wd);
/*
 * What the kernel's descriptor said, N bytes: behind what waits, tokens left out.  True: nothing of the shelf's was among
 * it or waits, and the numbers are right: the bytes may go to the program as they are.
 */
bool inotify_give(struct slot *self, struct file *f, const void *events, size_t n);
/* The reader has taken what he could: what still waits makes the descriptor readable again. */
void inotify_token_renew(struct slot *self, struct file *f);

/* For the check of a segment: every object in use, under the lock, or alone. */
struct inotify_check {
	/* These four say false of what is not to be followed. */
	bool (*mark)(void *ctx, const void *obj, size_t bytes);
	bool (*mark_instance)(void *ctx, void *inst, size_t bytes);
	bool (*mark_watch)(void *ctx, void *watch, size_t bytes);
	bool (*watched)(void *ctx, struct inode *inode, uint64_t wants); /* an inode that was found */
	size_t (*room)(void *ctx, const void *obj);
	bool (*known_instance)(void *ctx, const void *inst);
	bool (*known_watch)(void *ctx, const void *watch);
	bool (*known_file)(void *ctx, const struct file *f); /* an open file of this type was found there */
	void *ctx;
	bool alone; /* nothing is locked; instances without a file are nobody's */
	bool repair; /* and are taken apart */
	unsigned orphans;
	bool damaged;
	bool derived; /* what follows from the rest does not; repaired, if that is asked for */
};
void inotify_settle(struct slot *self); /* before anything is marked: what somebody's death left is repaired */
bool inotify_unsettled(struct slot *self);
struct lock *inotify_check_lock(struct slot *self); /* NULL: no watches in this segment */
size_t inotify_root_bytes(void);
void inotify_check_each(struct slot *self, struct inotify_check *c);
/* Alone, all that was found being undamaged: instances without a file.  What it frees is not nobody's. */
void inotify_check_orphans(struct slot *self, struct inotify_check *c);
/* Is the file the one of the instance that it names? */
bool inotify_check_file(bool (*known)(void *ctx, const void *inst), void *ctx, const struct fd_file *head);

#endif

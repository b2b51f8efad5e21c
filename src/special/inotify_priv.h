/* SPDX-License-Identifier: MIT */
/*
 * inotify_priv.h - instances, watches, events: what the files of inotify share.
 *
 *	inotify_watch.c	the lock, watches, and what the lock's next holder repairs
 *	inotify_queue.c	events: queued, merged, taken
 *	inotify_host.c	the kernel's half of an instance (shelf run)
 *	inotify.c	instances as open files; what is heard from vfs/notify.c
 *
 * What protects what: [w] the root's lock; [c] constant once published; [a] atomic by itself.
 * Death: who holds the lock and changes something sets root.dirty first and clears it last.  Whoever gets the lock and finds
 * it set makes all anew that can be derived: chains by inode from the chains by wd, lengths of queues, the number of
 * watches.  An instance whose file is gone is ended by whoever gets the lock next.  Primary are: a watch in its chain by wd, an event in its queue, an
 * instance in the list; each comes and goes by one store.  Inodes need no care: a watch is in a chain only while
 * inode.watches is not 0, so that the inode's end takes the lock and the watch away.  What was in the dead one's
 * hands (an event, a watch) is nobody's: shelf_verify() finds it.
 * There is no intent: events are queued inside the intents of those who change names.
 */
#ifndef SHELF_SPECIAL_INOTIFY_PRIV_H
#define SHELF_SPECIAL_INOTIFY_PRIV_H

#include "special/inotify.h"
#include "vfs/waitq.h"

#define WATCH_BUCKETS 1024u
#define KEY_HOST (1ULL << 63) /* a watch of the kernel's; below it, its wd there */
#define WATCHED (1ULL << 32) /* in inode.watches, beside the masks */

struct watch {
	atomic_ptr(struct watch) by_wd, by_key; /* [w] next in the chains */
	struct inotify *inst; /* [c] */
	struct inode *inode; /* [c] there while the watch is in its chains; NULL: the kernel's */
	uint64_t key; /* [c] the inode's number, or KEY_HOST and the kernel's wd */
	int32_t wd; /* [c] */
	atomic_u32 mask; /* [w] */
};

struct watch_table {
	atomic_ptr(struct watch) by_wd[WATCH_BUCKETS], by_key[WATCH_BUCKETS]; /* [w] */
};

struct watch_event {
	atomic_ptr(struct watch_event) next; /* [w] */
	int32_t wd; /* [c] */
	uint32_t mask, cookie, len; /* [c] len: of the name, without its NUL */
	char name[]; /* [c] */
};

struct inotify {
	uint64_t id; /* [c] */
	atomic_ptr(struct inotify) next; /* [w] in the root's list */
	struct file *file; /* [c] */
	struct waitq readers;
	atomic_ptr(struct watch_event) head; /* [w] */
	struct watch_event *tail; /* [w] meaningful while head is not NULL */
	struct watch_event *overflow; /* [c] queued when the queue is full, never freed before the instance */
	uint64_t bytes; /* [w] as a reader counts */
	uint32_t count; /* [w] */
	atomic_u32 last_wd; /* [w] */
	atomic_u32 ending; /* [a] its file is gone */
	atomic_u32 poked; /* [w] the token was touched, and not read since; or a reader is at work, and will look */
	atomic_u64 poked_at; /* [w] ns */
	atomic_u32 token_wd; /* [w] */
	char token[INOTIFY_TOKEN_PATH]; /* [c] once token_wd is set */
};

struct inotify_root { /* SEG_ROOT_SPECIAL */
	struct lock lock; /* LOCK_WAITQ */
	atomic_u32 dirty; /* [w] a change is under way, or its maker died */
	atomic_ptr(struct inotify) instances; /* [w] */
	atomic_u32 ended; /* [a] how many may be `ending` */
	struct watch_table *table; /* [c] */
};

static inline struct inotify *inotify_of(const struct file *f)
{
	return (struct inotify *)(uintptr_t)f->private_[0];
}

/* inotify_watch.c */
struct inotify_root *inotify_lock(struct slot *self) LOCK_NO_ANALYSIS;
void inotify_unlock(struct slot *self, struct inotify_root *root) LOCK_NO_ANALYSIS;
bool watch_wanted(const struct inode *inode, uint32_t mask);
/* All below: locked. */
void inotify_repair(struct slot *self, struct inotify_root *root); /* what is derived is made anew */
struct watch *watch_by_wd(struct inotify_root *root, const struct inotify *inst, int wd);
struct watch *watch_by_key(struct inotify_root *root, const struct inotify *inst, uint64_t key);
/* NULL: no memory. */
struct watch *watch_new(struct slot *self, struct inotify_root *root, struct inotify *inst, struct inode *inode, uint64_t key,
			uint32_t mask);
void watch_remove(struct slot *self, struct inotify_root *root, struct watch *w);
void watch_tell(struct slot *self, struct inotify_root *root, struct inode *inode, uint32_t mask, uint32_t cookie,
		const char *name);
void watch_end_inode(struct slot *self, struct inotify_root *root, struct inode *inode);
/* Taken apart; may be repeated until the last. */
void inotify_end(struct slot *self, struct inotify_root *root, struct inotify *inst);

/* inotify_queue.c: locked */
void queue_add(struct slot *self, struct inotify_root *root, struct inotify *inst, const struct watch_event *e, const char *name);
void queue_tell(struct slot *self, struct inotify_root *root, const struct watch *w, uint32_t mask, uint32_t cookie,
		const char *name);
void queue_recount(struct inotify *inst);
void queue_free(struct slot *self, struct inotify *inst);

/* inotify_host.c: locked, before an event is queued */
void token_poke(struct inotify *inst);

/* In memory. */
static inline size_t event_size(const struct watch_event *e)
{
	return sizeof(*e) + e->len + 1;
}

/* As a reader counts. */
static inline size_t event_bytes(uint32_t name_len)
{
	return sizeof(struct inotify_event) + (name_len ? ALIGN_UP(name_len + 1, sizeof(struct inotify_event)) : 0);
}

#endif

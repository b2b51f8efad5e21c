/* SPDX-License-Identifier: MIT */
/*
 * check_priv.h - what the parts of the check share.
 *
 *	check_tree.c	directories from the root down: names, hashes, link counts
 *	check_open.c	tasks, tables, files: what is open, and how often it is counted
 *	check_inodes.c	what hangs on each inode: pages, attributes; its counts
 *	check_locks.c	record locks of an inode
 *	check_watches.c	inotify
 *	check_trial.c	what the dead left, cleared away on a copy first
 *	check.c		the order of it all, and what is nobody's
 *
 * No pointer is followed before it was marked (segment/marks.h).
 */
#ifndef SHELF_API_CHECK_PRIV_H
#define SHELF_API_CHECK_PRIV_H

#include "api/api.h"
#include "segment/marks.h"

enum seen_kind { SEEN_INODE, SEEN_FILE, SEEN_TABLE, SEEN_PLACE, SEEN_RANGE, SEEN_INSTANCE, SEEN_WATCH };

/* Something that is counted, and how often it was come upon. */
struct seen {
	void *obj;
	uint32_t names; /* of an inode, in directories */
	uint32_t refs; /* as many as its count should say */
	uint32_t maps; /* of an inode: files of type FD_TYPE_MAP */
	uint64_t watched; /* of an inode: what watches on it want */
	struct dentry *dentry; /* of an inode: one of its names */
	bool alias; /* and that is the one that it says */
	uint8_t kind;
	bool done; /* what hangs on it was looked at */
};

struct check {
	struct slot *self;
	const struct shelf_check_options *o;
	struct shelf_check_report *report;
	bool alone, repair; /* repair: and alone */
	bool settled; /* what dead processes left is cleared away, as far as others let us */
	bool grew; /* no memory for all that was come upon */
	uint64_t hopeless; /* faults that nothing mends; the first of them: */
	char first[128];
	struct seg_marks marks;
	struct seen *seen; /* open addressing */
	uint64_t seen_mask, seen_count;
	struct inode **queue; /* directories, counted */
	uint64_t head, tail, queue_room;
	uint64_t expected; /* inodes, as the counters say: for the progress */
	uint64_t step;
};

/* Damage.  `mends`: repairing puts it right; true: then do so now. */
__attribute__((format(printf, 3, 4))) bool check_fault(struct check *c, bool mends, const char *format, ...);
/* What somebody's death left over. */
__attribute__((format(printf, 2, 3))) void check_left(struct check *c, const char *format, ...);
void check_progress(struct check *c);
/* When nobody else is there it is free. */
void check_lock(struct check *c, struct lock *l, const char *what, uint64_t number);
void check_seq(struct check *c, struct seqcount *s, const char *what, uint64_t number);

int check_settle(struct check *c);
/* check_trial.c: would check_settle() come to an end? */
bool check_trial(struct check *c);
extern int64_t check_trial_ns; /* how long it may take, for each GiB */

/*
 * check_seen.c.  What `mark` says is new gets an entry.  NULL: no memory, or it is marked as something else.
 * The pointer is good until the next call.
 */
struct seen *check_seen(struct check *c, void *obj, enum seen_kind kind, enum mark mark);
/* Of a list, so come upon once: twice, and the list has no end. */
bool check_first(struct check *c, void *obj, enum seen_kind kind, size_t bytes);
struct seen *check_known(struct check *c, const void *obj, enum seen_kind kind);
/* The n-th place of the table; NULL: empty. */
struct seen *check_seen_at(struct check *c, uint64_t n);
int check_seen_begin(struct check *c, uint64_t expected);
void check_seen_end(struct check *c);
bool check_queue(struct check *c, struct inode *dir);
/* A count: what it says against what was found. */
void check_tally(struct check *c, struct tally *count, uint32_t should, const char *what, uint64_t number);

/* An inode that somebody names: marked, plausible.  NULL: it is none. */
struct seen *check_inode(struct check *c, struct inode *inode);
/* One reference more is expected. */
void check_holds(struct check *c, struct inode *inode, const char *who);
void check_holds_dir(struct check *c, struct inode *inode, const char *who);
/* A process maps it. */
void check_maps_one(struct check *c, struct inode *inode);
/* A name that an open file or its inode keeps, NULL: none. */
void check_kept_name(struct check *c, struct opened *o);

/* Every entry of a tree whose nodes are marked on the way; false: a node is none. */
typedef void check_entry_fn(struct check *c, void *ctx, uint64_t index, uint64_t entry);
bool check_radix(struct check *c, struct radix *r, check_entry_fn *fn, void *ctx);

void check_tree(struct check *c);
void check_removed(struct check *c); /* directories that were queued since */
void check_open(struct check *c);
void check_inodes(struct check *c);
void check_locks(struct check *c, struct inode *inode); /* check_locks.c */
void check_watches(struct check *c); /* check_watches.c */

/* For sentences. */
static inline unsigned long long ino_of(const struct inode *inode)
{
	return inode->ino;
}

#endif

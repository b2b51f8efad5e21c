/* SPDX-License-Identifier: MIT */
/*
 * flock_priv.h - the locks of one inode: what flock.c, flock_range.c, flock_plan.c
 * and flock_wait.c share, and their tests.
 *
 * Legend: [F] flocks.lock, [G] vfs_root.flock_graph_lock (taken below it), [c] constant while held.
 *
 * Held locks are ranges.  Those of one owner never overlap, and neighbours of one kind are one
 * range.  A range stands in two trees: by owner and start (what an owner changes) and by
 * start alone, writers and readers apart (who is in the way).  Ranges for writing exclude
 * all others, so among themselves they are disjoint and a plain search finds the one in
 * the way; readers overlap, so their tree carries the greatest end below each node.  Every
 * question costs the depth of a tree plus the ranges it changes.
 *
 * Death: trees are not made of single stores.  So every range stands on a plain list as well
 * (flocks.all), and a change first writes its result into flocks.plan and raises
 * flocks.dirty.  Whoever takes the lock next and finds it raised rebuilds the trees from the list and
 * carries the plan out.  The plan covers all that the change touches, so it may be repeated.
 */
#ifndef SHELF_VFS_FLOCK_PRIV_H
#define SHELF_VFS_FLOCK_PRIV_H

#include "base/rbtree.h"
#include "vfs/vfs.h"

#define FLOCK_EOF ((uint64_t)INT64_MAX)

enum lock_space { SPACE_POSIX, SPACE_BSD, LOCK_SPACES }; /* record and OFD locks see each other; flock(2)'s do not */

/* CACHE_128.  A search looks at one line of each range it passes: that is what 5,000 of them cost. */
struct range {
	/* first line: by owner */
	struct rb_node by_owner; /* [F] on the free list: parent links it */
	void *owner; /* [c] */
	uint64_t start, end; /* [c] both inside */
	uint64_t pid : 24, start_time : 40; /* [c] of the process that asked; ticks for 300 years */

	/* second line: by start */
	struct rb_node by_start; /* [F] */
	uint64_t key; /* [c] start again */
	uint64_t max_end; /* [F] readers: the greatest end in this subtree; writers: end again */
	struct range *all; /* [F] */
	uint32_t alive_ms; /* [F] when the process was last seen alive */
	atomic_u8 type; /* [F] F_RDLCK, F_WRLCK; F_UNLCK: free */
	uint8_t kind; /* [c] enum lock_owner_kind */
};
_Static_assert(sizeof(struct range) <= 128, "a range is an object of CACHE_128");

/* What somebody asks for. */
struct lock_request {
	void *owner;
	uint64_t start, end;
	uint64_t start_time;
	uint32_t pid;
	uint8_t kind;
	uint8_t type; /* F_UNLCK: to give up */
};

struct plan_piece {
	uint64_t start, end, start_time;
	uint32_t pid;
	uint8_t type;
};

/* The owner's ranges that begin in [low, high] go; the pieces take their place. */
struct lock_plan {
	void *owner;
	uint64_t low, high;
	uint32_t removed; /* ranges that go */
	uint32_t count; /* pieces */
	uint8_t kind;
	struct plan_piece piece[3];
};

struct lock_trees {
	struct rb_root by_owner, readers, writers; /* [F] */
};

struct flock_waiter { /* CACHE_128 */
	struct flock_waiter *next; /* [F] in order of arrival */
	struct flock_waiter *graph; /* [G] */
	struct flock_waiter *queue; /* [G] while a cycle is looked for */
	void *blocked_by; /* [F] and [G] the owner in the way: an edge of the graph */
	void *behind; /* [F] the owner who was woken instead of us, and is to get it first; both NULL: woken */
	struct lock_request want; /* [c] */
	atomic_u32 woken; /* the futex */
	uint32_t mark; /* [G] */
	bool queued; /* own */
};
_Static_assert(sizeof(struct flock_waiter) <= 128, "a waiter is an object of CACHE_128");

struct flocks { /* inode.flocks; CACHE_576 */
	struct lock lock; /* LOCK_FLOCKS */
	atomic_u32 dirty; /* [F] the plan is being carried out */
	atomic_u32 held[LOCK_SPACES]; /* ranges after the last change as a whole: [F], read without it for "none at all" */
	uint32_t count[LOCK_SPACES]; /* [F] ranges in the trees */
	struct lock_trees trees[LOCK_SPACES]; /* [F] */
	struct range *all, *free; /* [F] */
	uint32_t free_count; /* [F] */
	struct flock_waiter *waiters; /* [F] */
	uint64_t visits; /* [F] tree nodes looked at, for the cost test */
	struct lock_plan plan; /* [F] */
};
_Static_assert(sizeof(struct flocks) <= 576, "an inode's locks are an object of CACHE_576");

static inline enum lock_space kind_space(uint8_t kind)
{
	return kind == FLOCK_BSD ? SPACE_BSD : SPACE_POSIX;
}

static inline bool ranges_overlap(uint64_t a_start, uint64_t a_end, uint64_t b_start, uint64_t b_end)
{
	return a_start <= b_end && b_start <= a_end;
}

/* ---- flock_range.c: all with flocks.lock held */

uint8_t range_type(const struct range *r);
/* The owner's first range whose end is at or behind `from`. */
struct range *range_of_owner_locked(struct flocks *fs, enum lock_space space, const void *owner, uint64_t from);
struct range *range_next_of_owner(const struct range *r);
/* The range of another owner with the lowest start that is in the way, or NULL. */
struct range *range_conflict_locked(struct flocks *fs, const struct lock_request *rq);
void range_insert_locked(struct flocks *fs, struct range *r);
void range_remove_locked(struct flocks *fs, struct range *r); /* off the trees and free */
struct range *range_take_free_locked(struct flocks *fs);
int range_reserve_locked(struct slot *self, struct flocks *fs, uint32_t n); /* -ENOLCK; empties the plan if it has to take some */
void range_trim_locked(struct slot *self, struct flocks *fs);
void range_drop_all(struct slot *self, struct flocks *fs); /* the inode is dying */

/* ---- flock_plan.c */

void flocks_lock(struct slot *self, struct flocks *fs) LOCK_ACQUIRES(&fs->lock);
void flocks_unlock(struct slot *self, struct flocks *fs) LOCK_RELEASES(&fs->lock);
/* The owner's range becomes what rq says.  Nothing of others is in the way.  0, -ENOLCK with nothing changed. */
int flocks_change_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq);
void plan_make_locked(struct flocks *fs, const struct lock_request *rq, struct lock_plan *p);
/* All trees agree with the list and their rules: for tests and shelf check. */
bool flocks_sane_locked(struct flocks *fs);
/* The trees anew from the list; nothing is planned any more. */
void flocks_rebuild_locked(struct flocks *fs);

/* ---- flock_wait.c */

/* Futexes to wake once the lock is released. */
struct flock_wakes {
	unsigned count;
	atomic_u32 *word[8];
};
/* Of rq's owner, [start, end] has become freer. */
void flocks_freed_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq, struct flock_wakes *out);
void flock_wakes_send(struct flock_wakes *wakes);
/* rq's owner, who had waited, has got it: who was behind it is now blocked by it. */
void flocks_taken_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq);
/* Waits for what is in the way.  0: try again, -EDEADLK, -ENOLCK, -EINTR.  *waiter is made at the first need;
 * the lock is held before and after. */
int flocks_wait_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq, const struct range *in_way,
		       struct flock_waiter **waiter);
void flocks_leave_queue_locked(struct slot *self, struct flocks *fs, struct flock_waiter *w);
void waiters_drop_all(struct slot *self, struct flocks *fs);

/* ---- flock_alive.c */

bool flock_process_dead(uint32_t pid, uint64_t start_time);
uint32_t flock_now_ms(void);

#endif

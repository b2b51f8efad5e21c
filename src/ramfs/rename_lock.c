/* SPDX-License-Identifier: MIT */
/*
 * rename_lock.c - the locks of a rename.
 *
 * The tree's shape changes only under rename_lock: parents of directories are stable for who holds it.
 *	same directory			its lock
 *	two directories, no wait needed	both locks, each by a try, in any order
 *	otherwise			rename_lock, the ancestor first, else the lower address first
 * and below them the inodes that are moved or replaced (each a child of one of the two, and
 * neither an ancestor of the other), the lower address first.
 * Why that cannot deadlock: a thread that waits for a directory holds nothing, or the parent of what it
 * waits for (rmdir, and the inodes here), or rename_lock.  Along parent and child a chain of waiters
 * only descends, and there is only one holder of rename_lock.
 * A rename that finds rename_lock taken takes it too: see walk.c for why.
 */
#include "ramfs/rename_priv.h"

struct inode *rename_step_towards(struct inode *above, struct inode *below)
{
	struct inode *up;

	for (; below; below = up) {
		up = load_acquire(&below->dir.parent); /* pairs with parent_set; stable under rename_lock */
		if (up == above && below != above)
			return below;
		if (up == below)
			break;
	}
	return NULL;
}

static struct lock *rename_big(struct renaming *r)
{
	return &vfs_root_of(r->w->self)->rename_lock;
}

static bool dead(struct inode *dir)
{
	return load_relaxed(&dir->flags) & INODE_DEAD; /* relaxed: lock held */
}

LOCK_NO_ANALYSIS void rename_unlock_dirs(struct renaming *r)
{
	struct inode *a = r->from.parent, *b = r->to.parent;

	names_unlock(r->w->self, b);
	if (a != b)
		names_unlock(r->w->self, a);
	if (r->big)
		lock_release(rename_big(r), &r->w->self->locker, LOCK_RENAME);
	r->big = false;
}

static bool rename_try_dirs(struct renaming *r)
{
	struct slot *self = r->w->self;
	struct inode *a = r->from.parent, *b = r->to.parent;

	if (!names_try(self, a))
		return false;
	if (a == b || names_try(self, b))
		return true;
	names_unlock(self, a);
	return false;
}

LOCK_NO_ANALYSIS static void rename_wait_dirs(struct renaming *r)
{
	struct slot *self = r->w->self;
	struct inode *first = r->from.parent, *second = r->to.parent;

	if (r->big)
		lock_acquire(rename_big(r), &self->locker, LOCK_RENAME);
	if (first != second && !rename_step_towards(first, second) &&
	    (rename_step_towards(second, first) || second < first)) {
		struct inode *swap = first;

		first = second;
		second = swap;
	}
	lock_acquire(&first->lock, &self->locker, LOCK_DIR);
	if (first != second)
		lock_acquire(&second->lock, &self->locker, LOCK_DIR);
}

static bool rename_hold(struct slot *self, struct inode *dir)
{
	int k;

	return inode_get_epoch(self, dir, &k);
}

static void rename_drop(struct slot *self, struct inode *dir)
{
	inode_put(self, dir);
}

static int rename_lock_slow(struct renaming *r, bool big)
{
	struct slot *self = r->w->self;
	struct inode *a = r->from.parent, *b = r->to.parent;
	int err = 0;

	if (!rename_hold(self, a))
		return -ENOENT;
	if (!rename_hold(self, b)) {
		rename_drop(self, a);
		return -ENOENT;
	}
	shelf_assert(self->nest == 1);
	epoch_exit(self);
	r->big = big || a != b;
	rename_wait_dirs(r);
	epoch_enter(self);
	if (dead(a) || dead(b)) {
		rename_unlock_dirs(r);
		err = -ENOENT;
	}
	rename_drop(self, a); /* under its lock a directory that is not dead stays */
	rename_drop(self, b);
	return err;
}

int rename_lock_dirs(struct renaming *r, bool big)
{
	r->big = false;
	/* Relaxed: a hint that walks or other renames queue there. */
	if (unlikely(big || load_relaxed(&rename_big(r)->word)) || !rename_try_dirs(r))
		return rename_lock_slow(r, big || load_relaxed(&rename_big(r)->word));
	if (likely(!dead(r->from.parent) && !dead(r->to.parent)))
		return 0;
	rename_unlock_dirs(r);
	return -ENOENT;
}

/* ---- the inodes themselves ------------------------------------------------------------------- */

static void rename_order(struct renaming *r, struct inode **first, struct inode **second)
{
	struct inode *s = r->source, *t = r->target;
	bool s_dir = inode_type(s) == S_IFDIR, t_dir = t && inode_type(t) == S_IFDIR;

	/* Directories before others, as their classes stand; within a class by address. */
	if (t && (t_dir != s_dir ? t_dir : t < s)) {
		*first = t;
		*second = s;
	} else {
		*first = s;
		*second = t;
	}
}

LOCK_NO_ANALYSIS void rename_lock_inodes(struct renaming *r)
{
	struct slot *self = r->w->self;
	struct inode *first, *second;

	rename_order(r, &first, &second);
	if (likely(names_try(self, first))) {
		if (!second || names_try(self, second))
			return;
		names_unlock(self, first);
	}
	epoch_exit(self); /* their directories' locks keep them alive */
	lock_acquire(&first->lock, &self->locker, names_lock_class(first));
	if (second)
		lock_acquire(&second->lock, &self->locker, names_lock_class(second));
	epoch_enter(self);
}

void rename_unlock_inodes(struct renaming *r)
{
	names_unlock(r->w->self, r->source);
	if (r->target)
		names_unlock(r->w->self, r->target);
}

/* SPDX-License-Identifier: MIT */
/*
 * walk_wait.c - where a walk or a change of names must wait: for a rename that is busy in a directory, and for
 * a directory's lock.
 *
 * A wait is outside the section.  What is needed behind it is counted meanwhile and noted in the ledger.
 */
#include "vfs/vfs_priv.h"

/* Whatever a dead thread left in `dir` has been finished when we have had its lock. */
LOCK_NO_ANALYSIS static void dir_wait(struct slot *self, struct inode *dir)
{
	lock_acquire(&dir->lock, &self->locker, LOCK_DIR);
	seq_repair(&dir->dir.name_seq);
	lock_release(&dir->lock, &self->locker, LOCK_DIR);
}

/* Counted for as long as the section is left; the ledger knows. */
static bool hold_epoch(struct slot *self, struct inode *inode)
{
	int k;

	return inode_get_epoch(self, inode, &k);
}

static void hold_end(struct slot *self, struct inode *inode)
{
	inode_put(self, inode);
}

/* Leaves the section and comes back into it. */
LOCK_NO_ANALYSIS static int walk_wait(struct who *w, struct inode *start, struct inode *busy, bool take_big)
{
	struct slot *self = w->self;
	struct inode *base = start ? start : load_acquire(&w->fs->cwd); /* as in walk_start */
	bool held = hold_epoch(self, busy);

	if (start && !hold_epoch(self, base)) {
		if (held)
			hold_end(self, busy);
		return -ENOENT; /* its last descriptor has been closed meanwhile */
	}
	epoch_exit(self);
	if (take_big)
		lock_acquire(&vfs_root_of(self)->rename_lock, &self->locker, LOCK_RENAME);
	if (held)
		dir_wait(self, busy);
	epoch_enter(self);
	if (held)
		hold_end(self, busy);
	if (start)
		hold_end(self, base);
	return 0;
}

LOCK_NO_ANALYSIS int walk_slow(struct who *w, struct inode *start, const char *path, unsigned flags, struct walk *out)
{
	struct slot *self = w->self;
	bool big = false;
	unsigned tries = 0;
	int err = WALK_RESTART;

	if (flags & WALK_CACHED)
		return -EAGAIN;
	shelf_assert(self->nest == 1);
	while (err == WALK_RESTART) {
		bool take = tries++ == 1;

		err = walk_wait(w, start, out->parent, take);
		big |= take && !err;
		if (!err)
			err = walk_once(w, start, path, flags, out);
	}
	if (big)
		lock_release(&vfs_root_of(self)->rename_lock, &self->locker, LOCK_RENAME);
	return err;
}

/* ---- the lock of a directory that a walk found ------------------------------------------------- */

static bool dir_dead(struct inode *dir)
{
	return load_relaxed(&dir->flags) & INODE_DEAD; /* relaxed: lock held */
}

LOCK_NO_ANALYSIS static int dir_lock_slow(struct slot *self, struct inode *dir)
{
	bool dead;

	if (!hold_epoch(self, dir))
		return -ENOENT;
	shelf_assert(self->nest == 1);
	epoch_exit(self);
	lock_acquire(&dir->lock, &self->locker, LOCK_DIR);
	epoch_enter(self);
	dead = dir_dead(dir);
	if (dead)
		lock_release(&dir->lock, &self->locker, LOCK_DIR);
	hold_end(self, dir); /* under the lock a directory that is not dead stays */
	return dead ? -ENOENT : 1;
}

LOCK_NO_ANALYSIS int dir_lock_epoch(struct who *w, struct inode *dir)
{
	struct slot *self = w->self;

	if (unlikely(!lock_try(&dir->lock, &self->locker, LOCK_DIR)))
		return dir_lock_slow(self, dir);
	if (likely(!dir_dead(dir)))
		return 0;
	lock_release(&dir->lock, &self->locker, LOCK_DIR);
	return -ENOENT;
}

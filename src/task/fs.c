/* SPDX-License-Identifier: MIT */
/* fs.c - root, working directory and umask of a task, or of several. */
#include "task/task_priv.h"

/* Takes over references on both. */
int fs_context_new(struct slot *self, struct inode *root, struct inode *cwd, uint32_t umask, struct fs_context **out)
{
	struct fs_context *fs = mem_alloc(self, sizeof(*fs));

	if (!fs)
		return -ENOSPC;
	store_relaxed(&fs->lock.word, 0); /* the context is published by its task */
	ref_init(&fs->users, 1);
	store_relaxed(&fs->root, root);
	store_relaxed(&fs->cwd, cwd);
	store_relaxed(&fs->umask, umask);
	fs->retired = (struct retired){ 0 };
	*out = fs;
	return 0;
}

/* In a section.  `place` may change under us: then what it held before may be dead, and we look again. */
static struct inode *place_get_epoch(atomic_ptr(struct inode) *place)
{
	struct inode *inode;

	do
		inode = load_acquire(place); /* pairs with the store in place_set */
	while (!inode_get_epoch(inode));
	return inode;
}

int fs_context_copy(struct slot *self, struct fs_context *from, struct fs_context **out)
{
	struct inode *root, *cwd;
	int err;

	epoch_enter(self);
	root = place_get_epoch(&from->root);
	cwd = place_get_epoch(&from->cwd);
	epoch_exit(self);
	err = fs_context_new(self, root, cwd, load_relaxed(&from->umask), out); /* relaxed: a number */
	if (err) {
		inode_put(self, root);
		inode_put(self, cwd);
	}
	return err;
}

void fs_context_put(struct slot *self, struct fs_context *fs)
{
	bool last;

	epoch_enter(self);
	last = ref_put(&fs->users);
	epoch_exit(self);
	if (!last)
		return;
	inode_put(self, load_relaxed(&fs->root)); /* relaxed: nobody else is left */
	inode_put(self, load_relaxed(&fs->cwd));
	epoch_retire(self, &fs->retired, RETIRE_TASK, TASK_OBJECT_FS);
}

static void place_set(struct slot *self, struct fs_context *fs, atomic_ptr(struct inode) *place, struct inode *inode)
{
	struct inode *old;

	lock_acquire(&fs->lock, &self->locker, LOCK_LEAF);
	old = load_relaxed(place); /* relaxed: under the lock */
	tracked_store(place, inode); /* pairs with the load in place_get_epoch and in walks */
	lock_release(&fs->lock, &self->locker, LOCK_LEAF);
	inode_put(self, old);
}

void fs_set_cwd(struct slot *self, struct fs_context *fs, struct inode *inode)
{
	place_set(self, fs, &fs->cwd, inode);
}

void fs_set_root(struct slot *self, struct fs_context *fs, struct inode *inode)
{
	place_set(self, fs, &fs->root, inode);
}

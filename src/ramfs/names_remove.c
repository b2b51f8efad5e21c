/* SPDX-License-Identifier: MIT */
/*
 * names_remove.c - unlink and rmdir.
 *
 * Locks: the directory, then what is removed.  Shared writes: both inodes, the hash chain.
 * The inode's data are freed after the locks are released, by its last reference.
 */
#include "ramfs/names_priv.h"

static int remove_kind_epoch(struct walk *k, bool is_dir)
{
	enum last_kind kind = k->last_kind;

	if (kind == LAST_NAME)
		return k->last_len > NAME_LIMIT ? walk_name_too_long(k->parent) : 0;
	if (!is_dir)
		return -EISDIR;
	return kind == LAST_DOT ? -EINVAL : kind == LAST_DOTDOT ? -ENOTEMPTY : -EBUSY;
}

/* Lock of the directory held, in a section. */
static int remove_check(struct who *w, struct walk *k, bool is_dir, struct dentry **d)
{
	struct inode *inode;

	*d = dentry_find_locked(k->parent, k->last_hash, k->last, k->last_len);
	if (!*d)
		return -ENOENT;
	inode = load_relaxed(&(*d)->inode); /* relaxed: lock held */
	if (k->trailing_slash && !is_dir)
		return inode_type(inode) == S_IFDIR ? -EISDIR : -ENOTDIR;
	return may_delete_epoch(w, k->parent, inode, is_dir);
}

static void remove_record(struct slot *self, struct inode *dir, struct dentry *d, struct inode *inode, bool is_dir)
{
	uint64_t args[NAMES_ARGS] = {0};

	args[NA_DIR] = na_word(dir);
	args[NA_DENTRY] = na_word(d);
	args[NA_INODE] = na_word(inode);
	/* Relaxed: locks held. */
	args[NA_SIZE] = load_relaxed(&dir->size) - DIR_ENTRY_SIZE;
	args[NA_NLINKS] = load_relaxed(&dir->nlink) - (is_dir ? 1u : 0u);
	args[NA_NLINK] = is_dir ? 0 : load_relaxed(&inode->nlink) - 1;
	args[NA_NOW] = vfs_now();
	intent_begin(self, is_dir ? INTENT_RMDIR : INTENT_UNLINK, NAMES_ARGS, args);
}

static void remove_notify(struct slot *self, struct inode *dir, struct dentry *d, struct inode *inode, bool is_dir)
{
	if (!is_dir)
		notify(self, inode, NULL, NULL, IN_ATTRIB, 0); /* the count of its links */
	if (notify_wanted(self))
		notify_removed_slow(self, inode, dir, d->name);
	notify(self, inode, dir, d->name, IN_DELETE | (is_dir ? IN_ISDIR : 0), 0);
}

/* Locks of both held, in a section, which it leaves. */
static void remove_locked(struct slot *self, struct inode *dir, struct dentry *d, struct inode *inode, bool is_dir,
			  struct names_owed *owed)
{
	remove_record(self, dir, d, inode, is_dir);
	names_commit(&self->intent);
	names_finish(self, &self->intent);
	epoch_exit(self);
	remove_notify(self, dir, d, inode, is_dir);
	names_end(self, &self->intent, owed);
}

/* The directory is locked, in a section; leaves both. */
static int remove_entry(struct who *w, struct walk *k, bool is_dir)
{
	struct slot *self = w->self;
	struct names_owed owed = {{NULL, NULL}};
	struct inode *inode;
	struct dentry *d;
	int err = remove_check(w, k, is_dir, &d);

	if (err) {
		epoch_exit(self);
		names_unlock(self, k->parent);
		return err;
	}
	inode = load_relaxed(&d->inode); /* relaxed: lock held, which also keeps it alive */
	names_lock_epoch(self, inode);
	if (is_dir && dir_entries(inode)) {
		epoch_exit(self);
		err = -ENOTEMPTY;
	} else {
		remove_locked(self, k->parent, d, inode, is_dir, &owed);
	}
	names_unlock(self, inode);
	names_unlock(self, k->parent);
	names_pay(self, &owed);
	return err;
}

LOCK_NO_ANALYSIS static int names_remove(struct who *w, struct inode *start, const char *path, bool is_dir)
{
	struct walk k;
	int err;

	epoch_enter(w->self);
	err = walk_parent_epoch(w, start, path, &k);
	if (!err)
		err = remove_kind_epoch(&k, is_dir);
	if (!err)
		err = dir_lock_epoch(w, k.parent); /* the name is in the caller's path, so it outlives the section */
	if (err >= 0)
		return remove_entry(w, &k, is_dir);
	epoch_exit(w->self);
	return err;
}

int ramfs_unlink(struct who *w, struct inode *start, const char *path)
{
	return names_remove(w, start, path, false);
}

int ramfs_rmdir(struct who *w, struct inode *start, const char *path)
{
	return names_remove(w, start, path, true);
}

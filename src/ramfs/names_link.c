/* SPDX-License-Identifier: MIT */
/*
 * names_link.c - another name for an inode, and the first for an O_TMPFILE.
 *
 * Locks: the directory, then the inode.
 */
#include "ramfs/names_priv.h"

struct linking {
	struct who *w;
	struct inode *inode; /* counted */
	struct inode *dir;
	struct dentry *d;
	int noted; /* d, in the ledger */
};

/* fs.protected_hardlinks, which a shelf takes for 1: a file of somebody else that we could not write, or a setuid one. */
static bool link_source_safe_epoch(struct linking *l)
{
	uint32_t mode = load_relaxed(&l->inode->mode); /* relaxed: as every permission check */

	if (owner_or_capable(l->w, l->inode))
		return true;
	return S_ISREG(mode) && !(mode & S_ISUID) && (mode & (S_ISGID | S_IXGRP)) != (S_ISGID | S_IXGRP) &&
	       !inode_permission_epoch(l->w, l->inode, MAY_READ | MAY_WRITE);
}

static int link_check_epoch(struct linking *l, struct walk *k)
{
	int err;

	if (k->last_kind == LAST_NAME && k->last_len > NAME_LIMIT)
		return walk_name_too_long(k->parent);
	if (k->last_kind != LAST_NAME || dentry_find_epoch(k->parent, k->last_hash, k->last, k->last_len))
		return -EEXIST;
	if (k->trailing_slash)
		return -ENOENT;
	if (load_relaxed(&k->parent->flags) & INODE_DEAD) /* as in may_create_epoch */
		return -ENOENT;
	if (!link_source_safe_epoch(l))
		return -EPERM;
	err = may_create_epoch(l->w, k->parent);
	if (err)
		return err;
	return inode_type(l->inode) == S_IFDIR ? -EPERM : 0;
}

static void link_record(struct linking *l)
{
	struct inode *inode = l->inode;
	uint64_t args[NAMES_ARGS] = {0};
	uint32_t nlink = load_relaxed(&inode->nlink); /* relaxed: lock held, as all below */

	args[NA_DIR] = na_word(l->dir);
	args[NA_DENTRY] = na_word(l->d);
	args[NA_INODE] = na_word(inode);
	args[NA_SIZE] = load_relaxed(&l->dir->size) + DIR_ENTRY_SIZE;
	args[NA_NLINKS] = load_relaxed(&l->dir->nlink);
	args[NA_NLINK] = nlink + 1;
	args[NA_NOW] = vfs_now();
	args[NA_GAINS] = nlink ? 0 : na_word(inode); /* the names' reference */
	intent_begin(l->w->self, INTENT_LINK, NAMES_ARGS, args);
}

/* Both locks held, in a section, which it leaves. */
static int link_locked(struct linking *l)
{
	struct slot *self = l->w->self;
	struct names_owed owed;
	int err;

	link_record(l);
	dentry_noted(self, &l->noted);
	err = dentry_reserve_locked(self, l->dir, l->d);
	if (err) {
		dentry_return(self, l->d, &l->noted);
		intent_end(self);
		epoch_exit(self);
		return err;
	}
	names_count(self, NS_COUNTED); /* the caller's reference keeps it alive */
	names_commit(&self->intent);
	names_finish(self, &self->intent);
	epoch_exit(self);
	notify(self, l->inode, NULL, NULL, IN_ATTRIB, 0); /* the count of its links */
	notify(self, l->inode, l->dir, l->d->name, IN_CREATE, 0);
	names_end(self, &self->intent, &owed); /* a link owes nothing */
	return 0;
}

static int link_linkable(struct inode *inode)
{
	uint32_t nlink = load_relaxed(&inode->nlink); /* relaxed: lock held */

	if (!nlink && !(load_relaxed(&inode->flags) & INODE_TMPFILE)) /* as above */
		return -ENOENT;
	return nlink == UINT32_MAX ? -EMLINK : 0;
}

/* The directory is locked, in a section; leaves both. */
static int link_entry(struct linking *l, bool waited)
{
	struct slot *self = l->w->self;
	int err = waited ? may_create_epoch(l->w, l->dir) : 0;

	if (!err && dentry_find_locked(l->dir, l->d->hash, l->d->name, l->d->len))
		err = -EEXIST;
	if (err) {
		epoch_exit(self);
		names_unlock(self, l->dir);
		return err;
	}
	names_lock_epoch(self, l->inode);
	err = link_linkable(l->inode);
	if (err)
		epoch_exit(self);
	else
		err = link_locked(l);
	names_unlock(self, l->inode);
	names_unlock(self, l->dir);
	return err;
}

static int link_to(struct linking *l, struct inode *start, const char *path)
{
	struct slot *self = l->w->self;
	struct walk k;
	int err;

	epoch_enter(self);
	err = walk_epoch(l->w, start, path, WALK_PARENT, &k);
	if (!err)
		err = link_check_epoch(l, &k);
	if (!err && !(l->d = dentry_new(self, k.last, k.last_len, k.last_hash, &l->noted)))
		err = -ENOSPC;
	if (err) {
		epoch_exit(self);
		return err;
	}
	l->dir = k.parent;
	err = dir_lock_epoch(l->w, k.parent);
	if (err >= 0)
		err = link_entry(l, err);
	else
		epoch_exit(self);
	if (err)
		dentry_free(self, l->d, l->noted);
	return err;
}

/* What is linked, counted. */
static int link_find(struct who *w, struct inode *start, const char *path, bool follow, struct inode **out)
{
	struct walk k;
	int noted, err;

	epoch_enter(w->self);
	do
		err = walk_epoch(w, start, path, follow ? WALK_FOLLOW : 0, &k);
	while (!err && !inode_get_epoch(w->self, k.inode, &noted));
	epoch_exit(w->self);
	*out = k.inode;
	return err;
}

int ramfs_link(struct who *w, struct inode *from_start, const char *from, struct inode *from_inode, bool follow,
	       struct inode *to_start, const char *to)
{
	struct linking l = {.w = w, .inode = from_inode};
	int err;

	if (from_inode)
		return link_to(&l, to_start, to);
	err = link_find(w, from_start, from, follow, &l.inode);
	if (err)
		return err;
	err = link_to(&l, to_start, to);
	inode_put(w->self, l.inode);
	return err;
}

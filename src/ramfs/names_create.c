/* SPDX-License-Identifier: MIT */
/*
 * names_create.c - a new name for a new inode: create, mkdir, mknod, symlink; and files without a name.
 *
 * Memory is got before the directory's lock is taken.  Shared writes: the directory's inode and the
 * hash chain; nothing of the segment as a whole.
 * Order of checks as in Linux: exists, trailing slash, directory removed, permission.
 */
#include "ramfs/names_priv.h"

/* Before any memory is spent: the answers that need no lock. */
static int create_check_epoch(struct who *w, struct walk *k, struct birth *b)
{
	if (k->last_kind != LAST_NAME)
		return -EEXIST;
	if (k->last_len > NAME_LIMIT)
		return walk_name_too_long(k->parent);
	if (dentry_find_epoch(k->parent, k->last_hash, k->last, k->last_len))
		return -EEXIST;
	if (k->trailing_slash && !b->want_dir)
		return -ENOENT;
	return may_create_epoch(w, k->parent);
}

static int create_prepare_epoch(struct who *w, struct walk *k, struct birth *b, struct inode **inode, struct dentry **d,
				int *noted)
{
	int err = birth_new_epoch(w, k->parent, b, inode);

	if (err)
		return err;
	*d = dentry_new(w->self, k->last, k->last_len, k->last_hash, noted);
	if (*d)
		return 0;
	birth_undo(w->self, *inode);
	return -ENOSPC;
}

static void create_record(struct slot *self, struct inode *dir, struct dentry *d, struct inode *inode, bool keep)
{
	uint64_t args[NAMES_ARGS] = {0};
	bool is_dir = S_ISDIR(inode_type(inode));

	store_relaxed(&inode->alias, d); /* not published */
	args[NA_GAINS] = is_dir ? na_word(dir) : 0;
	args[NA_DIR] = na_word(dir);
	args[NA_DENTRY] = na_word(d);
	args[NA_INODE] = na_word(inode);
	/* Relaxed: lock held. */
	args[NA_SIZE] = load_relaxed(&dir->size) + DIR_ENTRY_SIZE;
	args[NA_NLINKS] = load_relaxed(&dir->nlink) + (is_dir ? 1u : 0u);
	args[NA_NOW] = load_relaxed(&inode->ctime); /* as young as the inode */
	intent_begin(self, INTENT_CREATE, NAMES_ARGS, args);
	fence_compiler();
	/* A parent that is not counted yet, and of which only the record tells that. */
	if (is_dir)
		store_relaxed(&inode->dir.parent, dir); /* not published */
	/* The record has the inode now.  With `keep` the ledger stands for the caller's reference from here on. */
	if (keep)
		tally_init(&inode->refs, 2);
	else
		ledger_del(self, inode);
}

/* Lock held, in a section.  Leaves the section.  0: done; else nothing has changed, d and inode are the caller's. */
static int create_locked(struct slot *self, struct inode *dir, struct dentry *d, int *noted, struct inode *inode, bool keep)
{
	struct names_owed owed;
	int err;

	create_record(self, dir, d, inode, keep);
	dentry_noted(self, noted);
	err = dentry_reserve_locked(self, dir, d);
	if (err) {
		birth_return(self, inode);
		dentry_return(self, d, noted);
		intent_end(self);
		epoch_exit(self);
		return err;
	}
	names_count(self, NS_COUNTED); /* the new directory's reference on its parent, which is locked and not dead */
	names_commit(&self->intent);
	names_finish(self, &self->intent);
	epoch_exit(self);
	notify(self, inode, dir, d->name, IN_CREATE | names_isdir(inode), 0);
	names_end(self, &self->intent, &owed); /* a creation owes nothing */
	return 0;
}

LOCK_NO_ANALYSIS int names_create_epoch(struct who *w, struct walk *k, struct birth *b)
{
	struct slot *self = w->self;
	struct inode *dir = k->parent, *inode;
	struct dentry *d;
	bool waits;
	int noted, err = create_check_epoch(w, k, b);

	if (!err)
		err = create_prepare_epoch(w, k, b, &inode, &d, &noted);
	if (err) {
		epoch_exit(self);
		return err;
	}
	err = dir_lock_epoch(w, dir);
	if (err < 0)
		goto out_section;
	/* From here on the name is d's: the walk's may be gone if the section was left. */
	if (err)
		err = may_create_epoch(w, dir);
	if (!err && dentry_find_locked(dir, d->hash, d->name, d->len))
		err = -EEXIST;
	if (err)
		goto out_lock;
	err = create_locked(self, dir, d, &noted, inode, b->keep); /* leaves the section */
	waits = !err && dentry_waits_locked(dir);
	names_unlock(self, dir);
	if (err)
		goto out;
	b->inode = inode;
	if (unlikely(waits))
		epoch_reclaim(self); /* advances the epoch if it can */
	return 0;

out_lock:
	names_unlock(self, dir);
out_section:
	epoch_exit(self);
out:
	dentry_free(self, d, noted);
	birth_undo(self, inode);
	return err;
}

static int names_create(struct who *w, struct inode *start, const char *path, struct birth *b)
{
	struct walk k;
	int err;

	epoch_enter(w->self);
	err = walk_parent_epoch(w, start, path, &k);
	if (!err)
		return names_create_epoch(w, &k, b);
	epoch_exit(w->self);
	return err;
}

int ramfs_mkdir(struct who *w, struct inode *start, const char *path, uint32_t mode)
{
	struct birth b = {.mode = S_IFDIR | (mode & 01777), .want_dir = true};

	return names_create(w, start, path, &b);
}

int ramfs_symlink(struct who *w, const char *target, struct inode *start, const char *path)
{
	struct birth b = {.mode = S_IFLNK | 0777, .target = target};

	while (target[b.target_len])
		if (++b.target_len == PATH_LIMIT)
			return -ENAMETOOLONG;
	if (!b.target_len)
		return -ENOENT;
	return names_create(w, start, path, &b);
}

static int mknod_check(struct who *w, uint32_t mode)
{
	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
		return 0;
	case S_IFCHR:
	case S_IFBLK:
		return capable(w, SHELF_CAP_MKNOD) ? 0 : -EPERM;
	case S_IFDIR:
		return -EPERM;
	default:
		return -EINVAL;
	}
}

/* A device without the capability is refused after the name was looked at. */
static int mknod_refused(struct who *w, struct inode *start, const char *path, int why)
{
	struct birth b = {.want_dir = false};
	struct walk k;
	int err;

	epoch_enter(w->self);
	err = walk_parent_epoch(w, start, path, &k);
	if (!err)
		err = create_check_epoch(w, &k, &b);
	epoch_exit(w->self);
	return err ? err : why;
}

int ramfs_mknod(struct who *w, struct inode *start, const char *path, uint32_t mode, uint64_t rdev)
{
	uint32_t type = mode & S_IFMT;
	struct birth b = {.mode = (type ? type : S_IFREG) | (mode & 07777), .rdev = rdev};
	int err = mknod_check(w, mode);

	/* Character device 0:0 is overlayfs' whiteout: anybody's. */
	if (err == -EPERM && type == S_IFCHR && !rdev)
		err = 0;
	if (err == -EPERM && type != S_IFDIR)
		return mknod_refused(w, start, path, err);
	return err ? err : names_create(w, start, path, &b);
}

int ramfs_tmpfile(struct who *w, struct inode *start, const char *path, uint32_t mode, int flags, struct inode **out)
{
	struct slot *self = w->self;
	struct birth b = {.mode = S_IFREG | (mode & 07777)};
	struct inode *inode;
	struct walk k;
	int err;

	epoch_enter(self);
	err = walk_epoch(w, start, path, WALK_DIRECTORY | (flags & O_NOFOLLOW ? 0 : WALK_FOLLOW), &k);
	if (!err)
		err = inode_permission_epoch(w, k.inode, MAY_WRITE | MAY_EXEC);
	if (!err)
		err = birth_new_epoch(w, k.inode, &b, &inode);
	epoch_exit(self);
	if (err)
		return err;
	/* Not published yet.  Its one reference is the caller's. */
	store_relaxed(&inode->nlink, 0);
	if (!(flags & O_EXCL))
		store_relaxed(&inode->flags, load_relaxed(&inode->flags) | INODE_TMPFILE);
	*out = inode;
	return 0;
}

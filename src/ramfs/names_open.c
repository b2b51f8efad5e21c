/* SPDX-License-Identifier: MIT */
/*
 * names_open.c - what open(2) does with names: find or create, and may it.
 *
 * O_CREAT of a name that exists takes no lock.  Shared writes of opening what exists: the inode's count.
 * Not here: descriptors, O_TRUNC's truncation (ramfs.h).
 */
#include "ramfs/names_priv.h"

#define OPEN_AGAIN 1 /* the inode died, or the name appeared: walk again */

static unsigned open_walk_flags(int flags, unsigned extra)
{
	unsigned wf = extra & (WALK_OPENAT2 | WALK_EMPTY_PATH);

	if (flags & O_DIRECTORY)
		wf |= WALK_DIRECTORY;
	if (flags & O_PATH)
		return wf | (flags & O_NOFOLLOW ? 0 : WALK_FOLLOW);
	if (flags & O_CREAT)
		wf |= WALK_CREATE;
	if (!(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL))
		wf |= WALK_FOLLOW;
	return wf;
}

/* MAY_READ and MAY_WRITE that the flags ask for; 3, as Linux has it, asks for both. */
static unsigned open_mask(int flags)
{
	static const unsigned char masks[4] = { MAY_READ, MAY_WRITE, MAY_READ | MAY_WRITE, MAY_READ | MAY_WRITE };

	return masks[flags & O_ACCMODE] | (flags & O_TRUNC ? MAY_WRITE : 0);
}

static int open_check_kind(struct inode *inode, unsigned mask)
{
	switch (inode_type(inode)) {
	case S_IFLNK:
		return -ELOOP;
	case S_IFDIR:
		return mask & MAY_WRITE ? -EISDIR : 0;
	default:
		return 0;
	}
}

/*
 * O_CREAT of somebody else's symlink or special file in a sticky directory that all may write: Linux refuses
 * that whatever fs.protected_regular and fs.protected_fifos say (which a shelf takes for 0).
 */
static bool sticky_refuses(struct who *w, struct inode *dir, struct inode *inode)
{
	uint32_t mode = dir ? load_relaxed(&dir->mode) : 0, uid = load_relaxed(&inode->uid); /* relaxed: as in perm.c */

	if ((mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
		return false;
	if (inode_type(inode) == S_IFREG || inode_type(inode) == S_IFIFO)
		return false;
	return uid != load_relaxed(&dir->uid) && uid != w->cred->fsuid;
}

/* `parent` is looked at with O_CREAT only. */
static int open_may_epoch(struct who *w, struct inode *parent, struct inode *inode, int flags)
{
	unsigned mask = open_mask(flags);
	int err;

	if (flags & O_PATH)
		return 0;
	if (flags & O_CREAT) {
		if (flags & O_EXCL)
			return -EEXIST;
		if (inode_type(inode) == S_IFDIR)
			return -EISDIR;
		if (sticky_refuses(w, parent, inode))
			return -EACCES;
	}
	err = open_check_kind(inode, mask);
	if (!err)
		err = inode_permission_epoch(w, inode, mask);
	if (!err && (flags & O_NOATIME) && !owner_or_capable(w, inode))
		err = -EPERM;
	if (!err && (mask & MAY_WRITE) && load_acquire(&inode->write_denied)) /* pairs with exec's add */
		err = -ETXTBSY;
	return err;
}

static int open_existing_epoch(struct who *w, struct inode *parent, struct inode *inode, int flags,
			       struct open_walk *out)
{
	int k, err = open_may_epoch(w, parent, inode, flags);

	if (err)
		return err;
	if (unlikely(!inode_get_epoch(w->self, inode, &k)))
		return OPEN_AGAIN;
	out->inode = inode;
	out->created = false;
	return 0;
}

/* Leaves the section. */
static int open_create_epoch(struct who *w, struct walk *k, int flags, uint32_t mode, struct open_walk *out)
{
	struct birth b = {.mode = S_IFREG | (mode & 07777), .keep = true};
	int err = names_create_epoch(w, k, &b);

	if (err == -EEXIST && !(flags & O_EXCL))
		return OPEN_AGAIN;
	if (err)
		return err;
	out->inode = b.inode;
	out->created = true;
	return 0;
}

static int open_once(struct who *w, struct inode *start, const char *path, int flags, uint32_t mode, unsigned wf,
		     struct open_walk *out)
{
	struct walk k;
	int err;

	epoch_enter(w->self);
	err = walk_epoch(w, start, path, wf, &k);
	if (!err && !k.inode)
		return open_create_epoch(w, &k, flags, mode, out);
	if (!err)
		err = open_existing_epoch(w, k.parent, k.inode, flags, out);
	if (!err && unlikely(out->keeps_name))
		out->name = opened_new_epoch(w->self, &k);
	epoch_exit(w->self);
	return err;
}

int ramfs_open_common(struct who *w, const char *path, int flags, struct open_walk *out)
{
	struct inode *inode;
	int err;

	epoch_enter(w->self);
	err = walk_common_epoch(w, path, true, &inode);
	if (likely(!err))
		err = open_existing_epoch(w, NULL, inode, flags, out);
	epoch_exit(w->self);
	return err == OPEN_AGAIN ? WALK_UNCOMMON : err;
}

int ramfs_open(struct who *w, struct inode *start, const char *path, int flags, uint32_t mode, unsigned walk_flags,
	       struct open_walk *out)
{
	unsigned wf = open_walk_flags(flags, walk_flags);
	int err;

	if (!(flags & O_PATH) && (flags & O_CREAT) && (flags & O_DIRECTORY))
		return -EINVAL;
	if ((wf & WALK_CACHED) && (flags & (O_CREAT | O_TRUNC)))
		return -EAGAIN;
	do
		err = open_once(w, start, path, flags, mode, wf, out);
	while (unlikely(err == OPEN_AGAIN));
	return err;
}

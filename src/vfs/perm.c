/* SPDX-License-Identifier: MIT */
/*
 * perm.c - who may do what with an inode.
 *
 * Reads the inode's first line and the caller's credentials; writes nothing.  Mode and owner are read
 * one by one: a check that meets a chmod or chown in the middle may see half of it, as in Linux.
 */
#include "vfs/vfs.h"

bool capable(struct who *w, uint32_t cap)
{
	return w->cred->caps & cap;
}

bool in_group(const struct shelf_cred *c, gid_t gid)
{
	uint32_t i;

	if (c->fsgid == gid)
		return true;
	for (i = 0; i < c->ngroups && i < ARRAY_SIZE(c->groups); i++)
		if (c->groups[i] == gid)
			return true;
	return false;
}

bool owner_or_capable(struct who *w, struct inode *inode)
{
	return w->cred->fsuid == load_relaxed(&inode->uid) || capable(w, SHELF_CAP_FOWNER);
}

/* What mode and ACL say: 0 or -EACCES. */
static int permission_by_mode(struct who *w, struct inode *inode, uint32_t mode, unsigned mask)
{
	if (w->cred->fsuid == load_relaxed(&inode->uid)) { /* relaxed: see above */
		mode >>= 6;
	} else {
		if ((load_relaxed(&inode->flags) & INODE_HAS_ACL) && (mode & 070))
			return acl_permission_epoch(w, inode, mask);
		/* Groups matter only where their bits differ from the others'. */
		if ((mask & (mode ^ mode >> 3)) && in_group(w->cred, load_relaxed(&inode->gid)))
			mode >>= 3;
	}
	return mask & ~mode & 7 ? -EACCES : 0;
}

static bool permission_by_capability(struct who *w, uint32_t mode, unsigned mask)
{
	if (S_ISDIR(mode)) {
		if (!(mask & MAY_WRITE) && capable(w, SHELF_CAP_DAC_READ_SEARCH))
			return true;
		return capable(w, SHELF_CAP_DAC_OVERRIDE);
	}
	if (mask == MAY_READ && capable(w, SHELF_CAP_DAC_READ_SEARCH))
		return true;
	/* Root executes only what somebody may execute. */
	return (!(mask & MAY_EXEC) || (mode & 0111)) && capable(w, SHELF_CAP_DAC_OVERRIDE);
}

int inode_permission_epoch(struct who *w, struct inode *inode, unsigned mask)
{
	uint32_t mode = load_relaxed(&inode->mode); /* relaxed: see above */

	/* Everybody may: no need to know who asks. */
	if (!(mask & ~(mode & mode >> 3 & mode >> 6)) && !(load_relaxed(&inode->flags) & INODE_HAS_ACL))
		return 0;
	if (!permission_by_mode(w, inode, mode, mask) || permission_by_capability(w, mode, mask))
		return 0;
	return -EACCES;
}

int may_create_epoch(struct who *w, struct inode *dir)
{
	if (load_relaxed(&dir->flags) & INODE_DEAD) /* final under the lock; before it only a hint */
		return -ENOENT;
	return inode_permission_epoch(w, dir, MAY_WRITE | MAY_EXEC);
}

static bool sticky_forbids(struct who *w, struct inode *dir, struct inode *victim)
{
	if (!(load_relaxed(&dir->mode) & S_ISVTX)) /* relaxed: see above */
		return false;
	return w->cred->fsuid != load_relaxed(&victim->uid) && w->cred->fsuid != load_relaxed(&dir->uid) &&
	       !capable(w, SHELF_CAP_FOWNER);
}

int may_delete_epoch(struct who *w, struct inode *dir, struct inode *victim, bool is_dir)
{
	int err = inode_permission_epoch(w, dir, MAY_WRITE | MAY_EXEC);

	if (err)
		return err;
	if (sticky_forbids(w, dir, victim))
		return -EPERM;
	if (is_dir && inode_type(victim) != S_IFDIR)
		return -ENOTDIR;
	if (!is_dir && inode_type(victim) == S_IFDIR)
		return -EISDIR;
	return load_relaxed(&dir->flags) & INODE_DEAD ? -ENOENT : 0;
}

/* A new non-directory in a setgid directory keeps its setgid bit only for members of the group. */
static uint32_t mode_in_setgid_dir(struct who *w, uint32_t mode, uint32_t gid)
{
	if (S_ISDIR(mode))
		return mode | S_ISGID;
	if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && !in_group(w->cred, gid) &&
	    !capable(w, SHELF_CAP_FSETID))
		return mode & ~(uint32_t)S_ISGID;
	return mode;
}

void new_inode_owner_epoch(struct who *w, struct inode *dir, uint32_t mode, struct new_owner *out)
{
	out->uid = w->cred->fsuid;
	out->gid = w->cred->fsgid;
	if (load_relaxed(&dir->mode) & S_ISGID) { /* relaxed: see above */
		out->gid = load_relaxed(&dir->gid);
		mode = mode_in_setgid_dir(w, mode, out->gid); /* of the mode as asked for, before umask */
	}
	/* With a default ACL acl_inherit() narrows the mode instead. */
	if (!S_ISLNK(mode) && !(load_relaxed(&dir->flags) & INODE_HAS_DEFAULT_ACL))
		mode &= ~(load_relaxed(&w->fs->umask) & 0777); /* relaxed: a number by itself */
	out->mode = mode;
}

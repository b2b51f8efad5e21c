/* SPDX-License-Identifier: MIT */
/*
 * names_birth.c - inodes before they have a name: owner, mode, ACL, what their type needs.
 *
 * Until its name's record is written such an inode is in the thread's ledger, so a death frees it.
 * Nobody else sees such an inode, so nothing is locked and stores are relaxed; the store into its dentry publishes it.
 */
#include "base/copy.h"
#include "ramfs/names_priv.h"
#include "segment/hand.h"

static int birth_symlink(struct slot *self, struct birth *b, struct inode *inode)
{
	int k;
	char *target = mem_alloc_noted(self, b->target_len + 1u, &k);

	if (!target)
		return -ENOSPC;
	copy_bytes(target, b->target, b->target_len);
	target[b->target_len] = 0;
	inode->target_len = b->target_len;
	hand_begin(self, &inode->target, (uintptr_t)target, hand_bit(k), 0);
	inode->target = target;
	fence_compiler(); /* a death leaves it with the inode or in the ledger */
	hand_end(self, hand_bit(k));
	store_relaxed(&inode->size, b->target_len); /* not published */
	return 0;
}

static int birth_by_type(struct who *w, struct birth *b, struct inode *inode)
{
	switch (b->mode & S_IFMT) {
	case S_IFDIR:
		return 0; /* its parent is counted by the record */
	case S_IFLNK:
		return birth_symlink(w->self, b, inode);
	case S_IFCHR:
	case S_IFBLK:
		store_relaxed(&inode->rdev, b->rdev); /* not published */
		return 0;
	default:
		return 0;
	}
}

static int birth_acl(struct who *w, struct inode *dir, struct inode *inode)
{
	uint32_t mode = load_relaxed(&inode->mode); /* not published */
	int err;

	if (S_ISLNK(mode) || !(load_relaxed(&dir->flags) & INODE_HAS_DEFAULT_ACL)) /* relaxed: earlier or later */
		return 0;
	err = acl_inherit(w, dir, inode, &mode);
	store_relaxed(&inode->mode, mode); /* not published */
	return err;
}

int birth_new_epoch(struct who *w, struct inode *dir, struct birth *b, struct inode **out)
{
	struct new_owner own;
	struct inode *inode;
	int err;

	new_inode_owner_epoch(w, dir, b->mode, &own);
	inode = inode_new_noted(w, own.mode, own.uid, own.gid);
	if (!inode)
		return -ENOSPC;
	store_relaxed(&inode->nlink, S_ISDIR(b->mode) ? 2 : 1); /* not published */
	err = birth_by_type(w, b, inode);
	if (!err)
		err = birth_acl(w, dir, inode);
	if (err) {
		birth_undo(w->self, inode);
		return err;
	}
	*out = inode;
	return 0;
}

void birth_forget(struct inode *inode)
{
	tally_init(&inode->refs, 1); /* whatever was meant for names and callers */
	if (S_ISDIR(inode_type(inode)))
		store_relaxed(&inode->dir.parent, NULL); /* who counted it takes it back; nobody else sees it */
}

void birth_return(struct slot *self, struct inode *inode)
{
	birth_forget(inode);
	kill_point();
	if (!hand_has(self, inode, LEDGER_INODE))
		ledger_add(self, inode, LEDGER_INODE);
}

void birth_undo(struct slot *self, struct inode *inode)
{
	birth_forget(inode);
	inode_put(self, inode);
}

/* SPDX-License-Identifier: MIT */
/* rename_priv.h - between rename.c (what a rename is) and rename_lock.c (what it must hold). */
#ifndef SHELF_RAMFS_RENAME_PRIV_H
#define SHELF_RAMFS_RENAME_PRIV_H

#include "ramfs/names_priv.h"

struct renaming {
	struct who *w;
	unsigned flags;
	struct walk from, to; /* names are in the caller's paths, so they outlive a section */
	struct dentry *made; /* for a name that does not exist yet; NULL: not needed */
	int noted; /* made, in the ledger */
	struct inode *whiteout; /* RENAME_WHITEOUT: what is left behind */
	bool big; /* rename_lock is held */

	/* found under the locks */
	struct dentry *d1, *d2; /* d2 NULL: the new name is free */
	struct inode *source, *target;
};

#define RENAME_RETRY 1 /* needs rename_lock, or the directory died: from the start */

/* In a section, which it may leave and re-enter.  0, RENAME_RETRY (nothing is held), -ENOENT. */
int rename_lock_dirs(struct renaming *r, bool big);
void rename_unlock_dirs(struct renaming *r);
/* What is moved and what is replaced, their directories locked.  May leave and re-enter the section. */
void rename_lock_inodes(struct renaming *r);
void rename_unlock_inodes(struct renaming *r);
/* The child of `above` on the way down to `below`, or NULL. */
struct inode *rename_step_towards(struct inode *above, struct inode *below);

#endif

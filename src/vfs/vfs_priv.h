/* SPDX-License-Identifier: MIT */
/* vfs_priv.h - what the files of this folder share. */
#ifndef SHELF_VFS_VFS_PRIV_H
#define SHELF_VFS_VFS_PRIV_H

#include "segment/header.h"
#include "vfs/vfs.h"

/* inode.c, dentry.c, file.c: retire functions, drop functions, recovery */
void inode_attach(void);
void dentry_attach(void);
void file_attach(void);

/* walk.c, walk_wait.c.  WALK_RESTART: out->parent is a directory in which a rename is busy. */
#define WALK_RESTART 1
int walk_once(struct who *w, struct inode *start, const char *path, unsigned flags, struct walk *out);
int walk_slow(struct who *w, struct inode *start, const char *path, unsigned flags, struct walk *out);

#endif

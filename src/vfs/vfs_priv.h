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

#endif

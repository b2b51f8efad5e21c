/* SPDX-License-Identifier: MIT */
/*
 * attr_world.h - a fresh segment with inodes that have no names, for tests of attributes and locks;
 * and the same question put to the kernel's tmpfs.
 */
#ifndef TESTS_VFS_ATTR_WORLD_H
#define TESTS_VFS_ATTR_WORLD_H

#include "harness.h"

#include "vfs/attr_priv.h"
#include "vfs/flock_priv.h"
#include "vfs/waitq.h"

struct attr_world {
	struct segment *seg;
	char name[TEST_NAME_SIZE];
	struct shelf_cred root;
	struct fs_context fs;
	struct who w;
};

void attr_world_open(struct attr_world *world, uint64_t size);
void attr_world_close(struct attr_world *world);
/* The calling thread (or forked process) as root, with `owner` for a descriptor table. */
struct who attr_world_who(struct attr_world *world, void *owner);
struct shelf_cred attr_user(uid_t uid, gid_t gid, unsigned ngroups, const gid_t *groups);
struct inode *attr_inode(struct who *w, uint32_t mode, uint32_t uid, uint32_t gid);
struct file *attr_open(struct who *w, struct inode *inode, uint32_t flags);
/* One object of each kind a fork's child shares with its parent: memory in the segment. */
void *attr_shared(struct attr_world *world, size_t bytes);

/* The calling thread becomes that user for the kernel; back with attr_kernel_root(). */
void attr_kernel_user(const struct shelf_cred *c);
void attr_kernel_root(void);
/* A new directory on tmpfs; false: there is none to be had, or we are not root. */
bool attr_kernel_dir(char path[64]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * vfs_init.c - the root of the tree, and what every process registers.
 *
 * Data: struct vfs_root, made by the creator of the segment and constant but for its lock.
 */
#include <sys/sysmacros.h>

#include "base/copy.h"
#include "vfs/vfs_priv.h"

#define VFS_MAJOR 0xa5e /* belongs to no driver: (st_dev, st_ino) never meets a file of the host */

static void (*beyond_limit)(void); /* process-local; set before a call is made that may want it */

void vfs_register_beyond_limit(void (*fn)(void))
{
	beyond_limit = fn;
}

bool vfs_beyond_limit(const struct who *w, uint64_t end)
{
	if (likely(end <= ~w->fsize_not))
		return false;
	if (beyond_limit)
		beyond_limit();
	return true;
}

struct vfs_root *vfs_root_of(struct slot *self)
{
	return segment_root(self->seg, SEG_ROOT_VFS);
}

static struct inode *vfs_make_root(struct slot *self, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct who w = {.self = self};
	struct inode *root = inode_new(&w, S_IFDIR | (mode & 07777), uid, gid);

	if (!root)
		return NULL;
	/* Relaxed: published with the segment. */
	store_relaxed(&root->nlink, 2);
	store_relaxed(&root->dir.parent, root); /* itself, not counted */
	return root;
}

int vfs_init(struct slot *self, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct vfs_root *v = mem_alloc(self, sizeof(*v));
	struct inode *root = v ? vfs_make_root(self, mode, uid, gid) : NULL;

	if (!root) {
		if (v)
			mem_free(self, v, sizeof(*v));
		return -ENOSPC;
	}
	zero_bytes(v, sizeof(*v));
	v->root = root;
	v->dev = makedev(VFS_MAJOR, 1 + self->seg->hdr->hash_seed % 255);
	segment_set_root(self->seg, SEG_ROOT_VFS, v);
	return 0;
}

int vfs_attach(struct segment *seg)
{
	(void)seg;
	inode_attach();
	dentry_attach();
	file_attach();
	attr_attach();
	return 0;
}

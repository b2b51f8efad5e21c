/* SPDX-License-Identifier: MIT */
/*
 * attr_priv.h - between attr.c, xattr.c and acl.c, and their tests.
 *
 * One way to change what an inode says about itself: fill a struct attr_change
 * and attr_commit_locked() it.  All of it becomes visible inside one turn of
 * inode.seq, and a process that dies in the middle has left an intent with
 * the final values, so the change is finished for it.
 *
 * Extended attributes are immutable blocks on a list sorted by name; a change
 * of one is one store into the link that leads to it, and the old block is
 * retired.  Readers follow the links inside a read section.  struct xattrs stays with its inode
 * once it is there.  The two ACLs hang beside the list, in the form setxattr gave them.
 */
#ifndef SHELF_VFS_ATTR_PRIV_H
#define SHELF_VFS_ATTR_PRIV_H

#include <linux/xattr.h>

#include "segment/intent_ops.h"
#include "vfs/vfs.h"

struct xattr {
	struct retired retired; /* first: RETIRE_MEM */
	atomic_ptr(struct xattr) next; /* [i] */
	uint32_t bytes; /* [c] of the whole block */
	uint32_t size; /* [c] of the value */
	uint32_t name_len; /* [c] */
	uint32_t value_at; /* [c] offset in data, a multiple of 8 */
	_Alignas(8) char data[]; /* [c] the name, NUL, the value */
};

enum acl_type { ACL_ACCESS, ACL_DEFAULT, ACL_KINDS };

typedef atomic_ptr(struct xattr) xattr_link;

struct xattrs {
	struct retired retired; /* first: RETIRE_MEM */
	xattr_link acl[ACL_KINDS]; /* [i] */
	xattr_link list; /* [i] ordered by name, the greatest first */
};

static inline const void *xattr_value(const struct xattr *x)
{
	return x->data + x->value_at;
}

enum attr_valid { ATTR_MODE = 1, ATTR_UID = 2, ATTR_GID = 4, ATTR_ATIME = 8, ATTR_MTIME = 16, ATTR_CTIME = 32, ATTR_LINK = 64 };

struct attr_change {
	struct inode *inode;
	uint32_t valid; /* enum attr_valid */
	uint32_t mode, uid, gid;
	uint64_t atime, mtime, ctime;
	xattr_link *link; /* ATTR_LINK: gets `target`; what stood there (`gone`, may be NULL) is retired */
	struct xattr *target, *gone;
	uint32_t flags_set, flags_clear; /* of enum inode_flag */
};

static inline enum lock_class inode_lock_class(const struct inode *inode)
{
	return inode_type(inode) == S_IFDIR ? LOCK_DIR : LOCK_INODE;
}

LOCK_NO_ANALYSIS static inline void attr_lock(struct slot *self, struct inode *inode)
{
	lock_acquire(&inode->lock, &self->locker, inode_lock_class(inode));
}

LOCK_NO_ANALYSIS static inline void attr_unlock(struct slot *self, struct inode *inode)
{
	lock_release(&inode->lock, &self->locker, inode_lock_class(inode));
}

/* The inode's lock held; nothing here can fail.  ctime is set in any case. */
void attr_commit_locked(struct slot *self, struct attr_change *c);
/* Mode without the setgid bit unless the caller may keep it for files of group gid. */
uint32_t attr_strip_setgid(struct who *w, uint32_t mode, uint32_t gid);

/* ---- xattr.c */

/* NULL: no memory.  `value` is the caller's memory, or NULL to be filled in by the caller of this. */
struct xattr *xattr_new(struct slot *self, const char *name, const void *value, size_t size, int *err);
void xattr_free(struct slot *self, struct xattr *x);
/* Made at the first need; lock held (or the inode not published).  NULL: no memory. */
struct xattrs *xattrs_of_locked(struct slot *self, struct inode *inode);
/* Where security.capability hangs, or NULL: chown and write take it away. */
xattr_link *xattr_find_capability_locked(struct inode *inode, struct xattr **found);

/* ---- acl.c */

extern const char *const acl_names[ACL_KINDS];
ssize_t acl_get(struct who *w, struct inode *inode, enum acl_type type, void *value, size_t size);
int acl_set(struct who *w, struct inode *inode, enum acl_type type, const void *value, size_t size);

#endif

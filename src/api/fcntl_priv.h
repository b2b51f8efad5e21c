/* SPDX-License-Identifier: MIT */
/* fcntl_priv.h - the pieces of fcntl that have a file of their own. */
#ifndef SHELF_API_FCNTL_PRIV_H
#define SHELF_API_FCNTL_PRIV_H

#include "api/api.h"

/* owner.c: F_SETOWN and its kin; -EINVAL for what nobody knows. */
int fcntl_owner(struct use *u, int cmd, uintptr_t arg);
/* locks.c */
int fcntl_lock(struct shelf_task *t, int fd, int cmd, struct flock *fl);

/* inode.hints: bits 0-7 the write life time, bits 8-31 flags of FS_IOC_SETFLAGS, shifted. */
#define HINT_BITS 8
static inline uint32_t inode_hint(struct inode *inode)
{
	return load_relaxed(&inode->hints) & 0xff; /* relaxed, all four: numbers nothing hangs on */
}

static inline uint32_t inode_fs_flags(struct inode *inode)
{
	return load_relaxed(&inode->hints) >> HINT_BITS;
}

static inline void inode_set_hint(struct inode *inode, uint32_t hint)
{
	uint32_t old = load_relaxed(&inode->hints);

	while (!cas_acq_rel(&inode->hints, &old, (old & ~0xffu) | hint))
		;
}

static inline void inode_set_fs_flags(struct inode *inode, uint32_t flags)
{
	uint32_t old = load_relaxed(&inode->hints);

	while (!cas_acq_rel(&inode->hints, &old, (old & 0xff) | flags << HINT_BITS))
		;
}

#endif

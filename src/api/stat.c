/* SPDX-License-Identifier: MIT */
/* stat.c - stat, statx, statfs: each one read section with no reference and no shared store. */
#include <string.h>
#include <sys/vfs.h>

#include "api/api.h"

#ifndef AT_STATX_SYNC_TYPE
#define AT_STATX_SYNC_TYPE 0x6000
#endif
#define STATX_RESERVED_BIT 0x80000000u
#define STAT_FLAGS (AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE)
#define INODES_A_PAGE 8 /* an empty file costs 512 bytes */

/*
 * False: the last reference went while we looked, and with it perhaps the data, so the picture may be of a
 * file already emptied.  The name or number leads elsewhere by now: look again.  In this order: the count is
 * dead before anything is dropped, and the attributes were loaded with acquire.
 */
static bool attr_living_epoch(struct slot *self, struct inode *inode, struct attr *a)
{
	attr_read_epoch(self, inode, a);
	return likely(!inode_gone(inode));
}

static int attr_fd_once(struct shelf_task *t, int fd, struct attr *a, struct slot **self)
{
	struct use u;
	int err = use_begin(&u, t, fd, true);

	if (err)
		return err;
	*self = u.w.self;
	if (likely(file_has_inode(u.f)))
		err = attr_living_epoch(u.w.self, u.f->inode, a) ? 0 : USE_AGAIN;
	else if (file_ops_of(u.f)->attr)
		file_ops_of(u.f)->attr(&u.w, u.f, a);
	else
		err = -EBADF;
	use_end(&u);
	return err;
}

static int attr_fd(struct shelf_task *t, int fd, struct attr *a, struct slot **self)
{
	int err;

	do
		err = attr_fd_once(t, fd, a, self);
	while (unlikely(err == USE_AGAIN));
	return err;
}

static int attr_path(struct shelf_task *t, int dirfd, const char *path, int flags, struct attr *a,
		     struct slot **self)
{
	unsigned walk = flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW;
	struct look l;
	bool living;
	int err;

	/* Linux from 6.11 on does not look at the other flags of a descriptor's stat. */
	if ((flags & AT_EMPTY_PATH) && (!path || !*path) && dirfd >= 0)
		return attr_fd(t, dirfd, a, self);
	if (flags & ~STAT_FLAGS)
		return -EINVAL;
	if (flags & AT_EMPTY_PATH) {
		path = path ? path : "";
		walk |= WALK_EMPTY_PATH;
	}
	do {
		err = look_begin(&l, t, dirfd, path, walk);
		if (err)
			return err;
		*self = l.w.self;
		living = attr_living_epoch(l.w.self, l.walk.inode, a);
		look_end(&l);
	} while (unlikely(!living));
	return 0;
}

/* By path alone, found by the common walk.  0, -ENOENT, or WALK_UNCOMMON: attr_path() is to decide. */
static inline_always int attr_common(struct shelf_task *t, const char *path, bool follow, struct attr *a, struct slot **self)
{
	struct inode *inode;
	struct who w;
	int err;

	if (unlikely(!path || who_init(&w, t)))
		return WALK_UNCOMMON;
	*self = w.self;
	scheme_names_enter(w.self);
	epoch_enter_root(w.self, t->hdr->epoch);
	err = walk_common_epoch(&w, path, follow, &inode);
	if (likely(!err) && unlikely(!attr_living_epoch(w.self, inode, a)))
		err = WALK_UNCOMMON;
	epoch_exit(w.self);
	scheme_names_exit(w.self);
	return err;
}

static int stat_path(struct shelf_task *t, const char *path, struct stat *st, bool follow)
{
	struct slot *self;
	struct attr a;
	int err = attr_common(t, path, follow, &a, &self);

	if (unlikely(err == WALK_UNCOMMON || !st))
		return shelf_fstatat(t, AT_FDCWD, path, st, follow ? 0 : AT_SYMLINK_NOFOLLOW);
	if (likely(!err))
		attr_to_stat(self, &a, st);
	return err;
}

int shelf_fstatat(struct shelf_task *t, int dirfd, const char *path, struct stat *st, int flags)
{
	struct slot *self;
	struct attr a;
	int err = attr_path(t, dirfd, path, flags, &a, &self);

	if (err)
		return err;
	if (!st)
		return -EFAULT;
	attr_to_stat(self, &a, st);
	return 0;
}

int shelf_stat(struct shelf_task *t, const char *path, struct stat *st)
{
	return stat_path(t, path, st, true);
}

int shelf_lstat(struct shelf_task *t, const char *path, struct stat *st)
{
	return stat_path(t, path, st, false);
}

int shelf_fstat(struct shelf_task *t, int fd, struct stat *st)
{
	struct slot *self = NULL; /* gcc 12 at -O3 does not see that it is set where 0 is returned */
	struct attr a;
	int err = attr_fd(t, fd, &a, &self);

	if (err)
		return err;
	if (!st)
		return -EFAULT;
	attr_to_stat(self, &a, st);
	return 0;
}

int shelf_statx(struct shelf_task *t, int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
	struct slot *self;
	struct attr a;
	int err;

	if ((mask & STATX_RESERVED_BIT) || (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE)
		return -EINVAL;
	err = attr_path(t, dirfd, path, flags, &a, &self);
	if (err)
		return err;
	if (!stx)
		return -EFAULT;
	attr_to_statx(self, &a, mask, stx);
	return 0;
}

/* ---- the shelf as a file system ----------------------------------------------------------------- */

static int statfs_fill(struct slot *self, struct statfs *st)
{
	struct segment_space space;
	uint64_t inodes = (uint64_t)vfs_inodes(self->seg);
	uint64_t dev = vfs_root_of(self)->dev;

	if (!st)
		return -EFAULT;
	segment_space(self->seg, &space);
	memset(st, 0, sizeof(*st));
	st->f_type = SHELF_SUPER_MAGIC;
	st->f_bsize = st->f_frsize = PAGE_BYTES;
	st->f_blocks = space.total_pages;
	st->f_bfree = space.free_pages;
	st->f_bavail = space.free_pages - space.kept_pages;
	st->f_ffree = space.free_pages * INODES_A_PAGE;
	st->f_files = inodes + st->f_ffree;
	st->f_namelen = NAME_LIMIT;
	memcpy(&st->f_fsid, &dev, sizeof(st->f_fsid));
	st->f_flags = 0x20 | 0x1000; /* ST_VALID, ST_RELATIME */
	return 0;
}

int shelf_statfs(struct shelf_task *t, const char *path, struct statfs *st)
{
	struct look l;
	int err = look_begin(&l, t, AT_FDCWD, path, WALK_FOLLOW);

	if (err)
		return err;
	look_end(&l);
	return statfs_fill(l.w.self, st);
}

int shelf_fstatfs(struct shelf_task *t, int fd, struct statfs *st)
{
	struct use u;
	int err = use_begin(&u, t, fd, true);

	if (err)
		return err;
	use_end(&u);
	return statfs_fill(u.w.self, st);
}

/* SPDX-License-Identifier: MIT */
/* space.c - the size of a file: truncate, fallocate. */
#include <linux/falloc.h>
#include <sys/inotify.h>

#include "api/api.h"

static int truncate_inode(struct who *w, struct inode *inode, off_t length)
{
	int err;

	if (inode_type(inode) != S_IFREG)
		return inode_type(inode) == S_IFDIR ? -EISDIR : -EINVAL;
	epoch_enter(w->self);
	err = inode_permission_epoch(w, inode, MAY_WRITE);
	epoch_exit(w->self);
	return err ? err : ramfs_truncate_named(w, inode, (uint64_t)length);
}

int shelf_truncate(struct shelf_task *t, const char *path, off_t length)
{
	struct hold h;
	int err;

	if (length < 0)
		return -EINVAL;
	err = hold_begin(&h, t, AT_FDCWD, path, WALK_FOLLOW);
	return err ? err : hold_changed(&h, truncate_inode(&h.w, h.inode, length), IN_MODIFY);
}

int shelf_ftruncate(struct shelf_task *t, int fd, off_t length)
{
	struct use u;
	int err;

	if (length < 0)
		return -EINVAL;
	err = use_begin_change(&u, t, fd, false);
	if (err)
		return err;
	if (u.f->head.type != FD_TYPE_REG || !file_writable(u.f))
		err = -EINVAL;
	else
		err = ramfs_truncate(&u.w, u.f->inode, (uint64_t)length);
	return use_changed(&u, err, IN_MODIFY);
}

#define FALLOC_SHIFTING (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE | 0x80) /* 0x80: write zeroes, 6.17 */
#define FALLOC_MODES (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE | FALLOC_FL_UNSHARE_RANGE | FALLOC_SHIFTING)

/* Modes that Linux knows, whether or not a file system does; one at a time. */
static bool fallocate_mode_known(int mode)
{
	int what = mode & ~FALLOC_FL_KEEP_SIZE;

	if (what & ~FALLOC_MODES || what & (what - 1))
		return false;
	if (what == FALLOC_FL_PUNCH_HOLE)
		return mode & FALLOC_FL_KEEP_SIZE;
	return !(what & FALLOC_SHIFTING) || !(mode & FALLOC_FL_KEEP_SIZE);
}

/* The order in which Linux complains. */
static int fallocate_check(struct file *f, int mode, off_t offset, off_t length)
{
	if (offset < 0 || length <= 0)
		return -EINVAL;
	if (!fallocate_mode_known(mode))
		return -EOPNOTSUPP;
	if (!file_writable(f))
		return -EBADF;
	if (f->head.type != FD_TYPE_REG)
		return file_has_inode(f) ? -ENODEV : -ESPIPE;
	if (length > INT64_MAX - offset)
		return -EFBIG;
	return 0;
}

int shelf_fallocate(struct shelf_task *t, int fd, int mode, off_t offset, off_t length)
{
	struct use u;
	int err = use_begin_change(&u, t, fd, false);

	if (err)
		return err;
	err = fallocate_check(u.f, mode, offset, length);
	if (!err)
		err = ramfs_fallocate(&u.w, u.f->inode, mode, (uint64_t)offset, (uint64_t)length);
	return use_changed(&u, err, IN_MODIFY);
}

/* SPDX-License-Identifier: MIT */
/* sync.c - calls that would move data to a disk, or tell what will be read: checked, and nothing to do. */
#include "api/api.h"

#define SYNC_RANGE_KNOWN 7u
#define ADVICE_MAX 5

static int sync_fd(struct shelf_task *t, int fd, bool whole)
{
	struct use u;
	int err = use_begin(&u, t, fd, false);

	if (err)
		return err;
	err = whole || file_has_inode(u.f) ? 0 : -EINVAL;
	use_end(&u);
	return err;
}

int shelf_fsync(struct shelf_task *t, int fd)
{
	return sync_fd(t, fd, false);
}

int shelf_fdatasync(struct shelf_task *t, int fd)
{
	return sync_fd(t, fd, false);
}

int shelf_syncfs(struct shelf_task *t, int fd)
{
	return sync_fd(t, fd, true);
}

static int sync_range_check(struct file *f, off_t offset, off_t length, unsigned flags)
{
	off_t end = (off_t)((uint64_t)offset + (uint64_t)length);

	if (flags & ~SYNC_RANGE_KNOWN || offset < 0 || end < 0 || end < offset)
		return -EINVAL;
	return file_has_inode(f) ? 0 : -ESPIPE;
}

int shelf_sync_file_range(struct shelf_task *t, int fd, off_t offset, off_t length, unsigned flags)
{
	struct use u;
	int err = use_begin(&u, t, fd, false);

	if (err)
		return err;
	err = sync_range_check(u.f, offset, length, flags);
	use_end(&u);
	return err;
}

int shelf_fadvise(struct shelf_task *t, int fd, off_t offset, off_t length, int advice)
{
	struct use u;
	int err = use_begin(&u, t, fd, false);

	(void)offset;
	if (err)
		return err;
	if (!file_has_inode(u.f))
		err = -ESPIPE;
	else
		err = length < 0 || advice < 0 || advice > ADVICE_MAX ? -EINVAL : 0;
	use_end(&u);
	return err;
}

ssize_t shelf_readahead(struct shelf_task *t, int fd, off_t offset, size_t count)
{
	struct use u;
	int err = use_begin(&u, t, fd, false);

	(void)offset;
	if (err)
		return err;
	if (!file_readable(u.f))
		err = -EBADF;
	else
		err = u.f->head.type == FD_TYPE_REG && (ssize_t)count >= 0 ? 0 : -EINVAL;
	use_end(&u);
	return err;
}

/* SPDX-License-Identifier: MIT */
/* names.c - making and removing names: each call places its path and hands it to the file system. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"

int shelf_mkdirat(struct shelf_task *t, int dirfd, const char *path, mode_t mode)
{
	struct call c;
	int err = call_at(&c, t, dirfd, path);

	return err ? err : call_at_end(&c, ramfs_mkdir(&c.w, c.place.start, path, mode & 01777));
}

int shelf_mkdir(struct shelf_task *t, const char *path, mode_t mode)
{
	return shelf_mkdirat(t, AT_FDCWD, path, mode);
}

static int mknod_type_check(struct shelf_task *t, mode_t mode, dev_t dev)
{
	struct who w;
	int err;

	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
		return 0;
	case S_IFCHR:
	case S_IFBLK:
		err = who_init(&w, t);
		if (!err && !capable(&w, SHELF_CAP_MKNOD) && !((mode & S_IFMT) == S_IFCHR && !dev))
			err = -EPERM;
		return err;
	case S_IFDIR:
		return -EPERM;
	default:
		return -EINVAL;
	}
}

int shelf_mknodat(struct shelf_task *t, int dirfd, const char *path, mode_t mode, dev_t dev)
{
	mode_t type = mode & S_IFMT ? mode & S_IFMT : S_IFREG;
	struct call c;
	int err;

	if (type == S_IFDIR || mknod_type_check(t, mode, dev) == -EINVAL)
		return mknod_type_check(t, mode, dev);
	err = call_at(&c, t, dirfd, path);
	if (err)
		return err;
	if (type != S_IFCHR && type != S_IFBLK)
		dev = 0;
	return call_at_end(&c, ramfs_mknod(&c.w, c.place.start, path, type | (mode & 07777), dev));
}

int shelf_mknod(struct shelf_task *t, const char *path, mode_t mode, dev_t dev)
{
	return shelf_mknodat(t, AT_FDCWD, path, mode, dev);
}

int shelf_symlinkat(struct shelf_task *t, const char *target, int dirfd, const char *path)
{
	struct call c;
	int err;

	if (!target)
		return -EFAULT;
	if (!*target)
		return -ENOENT;
	if (strnlen(target, PATH_LIMIT) == PATH_LIMIT)
		return -ENAMETOOLONG;
	err = call_at(&c, t, dirfd, path);
	return err ? err : call_at_end(&c, ramfs_symlink(&c.w, target, c.place.start, path));
}

int shelf_symlink(struct shelf_task *t, const char *target, const char *path)
{
	return shelf_symlinkat(t, target, AT_FDCWD, path);
}

int shelf_unlinkat(struct shelf_task *t, int dirfd, const char *path, int flags)
{
	struct call c;
	int err;

	if (flags & ~AT_REMOVEDIR)
		return -EINVAL;
	err = call_at(&c, t, dirfd, path);
	if (err)
		return err;
	return call_at_end(&c, flags & AT_REMOVEDIR ? ramfs_rmdir(&c.w, c.place.start, path) :
						      ramfs_unlink(&c.w, c.place.start, path));
}

int shelf_unlink(struct shelf_task *t, const char *path)
{
	return shelf_unlinkat(t, AT_FDCWD, path, 0);
}

int shelf_rmdir(struct shelf_task *t, const char *path)
{
	return shelf_unlinkat(t, AT_FDCWD, path, AT_REMOVEDIR);
}

/* The target's descriptor is bad: Linux has walked to the source's directory by then, and may have failed there. */
static int rename_source_error(struct who *w, struct inode *start, const char *from, int err)
{
	struct walk walk;
	int source_err;

	epoch_enter(w->self);
	source_err = walk_epoch(w, start, from, WALK_PARENT, &walk);
	epoch_exit(w->self);
	return source_err ? source_err : err;
}

static int rename_flags_check(unsigned flags)
{
	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	return (flags & RENAME_EXCHANGE) && (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)) ? -EINVAL : 0;
}

int shelf_renameat2(struct shelf_task *t, int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	struct place source, target;
	struct who w;
	int err = call_begin(&w, t);

	if (err)
		return err;
	err = rename_flags_check(flags);
	if (!err)
		err = place_get(&w, fromfd, from, &source);
	if (err)
		goto out;
	err = place_get(&w, tofd, to, &target);
	if (err) {
		err = rename_source_error(&w, source.start, from, err);
		goto out_source;
	}
	err = ramfs_rename(&w, source.start, from, target.start, to, flags);
	place_put(&w, &target);
out_source:
	place_put(&w, &source);
out:
	return call_end(&w, err);
}

int shelf_renameat(struct shelf_task *t, int fromfd, const char *from, int tofd, const char *to)
{
	return shelf_renameat2(t, fromfd, from, tofd, to, 0);
}

int shelf_rename(struct shelf_task *t, const char *from, const char *to)
{
	return shelf_renameat2(t, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* SPDX-License-Identifier: MIT */
/* access.c - may I?  And readlink.  In one read section, as stat. */
#include <string.h>

#include "api/api.h"

#define ACCESS_FLAGS (AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)

/* access() asks for the real ids; without root's they have no capabilities. */
static void who_becomes_real(struct who *w, struct shelf_cred *real)
{
	const struct shelf_cred *c = w->cred;
	uint32_t caps = c->uid ? 0 : c->fsuid ? SHELF_CAP_ALL : c->caps;

	if (c->uid == c->fsuid && c->gid == c->fsgid && caps == c->caps)
		return;
	*real = *c;
	real->fsuid = c->uid;
	real->fsgid = c->gid;
	real->caps = caps;
	w->cred = real;
}

int shelf_faccessat2(struct shelf_task *t, int dirfd, const char *path, int mode, int flags)
{
	unsigned walk = flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW;
	struct shelf_cred real;
	struct look l;
	int err;

	if ((mode & ~(F_OK | R_OK | W_OK | X_OK)) || (flags & ~ACCESS_FLAGS))
		return -EINVAL;
	err = who_init(&l.w, t);
	if (err)
		return err;
	if (!(flags & AT_EACCESS))
		who_becomes_real(&l.w, &real);
	err = look_begin_as(&l, dirfd, path, walk | (flags & AT_EMPTY_PATH ? WALK_EMPTY_PATH : 0));
	if (err)
		return err;
	if (mode) /* R_OK, W_OK, X_OK are MAY_READ, MAY_WRITE, MAY_EXEC */
		err = inode_permission_epoch(&l.w, l.walk.inode, (unsigned)mode);
	look_end(&l);
	return err;
}

int shelf_faccessat(struct shelf_task *t, int dirfd, const char *path, int mode)
{
	return shelf_faccessat2(t, dirfd, path, mode, 0);
}

int shelf_access(struct shelf_task *t, const char *path, int mode)
{
	return shelf_faccessat2(t, AT_FDCWD, path, mode, 0);
}

static ssize_t link_copy_epoch(struct look *l, bool empty, char *buf, size_t size)
{
	struct inode *inode = l->walk.inode;
	size_t n;

	if (inode_type(inode) != S_IFLNK)
		return empty ? -ENOENT : -EINVAL;
	n = min_of(size, (size_t)inode->target_len);
	if (!buf || !buffer_ok(buf, n))
		return -EFAULT;
	memcpy(buf, inode->target, n);
	return (ssize_t)n;
}

ssize_t shelf_readlinkat(struct shelf_task *t, int dirfd, const char *path, char *buf, size_t size)
{
	struct look l;
	ssize_t n;

	if ((int)size <= 0)
		return -EINVAL;
	n = look_begin(&l, t, dirfd, path, WALK_EMPTY_PATH);
	if (n)
		return n;
	n = link_copy_epoch(&l, !*path, buf, size);
	if (n >= 0)
		attr_touch_atime(l.w.self, l.walk.inode);
	look_end(&l);
	return n;
}

ssize_t shelf_readlink(struct shelf_task *t, const char *path, char *buf, size_t size)
{
	return shelf_readlinkat(t, AT_FDCWD, path, buf, size);
}

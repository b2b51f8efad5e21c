/* SPDX-License-Identifier: MIT */
/* xattr.c - extended attributes, by path, by the link itself, by descriptor. */
#include <sys/inotify.h>

#include "api/api.h"

/* ---- on an inode --------------------------------------------------------------------------------- */

/* A NULL buffer with a size: only an answer that has bytes would touch it. */
static ssize_t null_buffer(ssize_t len, size_t size)
{
	return len <= 0 ? len : (size_t)len > size ? -ERANGE : -EFAULT;
}

static ssize_t get_inode(struct who *w, struct inode *inode, const char *name, void *value, size_t size)
{
	if (!value && size)
		return null_buffer(xattr_get(w, inode, name, NULL, 0), size);
	return xattr_get(w, inode, name, value, size);
}

static ssize_t list_inode(struct who *w, struct inode *inode, char *list, size_t size)
{
	if (!list && size)
		return null_buffer(xattr_list(w, inode, NULL, 0), size);
	return xattr_list(w, inode, list, size);
}

/* Linux looks at names and sizes before it looks for the file. */
static int name_check(const char *name)
{
	return name ? xattr_check_name(name) : -EFAULT;
}

static int set_check(const char *name, const void *value, size_t size, int flags)
{
	int err = name ? xattr_check_set(name, size, flags) : -EFAULT;

	return err ? err : !value && size ? -EFAULT : 0;
}

/* ---- by path --------------------------------------------------------------------------------------- */

static ssize_t get_path(struct shelf_task *t, const char *path, unsigned walk, const char *name, void *value,
			size_t size)
{
	struct hold h;
	int err = name_check(name);

	if (!err)
		err = hold_begin(&h, t, AT_FDCWD, path, walk);

	return err ? err : hold_end(&h, get_inode(&h.w, h.inode, name, value, size));
}

static int set_path(struct shelf_task *t, const char *path, unsigned walk, const char *name, const void *value,
		    size_t size, int flags)
{
	struct hold h;
	int err = set_check(name, value, size, flags);

	if (!err)
		err = hold_begin(&h, t, AT_FDCWD, path, walk);

	return err ? err : hold_changed(&h, xattr_set(&h.w, h.inode, name, value, size, flags), IN_ATTRIB);
}

static ssize_t list_path(struct shelf_task *t, const char *path, unsigned walk, char *list, size_t size)
{
	struct hold h;
	int err = hold_begin(&h, t, AT_FDCWD, path, walk);

	return err ? err : hold_end(&h, list_inode(&h.w, h.inode, list, size));
}

static int remove_path(struct shelf_task *t, const char *path, unsigned walk, const char *name)
{
	struct hold h;
	int err = name_check(name);

	if (!err)
		err = hold_begin(&h, t, AT_FDCWD, path, walk);

	return err ? err : hold_changed(&h, xattr_remove(&h.w, h.inode, name), IN_ATTRIB);
}

ssize_t shelf_getxattr(struct shelf_task *t, const char *path, const char *name, void *value, size_t size)
{
	return get_path(t, path, WALK_FOLLOW, name, value, size);
}

ssize_t shelf_lgetxattr(struct shelf_task *t, const char *path, const char *name, void *value, size_t size)
{
	return get_path(t, path, 0, name, value, size);
}

int shelf_setxattr(struct shelf_task *t, const char *path, const char *name, const void *value, size_t size,
		   int flags)
{
	return set_path(t, path, WALK_FOLLOW, name, value, size, flags);
}

int shelf_lsetxattr(struct shelf_task *t, const char *path, const char *name, const void *value, size_t size,
		    int flags)
{
	return set_path(t, path, 0, name, value, size, flags);
}

ssize_t shelf_listxattr(struct shelf_task *t, const char *path, char *list, size_t size)
{
	return list_path(t, path, WALK_FOLLOW, list, size);
}

ssize_t shelf_llistxattr(struct shelf_task *t, const char *path, char *list, size_t size)
{
	return list_path(t, path, 0, list, size);
}

int shelf_removexattr(struct shelf_task *t, const char *path, const char *name)
{
	return remove_path(t, path, WALK_FOLLOW, name);
}

int shelf_lremovexattr(struct shelf_task *t, const char *path, const char *name)
{
	return remove_path(t, path, 0, name);
}

/* ---- by descriptor ----------------------------------------------------------------------------------- */

static int begin_fd(struct use *u, struct shelf_task *t, int fd)
{
	int err = use_begin_change(u, t, fd, false);

	if (!err && !file_has_inode(u->f)) {
		use_end(u);
		err = -EOPNOTSUPP;
	}
	return err;
}

ssize_t shelf_fgetxattr(struct shelf_task *t, int fd, const char *name, void *value, size_t size)
{
	struct use u;
	ssize_t n = name_check(name);

	if (!n)
		n = begin_fd(&u, t, fd);
	if (n)
		return n;
	n = get_inode(&u.w, u.f->inode, name, value, size);
	use_end(&u);
	return n;
}

int shelf_fsetxattr(struct shelf_task *t, int fd, const char *name, const void *value, size_t size, int flags)
{
	struct use u;
	int err = set_check(name, value, size, flags);

	if (!err)
		err = begin_fd(&u, t, fd);
	if (err)
		return err;
	return use_changed(&u, xattr_set(&u.w, u.f->inode, name, value, size, flags), IN_ATTRIB);
}

ssize_t shelf_flistxattr(struct shelf_task *t, int fd, char *list, size_t size)
{
	struct use u;
	ssize_t n = begin_fd(&u, t, fd);

	if (n)
		return n;
	n = list_inode(&u.w, u.f->inode, list, size);
	use_end(&u);
	return n;
}

int shelf_fremovexattr(struct shelf_task *t, int fd, const char *name)
{
	struct use u;
	int err = name_check(name);

	if (!err)
		err = begin_fd(&u, t, fd);
	if (err)
		return err;
	return use_changed(&u, xattr_remove(&u.w, u.f->inode, name), IN_ATTRIB);
}

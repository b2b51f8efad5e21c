/* SPDX-License-Identifier: MIT */
/* dir.c - listing directories, and where a task stands: cwd, root, umask. */
#include <string.h>
#include <sys/inotify.h>

#include "api/api.h"

#define UNREACHABLE "(unreachable)"

static int list_check(struct use *u, const void *buf, size_t size)
{
	if (u->f->head.type != FD_TYPE_DIR)
		return -ENOTDIR;
	if (load_acquire(&u->f->inode->flags) & INODE_DEAD) /* pairs with rmdir's store */
		return -ENOENT;
	return buffer_ok(buf, size) ? 0 : -EFAULT;
}

static ssize_t list_once(struct use *u, void *buf, size_t size)
{
	uint64_t pos;
	ssize_t n = notify_wanted(u->w.self) ? use_pin(u) : 0;

	if (!n)
		n = use_pos_lock(u);
	if (n)
		return n;
	epoch_enter(u->w.self);
	pos = load_relaxed(&u->f->pos); /* relaxed: [p] */
	n = list_check(u, buf, size);
	if (!n)
		n = ramfs_getdents_file_epoch(&u->w, u->f, &pos, buf, size);
	if (n >= 0)
		store_relaxed(&u->f->pos, pos);
	if (n != -ENOTDIR && n != -ENOENT)
		use_touch(u); /* also when nothing fitted, as Linux */
	epoch_exit(u->w.self);
	use_pos_unlock(u);
	if (n != -ENOTDIR && n != -ENOENT && u->pinned)
		notify_file(u->w.self, u->f, IN_ACCESS);
	return n;
}

ssize_t shelf_getdents64(struct shelf_task *t, int fd, void *buf, size_t size)
{
	struct use u;
	ssize_t n;

	do {
		n = use_begin(&u, t, fd, false);
		if (n)
			return n;
		n = u.w.self->seg->read_only ? -EROFS : list_once(&u, buf, size);
		use_end(&u);
	} while (n == USE_AGAIN);
	return n;
}

ssize_t shelf_pgetdents64(struct shelf_task *t, int fd, void *buf, size_t size, off_t *position)
{
	struct use u;
	uint64_t pos;
	ssize_t n;

	if (!position)
		return -EFAULT;
	if (*position < 0)
		return -EINVAL;
	n = use_begin(&u, t, fd, false);
	if (n)
		return n;
	pos = (uint64_t)*position;
	n = list_check(&u, buf, size);
	if (!n)
		n = ramfs_getdents_epoch(&u.w, u.f->inode, &pos, buf, size);
	use_end(&u);
	if (n >= 0)
		*position = (off_t)pos;
	return n;
}

/* ---- where a task stands --------------------------------------------------------------------- */

static int enter_dir(struct hold *h, bool root)
{
	int err, k;

	if (inode_type(h->inode) != S_IFDIR)
		return -ENOTDIR;
	epoch_enter(h->w.self);
	err = inode_permission_epoch(&h->w, h->inode, MAY_EXEC);
	epoch_exit(h->w.self);
	if (!err && root && !capable(&h->w, SHELF_CAP_SYS_CHROOT))
		err = -EPERM;
	if (err)
		return err;
	/* The reference of the hold becomes the context's: one more for hold_end() to drop. */
	epoch_enter(h->w.self);
	inode_get_epoch(h->w.self, h->inode, &k); /* counted already: not dead */
	epoch_exit(h->w.self);
	if (root)
		fs_set_root(h->w.self, h->w.fs, h->inode, k);
	else
		fs_set_cwd(h->w.self, h->w.fs, h->inode, k);
	return 0;
}

int shelf_chdir(struct shelf_task *t, const char *path)
{
	struct hold h;
	int err = hold_begin(&h, t, AT_FDCWD, path, WALK_FOLLOW | WALK_DIRECTORY);

	return err ? err : (int)hold_end(&h, enter_dir(&h, false));
}

int shelf_chroot(struct shelf_task *t, const char *path)
{
	struct hold h;
	int err = hold_begin(&h, t, AT_FDCWD, path, WALK_FOLLOW | WALK_DIRECTORY);

	return err ? err : (int)hold_end(&h, enter_dir(&h, true));
}

int shelf_fchdir(struct shelf_task *t, int fd)
{
	struct use u;
	struct hold h;
	int err = use_begin_change(&u, t, fd, true);

	if (err)
		return err;
	h.w = u.w;
	h.inode = u.f->inode;
	err = file_has_inode(u.f) ? enter_dir(&h, false) : -ENOTDIR;
	use_end(&u);
	return err;
}

mode_t shelf_umask(struct shelf_task *t, mode_t mask)
{
	struct who w;

	if (who_init(&w, t))
		return 0;
	if (w.self->seg->read_only && !t->private_)
		return load_relaxed(&w.fs->umask); /* relaxed: a number */
	return xchg_acq_rel(&w.fs->umask, (uint32_t)mask & 0777u);
}

/* buf has room for the longest path and for the word in front of one that cannot be reached. */
static int cwd_path(struct who *w, char *buf, size_t size, char **at)
{
	int err;

	epoch_enter(w->self);
	/* pairs with the stores in fs_set_cwd and fs_set_root */
	err = ramfs_path_epoch(w, load_acquire(&w->fs->cwd), load_acquire(&w->fs->root), buf, size, at);
	epoch_exit(w->self);
	return err == -ERANGE ? -ENAMETOOLONG : err;
}

static int path_of(struct use *u, char *buf, size_t size, char **at)
{
	struct inode *inode = u->f->inode;
	int err;

	if (!file_has_inode(u->f))
		return -ENOENT;
	err = ramfs_path_epoch(&u->w, inode, load_acquire(&u->w.fs->root), buf, size, at); /* pairs with fs_set_root */
	if (err != -ENOENT)
		return err;
	*at = buf;
	memcpy(buf, "/ (deleted)", sizeof("/ (deleted)"));
	return 0;
}

ssize_t api_path_of(struct shelf_task *t, int fd, char *buf, size_t size)
{
	struct use u;
	char *at = buf;
	size_t len;
	int err = size < PATH_LIMIT ? -ERANGE : use_begin(&u, t, fd, true);

	if (err)
		return err;
	err = path_of(&u, buf, size, &at);
	use_end(&u);
	if (err)
		return err;
	len = strlen(at);
	memmove(buf, at, len + 1);
	return (ssize_t)len;
}

ssize_t shelf_getcwd(struct shelf_task *t, char *buf, size_t size)
{
	char path[PATH_LIMIT + sizeof(UNREACHABLE)];
	struct who w;
	char *at;
	size_t len;
	int err = who_init(&w, t);

	if (!err)
		err = cwd_path(&w, path, sizeof(path), &at);
	if (err)
		return err;
	len = strlen(at) + 1;
	if (len > size)
		return -ERANGE;
	if (!buf)
		return -EFAULT;
	memcpy(buf, at, len);
	return (ssize_t)len;
}

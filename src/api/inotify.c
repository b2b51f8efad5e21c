/* SPDX-License-Identifier: MIT */
/* inotify.c - the calls on inotify instances. */
#include "api/api.h"
#include "special/inotify.h"

int shelf_inotify_init(struct shelf_task *t, int flags)
{
	struct file *f;
	struct who w;
	int fd, err = who_change(&w, t);

	if (err)
		return err;
	if (flags & ~(IN_CLOEXEC | IN_NONBLOCK))
		return -EINVAL;
	fd = fd_reserve(w.self, w.files, 0, nofile_of(&w));
	if (fd < 0)
		return fd;
	f = inotify_new(w.self, O_RDONLY | (flags & IN_NONBLOCK ? O_NONBLOCK : 0), &err);
	if (f)
		fd_publish(w.self, w.files, fd, &f->head, flags & IN_CLOEXEC ? FD_CLOEXEC_BIT : 0);
	else
		fd_cancel(w.self, w.files, fd);
	return f ? fd : err;
}

/* An instance at a number, counted. */
static int instance_begin(struct use *u, struct shelf_task *t, int fd)
{
	int err = use_begin_change(u, t, fd, false);

	if (!err && u->f->head.type != FD_TYPE_INOTIFY) {
		use_end(u);
		err = -EINVAL;
	}
	return err;
}

/* The inode that a path names, counted, if the caller may read it. */
static int target_begin(struct hold *h, struct shelf_task *t, int dirfd, const char *path, uint32_t mask)
{
	unsigned walk = (mask & IN_DONT_FOLLOW ? 0 : WALK_FOLLOW) | (mask & IN_ONLYDIR ? WALK_DIRECTORY : 0);
	int err = hold_begin(h, t, dirfd, path, dirfd == AT_FDCWD ? walk : walk | WALK_EMPTY_PATH);

	if (err)
		return err;
	epoch_enter(h->w.self);
	err = inode_permission_epoch(&h->w, h->inode, MAY_READ);
	epoch_exit(h->w.self);
	return err ? (int)hold_end(h, err) : 0;
}

int api_inotify_add(struct shelf_task *t, int fd, int dirfd, const char *path, uint32_t mask)
{
	struct hold h;
	struct use u;
	int err = inotify_check_mask(mask);

	if (!err)
		err = instance_begin(&u, t, fd);
	if (err)
		return err;
	if (mask & IN_MASK_ADD && mask & IN_MASK_CREATE)
		err = -EINVAL;
	if (!err)
		err = target_begin(&h, t, dirfd, path, mask);
	if (!err)
		err = (int)hold_end(&h, inotify_add(h.w.self, u.f, h.inode, mask));
	use_end(&u);
	return err;
}

int shelf_inotify_add_watch(struct shelf_task *t, int fd, const char *path, uint32_t mask)
{
	return api_inotify_add(t, fd, AT_FDCWD, path, mask);
}

/* ---- with a descriptor of the kernel's beside it (shelf run) ------------------------------------------------ */

int api_inotify_rm(struct shelf_task *t, int fd, int wd, int *host)
{
	struct use u;
	int err = instance_begin(&u, t, fd);

	if (err)
		return err;
	err = inotify_remove(u.w.self, u.f, wd, host);
	use_end(&u);
	return err;
}

int shelf_inotify_rm_watch(struct shelf_task *t, int fd, int wd)
{
	int host = 0, err = api_inotify_rm(t, fd, wd, &host);

	return err > 0 ? -EINVAL : err;
}

int api_inotify_make(struct shelf_task *t, int fd)
{
	struct file *f;
	struct who w;
	int err = who_change(&w, t);

	if (err)
		return err;
	err = fd_reserve(w.self, w.files, fd, (uint64_t)fd + 1);
	if (err < 0)
		return err;
	f = inotify_new(w.self, O_RDONLY | O_NONBLOCK, &err);
	if (f)
		fd_publish(w.self, w.files, fd, &f->head, 0);
	else
		fd_cancel(w.self, w.files, fd);
	return f ? 0 : err;
}

int api_inotify_token(struct shelf_task *t, int fd, uint64_t *id)
{
	struct inotify_token token;
	struct use u;
	int err = instance_begin(&u, t, fd);

	if (err)
		return err;
	inotify_token_get(u.f, &token);
	use_end(&u);
	*id = token.id;
	return token.wd;
}

int api_inotify_arm(struct shelf_task *t, int fd, const char *path, int wd)
{
	struct use u;
	int err = instance_begin(&u, t, fd);

	if (err)
		return err;
	err = inotify_token_set(u.w.self, u.f, path, wd) ? 0 : -EEXIST;
	use_end(&u);
	return err;
}

int api_inotify_host_wd(struct shelf_task *t, int fd, int wd)
{
	struct use u;
	int err = instance_begin(&u, t, fd);

	if (err)
		return err;
	err = inotify_host_wd(u.w.self, u.f, wd);
	use_end(&u);
	return err;
}

ssize_t api_inotify_merge(struct shelf_task *t, int fd, void *buf, size_t n, size_t size)
{
	struct use u;
	ssize_t got = instance_begin(&u, t, fd);

	if (got)
		return got;
	if (n && inotify_give(u.w.self, u.f, buf, n)) {
		use_end(&u);
		return (ssize_t)n;
	}
	got = inotify_take(u.w.self, u.f, buf, size);
	if (n)
		inotify_token_renew(u.w.self, u.f);
	use_end(&u);
	return got;
}

int64_t api_inotify_bytes(struct shelf_task *t, int fd)
{
	struct use u;
	int64_t n = instance_begin(&u, t, fd);

	if (n)
		return n;
	n = inotify_bytes(u.w.self, u.f);
	use_end(&u);
	return n;
}

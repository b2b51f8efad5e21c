/* SPDX-License-Identifier: MIT */
/* close.c - giving numbers up, and second numbers for one file. */
#include <linux/close_range.h>

#include "api/api.h"

int shelf_close(struct shelf_task *t, int fd)
{
	struct fd_file *head;
	struct who w;
	int err = who_change(&w, t);

	if (err)
		return err;
	err = fd_remove(w.self, w.files, fd, &head);
	if (!err)
		task_drop_file(w.self, &w, fd, head);
	return err;
}

int shelf_close_range(struct shelf_task *t, unsigned first, unsigned last, unsigned flags)
{
	struct who w;
	int err = who_change(&w, t);

	if (err)
		return err;
	if (flags & ~(unsigned)(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) || first > last)
		return -EINVAL;
	if (flags & CLOSE_RANGE_UNSHARE) {
		err = task_unshare_files(w.self, t);
		if (err)
			return err;
		w.files = load_relaxed(&t->files); /* relaxed: [q] */
	}
	return fd_close_range(w.self, w.files, first, last, flags & CLOSE_RANGE_CLOEXEC ? FD_RANGE_CLOEXEC : 0,
			      task_drop_file, &w);
}

int shelf_dup(struct shelf_task *t, int fd)
{
	struct who w;
	int err = who_change(&w, t);

	return err ? err : fd_dup(w.self, w.files, fd, 0, nofile_of(&w), 0);
}

int api_dup_placed(struct shelf_task *t, int fd, int min, bool cloexec)
{
	struct fd_file *file;
	struct who w;
	int to, err = who_change(&w, t);

	if (err)
		return err;
	to = fd_reserve(w.self, w.files, min, nofile_of(&w));
	if (to >= 0)
		to = api_numbers.place(&w, to, min);
	if (to < 0)
		return to;
	err = fd_get(w.self, w.files, fd, &file);
	if (err)
		api_numbers.cancel(&w, to);
	else
		fd_publish(w.self, w.files, to, file, cloexec ? FD_CLOEXEC_BIT : 0);
	return err ? err : to;
}

static int dup_onto(struct who *w, int oldfd, int newfd, unsigned bits)
{
	struct fd_file *replaced = NULL;
	int fd = fd_dup2(w->self, w->files, oldfd, newfd, nofile_of(w), bits, &replaced);

	if (replaced)
		task_drop_file(w->self, w, newfd, replaced);
	return fd;
}

/* Onto itself it changes nothing, but the number must be open; the limit is not looked at. */
int shelf_dup2(struct shelf_task *t, int oldfd, int newfd)
{
	struct who w;
	int err = who_change(&w, t);

	if (err)
		return err;
	if (oldfd == newfd)
		return fd_get_bits(w.self, w.files, oldfd) < 0 ? -EBADF : newfd;
	return dup_onto(&w, oldfd, newfd, 0);
}

int shelf_dup3(struct shelf_task *t, int oldfd, int newfd, int flags)
{
	struct who w;
	int err = who_change(&w, t);

	if (err)
		return err;
	if ((uint32_t)flags & ~((uint32_t)O_CLOEXEC | (uint32_t)SHELF_O_CLOFORK) || oldfd == newfd)
		return -EINVAL;
	return dup_onto(&w, oldfd, newfd,
			(flags & O_CLOEXEC ? FD_CLOEXEC_BIT : 0u) |
				((uint32_t)flags & (uint32_t)SHELF_O_CLOFORK ? FD_CLOFORK_BIT : 0u));
}

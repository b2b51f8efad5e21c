/* SPDX-License-Identifier: MIT */
/*
 * link.c - linkat, by path or by descriptor.
 *
 * A descriptor is named by AT_EMPTY_PATH and "", or, as people do for O_TMPFILE, by
 * AT_SYMLINK_FOLLOW and the path /proc/self/fd/N: that text means descriptor N of the task here,
 * whether or not the shelf has a directory /proc.
 */
#include <string.h>

#include "api/api.h"

#define PROC_FD "/proc/self/fd/"

/* -1: not that kind of path. */
static int proc_fd_number(const char *path)
{
	int n = 0;

	if (strncmp(path, PROC_FD, sizeof(PROC_FD) - 1))
		return -1;
	path += sizeof(PROC_FD) - 1;
	if (!*path)
		return -1;
	for (; *path >= '0' && *path <= '9' && n < INT_MAX / 16; path++)
		n = n * 10 + (*path - '0');
	return *path ? -1 : n;
}

/* The descriptor that `from` stands for; -1: it is a path. */
static int link_descriptor(int fromfd, const char *from, int flags)
{
	if (!from)
		return -1;
	if (!*from && (flags & AT_EMPTY_PATH))
		return fromfd;
	return flags & AT_SYMLINK_FOLLOW ? proc_fd_number(from) : -1;
}

static int link_fd(struct who *w, int fd, struct inode *to_start, const char *to)
{
	struct fd_file *head;
	int err = fd_get(w->self, w->files, fd, &head);

	if (err)
		return err;
	err = file_has_inode(file_of(head)) ?
		      ramfs_link(w, NULL, NULL, file_of(head)->inode, false, to_start, to) : -EXDEV;
	fd_put(w->self, head);
	return err;
}

static int link_path(struct who *w, int fromfd, const char *from, int flags, struct inode *to_start, const char *to)
{
	struct place source;
	int err = place_get(w, fromfd, from, &source);

	if (err)
		return err;
	err = ramfs_link(w, source.start, from, NULL, flags & AT_SYMLINK_FOLLOW, to_start, to);
	place_put(w, &source);
	return err;
}

int shelf_linkat(struct shelf_task *t, int fromfd, const char *from, int tofd, const char *to, int flags)
{
	int fd = link_descriptor(fromfd, from, flags);
	struct call c;
	int err;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (!from || !to)
		return -EFAULT;
	err = call_at(&c, t, tofd, to);
	if (err)
		return err;
	if (!*from && (flags & AT_EMPTY_PATH) && fromfd == AT_FDCWD)
		err = -EPERM; /* the working directory: no links to directories */
	else if (fd >= 0 || (!*from && (flags & AT_EMPTY_PATH)))
		err = link_fd(&c.w, fd, c.place.start, to);
	else
		err = link_path(&c.w, fromfd, from, flags, c.place.start, to);
	return call_at_end(&c, err);
}

int shelf_link(struct shelf_task *t, const char *from, const char *to)
{
	return shelf_linkat(t, AT_FDCWD, from, AT_FDCWD, to, 0);
}

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

/* Linux looks the source up before it looks at the target: `err` is what is wrong with that. */
static int link_source_error(struct who *w, struct inode *start, const char *from, int flags, int err)
{
	struct walk walk;
	int source_err;

	epoch_enter(w->self);
	source_err = walk_epoch(w, start, from, flags & AT_SYMLINK_FOLLOW ? WALK_FOLLOW : 0, &walk);
	epoch_exit(w->self);
	return source_err ? source_err : err;
}

/* A descriptor that another gave us is no right to make names, unless by capability: Linux since 6.10. */
static int link_fd_check(struct who *w, struct file *f)
{
	if (!file_has_inode(f))
		return -EXDEV;
	return f->cred_id == cred_id_of(w) || capable(w, SHELF_CAP_DAC_READ_SEARCH) ? 0 : -ENOENT;
}

static int link_fd(struct who *w, int fd, int tofd, const char *to)
{
	struct fd_file *head;
	struct place target;
	int err = fd_get(w->self, w->files, fd, &head);

	if (err)
		return err;
	err = link_fd_check(w, file_of(head));
	if (!err)
		err = place_get(w, tofd, to, &target);
	if (err)
		goto out;
	err = ramfs_link(w, NULL, NULL, file_of(head)->inode, false, target.start, to);
	place_put(w, &target);
out:
	fd_put(w->self, head);
	return err;
}

/* AT_FDCWD and "": a directory, so it will not be linked; but all else is looked at first. */
static int link_cwd(struct who *w, int tofd, const char *to)
{
	struct place target;
	struct inode *cwd;
	int k, err = place_get(w, tofd, to, &target);

	if (err)
		return err;
	epoch_enter(w->self);
	do
		cwd = load_acquire(&w->fs->cwd); /* pairs with fs_set_cwd */
	while (!inode_get_epoch(w->self, cwd, &k));
	epoch_exit(w->self);
	err = ramfs_link(w, NULL, NULL, cwd, false, target.start, to);
	inode_put(w->self, cwd); /* by search: the walk may have had it a second time, and put either entry's */
	place_put(w, &target);
	return err;
}

static int link_path(struct who *w, int fromfd, const char *from, int flags, int tofd, const char *to)
{
	struct place source, target;
	int err = place_get(w, fromfd, from, &source);

	if (err)
		return err;
	err = place_get(w, tofd, to, &target);
	if (err) {
		err = link_source_error(w, source.start, from, flags, err);
		goto out;
	}
	err = ramfs_link(w, source.start, from, NULL, flags & AT_SYMLINK_FOLLOW, target.start, to);
	place_put(w, &target);
out:
	place_put(w, &source);
	return err;
}

static int link_any(struct who *w, int fromfd, const char *from, int tofd, const char *to, int flags)
{
	int fd = link_descriptor(fromfd, from, flags);
	bool by_fd = from && !*from && (flags & AT_EMPTY_PATH);

	if (by_fd && fromfd == AT_FDCWD)
		return link_cwd(w, tofd, to);
	return by_fd || fd >= 0 ? link_fd(w, fd, tofd, to) : link_path(w, fromfd, from, flags, tofd, to);
}

int shelf_linkat(struct shelf_task *t, int fromfd, const char *from, int tofd, const char *to, int flags)
{
	struct who w;
	int err;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	err = call_begin(&w, t);
	return err ? err : call_end(&w, link_any(&w, fromfd, from, tofd, to, flags));
}

int shelf_link(struct shelf_task *t, const char *from, const char *to)
{
	return shelf_linkat(t, AT_FDCWD, from, AT_FDCWD, to, 0);
}

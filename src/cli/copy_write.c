/* SPDX-License-Identifier: MIT */
/*
 * copy_write.c - makes items in a tree of the host or the shelf.
 *
 * Nothing is made outside the tree, whatever the paths say and whoever moves things about: parents are
 * opened with RESOLVE_BENEATH, names below them are made new (O_EXCL, O_NOFOLLOW), what is in the way is
 * unlinked and never written through.  The last parent stays open, as most items share it with
 * the one before.  Directories get their attributes in the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "copy_write.h"

static int fail(struct tree_sink *s, const struct item *item, const char *what, int err)
{
	return copy_fail(s->base.copy, s->to->label, item->path, what, err);
}

/* ---- parents -------------------------------------------------------------------------------- */

static int open_beneath(struct tree_sink *s, const char *path, uint64_t flags)
{
	const struct open_how how = {
		.flags = flags | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	do
		fd = CALLS(s)->openat2(TASK(s), s->to->root, path, &how, sizeof(how));
	while (fd == -EAGAIN && !cli_interrupted()); /* a rename elsewhere */
	return fd;
}

/* Archives may leave the directories out that lead to their files. */
static int make_parents(struct tree_sink *s, char *path)
{
	for (char *slash = path; slash; *slash++ = '/') {
		const char *name = path;
		int fd = s->to->root, err;

		slash = strchr(slash, '/');
		if (slash)
			*slash = 0;
		if (strrchr(path, '/')) {
			char *last = strrchr(path, '/');

			*last = 0;
			fd = open_beneath(s, path, O_RDONLY);
			*last = '/';
			name = last + 1;
		}
		err = fd < 0 ? fd : CALLS(s)->mkdirat(TASK(s), fd, name, 0755);
		if (fd >= 0 && fd != s->to->root)
			CALLS(s)->close(TASK(s), fd);
		if (err < 0 && err != -EEXIST) {
			if (slash)
				*slash = '/';
			return err;
		}
		if (!slash)
			break;
	}
	return 0;
}

static void forget_parent(struct tree_sink *s)
{
	if (s->parent_fd != s->to->root)
		CALLS(s)->close(TASK(s), s->parent_fd);
	s->parent_fd = s->to->root;
	strcpy(s->parent, ".");
}

/* Does it hand anything down?  Not known: as if it did. */
static bool hands_down(struct tree_sink *s, int fd)
{
	struct stat st;

	return CALLS(s)->fstat(TASK(s), fd, &st) < 0 || st.st_mode & S_ISGID ||
	       CALLS(s)->fgetxattr(TASK(s), fd, ACL_DEFAULT, NULL, 0) > 0;
}

static int open_parent(struct tree_sink *s, const char *path, size_t length)
{
	char parent[PATH_MAX];
	int fd;

	memcpy(parent, path, length);
	parent[length] = 0;
	fd = open_beneath(s, parent, O_RDONLY);
	if (fd == -ENOENT) {
		int err = make_parents(s, parent);

		fd = err < 0 ? err : open_beneath(s, parent, O_RDONLY);
	}
	if (fd < 0)
		return fd;
	forget_parent(s);
	s->parent_fd = fd;
	strcpy(s->parent, parent);
	s->inherits = hands_down(s, fd);
	return 0;
}

/* *name is the last part of the item's path, in the directory s->parent_fd. */
static int enter_parent(struct tree_sink *s, const struct item *item, const char **name)
{
	const char *slash = strrchr(item->path, '/');
	size_t length = slash ? (size_t)(slash - item->path) : 0;

	*name = slash ? slash + 1 : item->path;
	if (!length) {
		if (s->parent_fd != s->to->root || strcmp(s->parent, ".")) {
			forget_parent(s);
			s->inherits = hands_down(s, s->parent_fd);
		}
		return 0;
	}
	if (!strncmp(s->parent, item->path, length) && !s->parent[length])
		return 0;
	return open_parent(s, item->path, length);
}

/* ---- one item ------------------------------------------------------------------------------------ */

/* Something has the name already.  0: it is gone, try again. */
static int clear_way(struct tree_sink *s, const char *name)
{
	int err = CALLS(s)->unlinkat(TASK(s), s->parent_fd, name, 0);

	return err == -ENOENT ? 0 : err;
}

static int write_block(struct tree_sink *s, int fd, const char *block, size_t n, off_t offset)
{
	while (n) {
		ssize_t done = CALLS(s)->pwrite(TASK(s), fd, block, n, offset);

		if (done == -EINTR && !cli_interrupted())
			continue;
		if (done <= 0)
			return done ? (int)done : -EIO;
		block += done;
		offset += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Holes stay holes: only what the source calls data is written. */
static int write_data(struct tree_sink *s, int fd, struct item *item)
{
	const void *block;
	off_t offset = 0, end = 0;
	ssize_t n;
	int err;

	while ((n = item->data(item, &block, &offset)) > 0) {
		err = write_block(s, fd, block, (size_t)n, offset);
		if (err)
			return fail(s, item, "write", err);
		end = offset + n;
		s->base.copy->bytes += (uint64_t)n;
		if (n >= 32768)
			copy_progress(s->base.copy, item->path);
		if (cli_interrupted())
			return -EINTR;
	}
	if (n < 0)
		return (int)n;
	if (end < item->st.st_size) {
		err = CALLS(s)->ftruncate(TASK(s), fd, item->st.st_size);
		if (err)
			return fail(s, item, "set its length", err);
	}
	return 0;
}

static int open_new(struct tree_sink *s, const char *name, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = CALLS(s)->openat(TASK(s), s->parent_fd, name, flags, mode);

	if (fd == -EEXIST) {
		int err = clear_way(s, name);

		fd = err ? err : CALLS(s)->openat(TASK(s), s->parent_fd, name, flags, mode);
	}
	return fd;
}

static int put_file(struct tree_sink *s, struct item *item, const char *name)
{
	/* Nobody else may look in while it is not yet its owner's. */
	bool exact = !s->inherits, own = exact && attrs_ours(s->base.copy, &item->st);
	mode_t made = own ? item->st.st_mode & 0777 : 0600;
	uint64_t before = s->base.copy->bytes;
	int fd = open_new(s, name, made), err = 0;

	if (fd < 0)
		return fail(s, item, "create", fd);
	if (item->has_data)
		err = write_data(s, fd, item);
	if (err) {
		CALLS(s)->unlinkat(TASK(s), s->parent_fd, name, 0);
		s->base.copy->bytes = before;
	} else
		attrs_by_fd(s, fd, item->path, &item->st, &item->xattrs, exact, made);
	CALLS(s)->close(TASK(s), fd);
	return err;
}

/* A directory that is there stays; its owner may write into it until it gets its own mode in the end. */
static int use_directory(struct tree_sink *s, const char *name)
{
	struct stat st;
	int err = CALLS(s)->fstatat(TASK(s), s->parent_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (!err && !S_ISDIR(st.st_mode)) {
		err = clear_way(s, name);
		return err ? err : CALLS(s)->mkdirat(TASK(s), s->parent_fd, name, 0700);
	}
	if (!err && s->base.copy->uid == st.st_uid && (st.st_mode & 0700) != 0700)
		err = CALLS(s)->fchmodat(TASK(s), s->parent_fd, name, (st.st_mode & 07777) | 0700);
	return err;
}

static int put_directory(struct tree_sink *s, const struct item *item, const char *name)
{
	int err = CALLS(s)->mkdirat(TASK(s), s->parent_fd, name, 0700);

	if (err == -EEXIST)
		err = use_directory(s, name);
	if (err)
		return fail(s, item, "mkdir", err);
	err = later_add(&s->later, item);
	return err ? fail(s, item, "keep its attributes", err) : 0;
}

static int make_special(struct tree_sink *s, const struct item *item, const char *name)
{
	if (S_ISLNK(item->st.st_mode))
		return CALLS(s)->symlinkat(TASK(s), item->link, s->parent_fd, name);
	return CALLS(s)->mknodat(TASK(s), s->parent_fd, name, (item->st.st_mode & S_IFMT) | 0600,
				 item->st.st_rdev);
}

static int put_special(struct tree_sink *s, const struct item *item, const char *name)
{
	int err = make_special(s, item, name);

	if (err == -EEXIST) {
		err = clear_way(s, name);
		if (!err)
			err = make_special(s, item, name);
	}
	if (err)
		return fail(s, item, S_ISLNK(item->st.st_mode) ? "symlink" : "mknod", err);
	attrs_by_name(s, item, name);
	return 0;
}

/* Some archives keep the contents with the last of the names. */
static int put_linked_data(struct tree_sink *s, struct item *item, const char *name)
{
	int fd = CALLS(s)->openat(TASK(s), s->parent_fd, name,
				  O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	struct stat st;
	int err = fd < 0 ? fd : CALLS(s)->fstat(TASK(s), fd, &st);

	if (!err && !S_ISREG(st.st_mode))
		err = -EINVAL;
	if (err)
		fail(s, item, "write", err);
	else if (!(err = write_data(s, fd, item)))
		attrs_by_fd(s, fd, item->path, &item->st, &item->xattrs, false, 0);
	if (fd >= 0)
		CALLS(s)->close(TASK(s), fd);
	return err;
}

static int link_to(struct tree_sink *s, const char *target, const char *name)
{
	const char *slash = strrchr(target, '/');
	char parent[PATH_MAX] = "";
	int fd = s->to->root, err;

	if (slash) {
		memcpy(parent, target, (size_t)(slash - target));
		fd = open_beneath(s, parent, O_PATH);
		if (fd < 0)
			return fd;
	}
	err = CALLS(s)->linkat(TASK(s), fd, slash ? slash + 1 : target, s->parent_fd, name, 0);
	if (err == -EEXIST) {
		err = clear_way(s, name);
		if (!err)
			err = CALLS(s)->linkat(TASK(s), fd, slash ? slash + 1 : target,
					       s->parent_fd, name, 0);
	}
	if (slash)
		CALLS(s)->close(TASK(s), fd);
	return err;
}

static int put_hard(struct tree_sink *s, struct item *item, const char *name)
{
	int err = strcmp(item->hard, item->path) ? link_to(s, item->hard, name) : 0;

	if (err)
		return fail(s, item, "link", err);
	return item->has_data ? put_linked_data(s, item, name) : 0;
}

static int put(struct copy_sink *base, struct item *item)
{
	struct tree_sink *s = (struct tree_sink *)base;
	const char *name;
	int err;

	if (!strcmp(item->path, ".")) {
		err = S_ISDIR(item->st.st_mode) ? 0 : -EISDIR;
		if (!err && s->to->fresh)
			err = later_add(&s->later, item);
		return err ? fail(s, item, "create", err) : 0;
	}
	err = enter_parent(s, item, &name);
	if (err)
		return fail(s, item, "open its directory", err);
	if (item->hard)
		err = put_hard(s, item, name);
	else if (S_ISREG(item->st.st_mode))
		err = put_file(s, item, name);
	else if (S_ISDIR(item->st.st_mode))
		return put_directory(s, item, name);
	else
		err = put_special(s, item, name);
	base->copy->files += err == 0;
	return err;
}

struct tree_sink *tree_sink_open(struct copy *copy, const struct place *to)
{
	struct tree_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->base.copy = copy;
	s->base.put = put;
	s->to = to;
	s->parent_fd = to->root;
	strcpy(s->parent, ".");
	s->inherits = hands_down(s, to->root);
	copy->sink = &s->base;
	return s;
}

static void finish_directory(struct tree_sink *s, const struct later *d)
{
	int fd = open_beneath(s, d->path, O_RDONLY | O_NOFOLLOW);

	if (fd < 0) {
		copy_fail(s->base.copy, s->to->label, d->path, "open directory", fd);
		return;
	}
	attrs_by_fd(s, fd, d->path, &d->st, &d->xattrs, false, 0);
	CALLS(s)->close(TASK(s), fd);
}

void tree_sink_close(struct tree_sink *s)
{
	forget_parent(s);
	later_sort(&s->later);
	for (size_t i = 0; i < s->later.count; i++)
		finish_directory(s, &s->later.dir[i]);
	later_free(&s->later);
	free(s);
}

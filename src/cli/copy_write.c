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
#include "copy.h"
#include "copy_dirs.h"

struct tree_sink {
	struct copy_sink base;
	const struct place *to;
	char parent[PATH_MAX]; /* the one that is open */
	int parent_fd; /* the root's, or our own */
	bool inherits; /* files made there get an ACL or a group of its own accord */
	struct later_list later;
};

#define CALLS(s) ((s)->to->calls)
#define TASK(s) ((s)->to->task)

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

/* ---- attributes ------------------------------------------------------------------------------ */

static int set_xattr(struct tree_sink *s, int fd, const char *name, const char *attr,
		     const void *value, size_t size)
{
	return name ? CALLS(s)->setxattrat(TASK(s), fd, name, attr, value, size) :
		      CALLS(s)->fsetxattr(TASK(s), fd, attr, value, size, 0);
}

/* Of fd, or of `name` in the directory fd. */
static int set_xattrs(struct tree_sink *s, int fd, const char *name, const char *path,
		      const struct xattrs *x, bool inherits)
{
	const char *attr;
	const void *value;
	size_t at = 0, size;
	bool acl = false;
	int err, first = 0;

	while (xattrs_next(x, &at, &attr, &value, &size)) {
		acl |= !strcmp(attr, ACL_ACCESS);
		err = set_xattr(s, fd, name, attr, value, size);
		if (err < 0 && !first) {
			cli_error("%s%s: attribute %s: %s", s->to->label, path, attr,
				  strerror(-err));
			first = err;
		}
	}
	if (inherits && !acl && !name)
		CALLS(s)->fremovexattr(TASK(s), fd, ACL_ACCESS);
	else if (inherits && !acl)
		CALLS(s)->removexattrat(TASK(s), fd, name, ACL_ACCESS);
	if (first)
		s->base.copy->failed++;
	return first;
}

static bool ours(const struct copy *copy, const struct stat *st)
{
	return !copy->keep_owner || (st->st_uid == copy->uid && st->st_gid == copy->gid);
}

/* `made` is the mode it was made with, when that is known to be what it has. */
static int set_by_fd(struct tree_sink *s, int fd, const char *path, const struct stat *st,
		     const struct xattrs *x, bool exact, mode_t made)
{
	const struct copy *copy = s->base.copy;
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	mode_t mode = copy_mode(copy, st);
	const char *what = "chown";
	int err = 0;

	if (copy->keep_owner && !(exact && ours(copy, st)))
		err = CALLS(s)->fchown(TASK(s), fd, st->st_uid, st->st_gid);
	if (err >= 0 && !(exact && mode == made)) {
		what = "chmod";
		err = CALLS(s)->fchmod(TASK(s), fd, mode);
	}
	if (x->used || !exact)
		set_xattrs(s, fd, NULL, path, x, !exact);
	if (err >= 0) {
		what = "set times";
		err = CALLS(s)->futimens(TASK(s), fd, times);
	}
	return err < 0 ? copy_fail(s->base.copy, s->to->label, path, what, err) : 0;
}

static int set_by_name(struct tree_sink *s, const struct item *item, const char *name)
{
	const struct copy *copy = s->base.copy;
	struct timespec times[2] = {item->st.st_atim, item->st.st_mtim};
	bool link = S_ISLNK(item->st.st_mode);
	const char *what = "chown";
	int err = 0;

	if (copy->keep_owner)
		err = CALLS(s)->fchownat(TASK(s), s->parent_fd, name, item->st.st_uid,
					 item->st.st_gid, AT_SYMLINK_NOFOLLOW);
	if (err >= 0 && !link) {
		what = "chmod";
		err = CALLS(s)->fchmodat(TASK(s), s->parent_fd, name, copy_mode(copy, &item->st));
	}
	set_xattrs(s, s->parent_fd, name, item->path, &item->xattrs, s->inherits && !link);
	if (err >= 0) {
		what = "set times";
		err = CALLS(s)->utimensat(TASK(s), s->parent_fd, name, times, AT_SYMLINK_NOFOLLOW);
	}
	return err < 0 ? fail(s, item, what, err) : 0;
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
	bool exact = !s->inherits, own = exact && ours(s->base.copy, &item->st);
	mode_t made = own ? item->st.st_mode & 0777 : 0600;
	int fd = open_new(s, name, made), err = 0;

	if (fd < 0)
		return fail(s, item, "create", fd);
	if (item->has_data)
		err = write_data(s, fd, item);
	if (err)
		CALLS(s)->unlinkat(TASK(s), s->parent_fd, name, 0);
	else
		set_by_fd(s, fd, item->path, &item->st, &item->xattrs, exact, made);
	CALLS(s)->close(TASK(s), fd);
	return err;
}

static int put_directory(struct tree_sink *s, const struct item *item, const char *name)
{
	struct stat st;
	int err = CALLS(s)->mkdirat(TASK(s), s->parent_fd, name, 0700);

	if (err == -EEXIST) {
		err = CALLS(s)->fstatat(TASK(s), s->parent_fd, name, &st, AT_SYMLINK_NOFOLLOW);
		if (!err && !S_ISDIR(st.st_mode)) {
			err = clear_way(s, name);
			if (!err)
				err = CALLS(s)->mkdirat(TASK(s), s->parent_fd, name, 0700);
		}
	}
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
	set_by_name(s, item, name);
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
		set_by_fd(s, fd, item->path, &item->st, &item->xattrs, false, 0);
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
	set_by_fd(s, fd, d->path, &d->st, &d->xattrs, false, 0);
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

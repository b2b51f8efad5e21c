/* SPDX-License-Identifier: MIT */
/*
 * copy_read.c - walks a tree of the host or the shelf, depth first, and gives each entry to the sink.
 *
 * Every step goes from a directory's descriptor by one name that is not followed, so that nobody who
 * moves things about meanwhile leads the walk elsewhere.  A descriptor and a listing buffer for each
 * level of depth; nothing is allocated for a file but the path of one that has further names.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copy.h"
#include "copy_links.h"

#define BLOCK (256u << 10)
#define LISTING (32u << 10)

struct tree_reader {
	struct copy *copy;
	const struct place *from;
	struct links links;
	struct item item;
	int fd; /* of the item with data */
	off_t at, end; /* what is left of the piece of data */
	bool sparse;
	char **listing; /* one buffer a level */
	size_t levels;
	size_t length;
	char path[PATH_MAX];
	char target[PATH_MAX];
	char block[BLOCK];
};

static int fail(struct tree_reader *r, const char *what, int err)
{
	return copy_fail(r->copy, r->from->label, r->path, what, err);
}

/* ---- data ------------------------------------------------------------------------------ */

static bool next_extent(struct item *item, off_t from, off_t *begin, off_t *end)
{
	struct tree_reader *r = item->source;
	const struct file_calls *c = r->from->calls;

	if (from >= item->st.st_size)
		return false;
	*begin = from;
	*end = item->st.st_size;
	if (!r->sparse)
		return true;
	*begin = c->lseek(r->from->task, r->fd, from, SEEK_DATA);
	if (*begin == -ENXIO)
		return false;
	if (*begin < 0) {
		*begin = from; /* not known there: all of it is data */
		return true;
	}
	*end = c->lseek(r->from->task, r->fd, *begin, SEEK_HOLE);
	if (*end < 0 || *end > item->st.st_size)
		*end = item->st.st_size;
	return *begin < *end;
}

static ssize_t next_block(struct item *item, const void **block, off_t *offset)
{
	struct tree_reader *r = item->source;
	size_t want;
	ssize_t n;

	if (r->at >= r->end && !next_extent(item, r->at, &r->at, &r->end))
		return 0;
	want = r->end - r->at < BLOCK ? (size_t)(r->end - r->at) : BLOCK;
	n = r->from->calls->pread(r->from->task, r->fd, r->block, want, r->at);
	if (n < 0)
		return fail(r, "read", (int)n);
	if (!n)
		return fail(r, "became shorter while it was read", -EAGAIN);
	*block = r->block;
	*offset = r->at;
	r->at += n;
	return n;
}

/* ---- one entry ---------------------------------------------------------------------------- */

static void reset_item(struct tree_reader *r)
{
	struct xattrs keep = r->item.xattrs;

	memset(&r->item, 0, sizeof(r->item));
	r->item.xattrs = keep;
	r->item.xattrs.used = 0;
	r->item.path = r->path;
	r->item.source = r;
}

static void give(struct tree_reader *r)
{
	const struct stat *st = &r->item.st;
	bool shared = st->st_nlink > 1 && !S_ISDIR(st->st_mode);

	if (shared)
		r->item.hard = links_find(&r->links, st);
	if (r->item.hard)
		r->item.has_data = false;
	if (r->copy->sink->put(r->copy->sink, &r->item) == 0 && shared && !r->item.hard &&
	    links_add(&r->links, st, r->path) < 0)
		fail(r, "remember its other names", -ENOMEM);
}

static void read_file(struct tree_reader *r, int dirfd, const char *name)
{
	const struct file_calls *c = r->from->calls;
	struct shelf_task *t = r->from->task;
	int err;

	r->fd = c->openat(t, dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			  0);
	if (r->fd < 0) {
		fail(r, "open", r->fd);
		return;
	}
	err = c->fstat(t, r->fd, &r->item.st);
	if (!err && !S_ISREG(r->item.st.st_mode))
		err = -ESTALE;
	if (!err)
		err = xattrs_of_fd(r->from, r->fd, &r->item.xattrs);
	if (err) {
		fail(r, "read its attributes", err);
	} else {
		r->item.has_data = true;
		r->item.data = next_block;
		r->item.extent = next_extent;
		r->sparse = r->item.st.st_blocks * 512 < r->item.st.st_size;
		r->at = r->end = 0;
		give(r);
	}
	c->close(t, r->fd);
}

static void read_special(struct tree_reader *r, int dirfd, const char *name)
{
	const struct file_calls *c = r->from->calls;
	ssize_t n;
	int err;

	if (S_ISLNK(r->item.st.st_mode)) {
		n = c->readlinkat(r->from->task, dirfd, name, r->target, sizeof(r->target) - 1);
		if (n < 0) {
			fail(r, "readlink", (int)n);
			return;
		}
		r->target[n] = 0;
		r->item.link = r->target;
	}
	err = xattrs_of_name(r->from, dirfd, name, &r->item.xattrs);
	if (err)
		fail(r, "read its attributes", err);
	give(r);
}

/* ---- directories ----------------------------------------------------------------------------- */

static void read_listing(struct tree_reader *r, int fd, size_t depth);

static char *listing_of(struct tree_reader *r, size_t depth)
{
	if (depth == r->levels) {
		char **more = realloc(r->listing, (depth + 1) * sizeof(*more));

		if (!more)
			return NULL;
		r->listing = more;
		r->listing[depth] = malloc(LISTING);
		if (!r->listing[depth])
			return NULL;
		r->levels++;
	}
	return r->listing[depth];
}

/* fd is closed. */
static void read_directory_fd(struct tree_reader *r, int fd, size_t depth)
{
	int err = xattrs_of_fd(r->from, fd, &r->item.xattrs);

	if (err)
		fail(r, "read its attributes", err);
	if (r->copy->sink->put(r->copy->sink, &r->item) == 0)
		read_listing(r, fd, depth);
	r->from->calls->close(r->from->task, fd);
}

static void read_directory(struct tree_reader *r, int dirfd, const char *name, size_t depth)
{
	const struct file_calls *c = r->from->calls;
	struct shelf_task *t = r->from->task;
	int fd = c->openat(t, dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int err = fd < 0 ? fd : c->fstat(t, fd, &r->item.st);

	if (err >= 0) {
		read_directory_fd(r, fd, depth);
		return;
	}
	fail(r, "open directory", err);
	/* What can be known of it is kept. */
	if (!c->fstatat(t, dirfd, name, &r->item.st, AT_SYMLINK_NOFOLLOW) &&
	    S_ISDIR(r->item.st.st_mode))
		r->copy->sink->put(r->copy->sink, &r->item);
}

static void read_entry(struct tree_reader *r, int dirfd, const char *name, unsigned type,
		       size_t depth)
{
	int err = 0;

	reset_item(r);
	if (type != DT_REG && type != DT_DIR) {
		err = r->from->calls->fstatat(r->from->task, dirfd, name, &r->item.st,
					      AT_SYMLINK_NOFOLLOW);
		type = IFTODT(r->item.st.st_mode);
	}
	if (err)
		fail(r, "stat", err);
	else if (type == DT_REG)
		read_file(r, dirfd, name);
	else if (type == DT_DIR)
		read_directory(r, dirfd, name, depth);
	else
		read_special(r, dirfd, name);
}

static void read_name(struct tree_reader *r, int fd, const struct dirent64 *d, size_t depth)
{
	size_t before = r->length, n = strlen(d->d_name), start = before ? before + 1 : 0;

	if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
		return;
	if (start + n >= sizeof(r->path)) {
		r->path[before] = 0;
		copy_fail(r->copy, r->from->label, before ? r->path : ".",
			  "what is in it has paths longer than 4095 bytes and is left out",
			  -ENAMETOOLONG);
		return;
	}
	if (before)
		r->path[before] = '/';
	memcpy(r->path + start, d->d_name, n + 1);
	r->length = start + n;
	copy_progress(r->copy, r->path);
	read_entry(r, fd, d->d_name, d->d_type, depth);
	r->length = before;
	strcpy(r->path + before, before ? "" : ".");
}

static void read_listing(struct tree_reader *r, int fd, size_t depth)
{
	char *buf = listing_of(r, depth);
	ssize_t n = 0;

	if (!buf) {
		fail(r, "list", -ENOMEM);
		return;
	}
	while (!copy_stopped(r->copy) &&
	       (n = r->from->calls->getdents64(r->from->task, fd, buf, LISTING)) > 0)
		for (ssize_t at = 0; at < n && !copy_stopped(r->copy);) {
			const struct dirent64 *d = (const void *)(buf + at);

			read_name(r, fd, d, depth + 1);
			at += d->d_reclen;
		}
	if (n < 0)
		fail(r, "list", (int)n);
}

void tree_read(struct copy *copy, const struct place *from)
{
	struct tree_reader *r = calloc(1, sizeof(*r));

	if (!r) {
		copy_fail(copy, from->label, "", "read", -ENOMEM);
		return;
	}
	r->copy = copy;
	r->from = from;
	strcpy(r->path, ".");
	reset_item(r);
	read_directory(r, from->root, ".", 0);
	for (size_t i = 0; i < r->levels; i++)
		free(r->listing[i]);
	free(r->listing);
	free(r->item.xattrs.buf);
	links_free(&r->links);
	free(r);
}

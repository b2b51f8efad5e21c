/* SPDX-License-Identifier: MIT */
/* copy_stream_out.c - writes items as a pax archive through libarchive. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "copy.h"

struct stream_sink {
	struct copy_sink base;
	struct archive *archive;
	struct archive_entry *entry;
	int fd;
	bool discard; /* the archive stays cut short, which is how a reader knows */
};

static ssize_t write_more(struct archive *a, void *ctx, const void *block, size_t size)
{
	struct stream_sink *s = ctx;
	ssize_t n;

	if (s->discard)
		return (ssize_t)size;
	do { /* an interrupted write may have written a part, and is called again */
		n = cli_interrupted() ? -1 : write(s->fd, block, size);
	} while (n < 0 && errno == EINTR && !cli_interrupted());
	if (n < 0)
		archive_set_error(a, errno, "%s", strerror(errno));
	return n;
}

/* What libarchive says went wrong; the stream is lost if it says so. */
static int fail(struct stream_sink *s, const char *path, int result)
{
	struct copy *copy = s->base.copy;
	const char *text = archive_error_string(s->archive);

	if (cli_interrupted())
		return -EINTR;
	if (result == ARCHIVE_FATAL && copy->stop)
		return -EIO;
	copy->failed++;
	if (result == ARCHIVE_FATAL) {
		cli_error("standard output: write: %s: the archive is not complete",
			  text ? text : "failed");
		copy->stop = true;
	} else {
		cli_error("%s:%s: %s", copy->name, path, text ? text : "cannot be archived");
	}
	return -EIO;
}

/* ---- header ----------------------------------------------------------------------------- */

static int add_attributes(struct archive_entry *e, const struct xattrs *x)
{
	const char *name;
	const void *value;
	size_t at = 0, size;
	int err = 0;

	while (xattrs_next(x, &at, &name, &value, &size) && !err) {
		if (!strcmp(name, ACL_ACCESS) || !strcmp(name, ACL_DEFAULT))
			err = acl_to_entry(e, !strcmp(name, ACL_DEFAULT), value, size);
		else
			archive_entry_xattr_add_entry(e, name, value, size);
	}
	return err;
}

static void add_holes(struct archive_entry *e, struct item *item)
{
	off_t begin, end = 0;
	bool any = false;

	if (!item->has_data || item->st.st_blocks * 512 >= item->st.st_size)
		return;
	while (item->extent(item, end, &begin, &end)) {
		archive_entry_sparse_add_entry(e, begin, end - begin);
		any = true;
	}
	if (!any)
		archive_entry_sparse_add_entry(e, 0, 0);
}

static int fill_entry(struct stream_sink *s, struct item *item)
{
	struct archive_entry *e = s->entry;

	archive_entry_clear(e);
	archive_entry_set_pathname(e, item->path);
	archive_entry_copy_stat(e, &item->st);
	archive_entry_unset_ctime(e);
	archive_entry_unset_birthtime(e);
	if (item->link)
		archive_entry_set_symlink(e, item->link);
	if (item->hard)
		archive_entry_set_hardlink(e, item->hard);
	if (!item->has_data)
		archive_entry_set_size(e, 0);
	add_holes(e, item);
	return add_attributes(e, &item->xattrs);
}

/* ---- data ---------------------------------------------------------------------------------- */

/* The format leaves holes out, but libarchive wants to be given their zeros. */
static int write_zeros(struct stream_sink *s, const struct item *item, off_t n)
{
	static const char zeros[64 << 10];

	while (n > 0 && !cli_interrupted()) {
		size_t piece = n < (off_t)sizeof(zeros) ? (size_t)n : sizeof(zeros);

		if (archive_write_data(s->archive, zeros, piece) < 0)
			return fail(s, item->path, ARCHIVE_FATAL);
		n -= (off_t)piece;
	}
	return cli_interrupted() ? -EINTR : 0;
}

static int write_data(struct stream_sink *s, struct item *item)
{
	const void *block;
	off_t offset, at = 0;
	ssize_t n;
	int err;

	while ((n = item->data(item, &block, &offset)) > 0) {
		err = write_zeros(s, item, offset - at);
		if (err)
			return err;
		if (archive_write_data(s->archive, block, (size_t)n) < 0)
			return fail(s, item->path, ARCHIVE_FATAL);
		at = offset + n;
		s->base.copy->bytes += (uint64_t)n;
		copy_progress(s->base.copy, item->path);
	}
	/* libarchive 3.6 writes the list of holes with the first byte: there must be one. */
	return n < 0 ? (int)n : write_zeros(s, item, !at && item->st.st_size ? 1 : 0);
}

static int put(struct copy_sink *base, struct item *item)
{
	struct stream_sink *s = (struct stream_sink *)base;
	int err = fill_entry(s, item);

	if (err)
		return copy_fail(base->copy, "", item->path, "its access control list", err);
	if (S_ISSOCK(item->st.st_mode))
		return copy_fail(base->copy, "", item->path, "an archive cannot hold a socket",
				 -EOPNOTSUPP);
	err = archive_write_header(s->archive, s->entry);
	if (err < ARCHIVE_WARN)
		return fail(s, item->path, err);
	err = item->has_data ? write_data(s, item) : 0;
	if (!err && archive_write_finish_entry(s->archive) < ARCHIVE_WARN)
		err = fail(s, item->path, ARCHIVE_FATAL);
	base->copy->files += !err && !S_ISDIR(item->st.st_mode);
	return err;
}

static int add_filter(struct archive *a, enum stream_filter filter)
{
	if (filter == STREAM_GZIP)
		return archive_write_add_filter_gzip(a);
	if (filter == STREAM_ZSTD)
		return archive_write_add_filter_zstd(a);
	return ARCHIVE_OK;
}

struct stream_sink *stream_sink_open(struct copy *copy, int fd, enum stream_filter filter)
{
	struct stream_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->base.copy = copy;
	s->base.put = put;
	s->fd = fd;
	s->archive = archive_write_new();
	s->entry = archive_entry_new();
	copy->sink = &s->base;
	if (s->archive && s->entry && archive_write_set_format_pax(s->archive) == ARCHIVE_OK &&
	    add_filter(s->archive, filter) == ARCHIVE_OK &&
	    archive_write_set_format_option(s->archive, "pax", "xattrheader", "SCHILY") ==
		    ARCHIVE_OK &&
	    archive_write_set_bytes_per_block(s->archive, 256 << 10) == ARCHIVE_OK &&
	    archive_write_set_bytes_in_last_block(s->archive, 1) == ARCHIVE_OK &&
	    archive_write_open(s->archive, s, NULL, write_more, NULL) == ARCHIVE_OK)
		return s;
	archive_entry_free(s->entry);
	archive_write_free(s->archive);
	free(s);
	return NULL;
}

void stream_sink_close(struct stream_sink *s)
{
	s->discard = copy_stopped(s->base.copy);
	/* libarchive 3.6 frees all it has only if it is closed. */
	if (archive_write_close(s->archive) < ARCHIVE_WARN && !s->discard)
		fail(s, "", ARCHIVE_FATAL);
	archive_entry_free(s->entry);
	archive_write_free(s->archive);
	free(s);
}

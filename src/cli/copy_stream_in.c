/* SPDX-License-Identifier: MIT */
/*
 * copy_stream_in.c - reads an archive through libarchive and gives each entry to the sink.
 *
 * An entry's path is cleaned first: a leading '/' goes, '..' is refused.  The sink sees to it that links
 * in the archive lead nowhere else.  The mtree format is not read: it names files of the host.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "copy.h"

struct stream_reader {
	struct copy *copy;
	struct archive *archive;
	struct archive_entry *entry;
	const char *label;
	int fd;
	bool told_absolute;
	struct item item;
	char path[PATH_MAX], hard[PATH_MAX];
	char block[256u << 10];
};

static ssize_t read_more(struct archive *a, void *ctx, const void **block)
{
	struct stream_reader *r = ctx;
	ssize_t n;

	*block = r->block;
	do
		n = cli_interrupted() ? -1 : read(r->fd, r->block, sizeof(r->block));
	while (n < 0 && errno == EINTR && !cli_interrupted());
	if (n < 0)
		archive_set_error(a, errno, "read: %s", strerror(errno));
	return n;
}

static const char *reason(struct stream_reader *r)
{
	const char *text = archive_error_string(r->archive);

	return text ? text : "unknown error";
}

/* The rest of the stream makes no sense. */
static void broken(struct stream_reader *r)
{
	if (!cli_interrupted()) {
		cli_error("%s: %s%s%s: nothing after this can be read; what came before is copied",
			  r->label, r->item.path ? r->item.path : "", r->item.path ? ": " : "",
			  reason(r));
		r->copy->failed++;
	}
	r->copy->stop = true;
}

/* ---- data ------------------------------------------------------------------------------- */

static ssize_t next_block(struct item *item, const void **block, off_t *offset)
{
	struct stream_reader *r = item->source;
	size_t n = 0;
	int err;

	do
		err = archive_read_data_block(r->archive, block, &n, offset);
	while (err == ARCHIVE_RETRY || (err == ARCHIVE_OK && !n));
	if (err == ARCHIVE_EOF)
		return 0;
	if (err == ARCHIVE_OK || err == ARCHIVE_WARN)
		return (ssize_t)n;
	if (err == ARCHIVE_FATAL) {
		broken(r);
		return -EIO;
	}
	cli_error("%s: %s: %s", r->label, item->path, reason(r));
	r->copy->failed++;
	return -EIO;
}

/* ---- an entry as an item ------------------------------------------------------------------- */

static bool clean(struct stream_reader *r, const char *path, char out[PATH_MAX])
{
	const char *why;

	if (!path) {
		cli_error("%s: an entry's name cannot be read: left out", r->label);
		r->copy->failed++;
		return false;
	}
	if (!copy_clean_path(path, out, &why)) {
		cli_error("%s: %.200s%s: %s", r->label, path, strlen(path) > 200 ? "..." : "", why);
		r->copy->failed++;
		return false;
	}
	if (*path == '/' && !r->told_absolute) {
		cli_error("%s: leading '/' of names is left out", r->label);
		r->told_absolute = true;
	}
	return true;
}

static const char *either(const char *bytes, const char *utf8)
{
	return bytes ? bytes : utf8;
}

static void fill_stat(struct archive_entry *e, struct stat *st)
{
	const struct stat *from = archive_entry_stat(e);

	*st = *from;
	if (!archive_entry_filetype(e))
		st->st_mode |= S_IFREG;
	st->st_atim =
		archive_entry_atime_is_set(e) ?
			(struct timespec){archive_entry_atime(e), archive_entry_atime_nsec(e)} :
			(struct timespec){0, UTIME_OMIT};
	st->st_mtim =
		archive_entry_mtime_is_set(e) ?
			(struct timespec){archive_entry_mtime(e), archive_entry_mtime_nsec(e)} :
			(struct timespec){0, UTIME_OMIT};
	if (!archive_entry_size_is_set(e))
		st->st_size = 0;
}

static int fill_xattrs(struct archive_entry *e, struct xattrs *out)
{
	const char *name;
	const void *value;
	size_t size;
	void *room;
	int err;

	out->used = 0;
	archive_entry_xattr_reset(e);
	while (archive_entry_xattr_next(e, &name, &value, &size) == ARCHIVE_OK) {
		if (!strncmp(name, "system.", 7) || !strcmp(name, "security.selinux"))
			continue; /* lists come in a form of their own */
		room = xattrs_add(out, name, size);
		if (!room)
			return -ENOMEM;
		memcpy(room, value, size);
	}
	err = acl_from_entry(e, false, out);
	return err ? err : acl_from_entry(e, true, out);
}

/* False: told, and left out. */
static bool fill_item(struct stream_reader *r)
{
	struct archive_entry *e = r->entry;
	struct item *item = &r->item;
	const char *hard;
	int err;

	item->path = NULL;
	if (!clean(r, either(archive_entry_pathname(e), archive_entry_pathname_utf8(e)), r->path))
		return false;
	item->path = r->path;
	fill_stat(e, &item->st);
	item->link = S_ISLNK(item->st.st_mode) ?
			     either(archive_entry_symlink(e), archive_entry_symlink_utf8(e)) :
			     NULL;
	if (S_ISLNK(item->st.st_mode) && !item->link)
		item->link = "";
	hard = either(archive_entry_hardlink(e), archive_entry_hardlink_utf8(e));
	if (hard && !clean(r, hard, r->hard))
		return false;
	item->hard = hard ? r->hard : NULL;
	item->has_data = S_ISREG(item->st.st_mode) && (!hard || item->st.st_size > 0);
	err = fill_xattrs(e, &item->xattrs);
	if (err)
		copy_fail(r->copy, r->label, item->path, "attributes of the entry", err);
	return true;
}

/* ---- the archive ------------------------------------------------------------------------------- */

static void read_entries(struct stream_reader *r)
{
	int err;

	while (!copy_stopped(r->copy)) {
		r->item.path = NULL;
		err = archive_read_next_header(r->archive, &r->entry);
		if (err == ARCHIVE_EOF)
			break;
		if (err == ARCHIVE_FATAL) {
			broken(r);
			break;
		}
		if (err == ARCHIVE_RETRY)
			continue;
		if (err == ARCHIVE_FAILED) {
			cli_error("%s: %s: an entry is left out", r->label, reason(r));
			r->copy->failed++;
			continue;
		}
		if (!fill_item(r))
			continue;
		copy_progress(r->copy, r->item.path);
		r->copy->sink->put(r->copy->sink, &r->item);
	}
	if (!copy_stopped(r->copy) && archive_format(r->archive) == ARCHIVE_FORMAT_EMPTY) {
		cli_error("%s: is empty: no archive came", r->label);
		r->copy->failed++;
	}
}

static void support(struct archive *a)
{
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_bzip2(a);
	archive_read_support_filter_xz(a);
	archive_read_support_filter_lzma(a);
	archive_read_support_filter_lzip(a);
	archive_read_support_filter_lz4(a);
	archive_read_support_filter_zstd(a);
	archive_read_support_filter_compress(a);
	archive_read_support_format_empty(a);
	archive_read_support_format_tar(a);
	archive_read_support_format_cpio(a);
	archive_read_support_format_zip(a);
	archive_read_support_format_7zip(a);
	archive_read_support_format_iso9660(a);
	archive_read_support_format_xar(a);
	archive_read_support_format_rar(a);
	archive_read_support_format_rar5(a);
	archive_read_support_format_cab(a);
	archive_read_support_format_lha(a);
}

void stream_read(struct copy *copy, int fd, const char *label)
{
	static struct stream_reader reader; /* large, and there is one */
	struct stream_reader *r = &reader;
	struct stat st;
	bool seekable = !fstat(fd, &st) && S_ISREG(st.st_mode);

	*r = (struct stream_reader){.copy = copy, .label = label, .fd = fd};
	r->item.source = r;
	r->item.data = next_block;
	r->archive = archive_read_new();
	if (!r->archive) {
		copy_fail(copy, label, "", "read", -ENOMEM);
		return;
	}
	support(r->archive);
	/* Some formats have their list of contents at the end. */
	if ((seekable ? archive_read_open_fd(r->archive, fd, sizeof(r->block)) :
			archive_read_open(r->archive, r, NULL, read_more, NULL)) != ARCHIVE_OK)
		broken(r);
	else
		read_entries(r);
	archive_read_free(r->archive);
	free(r->item.xattrs.buf);
}

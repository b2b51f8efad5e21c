/* SPDX-License-Identifier: MIT */
/* lockstep_tree.c - whole trees: list, hash, remove. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep.h"

enum { LIST_MAX = 4096, DEPTH_MAX = 400 };

struct record { /* struct linux_dirent64 */
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

struct names {
	unsigned n;
	char *name[LIST_MAX]; /* the type's number in front */
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_free(struct names *l)
{
	while (l->n)
		free(l->name[--l->n]);
	free(l);
}

static void names_add(struct names *l, const struct record *rec)
{
	char *copy = malloc(strlen(rec->name) + 8);

	if (l->n == LIST_MAX)
		abort();
	sprintf(copy, "%02u %s", rec->type, rec->name);
	l->name[l->n++] = copy;
}

/* The whole directory, from its start, through a buffer of `size` bytes; sorted.  The offset ends at 0. */
static int64_t names_read(struct ls_side *s, int fd, unsigned size, struct names **out)
{
	struct names *l = calloc(1, sizeof(*l));
	char *buf = malloc(size);
	int64_t n = ls_lseek(s, fd, 0, SEEK_SET);

	while (n >= 0 && (n = ls_getdents(s, fd, buf, size)) > 0)
		for (int64_t at = 0; at < n; at += ((struct record *)(buf + at))->reclen)
			names_add(l, (struct record *)(buf + at));
	free(buf);
	if (n >= 0)
		ls_lseek(s, fd, 0, SEEK_SET);
	qsort(l->name, l->n, sizeof(l->name[0]), compare_names);
	*out = l;
	return n;
}

int64_t ls_list(struct ls_side *s, int fd, unsigned buffer, uint64_t *hash)
{
	struct names *l;
	int64_t n = names_read(s, fd, buffer, &l);

	for (unsigned i = 0; n >= 0 && i < l->n; i++)
		*hash = ls_hash(*hash, l->name[i], strlen(l->name[i]) + 1);
	if (n >= 0)
		n = l->n;
	names_free(l);
	return n;
}

/* ---- hash ------------------------------------------------------------------------------------------ */

struct dump {
	struct ls_side *s;
	uint64_t hash;
	int64_t entries;
	FILE *text;
};

static void dump_line(struct dump *d, int depth, const char *name, const char *text)
{
	d->entries++;
	d->hash = ls_hash(d->hash, name, strlen(name) + 1);
	d->hash = ls_hash(d->hash, text, strlen(text) + 1);
	fprintf(d->text, "%*s%s: %s\n", depth, "", name, text);
}

/* Where there is data, and what it is. */
static void dump_data(struct dump *d, int depth, int dir, const char *name)
{
	int64_t fd = ls_openat(d->s, dir, name, O_RDONLY | O_NOATIME, 0), at = 0, hole;
	uint64_t hash = 1;
	char text[300];
	size_t end = 0;

	while (fd >= 0 && (at = ls_lseek(d->s, (int)fd, at, SEEK_DATA)) >= 0) {
		hole = ls_lseek(d->s, (int)fd, at, SEEK_HOLE);
		hash = ls_hash(hash, &at, sizeof(at));
		hash = ls_hash(hash, &hole, sizeof(hole));
		if (end < sizeof(text) - 120)
			end += (size_t)sprintf(text + end, "[%lld,%lld) ", (long long)at, (long long)hole);
		while (at < hole) {
			size_t want = hole - at < LS_BUFFER ? (size_t)(hole - at) : LS_BUFFER;
			int64_t n = ls_pread(d->s, (int)fd, d->s->buf, want, at);

			if (n <= 0)
				break;
			hash = ls_hash(hash, d->s->buf, (size_t)n);
			at += n;
		}
		if (at < hole)
			break;
	}
	snprintf(text + end, sizeof(text) - end, "data %llx ends %lld", (unsigned long long)hash, (long long)at);
	dump_line(d, depth + 1, "", text);
	if (fd >= 0)
		ls_close(d->s, (int)fd);
}

static void dump_dir(struct dump *d, int depth, int dir);

static void dump_entry(struct dump *d, int depth, int dir, const char *name)
{
	char text[LS_PATH + 300];
	struct stat st;
	int64_t err = ls_fstatat(d->s, dir, name, &st, AT_SYMLINK_NOFOLLOW);

	if (err) {
		snprintf(text, sizeof(text), "stat gives %lld", (long long)err);
		dump_line(d, depth, name, text);
		return;
	}
	ls_stat_text(&st, text, sizeof(text));
	if (S_ISLNK(st.st_mode)) {
		size_t at = strlen(text);
		int64_t n = ls_readlinkat(d->s, dir, name, text + at, LS_PATH);

		text[at + (size_t)(n < 0 ? 0 : n)] = '\0';
	}
	dump_line(d, depth, name, text);
	if (S_ISREG(st.st_mode))
		dump_data(d, depth, dir, name);
	if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
		int64_t sub = ls_openat(d->s, dir, name, O_RDONLY | O_DIRECTORY | O_NOATIME, 0);

		dump_dir(d, depth + 1, (int)sub);
		ls_close(d->s, (int)sub);
	}
}

static void dump_dir(struct dump *d, int depth, int dir)
{
	struct names *l;
	int64_t n = names_read(d->s, dir, 4096, &l);

	if (n < 0)
		dump_line(d, depth, "?", "cannot be listed");
	for (unsigned i = 0; i < l->n; i++)
		if (strcmp(l->name[i] + 3, ".") && strcmp(l->name[i] + 3, ".."))
			dump_entry(d, depth, dir, l->name[i] + 3);
	names_free(l);
}

/* What every open descriptor says of its file, named or not. */
static void dump_descriptors(struct dump *d)
{
	char name[20], text[300];
	struct stat st;

	for (int fd = 0; fd < LS_NOFILE; fd++) {
		if (ls_fstatat(d->s, fd, "", &st, AT_EMPTY_PATH))
			continue;
		ls_stat_text(&st, text, sizeof(text) - 40);
		sprintf(text + strlen(text), " at %lld", (long long)ls_lseek(d->s, fd, 0, SEEK_CUR));
		snprintf(name, sizeof(name), "descriptor %d", fd);
		dump_line(d, 0, name, text);
	}
}

int64_t ls_tree_hash(struct ls_side *s, uint64_t *hash, char *text, size_t size)
{
	struct dump d = { .s = s, .hash = 1 };
	unsigned ids = ls_ids(s);
	int64_t fd;

	d.text = fmemopen(s->trees + (size_t)(s->tree_count++ % LS_TREES) * LS_TREE_TEXT, LS_TREE_TEXT, "w");
	ls_setids(s, 0);
	ls_setlimit(s, LS_NOFILE_DUMP);
	fd = ls_openat(s, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_NOATIME, 0);
	dump_dir(&d, 0, (int)fd);
	ls_close(s, (int)fd);
	dump_descriptors(&d);
	ls_setlimit(s, LS_NOFILE);
	ls_setids(s, ids);
	fclose(d.text);
	*hash = d.hash;
	snprintf(text, size, "%lld entries", (long long)d.entries);
	return d.entries;
}

/* ---- remove ------------------------------------------------------------------------------------------- */

static int64_t remove_below(struct ls_side *s, int dir)
{
	struct names *l;
	int64_t removed = 0;

	names_read(s, dir, 4096, &l);
	for (unsigned i = 0; i < l->n; i++) {
		const char *name = l->name[i] + 3;

		if (strcmp(name, ".") && strcmp(name, ".."))
			removed += ls_tree_remove(s, dir, name);
	}
	names_free(l);
	return removed;
}

int64_t ls_tree_remove(struct ls_side *s, int at, const char *path)
{
	int64_t removed = 0, fd = ls_openat(s, at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0)
		return !ls_unlinkat(s, at, path, 0);
	removed = remove_below(s, (int)fd);
	ls_close(s, (int)fd);
	return removed + !ls_unlinkat(s, at, path, AT_REMOVEDIR);
}

/* SPDX-License-Identifier: MIT */
/* names_check.h - what holds in every tree that is at rest, and the end of a tree. */
#ifndef TESTS_NAMES_CHECK_H
#define TESTS_NAMES_CHECK_H

#include "names_world.h"

static inline void path_join(char *out, size_t size, const char *dir, const char *name)
{
	CHECK((size_t)snprintf(out, size, "%s/%s", dir, name) < size);
}

struct check {
	struct who *w;
	struct inode *dir;
	char path[PATH_LIMIT + NAME_LIMIT + 2];
	long entries, subdirs;
};

static inline void check_dir(struct who *w, const char *path);

static inline void check_entry(void *ctx, const struct n_dirent *e)
{
	struct check *c = ctx;
	char path[PATH_LIMIT + NAME_LIMIT + 2];
	struct stat st;

	path_join(path, sizeof(path), c->path, e->name);
	CHECK(n_lstat(c->w, path, &st) == 0);
	CHECK(st.st_ino == e->ino && IFTODT(st.st_mode) == e->type);
	c->entries++;
	if (!S_ISDIR(st.st_mode)) {
		CHECK(st.st_nlink >= 1);
		return;
	}
	c->subdirs++;
	check_dir(c->w, path);
}

static inline void check_dir(struct who *w, const char *path)
{
	struct check c = {.w = w};
	struct stat st, up;
	char dotdot[PATH_LIMIT + NAME_LIMIT + 8];

	snprintf(c.path, sizeof(c.path), "%s", path);
	CHECK(n_open(w, *path ? path : "/", O_RDONLY | O_DIRECTORY, 0, &c.dir) == 0);
	n_list(w, c.dir, check_entry, &c);
	CHECK(n_stat(w, *path ? path : "/", &st) == 0);
	CHECK(st.st_nlink == (nlink_t)(2 + c.subdirs));
	CHECK(st.st_size == 40 + 20 * c.entries);
	if (*path) {
		path_join(dotdot, sizeof(dotdot), path, "..");
		CHECK(n_stat(w, dotdot, &up) == 0);
		*strrchr(c.path, '/') = 0;
		CHECK(n_stat(w, *c.path ? c.path : "/", &st) == 0);
		CHECK(st.st_ino == up.st_ino);
	}
	n_put(w, c.dir);
}

static inline void remove_tree(struct who *w, const char *path);

static inline void remove_entry_(void *ctx, const struct n_dirent *e)
{
	struct check *c = ctx;
	char path[PATH_LIMIT + NAME_LIMIT + 2];

	path_join(path, sizeof(path), c->path, e->name);
	if (e->type == DT_DIR)
		remove_tree(c->w, path);
	CHECK((e->type == DT_DIR ? n_rmdir(c->w, path) : n_unlink(c->w, path)) == 0);
}

static inline void remove_tree(struct who *w, const char *path)
{
	struct check c = {.w = w};

	snprintf(c.path, sizeof(c.path), "%s", path);
	CHECK(n_open(w, *path ? path : "/", O_RDONLY | O_DIRECTORY, 0, &c.dir) == 0);
	n_list(w, c.dir, remove_entry_, &c);
	n_put(w, c.dir);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * names_world.h - a fresh segment with an empty tree, and one line for each call on names, for tests of vfs and ramfs.
 *
 * Every thread needs a struct who of its own (names_who).  Results are 0 or -errno.
 */
#ifndef TESTS_NAMES_WORLD_H
#define TESTS_NAMES_WORLD_H

#include "harness.h"

#include <linux/fs.h>
#include <pthread.h>

#include "ramfs/ramfs.h"
#include "segment/header.h"

struct names_world {
	struct segment *seg;
	char name[TEST_NAME_SIZE];
	struct shelf_cred root;
	struct fs_context *fs;
};

static inline struct who names_who(struct names_world *nw)
{
	struct slot *self = slot_self(nw->seg);

	CHECK(self);
	return (struct who){.self = self, .cred = &nw->root, .fs = nw->fs};
}

static inline struct fs_context *names_fs(struct slot *self)
{
	struct inode *root = vfs_root_of(self)->root;
	struct fs_context *fs = mem_alloc(self, sizeof(*fs));
	int k, n;

	CHECK(fs);
	memset(fs, 0, sizeof(*fs));
	store_relaxed(&fs->root, root);
	store_relaxed(&fs->cwd, root);
	epoch_enter(self);
	for (n = 0; n < 2; n++) {
		CHECK(inode_get_epoch(self, root, &k));
		hand_forget(self, k);
	}
	epoch_exit(self);
	store_relaxed(&fs->umask, 022);
	return fs;
}

static inline void names_world_open(struct names_world *nw, uint64_t size)
{
	struct segment_options opt = {.size = size ? size : 256UL << 20, .max_slots = 256};
	char why[256] = "";

	memset(nw, 0, sizeof(*nw));
	if (segment_create(fresh_name(nw->name), &opt, &nw->seg, why))
		fprintf(stderr, "%s\n", why);
	CHECK(nw->seg);
	CHECK(epoch_init(nw->seg) == 0);
	CHECK(epoch_attach(nw->seg) == 0);
	CHECK(fd_layer_init(nw->seg) == 0);
	CHECK(fd_layer_attach(nw->seg) == 0);
	CHECK(vfs_attach(nw->seg) == 0);
	CHECK(ramfs_attach(nw->seg) == 0);
	CHECK(vfs_init(slot_self(nw->seg), 01777, 0, 0) == 0);
	segment_set_ready(nw->seg);
	nw->root.caps = SHELF_CAP_ALL;
	nw->fs = names_fs(slot_self(nw->seg));
}

static inline void names_world_close(struct names_world *nw)
{
	CHECK(!segment_poisoned(nw->seg));
	segment_remove(nw->name, NULL);
	segment_detach(nw->seg);
}

/* ---- calls -------------------------------------------------------------------------------- */

static inline int n_stat_flags(struct who *w, const char *path, unsigned flags, struct stat *st)
{
	struct walk k;
	struct attr a;
	int err;

	epoch_enter(w->self);
	err = walk_epoch(w, NULL, path, flags, &k);
	if (!err)
		attr_read_epoch(w->self, k.inode, &a);
	epoch_exit(w->self);
	if (!err)
		attr_to_stat(w->self, &a, st);
	return err;
}

static inline int n_stat(struct who *w, const char *path, struct stat *st)
{
	return n_stat_flags(w, path, WALK_FOLLOW, st);
}

static inline int n_lstat(struct who *w, const char *path, struct stat *st)
{
	return n_stat_flags(w, path, 0, st);
}

static inline bool n_exists(struct who *w, const char *path)
{
	struct stat st;

	return n_lstat(w, path, &st) == 0;
}

/* The inode counted, as a descriptor would have it; n_put() ends it. */
static inline int n_open(struct who *w, const char *path, int flags, uint32_t mode, struct inode **out)
{
	struct open_walk ow = {.keeps_name = false};
	int err = ramfs_open(w, NULL, path, flags, mode, 0, &ow);

	if (err)
		return err;
	ledger_del(w->self, ow.inode);
	*out = ow.inode;
	return 0;
}

static inline void n_put(struct who *w, struct inode *inode)
{
	inode_put(w->self, inode);
}

static inline int n_try(struct who *w, const char *path, int flags, uint32_t mode)
{
	struct inode *inode;
	int err = n_open(w, path, flags, mode, &inode);

	if (!err)
		n_put(w, inode);
	return err;
}

static inline int n_create(struct who *w, const char *path)
{
	return n_try(w, path, O_CREAT | O_EXCL | O_WRONLY, 0644);
}

static inline int n_mkdir(struct who *w, const char *path)
{
	return ramfs_mkdir(w, NULL, path, 0755);
}

static inline int n_rmdir(struct who *w, const char *path)
{
	return ramfs_rmdir(w, NULL, path);
}

static inline int n_unlink(struct who *w, const char *path)
{
	return ramfs_unlink(w, NULL, path);
}

static inline int n_rename(struct who *w, const char *from, const char *to)
{
	return ramfs_rename(w, NULL, from, NULL, to, 0);
}

static inline int n_rename2(struct who *w, const char *from, const char *to, unsigned flags)
{
	return ramfs_rename(w, NULL, from, NULL, to, flags);
}

static inline int n_link(struct who *w, const char *from, const char *to)
{
	return ramfs_link(w, NULL, from, NULL, false, NULL, to);
}

static inline int n_symlink(struct who *w, const char *target, const char *path)
{
	return ramfs_symlink(w, target, NULL, path);
}

static inline int n_chdir(struct who *w, const char *path)
{
	struct inode *inode, *old;
	int err = n_open(w, path, O_PATH | O_DIRECTORY, 0, &inode);

	if (err)
		return err;
	old = xchg_acq_rel(&w->fs->cwd, inode);
	n_put(w, old);
	return 0;
}

static inline int n_getcwd(struct who *w, char *buf, size_t size, char **at)
{
	int err;

	epoch_enter(w->self);
	err = ramfs_path_epoch(w, load_acquire(&w->fs->cwd), load_acquire(&w->fs->root), buf, size, at);
	epoch_exit(w->self);
	return err;
}

/* ---- listing ------------------------------------------------------------------------------- */

struct n_dirent { /* struct linux_dirent64 */
	uint64_t ino;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* Calls fn for every entry but "." and ".."; returns how many. */
typedef void n_entry_fn(void *ctx, const struct n_dirent *e);
static inline long n_list(struct who *w, struct inode *dir, n_entry_fn *fn, void *ctx)
{
	_Alignas(8) char buf[2048];
	struct file f = {.inode = dir};
	uint64_t pos = 0;
	long count = 0;

	for (;;) {
		ssize_t n, at;

		epoch_enter(w->self);
		n = ramfs_getdents_file_epoch(w, &f, &pos, buf, sizeof(buf));
		epoch_exit(w->self);
		CHECK(n >= 0);
		if (!n)
			return count;
		for (at = 0; at < n;) {
			struct n_dirent *e = (struct n_dirent *)(void *)(buf + at);

			at += e->bytes;
			if (!strcmp(e->name, ".") || !strcmp(e->name, ".."))
				continue;
			if (fn)
				fn(ctx, e);
			count++;
		}
	}
}

static inline long n_count(struct who *w, const char *path)
{
	struct inode *dir;
	long n;

	CHECK(n_open(w, path, O_RDONLY | O_DIRECTORY, 0, &dir) == 0);
	n = n_list(w, dir, NULL, NULL);
	n_put(w, dir);
	return n;
}

#endif

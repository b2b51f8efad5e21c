/* SPDX-License-Identifier: MIT */
/*
 * w_names.c - calls on names, 1 to T threads of one task.  Each thread works in
 * a directory of its own three levels down; with suffix _onedir all threads
 * work in the first thread's, and with _owntable each thread has a descriptor table of its own, too,
 * as processes have: what is left is what the file system itself makes them share.  Paths are relative to the top of the tree, so that every engine
 * walks the same four components.
 */
#include "engine.h"
#include "workloads.h"

#define ENTRIES 1000

struct names {
	char file[64], missing[64], fresh[64], moved[64], dir[64], full[80];
	unsigned turn;
	char buf[32768];
};

static void make_dir(unsigned index, char *dir, size_t size)
{
	snprintf(dir, size, "a%u", index);
	eng_mkdir(dir, 0755);
	snprintf(dir, size, "a%u/b", index);
	eng_mkdir(dir, 0755);
	snprintf(dir, size, "a%u/b/c", index);
	eng_mkdir(dir, 0755);
}

static void touch(const char *path)
{
	engine_ok("close", eng_close((int)engine_ok(path, eng_open(path, O_RDWR | O_CREAT, 0644))));
}

static struct names *begin_in(struct worker *w, unsigned dir_index)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		engine_die("calloc", ENOMEM);
	w->state = n;
	make_dir(dir_index, n->dir, sizeof(n->dir));
	snprintf(n->file, sizeof(n->file), "a%u/b/c/file%u", dir_index, w->index);
	snprintf(n->missing, sizeof(n->missing), "a%u/b/c/none%u", dir_index, w->index);
	snprintf(n->fresh, sizeof(n->fresh), "a%u/b/c/new%u", dir_index, w->index);
	snprintf(n->moved, sizeof(n->moved), "a%u/b/c/moved%u", dir_index, w->index);
	touch(n->file);
	return n;
}

static void begin_own(struct worker *w)
{
	begin_in(w, w->index);
}

static void begin_one(struct worker *w)
{
	begin_in(w, 0);
}

static void begin_same(struct worker *w)
{
	struct names *n = begin_in(w, 0);

	snprintf(n->file, sizeof(n->file), "a0/b/c/file0");
	touch(n->file);
}

static void fill_dir(struct worker *w, unsigned dir_index)
{
	struct names *n = begin_in(w, dir_index);
	char path[128];

	snprintf(n->full, sizeof(n->full), "%s/full", n->dir);
	eng_mkdir(n->full, 0755);
	for (int i = 0; i < ENTRIES; i++) {
		snprintf(path, sizeof(path), "%s/entry%04d", n->full, i);
		touch(path);
	}
}

static void begin_readdir(struct worker *w)
{
	fill_dir(w, w->index);
}

static void begin_readdir_one(struct worker *w)
{
	fill_dir(w, 0);
}

static uint64_t step_stat(struct worker *w)
{
	struct names *n = w->state;
	struct stat st;

	for (int i = 0; i < 64; i++)
		engine_ok("stat", eng_stat(n->file, &st));
	return 64;
}

static uint64_t step_open_close(struct worker *w)
{
	struct names *n = w->state;

	for (int i = 0; i < 64; i++)
		engine_ok("close",
			  eng_close((int)engine_ok("open", eng_open(n->file, O_RDONLY, 0))));
	return 64;
}

static uint64_t step_missing(struct worker *w)
{
	struct names *n = w->state;
	struct stat st;

	for (int i = 0; i < 64; i++)
		if (eng_stat(n->missing, &st) != -ENOENT)
			engine_die("a missing name was found", EEXIST);
	return 64;
}

static uint64_t step_create_unlink(struct worker *w)
{
	struct names *n = w->state;

	for (int i = 0; i < 64; i++) {
		engine_ok("close",
			  eng_close((int)engine_ok(
				  "open", eng_open(n->fresh, O_RDWR | O_CREAT | O_EXCL, 0644))));
		engine_ok("unlink", eng_unlink(n->fresh));
	}
	return 64;
}

static uint64_t step_rename(struct worker *w)
{
	struct names *n = w->state;

	for (int i = 0; i < 32; i++) {
		engine_ok("rename", eng_rename(n->file, n->moved));
		engine_ok("rename", eng_rename(n->moved, n->file));
	}
	return 64;
}

static uint64_t step_readdir(struct worker *w)
{
	struct names *n = w->state;
	int fd = (int)engine_ok("open", eng_open(n->full, O_RDONLY | O_DIRECTORY, 0));
	unsigned entries = 0;
	long got;

	while ((got = engine_ok("getdents", eng_getdents(fd, n->buf, sizeof(n->buf)))) > 0)
		for (long at = 0; at < got; entries++)
			at += *(unsigned short *)(n->buf + at + 16);
	if (entries != ENTRIES + 2)
		engine_die("readdir: entries are missing", EIO);
	engine_ok("close", eng_close(fd));
	return 1;
}

#define NAMES(c, first, work)                                                                      \
	{                                                                                          \
		.name = "names", .case_ = c, .unit = "op/s", .begin = first, .step = work          \
	}

#define OWN_TABLE(c, first, work)                                                                  \
	{                                                                                          \
		.name = "names", .case_ = c, .unit = "op/s", .begin = first, .step = work,         \
		.own_table = true                                                                  \
	}

const struct workload names_workloads[] = {
	NAMES("stat", begin_own, step_stat),
	NAMES("open_close", begin_own, step_open_close),
	NAMES("missing", begin_own, step_missing),
	NAMES("create_unlink", begin_own, step_create_unlink),
	NAMES("rename", begin_own, step_rename),
	NAMES("readdir1000", begin_readdir, step_readdir),
	NAMES("stat_same", begin_same, step_stat),
	NAMES("stat_onedir", begin_one, step_stat),
	NAMES("open_close_onedir", begin_one, step_open_close),
	NAMES("missing_onedir", begin_one, step_missing),
	NAMES("create_unlink_onedir", begin_one, step_create_unlink),
	NAMES("rename_onedir", begin_one, step_rename),
	NAMES("readdir1000_onedir", begin_readdir_one, step_readdir),
	OWN_TABLE("open_close_owntable", begin_own, step_open_close),
	OWN_TABLE("create_unlink_owntable", begin_own, step_create_unlink),
	OWN_TABLE("rename_owntable", begin_own, step_rename),
	{.name = NULL},
};

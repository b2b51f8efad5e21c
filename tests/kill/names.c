/* SPDX-License-Identifier: MIT */
/*
 * A process dies after its n-th instruction inside a change of names, for n all over the change.
 * Afterwards the tree is as before or as after it, counts and sizes agree, every directory can be used on,
 * and deaths that lose an inode are rare.
 */
#include "kill/lib/step.h"
#include "names_check.h"

#define PRINT_SIZE 8192
/* Of a death in one of the instants that inode.c and names_record.c tell: an inode, and the directories above it. */
#define LOST_AT_MOST 4

struct deed {
	const char *name;
	int (*change)(struct who *w, const char *top);
};

static struct names_world nw;
static const struct deed *deed;
static char top[32];
static unsigned long losses;

/* ---- a small tree, and what is done to it ----------------------------------------------------------- */

static const char *at(const char *top_, const char *rest)
{
	static char paths[4][128];
	static unsigned k;
	char *out = paths[k++ & 3];

	snprintf(out, sizeof(paths[0]), "%s/%s", top_, rest);
	return out;
}

static void tree_make(struct who *w, const char *t)
{
	CHECK(!n_mkdir(w, t) && !n_mkdir(w, at(t, "a")) && !n_mkdir(w, at(t, "b")));
	CHECK(!n_mkdir(w, at(t, "a/full")) && !n_mkdir(w, at(t, "a/empty")) && !n_mkdir(w, at(t, "b/empty")));
	CHECK(!n_try(w, at(t, "a/one"), O_CREAT, 0601) && !n_try(w, at(t, "a/two"), O_CREAT, 0602));
	CHECK(!n_try(w, at(t, "b/three"), O_CREAT, 0603) && !n_try(w, at(t, "a/full/four"), O_CREAT, 0604));
	CHECK(!n_link(w, at(t, "a/two"), at(t, "b/second")));
}

static int do_create(struct who *w, const char *t)
{
	return n_create(w, at(t, "a/new"));
}
static int do_mkdir(struct who *w, const char *t)
{
	return n_mkdir(w, at(t, "a/new"));
}
static int do_symlink(struct who *w, const char *t)
{
	return n_symlink(w, "somewhere", at(t, "a/new"));
}
static int do_link(struct who *w, const char *t)
{
	return n_link(w, at(t, "a/one"), at(t, "b/new"));
}
static int do_unlink(struct who *w, const char *t)
{
	return n_unlink(w, at(t, "a/one"));
}
static int do_unlink_one_of_two(struct who *w, const char *t)
{
	return n_unlink(w, at(t, "a/two"));
}
static int do_rmdir(struct who *w, const char *t)
{
	return n_rmdir(w, at(t, "a/empty"));
}
static int do_rename(struct who *w, const char *t)
{
	return n_rename(w, at(t, "a/one"), at(t, "a/new"));
}
static int do_rename_across(struct who *w, const char *t)
{
	return n_rename(w, at(t, "a/one"), at(t, "b/new"));
}
static int do_rename_over(struct who *w, const char *t)
{
	return n_rename(w, at(t, "a/one"), at(t, "b/three"));
}
static int do_rename_over_one_of_two(struct who *w, const char *t)
{
	return n_rename(w, at(t, "a/one"), at(t, "a/two"));
}
static int do_rename_dir(struct who *w, const char *t)
{
	return n_rename(w, at(t, "a/full"), at(t, "b/new"));
}
static int do_rename_dir_over(struct who *w, const char *t)
{
	return n_rename(w, at(t, "a/full"), at(t, "b/empty"));
}
static int do_exchange(struct who *w, const char *t)
{
	return n_rename2(w, at(t, "a/full"), at(t, "b/three"), RENAME_EXCHANGE);
}
static int do_exchange_dirs(struct who *w, const char *t)
{
	return n_rename2(w, at(t, "a/full"), at(t, "b/empty"), RENAME_EXCHANGE);
}
static int do_whiteout(struct who *w, const char *t)
{
	return n_rename2(w, at(t, "a/one"), at(t, "b/new"), RENAME_WHITEOUT);
}

static const struct deed deeds[] = {
	{"create", do_create}, {"mkdir", do_mkdir}, {"symlink", do_symlink}, {"link", do_link},
	{"unlink", do_unlink}, {"unlink one of two", do_unlink_one_of_two}, {"rmdir", do_rmdir},
	{"rename", do_rename}, {"rename across", do_rename_across}, {"rename over", do_rename_over},
	{"rename over one of two", do_rename_over_one_of_two}, {"rename a directory", do_rename_dir},
	{"rename a directory over one", do_rename_dir_over}, {"exchange", do_exchange},
	{"exchange directories", do_exchange_dirs}, {"whiteout", do_whiteout},
};

/* ---- a tree in words ------------------------------------------------------------------------------------ */

struct print {
	struct who *w;
	const char *path;
	char line[64][96];
	unsigned n;
};

static void print_tree(struct who *w, const char *path, struct print *p);

static void print_entry(void *ctx, const struct n_dirent *e)
{
	struct print *p = ctx;
	char path[256];
	const char *above = p->path;
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", above, e->name);
	CHECK(!n_lstat(p->w, path, &st) && p->n < 64);
	snprintf(p->line[p->n++], sizeof(p->line[0]), "%.60s mode %o links %lu size %ld", path + strlen(top), st.st_mode,
		 (unsigned long)st.st_nlink, (long)st.st_size);
	if (S_ISDIR(st.st_mode))
		print_tree(p->w, path, p);
	p->path = above;
}

static void print_tree(struct who *w, const char *path, struct print *p)
{
	struct inode *dir;

	p->w = w;
	p->path = path;
	CHECK(!n_open(w, path, O_RDONLY | O_DIRECTORY, 0, &dir));
	n_list(w, dir, print_entry, p);
	n_put(w, dir);
}

static int by_line(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void print_all(struct who *w, char out[PRINT_SIZE])
{
	static struct print p;
	unsigned k;

	memset(&p, 0, sizeof(p));
	print_tree(w, top, &p);
	qsort(p.line, p.n, sizeof(p.line[0]), by_line);
	*out = 0;
	for (k = 0; k < p.n; k++)
		strcat(strcat(out, p.line[k]), "\n");
}

/* ---- dying ------------------------------------------------------------------------------------------------ */

static void child_prepare(void *arg)
{
	struct who *w = arg;

	*w = names_who(&nw);
	/* Lazy binding, and the thread's stocks. */
	CHECK(!deed->change(w, "/spare"));
}

static void child_run(void *arg)
{
	CHECK(!deed->change(arg, top));
}

static void use_on_entry(void *ctx, const struct n_dirent *e)
{
	struct check *c = ctx;
	char path[PATH_LIMIT + NAME_LIMIT + 2];

	if (e->type != DT_DIR)
		return;
	path_join(path, sizeof(path), c->path, e->name);
	{
		struct check below = {.w = c->w};

		snprintf(below.path, sizeof(below.path), "%s", path);
		CHECK(!n_open(c->w, path, O_RDONLY | O_DIRECTORY, 0, &below.dir));
		CHECK(!load_acquire(&below.dir->lock.word) && !(load_acquire(&below.dir->dir.name_seq.n) & 1));
		CHECK(!(load_acquire(&below.dir->seq.n) & 1));
		n_list(c->w, below.dir, use_on_entry, &below);
		n_put(c->w, below.dir);
	}
	strcat(path, "/another");
	CHECK(!n_create(c->w, path) && !n_unlink(c->w, path));
}

static void use_on(struct who *w)
{
	struct check c = {.w = w};

	snprintf(c.path, sizeof(c.path), "%s", top);
	CHECK(!n_open(w, top, O_RDONLY | O_DIRECTORY, 0, &c.dir));
	n_list(w, c.dir, use_on_entry, &c);
	n_put(w, c.dir);
}

static void check_print(struct who *w, const char *before, const char *after, unsigned long n)
{
	char found[PRINT_SIZE];

	print_all(w, found);
	if (!strcmp(found, before) || !strcmp(found, after))
		return;
	fprintf(stderr, "%s, dead after %lu instructions: neither as before nor as after:\n%s", deed->name, n, found);
	abort();
}

/* What all of it looks like without a death. */
static void plan(struct who *w, char *before, char *after)
{
	tree_make(w, top);
	print_all(w, before);
	CHECK(!deed->change(w, top));
	print_all(w, after);
	remove_tree(w, top);
	CHECK(!n_rmdir(w, top));
}

static int64_t settled_inodes(struct who *w)
{
	slot_reap(w->self);
	CHECK(!epoch_barrier(w->self, 10000000000));
	return vfs_inodes(nw.seg);
}

/* False: the change was done before the n-th instruction. */
static bool die_once(struct who *w, const char *before, const char *after, struct step_path *path, unsigned long n)
{
	struct who child;
	struct step_job job = {child_prepare, child_run, &child};
	int64_t inodes = settled_inodes(w), lost;
	bool killed;

	tree_make(w, top);
	tree_make(w, "/spare");
	killed = step_kill(&job, path, n);
	slot_reap(w->self);
	CHECK(!segment_poisoned(nw.seg));
	check_dir(w, top);
	check_print(w, before, after, n);
	use_on(w);
	remove_tree(w, "");
	lost = settled_inodes(w) - inodes;
	losses += lost > 0;
	if (lost < 0 || lost > LOST_AT_MOST) {
		fprintf(stderr, "%s, dead after %lu instructions: %ld inodes lost\n", deed->name, n, (long)lost);
		abort();
	}
	return killed;
}

static void die_all_over(const struct deed *d, uint64_t *random)
{
	char before[PRINT_SIZE], after[PRINT_SIZE];
	unsigned long n, kills = 0, stride = max_of(600 / test_scaled(4), 1ul);
	struct who w = names_who(&nw);
	struct step_path path = {0};

	deed = d;
	snprintf(top, sizeof(top), "/top");
	plan(&w, before, after);
	for (n = test_random(random) % stride; die_once(&w, before, after, &path, n); n += 1 + test_random(random) % (2 * stride))
		kills++;
	fprintf(stderr, "%s: %lu deaths over %lu instructions, %lu lost an inode\n", d->name, kills, n, losses);
	CHECK(losses <= 2 + kills / 10);
	losses = 0;
	step_path_end(&path);
}

static void every_death_leaves_the_tree_before_or_after_the_change(void **state)
{
	uint64_t random = test_seed();
	unsigned k;

	(void)state;
	if (!step_possible())
		test_skip("children cannot be single-stepped here");
	names_world_open(&nw, 64UL << 20);
	for (k = 0; k < ARRAY_SIZE(deeds); k++)
		die_all_over(&deeds[k], &random);
	names_world_close(&nw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_death_leaves_the_tree_before_or_after_the_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

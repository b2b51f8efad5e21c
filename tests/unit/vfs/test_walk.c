/* SPDX-License-Identifier: MIT */
/* test_walk.c - directories and the walk through them, without a file system above. */
#include "lib/attr_world.h"

#include "segment/header.h"

static struct attr_world world;
static struct who w;
static struct inode *root;

/* A name by hand, as ramfs does it under its locks. */
static struct inode *add(struct inode *dir, const char *name, struct inode *inode)
{
	size_t len = strlen(name);
	int k;
	struct dentry *d = dentry_new(w.self, name, len, dentry_hash(w.self, name, len), &k);

	CHECK(d && !dentry_reserve_locked(w.self, dir, d));
	dentry_noted(w.self, &k);
	if (S_ISDIR(inode_type(inode)))
		store_relaxed(&inode->dir.parent, dir);
	store_relaxed(&inode->alias, d);
	store_release(&d->inode, inode); /* pairs with dentry_find_epoch */
	store_relaxed(&dir->size, load_relaxed(&dir->size) + DIR_ENTRY_SIZE);
	return inode;
}

static void take(struct inode *dir, const char *name)
{
	size_t len = strlen(name);
	struct dentry *d = dentry_find_locked(dir, dentry_hash(w.self, name, len), name, len);

	CHECK(d);
	store_relaxed(&dir->size, load_relaxed(&dir->size) - DIR_ENTRY_SIZE);
	store_release(&d->inode, NULL); /* pairs with dentry_find_epoch */
	dentry_detach_locked(w.self, dir, d);
	dentry_retire_noted(w.self, d, dentry_retire_note(w.self, d));
}

static struct inode *make(uint32_t mode)
{
	return attr_inode(&w, mode, 0, 0);
}

static struct inode *make_link(const char *target)
{
	struct inode *inode = inode_new(&w, S_IFLNK | 0777, 0, 0);

	inode->target_len = (uint32_t)strlen(target);
	inode->target = mem_alloc(w.self, inode->target_len + 1u);
	CHECK(inode->target);
	strcpy(inode->target, target);
	return inode;
}

static int begin(void **state)
{
	(void)state;
	attr_world_open(&world, 0);
	w = world.w;
	root = vfs_root_of(w.self)->root;
	store_relaxed(&world.fs.root, root);
	store_relaxed(&world.fs.cwd, root);
	return 0;
}

static int end(void **state)
{
	(void)state;
	attr_world_close(&world);
	return 0;
}

static int walk(struct inode *start, const char *path, unsigned flags, struct walk *k)
{
	int err;

	epoch_enter(w.self);
	err = walk_epoch(&w, start, path, flags, k);
	epoch_exit(w.self);
	return err;
}

/* ---- the entries of a directory ------------------------------------------------------------------------- */

#define MANY 5000u

static void a_directory_grows_and_shrinks(void **state)
{
	struct inode *dir = add(root, "dir", make(S_IFDIR | 0755)), *file = make(S_IFREG | 0644);
	char name[24];
	struct walk k;
	unsigned n;

	(void)state;
	for (n = 0; n < MANY; n++) {
		snprintf(name, sizeof(name), "name-%u", n);
		add(dir, name, file);
		if (dentry_waits_locked(dir)) /* nobody else sees it */
			epoch_reclaim(w.self);
	}
	CHECK(load_relaxed(&dir->dir.table)->buckets > MANY / 5);
	for (n = 0; n < MANY; n++) {
		snprintf(name, sizeof(name), "dir/name-%u", n);
		CHECK(walk(NULL, name, 0, &k) == 0 && k.inode == file && k.parent == dir);
	}
	CHECK(walk(NULL, "dir/name-x", 0, &k) == -ENOENT);
	for (n = 0; n < MANY; n++) {
		snprintf(name, sizeof(name), "name-%u", n);
		take(dir, name);
		if (n % 100 == 0)
			epoch_reclaim(w.self);
	}
	CHECK(dir_entries(dir) == 0 && load_relaxed(&dir->dir.table)->buckets < 1000);
	CHECK(load_relaxed(&dir->dir.next_cookie) == DIR_FIRST_COOKIE && radix_nodes(&dir->dir.index) == 0);
}

/* The two links of an entry serve two tables in turn: a reader of the first must not meet the third. */
static void a_reader_keeps_the_directory_from_growing_twice(void **state)
{
	struct inode *dir = add(root, "dir", make(S_IFDIR | 0755)), *file = make(S_IFREG | 0644);
	struct dir_table *t;
	uint32_t before, seq;
	char name[24];
	unsigned n;

	(void)state;
	epoch_enter(w.self); /* this thread itself is the reader */
	for (n = 0; n < 21; n++) {
		snprintf(name, sizeof(name), "name-%u", n);
		add(dir, name, file);
	}
	t = load_relaxed(&dir->dir.table);
	before = t->buckets;
	seq = load_relaxed(&dir->dir.name_seq.n);
	for (; n <= 4 * before - 1; n++) {
		snprintf(name, sizeof(name), "name-%u", n);
		add(dir, name, file);
	}
	CHECK(load_relaxed(&dir->dir.table) == t && load_relaxed(&dir->dir.name_seq.n) == seq);
	for (; n <= 4 * before + 1; n++) { /* too small by far: it grows, and tells its readers */
		snprintf(name, sizeof(name), "name-%u", n);
		add(dir, name, file);
	}
	CHECK(load_relaxed(&dir->dir.table) != t && load_relaxed(&dir->dir.name_seq.n) == seq + 2);
	epoch_exit(w.self);
}

static void names_of_every_length_are_told_apart(void **state)
{
	struct inode *dir = add(root, "dir", make(S_IFDIR | 0755)), *inodes[NAME_LIMIT + 1];
	char name[NAME_LIMIT + 8] = "dir/";
	struct walk k;
	unsigned n;

	(void)state;
	for (n = 1; n <= NAME_LIMIT; n++) {
		name[3 + n] = 'x';
		name[4 + n] = 0;
		inodes[n] = add(dir, name + 4, make(S_IFREG | 0600));
	}
	for (n = NAME_LIMIT; n; n--) {
		name[4 + n] = 0;
		CHECK(walk(NULL, name, 0, &k) == 0 && k.inode == inodes[n] && k.last_len == n);
		name[3 + n] = 'y';
		CHECK(walk(NULL, name, 0, &k) == -ENOENT);
		name[3 + n] = 'x';
	}
}

/* ---- the walk -------------------------------------------------------------------------------------------------- */

static void symlinks_lead_on_up_to_forty(void **state)
{
	struct inode *a = add(root, "a", make(S_IFDIR | 0755)), *b = add(a, "b", make(S_IFDIR | 0755));
	struct inode *file = add(b, "file", make(S_IFREG | 0644));
	char name[16], target[16];
	struct walk k;
	unsigned n;

	(void)state;
	add(a, "up", make_link("../a/./b/"));
	add(root, "abs", make_link("/a/up"));
	add(root, "last", make_link("abs/file"));
	CHECK(walk(NULL, "last", WALK_FOLLOW, &k) == 0 && k.inode == file && k.parent == b);
	CHECK(walk(NULL, "last", 0, &k) == 0 && S_ISLNK(inode_type(k.inode)));
	CHECK(walk(NULL, "last/", WALK_FOLLOW, &k) == -ENOTDIR && walk(NULL, "abs/", 0, &k) == 0 && k.inode == b);
	CHECK(walk(a, "up/..//up/../b/file", 0, &k) == 0 && k.inode == file);
	add(root, "l0", make_link("a"));
	for (n = 1; n <= 40; n++) {
		snprintf(name, sizeof(name), "l%u", n);
		snprintf(target, sizeof(target), "l%u", n - 1);
		add(root, name, make_link(target));
	}
	CHECK(walk(NULL, "l39", WALK_FOLLOW, &k) == 0 && k.inode == a);
	CHECK(walk(NULL, "l40", WALK_FOLLOW, &k) == -ELOOP && walk(NULL, "l40/b", 0, &k) == -ELOOP);
	add(root, "self", make_link("self/self"));
	CHECK(walk(NULL, "self", WALK_FOLLOW, &k) == -ELOOP);
}

static void resolve_flags_keep_the_walk_where_it_should_be(void **state)
{
	struct inode *a = add(root, "a", make(S_IFDIR | 0755)), *b = add(a, "b", make(S_IFDIR | 0755));
	struct walk k;

	(void)state;
	add(a, "abs", make_link("/b"));
	add(a, "out", make_link("../a"));
	CHECK(walk(a, "b/..", WALK_BENEATH, &k) == 0 && k.inode == a && walk(a, "..", WALK_BENEATH, &k) == -EXDEV);
	CHECK(walk(a, "/b", WALK_BENEATH, &k) == -EXDEV && walk(a, "abs", WALK_BENEATH | WALK_FOLLOW, &k) == -EXDEV);
	CHECK(walk(a, "out/b", WALK_BENEATH, &k) == -EXDEV);
	CHECK(walk(a, "../../b", WALK_IN_ROOT, &k) == 0 && k.inode == b);
	CHECK(walk(a, "/b", WALK_IN_ROOT, &k) == 0 && k.inode == b);
	CHECK(walk(a, "abs", WALK_IN_ROOT | WALK_FOLLOW, &k) == 0 && k.inode == b);
	CHECK(walk(a, "out/b", WALK_NO_SYMLINKS, &k) == -ELOOP && walk(a, "out", WALK_NO_SYMLINKS, &k) == 0);
	CHECK(walk(a, "b", WALK_NO_XDEV | WALK_CACHED | WALK_NO_MAGICLINKS, &k) == 0);
}

static void dotdot_stops_at_the_tasks_root(void **state)
{
	struct inode *a = add(root, "a", make(S_IFDIR | 0755)), *b = add(a, "b", make(S_IFDIR | 0755));
	struct walk k;

	(void)state;
	store_relaxed(&world.fs.root, a);
	store_relaxed(&world.fs.cwd, b);
	CHECK(walk(NULL, "../../../b", 0, &k) == 0 && k.inode == b);
	CHECK(walk(NULL, "/..", 0, &k) == 0 && k.inode == a && walk(NULL, "/a", 0, &k) == -ENOENT);
}

static void empty_and_long_paths(void **state)
{
	struct inode *a = add(root, "a", make(S_IFDIR | 0755)), *file = add(a, "f", make(S_IFREG | 0644));
	static char path[PATH_LIMIT + 10];
	struct walk k;

	(void)state;
	CHECK(walk(file, "", 0, &k) == -ENOENT && walk(file, "", WALK_EMPTY_PATH, &k) == 0 && k.inode == file);
	CHECK(walk(file, "x", 0, &k) == -ENOTDIR && walk(NULL, "a/f/x", 0, &k) == -ENOTDIR);
	memset(path, '/', PATH_LIMIT - 1);
	path[PATH_LIMIT - 2] = 'a';
	CHECK(walk(NULL, path, 0, &k) == 0 && k.inode == a);
	path[PATH_LIMIT - 1] = '/';
	CHECK(walk(NULL, path, 0, &k) == -ENAMETOOLONG);
	path[0] = 'n'; /* does not exist: too long all the same */
	CHECK(walk(NULL, path, 0, &k) == -ENAMETOOLONG);
	memset(path, 'x', 256);
	path[256] = 0;
	CHECK(walk(NULL, path, 0, &k) == -ENAMETOOLONG && walk(NULL, path, WALK_PARENT, &k) == 0 && k.last_len == 256);
}

static void who_may_not_search_does_not_pass(void **state)
{
	struct inode *a = add(root, "a", make(S_IFDIR | 0700)), *b = add(a, "b", make(S_IFDIR | 0755));
	struct shelf_cred user = attr_user(1000, 1000, 0, NULL);
	struct walk k;

	(void)state;
	w.cred = &user;
	CHECK(walk(NULL, "a/b", 0, &k) == -EACCES && walk(NULL, "a", 0, &k) == 0 && walk(b, "..", 0, &k) == 0);
	store_relaxed(&a->uid, 1000u);
	CHECK(walk(NULL, "a/b", 0, &k) == 0);
	store_relaxed(&a->mode, S_IFDIR | 0077u);
	CHECK(walk(NULL, "a/b", 0, &k) == -EACCES); /* the owner's bits count, though all others may */
	user.caps = SHELF_CAP_DAC_READ_SEARCH;
	CHECK(walk(NULL, "a/b", 0, &k) == 0);
	w.cred = &world.root;
}

/* A thread died between the two ends of its range, and another has its slot. */
static void a_range_of_numbers_that_was_not_taken_whole_is_empty(void **state)
{
	uint64_t next, given;

	(void)state;
	inode_number(w.self);
	next = add_relaxed(&w.self->seg->hdr->next_ino, 1024);
	w.self->ino_next = next;
	given = inode_number(w.self);
	assert_true(given >= next + 1024);
	assert_true(inode_number(w.self) == given + 1 && w.self->ino_end > given + 1);
}

/* A rename that died in the middle leaves name_seq odd: the walk waits for the lock and goes on. */
static void an_odd_count_left_by_the_dead_is_repaired(void **state)
{
	struct inode *a = add(root, "a", make(S_IFDIR | 0755)), *b = add(a, "b", make(S_IFDIR | 0755));
	struct walk k;

	(void)state;
	seq_write_begin(&a->dir.name_seq);
	CHECK(walk(NULL, "a/b", WALK_CACHED, &k) == -EAGAIN);
	CHECK(walk(NULL, "a/b", 0, &k) == 0 && k.inode == b);
	CHECK(!(load_relaxed(&a->dir.name_seq.n) & 1));
	CHECK(!load_relaxed(&vfs_root_of(w.self)->rename_lock.word) && !load_relaxed(&a->lock.word));
}

#define WALK_TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WALK_TEST(a_directory_grows_and_shrinks),
		WALK_TEST(a_reader_keeps_the_directory_from_growing_twice),
		WALK_TEST(names_of_every_length_are_told_apart),
		WALK_TEST(symlinks_lead_on_up_to_forty),
		WALK_TEST(resolve_flags_keep_the_walk_where_it_should_be),
		WALK_TEST(dotdot_stops_at_the_tasks_root),
		WALK_TEST(empty_and_long_paths),
		WALK_TEST(who_may_not_search_does_not_pass),
		WALK_TEST(a_range_of_numbers_that_was_not_taken_whole_is_empty),
		WALK_TEST(an_odd_count_left_by_the_dead_is_repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

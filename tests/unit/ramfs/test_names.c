/* SPDX-License-Identifier: MIT */
/* test_names.c - what calls on names do, one behaviour a test. */
#include "names_world.h"

static struct names_world nw;
static struct who w;

static int begin(void **state)
{
	(void)state;
	names_world_open(&nw, 64UL << 20);
	w = names_who(&nw);
	return 0;
}

static int end(void **state)
{
	(void)state;
	names_world_close(&nw);
	return 0;
}

static uint64_t ino_of(const char *path)
{
	struct stat st;

	CHECK(n_lstat(&w, path, &st) == 0);
	return st.st_ino;
}

static unsigned long links_of(const char *path)
{
	struct stat st;

	CHECK(n_lstat(&w, path, &st) == 0);
	return st.st_nlink;
}

/* ---- N1 ------------------------------------------------------------------------------------------- */

static void rename_of_a_directory_takes_its_children_along(void **state)
{
	char buf[64], *at;
	struct inode *open_file;
	struct stat st;
	uint64_t ino;

	(void)state;
	CHECK(!n_mkdir(&w, "/dir") && !n_mkdir(&w, "/dir/sub") && !n_mkdir(&w, "/dir2") && !n_create(&w, "/dir/sub/file"));
	CHECK(!n_create(&w, "/dir2/other"));
	ino = ino_of("/dir/sub/file");
	CHECK(!n_open(&w, "/dir/sub/file", O_RDONLY, 0, &open_file) && !n_chdir(&w, "/dir/sub"));
	CHECK(!n_rename(&w, "/dir", "/moved"));
	CHECK(ino_of("/moved/sub/file") == ino && ino_of("file") == ino && open_file->ino == ino);
	CHECK(!n_exists(&w, "/dir/sub/file") && n_exists(&w, "/dir2/other"));
	CHECK(!n_getcwd(&w, buf, sizeof(buf), &at) && !strcmp(at, "/moved/sub"));
	CHECK(!n_stat(&w, "../..", &st) && st.st_ino == ino_of("/"));
	CHECK(n_rename(&w, "/moved", "/moved/x") == -EINVAL && n_rename(&w, "/moved", "/moved/sub/x") == -EINVAL);
	CHECK(!n_create(&w, "/f") && !n_rename(&w, "/f", "/f_new"));
	n_put(&w, open_file);
}

/* ---- N2 ----------------------------------------------------------------------------------------------- */

static void rename_refuses_what_linux_refuses(void **state)
{
	(void)state;
	CHECK(!n_mkdir(&w, "/d") && !n_mkdir(&w, "/full") && !n_create(&w, "/full/x") && !n_create(&w, "/f"));
	CHECK(n_rename(&w, "/f", "/d") == -EISDIR);
	CHECK(n_rename(&w, "/d", "/f") == -ENOTDIR);
	CHECK(n_rename(&w, "/d", "/full") == -ENOTEMPTY);
	CHECK(n_rename(&w, "/full/x", "/full") == -ENOTEMPTY);
	CHECK(n_rename(&w, "/d/.", "/e") == -EBUSY && n_rename(&w, "/d", "/full/..") == -EBUSY);
	CHECK(n_rename(&w, "/f", "/f") == 0 && n_exists(&w, "/f"));
	CHECK(!n_link(&w, "/f", "/g") && !n_rename(&w, "/f", "/g"));
	CHECK(n_exists(&w, "/f") && n_exists(&w, "/g") && links_of("/f") == 2);
	CHECK(n_rename2(&w, "/f", "/d", RENAME_NOREPLACE) == -EEXIST);
	CHECK(n_rename2(&w, "/f", "/d", RENAME_NOREPLACE | RENAME_EXCHANGE) == -EINVAL);
	CHECK(n_rename2(&w, "/f", "/d", 1u << 10) == -EINVAL);
}

static void ancestry_is_by_inode_not_by_name(void **state)
{
	(void)state;
	CHECK(!n_mkdir(&w, "/a") && !n_mkdir(&w, "/a/b") && !n_symlink(&w, "/a/b", "/way"));
	CHECK(n_rename(&w, "/a", "/way/a") == -EINVAL);
	CHECK(n_rename(&w, "/a", "/way/../b/c") == -EINVAL);
	CHECK(!n_mkdir(&w, "/ab") && !n_rename(&w, "/a", "/ab/a") && n_exists(&w, "/ab/a/b"));
}

static void exchange_and_whiteout(void **state)
{
	struct stat st;
	uint64_t file, dir;

	(void)state;
	CHECK(!n_mkdir(&w, "/a") && !n_mkdir(&w, "/b") && !n_create(&w, "/a/file") && !n_mkdir(&w, "/b/dir"));
	file = ino_of("/a/file");
	dir = ino_of("/b/dir");
	CHECK(!n_rename2(&w, "/a/file", "/b/dir", RENAME_EXCHANGE));
	CHECK(ino_of("/a/file") == dir && ino_of("/b/dir") == file && links_of("/a") == 3 && links_of("/b") == 2);
	CHECK(ino_of("/a/file/..") == ino_of("/a"));
	CHECK(!n_rename2(&w, "/b/dir", "/b/moved", RENAME_WHITEOUT));
	CHECK(!n_lstat(&w, "/b/dir", &st) && S_ISCHR(st.st_mode) && st.st_rdev == 0 && ino_of("/b/moved") == file);
}

/* ---- N3 ------------------------------------------------------------------------------------------------------ */

static void rename_over_an_open_target_keeps_its_data(void **state)
{
	struct iovec iov = {.iov_base = (char[]){"old"}, .iov_len = 3};
	struct inode *old;
	uint64_t pos = 0;
	char buf[8] = "";

	(void)state;
	CHECK(!n_open(&w, "/target", O_CREAT | O_RDWR, 0600, &old) && !n_create(&w, "/new"));
	CHECK(ramfs_write(&w, old, &iov, 1, &pos, 3, 0) == 3);
	CHECK(!n_rename(&w, "/new", "/target") && ino_of("/target") != old->ino);
	epoch_enter(w.self);
	CHECK(ramfs_pread_epoch(w.self, old, buf, sizeof(buf), 0) == 3);
	epoch_exit(w.self);
	CHECK(!memcmp(buf, "old", 3) && load_acquire(&old->nlink) == 0);
	n_put(&w, old);
}

/* ---- N4 ----------------------------------------------------------------------------------------------------------- */

static void create_goes_through_a_dangling_symlink(void **state)
{
	(void)state;
	CHECK(!n_mkdir(&w, "/d") && !n_symlink(&w, "d/target", "/link"));
	CHECK(n_try(&w, "/link", O_CREAT | O_EXCL | O_WRONLY, 0600) == -EEXIST);
	CHECK(n_try(&w, "/link", O_CREAT | O_NOFOLLOW | O_WRONLY, 0600) == -ELOOP && !n_exists(&w, "/d/target"));
	CHECK(n_try(&w, "/link", O_WRONLY, 0) == -ENOENT);
	CHECK(!n_try(&w, "/link", O_CREAT | O_WRONLY, 0600) && n_exists(&w, "/d/target"));
	CHECK(n_try(&w, "/d/target/", O_RDONLY, 0) == -ENOTDIR && n_try(&w, "/d/none/", O_CREAT, 0600) == -EISDIR);
	CHECK(n_try(&w, "/d", O_CREAT, 0600) == -EISDIR && n_try(&w, "/d", O_RDWR, 0) == -EISDIR);
	CHECK(n_try(&w, "/d", O_CREAT | O_DIRECTORY, 0600) == -EINVAL);
}

/* ---- N7 --------------------------------------------------------------------------------------------------------------- */

struct seen {
	unsigned char entry[1000];
	unsigned count;
	bool unlink;
};

static void see(void *ctx, const struct n_dirent *e)
{
	struct seen *s = ctx;
	char path[32];

	snprintf(path, sizeof(path), "/d/%.20s", e->name);
	CHECK(!s->entry[atoi(e->name + 1)]++);
	s->count++;
	if (s->unlink)
		CHECK(!n_unlink(&w, path));
}

static void fill(unsigned n)
{
	char path[32];
	unsigned k;

	CHECK(!n_mkdir(&w, "/d"));
	for (k = 0; k < n; k++) {
		snprintf(path, sizeof(path), "/d/f%u", k);
		CHECK(!n_create(&w, path));
	}
}

static void a_listing_that_unlinks_each_entry_sees_all(void **state)
{
	struct seen s = {.unlink = true};
	struct inode *dir;

	(void)state;
	fill(1000);
	CHECK(!n_open(&w, "/d", O_RDONLY, 0, &dir));
	n_list(&w, dir, see, &s);
	n_put(&w, dir);
	CHECK(s.count == 1000 && n_count(&w, "/d") == 0);
}

static ssize_t list_some(struct inode *dir, uint64_t *pos, char *name)
{
	_Alignas(8) char buf[32];
	ssize_t n;

	epoch_enter(w.self);
	n = ramfs_getdents_epoch(&w, dir, pos, buf, sizeof(buf));
	epoch_exit(w.self);
	if (n > 0)
		strcpy(name, ((struct n_dirent *)(void *)buf)->name);
	return n;
}

static void a_position_stays_valid_while_entries_come_and_go(void **state)
{
	char path[32], name[16], first[16];
	struct inode *dir;
	uint64_t pos = 2, kept;
	unsigned k;

	(void)state;
	fill(20);
	CHECK(!n_open(&w, "/d", O_RDONLY, 0, &dir));
	for (k = 0; k < 10; k++)
		CHECK(list_some(dir, &pos, name) > 0);
	kept = pos;
	CHECK(list_some(dir, &pos, first) > 0);
	for (k = 0; k < 5; k++) {
		snprintf(path, sizeof(path), "/d/f%u", k);
		CHECK(!n_unlink(&w, path));
		snprintf(path, sizeof(path), "/d/new%u", k);
		CHECK(!n_create(&w, path));
	}
	pos = kept;
	CHECK(list_some(dir, &pos, name) > 0 && !strcmp(name, first));
	epoch_enter(w.self);
	pos = 0;
	CHECK(ramfs_getdents_epoch(&w, dir, &pos, name, 8) == -EINVAL);
	epoch_exit(w.self);
	n_put(&w, dir);
}

static void rename_each_while_listing(void *ctx, const struct n_dirent *e)
{
	char from[32], to[32];
	unsigned *count = ctx;

	snprintf(from, sizeof(from), "/d/%.20s", e->name);
	snprintf(to, sizeof(to), "/d/x%.20s", e->name);
	CHECK(!n_rename(&w, from, to) && ++*count <= 100);
}

static void renaming_each_entry_while_listing_comes_to_an_end(void **state)
{
	struct inode *dir;
	unsigned count = 0;

	(void)state;
	fill(100);
	CHECK(!n_open(&w, "/d", O_RDONLY, 0, &dir));
	n_list(&w, dir, rename_each_while_listing, &count);
	n_put(&w, dir);
	CHECK(count == 100 && n_count(&w, "/d") == 100);
}

/* ---- N8 ------------------------------------------------------------------------------------------------------------------- */

static void links_and_sizes_are_counted(void **state)
{
	struct stat st;

	(void)state;
	CHECK(!n_mkdir(&w, "/d") && !n_mkdir(&w, "/d/e") && !n_create(&w, "/d/f") && !n_link(&w, "/d/f", "/g"));
	CHECK(links_of("/d") == 3 && links_of("/g") == 2 && ino_of("/g") == ino_of("/d/f"));
	CHECK(!n_stat(&w, "/d", &st) && st.st_size == 80);
	CHECK(!n_unlink(&w, "/d/f") && links_of("/g") == 1 && !n_rmdir(&w, "/d/e") && links_of("/d") == 2);
	CHECK(!n_stat(&w, "/d", &st) && st.st_size == 40);
	CHECK(n_link(&w, "/d", "/h") == -EPERM && n_link(&w, "/g", "/d") == -EEXIST);
}

/* ---- N9 ----------------------------------------------------------------------------------------------------------------------- */

static void a_removed_directory_takes_no_entries(void **state)
{
	char buf[64], *at;
	struct stat st;

	(void)state;
	CHECK(!n_mkdir(&w, "/a") && !n_mkdir(&w, "/a/d") && !n_chdir(&w, "/a/d") && !n_rmdir(&w, "/a/d"));
	CHECK(n_create(&w, "x") == -ENOENT && n_mkdir(&w, "x") == -ENOENT && n_symlink(&w, "t", "x") == -ENOENT);
	CHECK(n_getcwd(&w, buf, sizeof(buf), &at) == -ENOENT);
	CHECK(!n_stat(&w, ".", &st) && st.st_nlink == 0 && !n_stat(&w, "..", &st) && st.st_ino == ino_of("/a"));
	CHECK(!n_rmdir(&w, "/a") && !n_stat(&w, "..", &st) && !n_chdir(&w, "/"));
	CHECK(!n_create(&w, "/f") && n_rmdir(&w, ".") == -EINVAL && n_rmdir(&w, "..") == -ENOTEMPTY && n_rmdir(&w, "/") == -EBUSY);
	CHECK(n_stat(&w, "/f/x", &st) == -ENOTDIR && n_stat(&w, "/f/..", &st) == -ENOTDIR && n_stat(&w, "/f/", &st) == -ENOTDIR);
}

/* ---- N11 ---------------------------------------------------------------------------------------------------------------------------- */

static void a_tmpfile_is_named_once(void **state)
{
	int64_t before = vfs_inodes(nw.seg);
	struct inode *file, *secret;

	(void)state;
	CHECK(!n_mkdir(&w, "/d"));
	CHECK(!ramfs_tmpfile(&w, NULL, "/d", 0600, O_RDWR, &file) && load_relaxed(&file->nlink) == 0 && n_count(&w, "/d") == 0);
	ledger_del(w.self, file);
	CHECK(!ramfs_link(&w, NULL, "", file, false, NULL, "/d/name") && links_of("/d/name") == 1);
	n_put(&w, file);
	CHECK(n_exists(&w, "/d/name") && !n_unlink(&w, "/d/name"));
	CHECK(!ramfs_tmpfile(&w, NULL, "/d", 0600, O_RDWR | O_EXCL, &secret));
	ledger_del(w.self, secret);
	CHECK(ramfs_link(&w, NULL, "", secret, false, NULL, "/d/name") == -ENOENT);
	n_put(&w, secret);
	CHECK(!n_rmdir(&w, "/d") && !epoch_barrier(w.self, 10000000000) && vfs_inodes(nw.seg) == before);
}

/* ---- a full segment ------------------------------------------------------------------------------------------------------------------- */

static void a_full_shelf_refuses_and_stays_whole(void **state)
{
	struct names_world small;
	struct who v;
	char path[32];
	unsigned n;
	int err;

	(void)state;
	names_world_open(&small, 4UL << 20);
	v = names_who(&small);
	CHECK(!n_mkdir(&v, "/d") && !n_mkdir(&v, "/e"));
	for (n = 0;; n++) {
		snprintf(path, sizeof(path), "/d/f%u", n);
		err = n_create(&v, path);
		if (err)
			break;
	}
	CHECK(err == -ENOSPC && n > 100 && n_count(&v, "/d") == (long)n && !n_exists(&v, path));
	err = n_mkdir(&v, "/e/sub");
	CHECK(err == -ENOSPC || err == 0);
	while (n--) {
		snprintf(path, sizeof(path), "/d/f%u", n);
		CHECK(!n_unlink(&v, path));
	}
	CHECK(n_count(&v, "/d") == 0 && !epoch_barrier(v.self, 10000000000) && !n_create(&v, "/d/again"));
	names_world_close(&small);
}

#define NAMES_TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NAMES_TEST(rename_of_a_directory_takes_its_children_along),
		NAMES_TEST(rename_refuses_what_linux_refuses),
		NAMES_TEST(ancestry_is_by_inode_not_by_name),
		NAMES_TEST(exchange_and_whiteout),
		NAMES_TEST(rename_over_an_open_target_keeps_its_data),
		NAMES_TEST(create_goes_through_a_dangling_symlink),
		NAMES_TEST(a_listing_that_unlinks_each_entry_sees_all),
		NAMES_TEST(a_position_stays_valid_while_entries_come_and_go),
		NAMES_TEST(renaming_each_entry_while_listing_comes_to_an_end),
		NAMES_TEST(links_and_sizes_are_counted),
		NAMES_TEST(a_removed_directory_takes_no_entries),
		NAMES_TEST(a_tmpfile_is_named_once),
		NAMES_TEST(a_full_shelf_refuses_and_stays_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

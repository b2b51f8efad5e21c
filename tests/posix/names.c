/* SPDX-License-Identifier: MIT */
/* Names: rename, link, unlink, mkdir, links, listings, O_TMPFILE, times. */
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/fixture.h"

static int create(struct shelf_task *t, const char *path)
{
	return shelf_open(t, path, O_CREAT | O_EXCL | O_RDWR, 0644);
}

/* ---- rename ---------------------------------------------------------------------------------------- */

static void children_follow_a_renamed_directory(void **state)
{
	struct px *px = *state;
	char cwd[100];
	int fd;

	assert_int_equal(shelf_mkdir(px->t, "d", 0755), 0);
	assert_int_equal(shelf_mkdir(px->t, "d/in", 0755), 0);
	px_write_file(px->t, "d/in/f", "text");
	px_write_file(px->t, "d2", "sibling with the same beginning");
	fd = shelf_open(px->t, "d/in/f", O_RDWR, 0);
	assert_int_equal(shelf_chdir(px->t, "d/in"), 0);
	assert_int_equal(shelf_rename(px->t, "/d", "/elsewhere"), 0);
	assert_true(px_file_is(px->t, "f", "text"));
	assert_int_equal(shelf_getcwd(px->t, cwd, sizeof(cwd)), sizeof("/elsewhere/in"));
	assert_string_equal(cwd, "/elsewhere/in");
	assert_int_equal(shelf_write(px->t, fd, "TEXT", 4), 4);
	assert_true(px_file_is(px->t, "/elsewhere/in/f", "TEXT"));
	assert_true(px_exists(px->t, "/d2"));
	assert_int_equal(shelf_rename(px->t, "/d2", "/d2_new"), 0);
	assert_int_equal(shelf_rename(px->t, "/elsewhere", "/elsewhere/x"), -EINVAL);
	assert_int_equal(shelf_rename(px->t, "/elsewhere", "/elsewhere/in/x"), -EINVAL);
}

static void rename_replaces_by_the_rules(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;

	shelf_mkdir(t, "dir", 0755);
	shelf_mkdir(t, "full", 0755);
	px_write_file(t, "full/x", "");
	px_write_file(t, "file", "1");
	px_write_file(t, "other", "2");
	assert_int_equal(shelf_rename(t, "file", "dir"), -EISDIR);
	assert_int_equal(shelf_rename(t, "dir", "file"), -ENOTDIR);
	assert_int_equal(shelf_rename(t, "dir", "full"), -ENOTEMPTY);
	assert_int_equal(shelf_rename(t, "file", "file"), 0);
	assert_int_equal(shelf_link(t, "file", "hard"), 0);
	assert_int_equal(shelf_rename(t, "file", "hard"), 0);
	assert_true(px_exists(t, "file") && px_exists(t, "hard"));
	assert_int_equal(shelf_rename(t, "dir/.", "x"), -EBUSY);
	assert_int_equal(shelf_rename(t, "dir", "x/.."), -ENOENT);
	assert_int_equal(shelf_rename(t, "full", "dir"), 0);
	assert_true(px_exists(t, "dir/x"));
	assert_int_equal(shelf_rename(t, "file", "other"), 0);
	assert_true(px_file_is(t, "other", "1"));
	assert_int_equal(shelf_renameat2(t, AT_FDCWD, "hard", AT_FDCWD, "other", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(shelf_renameat2(t, AT_FDCWD, "hard", AT_FDCWD, "dir", RENAME_EXCHANGE), 0);
	assert_true(px_file_is(t, "dir", "1") && px_exists(t, "hard/x"));
	assert_int_equal(shelf_renameat2(t, AT_FDCWD, "a", AT_FDCWD, "b", 1u << 30), -EINVAL);
}

/* ---- nobody finds the name absent --------------------------------------------------------------------- */

static _Atomic int stop;

static void replace_or_look(struct px *px, void *arg, unsigned k)
{
	struct stat st;
	char name[20];

	(void)arg;
	if (k) {
		while (!stop)
			CHECK(!shelf_stat(px->t, "target", &st) && st.st_size == 3);
		return;
	}
	for (unsigned long i = 0, n = test_scaled(20000); i < n; i++) {
		snprintf(name, sizeof(name), "new%lu", i % 7);
		px_write_file(px->t, name, "new");
		CHECK(!shelf_rename(px->t, name, "target"));
	}
	stop = 1;
}

static void a_replaced_name_is_never_absent(void **state)
{
	struct px *px = *state;
	char buf[10];
	int old;

	px_write_file(px->t, "target", "old");
	old = shelf_open(px->t, "target", O_RDONLY, 0);
	stop = 0;
	px_threads(px, 3, replace_or_look, NULL);
	assert_int_equal(shelf_read(px->t, old, buf, 10), 3);
	assert_memory_equal(buf, "old", 3);
	assert_int_equal(px_count_entries(px->t, "/"), 1);
}

/* ---- symbolic links ---------------------------------------------------------------------------------- */

static void creation_through_links_goes_where_they_point(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;

	assert_int_equal(shelf_symlink(t, "target", "dangling"), 0);
	assert_int_equal(shelf_open(t, "dangling", O_CREAT | O_EXCL | O_RDWR, 0600), -EEXIST);
	assert_int_equal(shelf_open(t, "dangling", O_CREAT | O_NOFOLLOW | O_RDWR, 0600), -ELOOP);
	assert_int_equal(shelf_open(t, "dangling", O_RDONLY, 0), -ENOENT);
	assert_int_equal(shelf_open(t, "dangling", O_CREAT | O_RDWR, 0600), 0);
	assert_true(px_exists(t, "target"));
	assert_int_equal(shelf_open(t, "target/", O_RDONLY, 0), -ENOTDIR);
	assert_int_equal(shelf_symlink(t, "loop", "loop"), 0);
	assert_int_equal(shelf_open(t, "loop", O_RDONLY, 0), -ELOOP);
}

static void racing_creators_have_one_winner(struct px *px, void *arg, unsigned k)
{
	volatile int *won = arg;
	char name[20];

	for (int i = 0; i < 2000; i++) {
		int r;

		snprintf(name, sizeof(name), "n%d", i);
		switch ((unsigned)i % 4) {
		case 0:
			r = shelf_mkdir(px->t, name, 0755);
			break;
		case 1:
			r = create(px->t, name);
			if (r >= 0)
				r = shelf_close(px->t, r);
			break;
		case 2:
			r = shelf_link(px->t, "source", name);
			break;
		default:
			r = shelf_symlink(px->t, "source", name);
		}
		CHECK(!r || r == -EEXIST);
		if (!r)
			__sync_fetch_and_add(&won[i], 1);
	}
	(void)k;
}

static void exactly_one_of_two_creators_succeeds(void **state)
{
	struct px *px = *state;
	static int won[2000];

	memset(won, 0, sizeof(won));
	px_write_file(px->t, "source", "");
	px_threads(px, 4, racing_creators_have_one_winner, won);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(won[i], 1);
	assert_int_equal(px_nlink(px->t, "source"), 501);
	assert_int_equal(px_nlink(px->t, "/"), 502);
}

/* ---- many names in one directory ---------------------------------------------------------------------- */

static void create_my_share(struct px *px, void *arg, unsigned k)
{
	char name[40];

	(void)arg;
	for (unsigned i = 0; i < 2500; i++) {
		snprintf(name, sizeof(name), "dir/%u-%u", k, i);
		CHECK(!shelf_close(px->t, create(px->t, name)));
	}
}

static void parallel_creates_are_all_listed(void **state)
{
	struct px *px = *state;

	shelf_mkdir(px->t, "dir", 0755);
	px_threads(px, 4, create_my_share, NULL);
	assert_int_equal(px_count_entries(px->t, "dir"), 10000);
}

static void make_and_unlink(struct px *px, void *arg, unsigned k)
{
	unsigned long base = (unsigned long)arg;
	char name[60];

	for (unsigned i = 0; i < 250; i++) {
		snprintf(name, sizeof(name), "tmp/%lu-%u-%u", base, k, i);
		CHECK(!shelf_close(px->t, create(px->t, name)));
		CHECK(!shelf_unlink(px->t, name));
	}
}

static int make_and_unlink_in_threads(struct px *px, void *arg)
{
	px_threads(px, 20, make_and_unlink, arg);
	return 0;
}

static void threads_and_processes_share_a_scratch_directory(void **state)
{
	struct px *px = *state;
	pid_t pids[8];

	shelf_mkdir(px->t, "tmp", 01777);
	for (unsigned long i = 0; i < 8; i++)
		pids[i] = px_fork(px, 0, make_and_unlink_in_threads, (void *)i);
	for (int i = 0; i < 8; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	assert_int_equal(px_count_entries(px->t, "tmp"), 0);
	assert_int_equal(shelf_rmdir(px->t, "tmp"), 0);
}

static void listing_while_unlinking_shows_each_entry_once(void **state)
{
	struct px *px = *state;
	_Alignas(8) char buf[400];
	char seen[1000] = "", name[40];
	int64_t middle = 0, again;
	int fd, count = 0;
	ssize_t n;

	shelf_mkdir(px->t, "dir", 0755);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "dir/%d", i);
		shelf_close(px->t, create(px->t, name));
	}
	fd = shelf_open(px->t, "dir", O_RDONLY, 0);
	while ((n = shelf_getdents64(px->t, fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			struct px_dirent *d = (struct px_dirent *)(buf + at);

			at += d->reclen;
			if (d->name[0] == '.')
				continue;
			assert_false(seen[atoi(d->name)]);
			seen[atoi(d->name)] = 1;
			snprintf(name, sizeof(name), "dir/%s", d->name);
			assert_int_equal(shelf_unlink(px->t, name), 0);
			/* Somebody makes others meanwhile. */
			snprintf(name, sizeof(name), "dir/.%s", d->name);
			shelf_close(px->t, create(px->t, name));
			if (++count == 500)
				middle = d->off;
		}
	assert_int_equal(n, 0);
	assert_int_equal(count, 1000);
	/* A position from before goes on where it was. */
	again = shelf_lseek(px->t, fd, middle, SEEK_SET);
	assert_int_equal(again, middle);
	assert_true(shelf_getdents64(px->t, fd, buf, sizeof(buf)) >= 0);
}

/* ---- counts and identity --------------------------------------------------------------------------------- */

static void link_counts_and_blocks_are_as_on_tmpfs(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	struct stat st;
	ino_t ino;
	int fd;

	px_write_file(t, "f", "x");
	ino = px_ino(t, "f");
	assert_int_equal(shelf_link(t, "f", "g"), 0);
	assert_int_equal(px_nlink(t, "f"), 2);
	assert_int_equal(shelf_unlink(t, "f"), 0);
	assert_int_equal(px_nlink(t, "g"), 1);
	assert_int_equal(shelf_rename(t, "g", "h"), 0);
	assert_true(px_ino(t, "h") == ino);
	assert_int_equal(px_nlink(t, "/"), 2);
	shelf_mkdir(t, "d", 0755);
	shelf_mkdir(t, "d/e", 0755);
	assert_int_equal(px_nlink(t, "/"), 3);
	assert_int_equal(px_nlink(t, "d"), 3);
	assert_int_equal(shelf_rename(t, "d/e", "e"), 0);
	assert_int_equal(px_nlink(t, "/"), 4);
	assert_int_equal(px_nlink(t, "d"), 2);
	fd = shelf_open(t, "h", O_RDWR, 0);
	assert_int_equal(shelf_pwrite(t, fd, "y", 1, 1 << 30), 1);
	assert_int_equal(shelf_fstat(t, fd, &st), 0);
	assert_int_equal(st.st_blocks, 16);
	assert_int_equal(shelf_unlink(t, "h"), 0);
	assert_int_equal(shelf_fstat(t, fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
}

static void removed_directories_take_no_names(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	char cwd[40], long_name[NAME_MAX + 3] = "";

	memset(long_name, 'x', NAME_MAX + 1);
	shelf_mkdir(t, "d", 0755);
	px_write_file(t, "f", "");
	assert_int_equal(shelf_rmdir(t, "d/."), -EINVAL);
	shelf_mkdir(t, "d/e", 0755);
	assert_int_equal(shelf_rmdir(t, "d/e/.."), -ENOTEMPTY);
	assert_int_equal(shelf_rmdir(t, "d"), -ENOTEMPTY);
	assert_int_equal(shelf_rmdir(t, "f"), -ENOTDIR);
	assert_int_equal(shelf_unlink(t, "d"), -EISDIR);
	assert_int_equal(shelf_rmdir(t, "d/e"), 0);
	assert_int_equal(shelf_chdir(t, "d"), 0);
	assert_int_equal(shelf_rmdir(t, "/d"), 0);
	assert_int_equal(create(t, "x"), -ENOENT);
	assert_int_equal(shelf_mkdir(t, "x", 0755), -ENOENT);
	assert_int_equal(shelf_symlink(t, "x", "y"), -ENOENT);
	assert_int_equal(shelf_rename(t, "/f", "x"), -ENOENT);
	assert_int_equal(shelf_rename(t, long_name, "/x"), -ENOENT);
	memmove(long_name + 1, long_name, NAME_MAX + 2);
	long_name[0] = '/';
	assert_int_equal(shelf_rename(t, long_name, "x"), -ENAMETOOLONG); /* the old name is looked up first */
	assert_int_equal(shelf_getcwd(t, cwd, sizeof(cwd)), -ENOENT);
	assert_int_equal(create(t, "/f/x"), -ENOTDIR);
	assert_int_equal(shelf_chdir(t, "/"), 0);
}

/* ---- O_TMPFILE ----------------------------------------------------------------------------------------------- */

static void an_unnamed_file_can_be_named_once(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	char proc[40];
	int fd = shelf_open(t, ".", O_TMPFILE | O_RDWR, 0600), excl;

	assert_true(fd >= 0);
	assert_int_equal(px_count_entries(t, "/"), 0);
	assert_int_equal(shelf_write(t, fd, "text", 4), 4);
	assert_int_equal(shelf_linkat(t, fd, "", AT_FDCWD, "named", AT_EMPTY_PATH), 0);
	assert_int_equal(shelf_linkat(t, fd, "", AT_FDCWD, "named", AT_EMPTY_PATH), -EEXIST);
	assert_true(px_file_is(t, "named", "text"));
	assert_int_equal(shelf_unlink(t, "named"), 0);
	assert_int_equal(shelf_linkat(t, fd, "", AT_FDCWD, "again", AT_EMPTY_PATH), -ENOENT);
	fd = shelf_open(t, ".", O_TMPFILE | O_RDWR, 0600);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	assert_int_equal(shelf_linkat(t, AT_FDCWD, proc, AT_FDCWD, "by-path", AT_SYMLINK_FOLLOW), 0);
	assert_int_equal(px_nlink(t, "by-path"), 1);
	excl = shelf_open(t, ".", O_TMPFILE | O_EXCL | O_RDWR, 0600);
	assert_int_equal(shelf_linkat(t, excl, "", AT_FDCWD, "never", AT_EMPTY_PATH), -ENOENT);
}

/* ---- statfs, times ---------------------------------------------------------------------------------------------- */

static void statfs_follows_the_space(void **state)
{
	struct px *px = *state;
	static char data[1 << 20];
	struct statfs before, full;
	int fd = create(px->t, "f");

	assert_int_equal(shelf_statfs(px->t, "/", &before), 0);
	assert_int_equal(before.f_type, SHELF_SUPER_MAGIC);
	assert_int_equal(before.f_bsize, 4096);
	for (int i = 0; i < 16; i++)
		assert_int_equal(shelf_write(px->t, fd, data, sizeof(data)), sizeof(data));
	assert_int_equal(shelf_fstatfs(px->t, fd, &full), 0);
	assert_int_equal(full.f_blocks, before.f_blocks);
	assert_in_range(before.f_bfree - full.f_bfree, 4096, 4096 + 600);
	assert_true(full.f_bavail <= full.f_blocks);
}

static void times_are_set_to_the_nanosecond(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	struct timespec past[2] = { { 1, 123456789 }, { 2, 987654321 } };
	struct timespec mixed[2] = { { 0, UTIME_OMIT }, { 0, UTIME_NOW } };
	struct stat st;

	px_write_file(t, "f", "");
	assert_int_equal(shelf_utimensat(t, AT_FDCWD, "f", past, 0), 0);
	assert_int_equal(shelf_stat(t, "f", &st), 0);
	assert_int_equal(st.st_atim.tv_nsec, 123456789);
	assert_int_equal(st.st_mtim.tv_nsec, 987654321);
	assert_int_equal(shelf_utimensat(t, AT_FDCWD, "f", mixed, 0), 0);
	assert_int_equal(shelf_stat(t, "f", &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 1);
	assert_true(st.st_mtim.tv_sec > 1000000000);
	px_become(t, 1000, 1000);
	assert_int_equal(shelf_utimensat(t, AT_FDCWD, "f", past, 0), -EPERM);
	assert_int_equal(shelf_utimensat(t, AT_FDCWD, "f", NULL, 0), -EACCES);
	past[0].tv_nsec = 1000000000;
	assert_int_equal(shelf_utimensat(t, AT_FDCWD, "f", past, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(children_follow_a_renamed_directory),
		PX_TEST(rename_replaces_by_the_rules),
		PX_TEST(a_replaced_name_is_never_absent),
		PX_TEST(creation_through_links_goes_where_they_point),
		PX_TEST(exactly_one_of_two_creators_succeeds),
		PX_TEST(parallel_creates_are_all_listed),
		PX_TEST(threads_and_processes_share_a_scratch_directory),
		PX_TEST(listing_while_unlinking_shows_each_entry_once),
		PX_TEST(link_counts_and_blocks_are_as_on_tmpfs),
		PX_TEST(removed_directories_take_no_names),
		PX_TEST(an_unnamed_file_can_be_named_once),
		PX_TEST(statfs_follows_the_space),
		PX_TEST(times_are_set_to_the_nanosecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The read side stores to nothing shared: a process that maps the segment for reading, its own slot apart, runs
 * descriptor lookup, walk, stat, access, readlink, pread and getdents to the end; and a call that writes does not.
 */
#include <fcntl.h>
#include <signal.h>

#include "lib/fixture.h"

static void make_tree(struct px *px)
{
	CHECK(!shelf_mkdir(px->t, "d", 0755));
	CHECK(!shelf_mkdir(px->t, "d/sub", 0755));
	px_write_file(px->t, "d/file", "contents of the file");
	CHECK(!shelf_symlink(px->t, "../file", "d/sub/link"));
	CHECK(shelf_open(px->t, "d/file", O_RDWR, 0) == 0);
	CHECK(shelf_open(px->t, "d", O_RDONLY | O_DIRECTORY, 0) == 1);
}

static void read_descriptors(struct shelf_task *t)
{
	_Alignas(8) char buf[4096];
	struct iovec iov[2] = { { buf, 4 }, { buf + 100, 50 } };
	off_t position = 0;
	struct stat st;
	int names = 0;
	ssize_t n;

	CHECK(!shelf_fstat(t, 0, &st) && st.st_size == 20);
	CHECK(shelf_fstat(t, 2, &st) == -EBADF);
	CHECK(shelf_pread(t, 0, buf, sizeof(buf), 9) == 11 && !memcmp(buf, "of the file", 11));
	CHECK(shelf_preadv(t, 0, iov, 2, 0) == 20 && !memcmp(buf + 100, "ents", 4));
	CHECK((shelf_fcntl(t, 0, F_GETFL, 0) & O_ACCMODE) == O_RDWR);
	CHECK(shelf_fcntl(t, 0, F_GETFD, 0) == 0);
	CHECK(!shelf_fstatat(t, 1, "sub/link", &st, 0) && S_ISREG(st.st_mode));
	while ((n = shelf_pgetdents64(t, 1, buf, 64, &position)) > 0)
		names++;
	CHECK(n == 0 && names >= 2);
}

static void read_paths(struct shelf_task *t)
{
	struct shelf_cred cred;
	struct statfs fs;
	struct statx stx;
	struct stat st;
	char buf[100];

	CHECK(!shelf_stat(t, "/d/sub/link", &st) && st.st_size == 20);
	CHECK(!shelf_lstat(t, "d/sub/link", &st) && S_ISLNK(st.st_mode));
	CHECK(!shelf_statx(t, AT_FDCWD, "d/../d/file", 0, STATX_BASIC_STATS, &stx) && stx.stx_size == 20);
	CHECK(shelf_stat(t, "d/none", &st) == -ENOENT);
	CHECK(!shelf_access(t, "d/file", R_OK) && shelf_access(t, "d/none", F_OK) == -ENOENT);
	CHECK(shelf_readlink(t, "d/sub/link", buf, sizeof(buf)) == 7 && !memcmp(buf, "../file", 7));
	CHECK(shelf_getcwd(t, buf, sizeof(buf)) == 2 && !strcmp(buf, "/"));
	CHECK(!shelf_statfs(t, "/", &fs) && fs.f_type == SHELF_SUPER_MAGIC);
	CHECK(shelf_open(t, "d/none", O_RDONLY, 0) == -ENOENT);
	CHECK(shelf_open(t, "d/file/x", O_RDONLY, 0) == -ENOTDIR);
	CHECK(!shelf_task_getcred(t, &cred));
}

static void writes_are_refused(struct shelf_task *t)
{
	char buf[10];

	CHECK(shelf_write(t, 0, "x", 1) == -EROFS);
	CHECK(shelf_pwrite(t, 0, "x", 1, 0) == -EROFS);
	CHECK(shelf_read(t, 0, buf, 1) == -EROFS); /* the offset is shared */
	CHECK(shelf_open(t, "d/file", O_RDONLY, 0) == -EROFS);
	CHECK(shelf_mkdir(t, "x", 0700) == -EROFS && shelf_unlink(t, "d/file") == -EROFS);
	CHECK(shelf_close(t, 0) == -EROFS && shelf_dup(t, 0) == -EROFS);
	CHECK(shelf_chmod(t, "d", 0700) == -EROFS && shelf_chdir(t, "d") == -EROFS);
}

struct look {
	const char *name;
	pid_t owner;
};

/* Before the fork nothing of the parent's mapping is used: the child starts afresh. */
static int look_read_only(void *arg)
{
	struct look *l = arg;
	struct shelf_task *theirs, *own;
	struct shelf *shelf;
	char why[SHELF_WHY];

	if (shelf_attach(l->name, SHELF_READ_ONLY, &shelf, why)) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	CHECK(!shelf_task_find(shelf, l->owner, &theirs));
	read_descriptors(theirs);
	read_paths(theirs);
	writes_are_refused(theirs);
	CHECK(!shelf_task_create(shelf, NULL, &own));
	read_paths(own);
	CHECK(shelf_fcntl(own, 0, F_GETFD, 0) == -EBADF);
	CHECK(shelf_task_find(shelf, 1, &own) == -ESRCH);
	return 0;
}

/* The control: the mapping is really for reading. */
static int store_read_only(void *arg)
{
	struct look *l = arg;
	struct shelf_task *theirs;
	struct shelf *shelf;

	if (shelf_attach(l->name, SHELF_READ_ONLY, &shelf, NULL) || shelf_task_find(shelf, l->owner, &theirs))
		return 1;
	signal(SIGSEGV, SIG_DFL); /* the test runner catches it */
	*(volatile char *)theirs = 0;
	return 2;
}

/* The maker is another process: who has the segment mapped already cannot map it a second time. */
static int make_and_wait(void *arg)
{
	int *pipes = arg;
	struct px *px = px_make(64u << 20);
	char go;

	make_tree(px);
	CHECK(write(pipes[1], px->name, TEST_NAME_SIZE) == TEST_NAME_SIZE);
	CHECK(read(pipes[2], &go, 1) == 1);
	shelf_close_range(px->t, 0, ~0u, 0);
	px_drop(px);
	return 0;
}

static void with_a_maker(int (*fn)(void *), int expected)
{
	int pipes[4];
	char name[TEST_NAME_SIZE];
	struct look l = { .name = name };
	int status;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(pipes + 2), 0);
	l.owner = test_fork(make_and_wait, pipes);
	assert_int_equal(read(pipes[0], name, sizeof(name)), sizeof(name));
	status = test_in_child(fn, &l);
	assert_int_equal(write(pipes[3], "", 1), 1);
	assert_int_equal(test_wait(l.owner), 0);
	for (int i = 0; i < 4; i++)
		close(pipes[i]);
	assert_int_equal(status, expected);
}

static void reading_needs_no_write_access(void **state)
{
	(void)state;
	with_a_maker(look_read_only, 0);
}

static void a_store_through_the_read_only_mapping_faults(void **state)
{
	(void)state;
	with_a_maker(store_read_only, 128 + SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_needs_no_write_access),
		cmocka_unit_test(a_store_through_the_read_only_mapping_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

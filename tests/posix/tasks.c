/* SPDX-License-Identifier: MIT */
/* Tasks: what fork, exec, exit, unshare, credentials and death do to files. */
#include <fcntl.h>
#include <signal.h>

#include "lib/fixture.h"

static struct shelf_counters counters(struct px *px)
{
	struct shelf_counters c;

	CHECK(!shelf_counters(px->shelf, &c));
	return c;
}

/* ---- fork -------------------------------------------------------------------------------------------- */

static int append_inherited(struct px *px, void *arg)
{
	int fd = *(int *)arg;

	CHECK(shelf_write(px->t, fd, "child ", 6) == 6);
	CHECK(shelf_task_exec(px->t) == 0);
	CHECK(shelf_write(px->t, fd, "exec ", 5) == 5);
	return shelf_task_exit(px->t);
}

static void an_offset_is_shared_over_fork_and_exec(void **state)
{
	struct px *px = *state;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);

	assert_int_equal(shelf_write(px->t, fd, "parent ", 7), 7);
	assert_int_equal(test_wait(px_fork(px, 0, append_inherited, &fd)), 0);
	assert_int_equal(shelf_write(px->t, fd, "again", 5), 5);
	assert_true(px_file_is(px->t, "f", "parent child exec again"));
}

static int change_place_and_mask(struct px *px, void *arg)
{
	CHECK(shelf_umask(px->t, 077) == 022);
	CHECK(!shelf_chdir(px->t, arg));
	CHECK(shelf_open(px->t, "made", O_CREAT | O_RDWR, 0666) >= 0);
	CHECK(!shelf_close_range(px->t, 0, ~0u, 0));
	return shelf_task_exit(px->t);
}

static void fork_copies_or_shares_place_mask_and_table(void **state)
{
	struct px *px = *state;
	char cwd[20];

	assert_int_equal(shelf_mkdir(px->t, "d", 0777), 0);
	assert_int_equal(shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600), 0);
	assert_int_equal(test_wait(px_fork(px, 0, change_place_and_mask, "d")), 0);
	assert_int_equal(shelf_getcwd(px->t, cwd, sizeof(cwd)), 2);
	assert_int_equal(shelf_fcntl(px->t, 0, F_GETFD, 0), 0);
	assert_int_equal(shelf_umask(px->t, 022), 022);
	assert_int_equal(test_wait(px_fork(px, SHELF_CLONE_FS | SHELF_CLONE_FILES, change_place_and_mask, "d")), 0);
	assert_int_equal(shelf_getcwd(px->t, cwd, sizeof(cwd)), 3);
	assert_string_equal(cwd, "/d");
	assert_int_equal(shelf_fcntl(px->t, 0, F_GETFD, 0), -EBADF);
	assert_int_equal(shelf_umask(px->t, 022), 077);
	assert_int_equal(shelf_chdir(px->t, "/"), 0);
}

static int unshares_everything(struct px *px, void *arg)
{
	(void)arg;
	CHECK(!shelf_task_unshare(px->t, SHELF_CLONE_FS | SHELF_CLONE_FILES));
	CHECK(!shelf_chdir(px->t, "d"));
	CHECK(!shelf_close(px->t, 0));
	CHECK(shelf_fcntl(px->t, 1, F_GETFD, 0) == SHELF_FD_CLOFORK); /* nothing was forked */
	return shelf_task_exit(px->t);
}

static void unshare_separates_what_clone_shared(void **state)
{
	struct px *px = *state;
	char cwd[20];

	assert_int_equal(shelf_mkdir(px->t, "d", 0777), 0);
	assert_int_equal(shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600), 0);
	assert_int_equal(shelf_open(px->t, "f", O_RDWR | SHELF_O_CLOFORK, 0600), 1);
	assert_int_equal(test_wait(px_fork(px, SHELF_CLONE_FS | SHELF_CLONE_FILES, unshares_everything, NULL)), 0);
	assert_int_equal(shelf_getcwd(px->t, cwd, sizeof(cwd)), 2);
	assert_int_equal(shelf_fcntl(px->t, 0, F_GETFD, 0), 0);
	assert_int_equal(shelf_task_unshare(px->t, 0x100), -EINVAL);
}

/* ---- credentials --------------------------------------------------------------------------------------- */

static _Atomic int stop;

static void change_ids_or_walk(struct px *px, void *arg, unsigned k)
{
	struct stat st;

	(void)arg;
	if (k) {
		while (!stop) {
			int r = shelf_stat(px->t, "private/f", &st);

			CHECK(!r || r == -EACCES);
			r = shelf_open(px->t, "private/new", O_CREAT | O_RDWR, 0600);
			CHECK(r >= 0 || r == -EACCES);
			if (r >= 0)
				shelf_close(px->t, r);
		}
		return;
	}
	for (unsigned i = 0; i < 20000; i++)
		px_become(px->t, i % 300, i % 300);
	stop = 1;
}

static void credentials_may_change_while_threads_walk(void **state)
{
	struct px *px = *state;
	uint64_t before, after;

	assert_int_equal(shelf_mkdir(px->t, "private", 0700), 0);
	px_write_file(px->t, "private/f", "");
	stop = 0;
	px_threads(px, 3, change_ids_or_walk, NULL);
	px_become(px->t, 0, 0);
	before = counters(px).used_pages;
	for (unsigned i = 0; i < 20000; i++)
		px_become(px->t, i % 300, i % 300);
	after = counters(px).used_pages;
	assert_in_range(after, 0, before + 64); /* equal ones are kept once */
}

static void a_task_of_one_thread_keeps_no_old_credentials(void **state)
{
	struct px *px = *state;
	struct shelf_cred c;
	uint64_t before;

	assert_int_equal(shelf_task_set_threads(px->t, 1), 0);
	for (unsigned i = 0; i < 2000; i++)
		px_become(px->t, i, i);
	before = counters(px).used_pages;
	for (unsigned i = 2000; i < 60000; i++)
		px_become(px->t, i, i);
	assert_in_range(counters(px).used_pages, 0, before + 256);
	assert_int_equal(shelf_task_getcred(px->t, &c), 0);
	assert_int_equal(c.fsuid, 59999);
	c.ngroups = 65;
	assert_int_equal(shelf_task_setcred(px->t, &c), -EINVAL);
	assert_int_equal(shelf_task_set_threads(px->t, 0), 0);
}

static void access_asks_for_the_real_user(void **state)
{
	struct px *px = *state;
	struct shelf_cred c = { .uid = 1000, .gid = 1000, .caps = SHELF_CAP_ALL };

	px_write_file(px->t, "f", "");
	assert_int_equal(shelf_chmod(px->t, "f", 0600), 0);
	assert_int_equal(shelf_task_setcred(px->t, &c), 0);
	assert_int_equal(shelf_access(px->t, "f", R_OK), -EACCES);
	assert_int_equal(shelf_faccessat2(px->t, AT_FDCWD, "f", R_OK, AT_EACCESS), 0);
	c.caps = 0;
	c.uid = 0;
	c.fsuid = 1000;
	assert_int_equal(shelf_task_setcred(px->t, &c), 0);
	assert_int_equal(shelf_access(px->t, "f", R_OK), 0);
	assert_int_equal(shelf_faccessat2(px->t, AT_FDCWD, "f", R_OK, AT_EACCESS), -EACCES);
}

/* ---- root -------------------------------------------------------------------------------------------------- */

static void a_changed_root_is_all_there_is(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	char cwd[64];

	assert_int_equal(shelf_mkdir(t, "jail", 0755), 0);
	assert_int_equal(shelf_mkdir(t, "jail/in", 0755), 0);
	assert_int_equal(shelf_mkdir(t, "out", 0755), 0);
	assert_int_equal(shelf_chdir(t, "out"), 0);
	assert_int_equal(shelf_chroot(t, "/jail"), 0);
	assert_true(px_exists(t, "/in") && !px_exists(t, "/jail") && px_exists(t, "../jail"));
	assert_true(shelf_getcwd(t, cwd, sizeof(cwd)) > 0);
	assert_string_equal(cwd, "(unreachable)/out");
	assert_int_equal(shelf_chdir(t, "/in"), 0);
	assert_int_equal(shelf_getcwd(t, cwd, sizeof(cwd)), 4);
	assert_string_equal(cwd, "/in");
	assert_int_equal(shelf_chdir(t, "../../.."), 0);
	assert_true(px_exists(t, "in") && !px_exists(t, "jail"));
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

static int open_and_wait(struct px *px, void *arg)
{
	int *to_parent = arg;

	CHECK(!shelf_chdir(px->t, "d"));
	for (int i = 0; i < 20; i++)
		CHECK(shelf_open(px->t, "held", O_CREAT | O_RDWR, 0600) >= 0);
	CHECK(write(to_parent[1], "", 1) == 1);
	for (;;)
		pause();
}

static void what_a_killed_process_had_open_is_closed(void **state)
{
	struct px *px = *state;
	int to_parent[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(to_parent), 0);
	assert_int_equal(shelf_mkdir(px->t, "d", 0777), 0);
	pid = px_fork(px, 0, open_and_wait, to_parent);
	assert_int_equal(read(to_parent[0], &c, 1), 1);
	assert_int_equal(counters(px).tasks, 2);
	assert_int_equal(counters(px).files_open, 20);
	kill(pid, SIGKILL);
	assert_int_equal(test_wait(pid), 128 + SIGKILL);
	assert_int_equal(shelf_check(px->shelf, NULL, NULL), 0);
	assert_int_equal(counters(px).tasks, 1);
	assert_int_equal(counters(px).files_open, 0);
}

static void a_thousand_tasks_leave_nothing_behind(void **state)
{
	struct px *px = *state;
	struct shelf_task *t;
	uint64_t before = 0;

	assert_int_equal(shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600), 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(shelf_task_fork(px->t, (unsigned)i % 4, &t), 0);
		if (i == 500)
			before = counters(px).used_pages;
		assert_int_equal(shelf_fcntl(t, 0, F_GETFD, 0), 0);
		assert_int_equal(shelf_task_exit(t), 0);
	}
	assert_int_equal(counters(px).tasks, 1);
	assert_int_equal(counters(px).files_open, 1);
	assert_in_range(counters(px).used_pages, 0, before + 512);
}

/* ---- segments ------------------------------------------------------------------------------------------------- */

static void names_and_flags_of_segments_are_checked(void **state)
{
	struct px *px = *state;
	char why[SHELF_WHY] = "", again[TEST_NAME_SIZE];
	struct shelf *shelf;

	assert_int_equal(shelf_create(px->name, NULL, &shelf, why), -EEXIST);
	assert_true(strlen(why) > 10);
	assert_int_equal(shelf_attach(fresh_name(again), 0, &shelf, why), -ENOENT);
	assert_int_equal(shelf_attach(px->name, 0x80, &shelf, why), -EINVAL);
	assert_int_equal(shelf_create("no/slash", NULL, &shelf, why), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(an_offset_is_shared_over_fork_and_exec),
		PX_TEST(fork_copies_or_shares_place_mask_and_table),
		PX_TEST(unshare_separates_what_clone_shared),
		PX_TEST(credentials_may_change_while_threads_walk),
		PX_TEST(a_task_of_one_thread_keeps_no_old_credentials),
		PX_TEST(access_asks_for_the_real_user),
		PX_TEST(a_changed_root_is_all_there_is),
		PX_TEST(what_a_killed_process_had_open_is_closed),
		PX_TEST(a_thousand_tasks_leave_nothing_behind),
		PX_TEST(names_and_flags_of_segments_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Descriptors: numbers, sharing of offsets and flags, limits, races. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>

#include "lib/fixture.h"

static void dup_shares_the_offset_and_outlives_the_original(void **state)
{
	struct px *px = *state;
	char buf[8] = "";
	int a, b;

	px_write_file(px->t, "f", "abcdefgh");
	a = shelf_open(px->t, "f", O_RDONLY, 0);
	b = shelf_dup(px->t, a);
	assert_int_equal(shelf_read(px->t, a, buf, 3), 3);
	assert_int_equal(shelf_lseek(px->t, b, 0, SEEK_CUR), 3);
	assert_int_equal(shelf_read(px->t, b, buf, 2), 2);
	assert_memory_equal(buf, "de", 2);
	assert_int_equal(shelf_close(px->t, b), 0);
	assert_int_equal(shelf_read(px->t, a, buf, 3), 3);
	assert_memory_equal(buf, "fgh", 3);
	assert_int_equal(shelf_close(px->t, a), 0);
	assert_int_equal(shelf_close(px->t, a), -EBADF);
}

static int64_t files_open(struct px *px)
{
	struct shelf_counters c;

	CHECK(!shelf_counters(px->shelf, &c));
	return (int64_t)c.files_open;
}

static void duplicates_closed_in_any_order_free_the_file_once(void **state)
{
	struct px *px = *state;
	uint64_t rng = test_seed();

	for (int round = 0; round < 200; round++) {
		int fds[8], left = 8;

		fds[0] = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);
		for (int i = 1; i < 8; i++)
			fds[i] = shelf_fcntl(px->t, fds[0], F_DUPFD, (uintptr_t)(10 * i));
		assert_int_equal(files_open(px), 1);
		while (left) {
			int k = (int)(test_random(&rng) % (unsigned)left), fd = fds[k];

			fds[k] = fds[--left];
			assert_int_equal(shelf_close(px->t, fd), 0);
			assert_int_equal(shelf_close(px->t, fd), -EBADF);
		}
		assert_int_equal(files_open(px), 0);
	}
}

static void two_opens_have_two_offsets_and_truncation_moves_neither(void **state)
{
	struct px *px = *state;
	struct stat st;
	int a, b;

	px_write_file(px->t, "f", "0123456789");
	a = shelf_open(px->t, "f", O_RDWR, 0);
	shelf_lseek(px->t, a, 6, SEEK_SET);
	b = shelf_open(px->t, "f", O_RDWR | O_TRUNC, 0);
	assert_int_equal(shelf_lseek(px->t, b, 0, SEEK_CUR), 0);
	assert_int_equal(shelf_write(px->t, a, "xy", 2), 2);
	assert_int_equal(shelf_fstat(px->t, b, &st), 0);
	assert_int_equal(st.st_size, 8);
}

static void close_on_exec_belongs_to_the_number(void **state)
{
	struct px *px = *state;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR | O_CLOEXEC, 0600), copy = shelf_dup(px->t, fd);

	assert_int_equal(shelf_fcntl(px->t, fd, F_GETFD, 0), FD_CLOEXEC);
	assert_int_equal(shelf_fcntl(px->t, copy, F_GETFD, 0), 0);
	assert_false(shelf_fcntl(px->t, fd, F_GETFL, 0) & O_CLOEXEC);
	assert_int_equal(shelf_ioctl(px->t, copy, FIOCLEX, 0), 0);
	assert_int_equal(shelf_fcntl(px->t, copy, F_GETFD, 0), FD_CLOEXEC);
	assert_int_equal(shelf_ioctl(px->t, copy, FIONCLEX, 0), 0);
	assert_int_equal(shelf_fcntl(px->t, copy, F_GETFD, 0), 0);
	assert_int_equal(shelf_task_exec(px->t), 0);
	assert_int_equal(shelf_fcntl(px->t, fd, F_GETFD, 0), -EBADF);
	assert_int_equal(shelf_fcntl(px->t, copy, F_GETFD, 0), 0);
}

static void close_range_closes_marks_and_refuses(void **state)
{
	struct px *px = *state;

	for (int i = 0; i < 10; i++)
		assert_int_equal(shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600), i);
	assert_int_equal(shelf_close_range(px->t, 5, 4, 0), -EINVAL);
	assert_int_equal(shelf_close_range(px->t, 3, 4, 0x80), -EINVAL);
	assert_int_equal(shelf_close_range(px->t, 7, 8, CLOSE_RANGE_CLOEXEC), 0);
	assert_int_equal(shelf_fcntl(px->t, 6, F_GETFD, 0), 0);
	assert_int_equal(shelf_fcntl(px->t, 8, F_GETFD, 0), FD_CLOEXEC);
	assert_int_equal(shelf_close_range(px->t, 3, ~0u, 0), 0);
	assert_int_equal(shelf_fcntl(px->t, 3, F_GETFD, 0), -EBADF);
	assert_int_equal(shelf_fcntl(px->t, 2, F_GETFD, 0), 0);
	assert_int_equal(shelf_open(px->t, "f", O_RDWR, 0), 3);
}

static int closes_in_child(struct px *px, void *arg)
{
	(void)arg;
	/* The table is shared with the parent; from here on it is not. */
	CHECK(!shelf_close_range(px->t, 0, ~0u, CLOSE_RANGE_UNSHARE));
	CHECK(shelf_fcntl(px->t, 0, F_GETFD, 0) == -EBADF);
	return 0;
}

static void close_range_can_leave_a_shared_table_first(void **state)
{
	struct px *px = *state;

	assert_int_equal(shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600), 0);
	assert_int_equal(test_wait(px_fork(px, SHELF_CLONE_FILES, closes_in_child, NULL)), 0);
	assert_int_equal(shelf_fcntl(px->t, 0, F_GETFD, 0), 0);
}

/* ---- dup2 against readers of the same number --------------------------------------------------- */

struct swap {
	int a, b, target;
	ino_t ino_a, ino_b;
	_Atomic int stop;
	_Atomic unsigned long looks;
};

static void swap_or_look(struct px *px, void *arg, unsigned k)
{
	struct swap *s = arg;
	struct stat st;

	if (k) {
		while (!s->stop) {
			CHECK(!shelf_fstat(px->t, s->target, &st));
			CHECK(st.st_ino == s->ino_a || st.st_ino == s->ino_b);
			s->looks++;
		}
		return;
	}
	for (unsigned long i = 0, n = test_scaled(300000); i < n; i++)
		CHECK(shelf_dup2(px->t, i & 1 ? s->a : s->b, s->target) == s->target);
	s->stop = 1;
}

static void a_number_swapped_by_dup2_is_never_missing(void **state)
{
	struct px *px = *state;
	struct swap s = { .target = 40 };

	s.a = shelf_open(px->t, "a", O_CREAT | O_RDWR, 0600);
	s.b = shelf_open(px->t, "b", O_CREAT | O_RDWR, 0600);
	s.ino_a = px_ino(px->t, "a");
	s.ino_b = px_ino(px->t, "b");
	assert_int_equal(shelf_dup2(px->t, s.a, s.target), s.target);
	px_threads(px, 2, swap_or_look, &s);
	assert_true(s.looks > 0);
	assert_int_equal(files_open(px), 2);
	assert_int_equal(shelf_close_range(px->t, 0, ~0u, 0), 0);
	assert_int_equal(files_open(px), 0);
}

/* ---- limits ---------------------------------------------------------------------------------------- */

static void limits_give_their_own_errors(void **state)
{
	struct px *px = *state;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);

	assert_int_equal(shelf_dup2(px->t, fd, fd), fd);
	assert_int_equal(shelf_dup3(px->t, fd, fd, 0), -EINVAL);
	shelf_task_setrlimit_nofile(px->t, 20);
	assert_int_equal(shelf_dup2(px->t, fd, 20), -EBADF);
	assert_int_equal(shelf_dup2(px->t, fd, -1), -EBADF);
	assert_int_equal(shelf_dup2(px->t, fd, 19), 19);
	assert_int_equal(shelf_fcntl(px->t, fd, F_DUPFD, 20), -EINVAL);
	assert_int_equal(shelf_fcntl(px->t, fd, F_DUPFD, 19), -EMFILE);
	while (shelf_dup(px->t, fd) >= 0)
		;
	assert_int_equal(shelf_dup(px->t, fd), -EMFILE);
}

static void an_open_without_a_number_leaves_no_trace(void **state)
{
	struct px *px = *state;
	int fd;

	px_write_file(px->t, "kept", "text");
	fd = shelf_open(px->t, "kept", O_RDONLY, 0);
	shelf_task_setrlimit_nofile(px->t, (uint64_t)fd + 1);
	assert_int_equal(shelf_open(px->t, "kept", O_RDWR | O_TRUNC, 0), -EMFILE);
	assert_int_equal(shelf_open(px->t, "new", O_RDWR | O_CREAT, 0600), -EMFILE);
	assert_int_equal(shelf_open(px->t, ".", O_RDWR | O_TMPFILE, 0600), -EMFILE);
	assert_int_equal(shelf_open(px->t, "missing", O_RDONLY, 0), -EMFILE);
	assert_int_equal(shelf_open(px->t, "kept", O_RDONLY, 0), -EMFILE);
	assert_false(px_exists(px->t, "new"));
	shelf_task_setrlimit_nofile(px->t, 1024);
	assert_true(px_file_is(px->t, "kept", "text"));
	assert_int_equal(shelf_open(px->t, "missing", O_RDONLY, 0), -ENOENT);
}

static void a_lowered_limit_keeps_higher_numbers_usable(void **state)
{
	struct px *px = *state;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);

	assert_int_equal(shelf_dup2(px->t, fd, 100), 100);
	shelf_task_setrlimit_nofile(px->t, 10);
	assert_int_equal(shelf_write(px->t, 100, "x", 1), 1);
	assert_int_equal(shelf_dup(px->t, 100), 1);
	assert_int_equal(shelf_close(px->t, 100), 0);
	assert_int_equal(shelf_dup2(px->t, fd, 100), -EBADF);
}

static uint64_t used_pages(struct px *px)
{
	struct shelf_counters c;

	CHECK(!shelf_counters(px->shelf, &c));
	return c.used_pages;
}

static void one_high_number_costs_little(void **state)
{
	struct px *px = *state;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);
	uint64_t before = used_pages(px);

	shelf_task_setrlimit_nofile(px->t, 1 << 20);
	assert_int_equal(shelf_dup2(px->t, fd, (1 << 20) - 1), (1 << 20) - 1);
	assert_true(used_pages(px) - before < 40);
}

static void a_quarter_million_numbers_come_in_order(void **state)
{
	struct px *px = *state;
	int n = (int)test_scaled(250000);

	shelf_task_setrlimit_nofile(px->t, 1 << 20);
	assert_int_equal(shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600), 0);
	for (int i = 1; i < n; i++)
		assert_int_equal(shelf_dup(px->t, 0), i);
	assert_int_equal(shelf_close(px->t, n / 2), 0);
	assert_int_equal(shelf_dup(px->t, 0), n / 2);
}

/* ---- one table, many threads --------------------------------------------------------------------- */


static void open_and_close(struct px *px, void *arg, unsigned k)
{
	volatile int *owner = arg;

	for (unsigned long i = 0, n = test_scaled(100000); i < n; i++) {
		int fd = shelf_open(px->t, "f", O_RDONLY, 0);

		CHECK(fd >= 0 && fd < 64);
		CHECK(__sync_lock_test_and_set(&owner[fd], (int)k + 1) == 0);
		__sync_lock_release(&owner[fd]);
		CHECK(!shelf_close(px->t, fd));
	}
}

static void threads_never_get_one_number_twice(void **state)
{
	struct px *px = *state;
	int owner[64] = { 0 };

	px_write_file(px->t, "f", "x");
	px_threads(px, 4, open_and_close, owner);
	assert_int_equal(files_open(px), 0);
	assert_int_equal(shelf_open(px->t, "f", O_RDONLY, 0), 0);
}

/* ---- close on fork ---------------------------------------------------------------------------------- */

static int looks_at_inherited(struct px *px, void *arg)
{
	(void)arg;
	CHECK(shelf_fcntl(px->t, 0, F_GETFD, 0) == 0);
	CHECK(shelf_fcntl(px->t, 1, F_GETFD, 0) == -EBADF);
	CHECK(shelf_fcntl(px->t, 2, F_GETFD, 0) == -EBADF);
	CHECK(shelf_fcntl(px->t, 3, F_GETFD, 0) == FD_CLOEXEC);
	return 0;
}

static void close_on_fork_is_kept_from_the_child(void **state)
{
	struct px *px = *state;

	assert_int_equal(shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600), 0);
	assert_int_equal(shelf_open(px->t, "f", O_RDWR | SHELF_O_CLOFORK, 0), 1);
	assert_int_equal(shelf_fcntl(px->t, 0, SHELF_F_DUPFD_CLOFORK, 0), 2);
	assert_int_equal(shelf_fcntl(px->t, 0, F_DUPFD_CLOEXEC, 0), 3);
	assert_int_equal(shelf_fcntl(px->t, 1, F_GETFD, 0), SHELF_FD_CLOFORK);
	assert_int_equal(test_wait(px_fork(px, 0, looks_at_inherited, NULL)), 0);
	assert_int_equal(shelf_fcntl(px->t, 1, F_GETFD, 0), SHELF_FD_CLOFORK);
	assert_int_equal(shelf_fcntl(px->t, 0, F_SETFD, SHELF_FD_CLOFORK), 0);
	assert_int_equal(shelf_fcntl(px->t, 0, F_GETFD, 0), SHELF_FD_CLOFORK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(dup_shares_the_offset_and_outlives_the_original),
		PX_TEST(duplicates_closed_in_any_order_free_the_file_once),
		PX_TEST(two_opens_have_two_offsets_and_truncation_moves_neither),
		PX_TEST(close_on_exec_belongs_to_the_number),
		PX_TEST(close_range_closes_marks_and_refuses),
		PX_TEST(close_range_can_leave_a_shared_table_first),
		PX_TEST(a_number_swapped_by_dup2_is_never_missing),
		PX_TEST(limits_give_their_own_errors),
		PX_TEST(an_open_without_a_number_leaves_no_trace),
		PX_TEST(a_lowered_limit_keeps_higher_numbers_usable),
		PX_TEST(one_high_number_costs_little),
		PX_TEST(a_quarter_million_numbers_come_in_order),
		PX_TEST(threads_never_get_one_number_twice),
		PX_TEST(close_on_fork_is_kept_from_the_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

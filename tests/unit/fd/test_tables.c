// SPDX-License-Identifier: MIT
/* Whole tables: fork's copy, sharing, exec, the single user, other processes. */
#include <pthread.h>
#include <signal.h>

#include "unit/fd/lib/fixture.h"

static void copy_has_the_same_files_without_clofork(void **state)
{
	struct fixture *f = *state;
	struct fixture child = *f;
	struct fd_file *replaced;
	int k;

	for (k = 0; k < 200; k++)
		file_open(f, 100 + (uint64_t)k, 0, NO_LIMIT,
			  k % 3 ? FD_CLOEXEC_BIT : FD_CLOFORK_BIT);
	fd_dup2(f->self, f->tab, 1, 300000, NO_LIMIT, 0, &replaced);
	k = fd_reserve(f->self, f->tab, 0, NO_LIMIT);
	assert_int_equal(fd_table_copy(f->self, f->tab, &child.tab), 0);
	assert_int_equal(file_id_at(&child, 0), -EBADF);
	assert_int_equal(file_id_at(&child, 1), 101);
	assert_int_equal(file_id_at(&child, 199), 299);
	assert_int_equal(file_id_at(&child, 300000), 101);
	assert_int_equal(fd_get_bits(f->self, child.tab, 199), FD_CLOEXEC_BIT);
	assert_int_equal(file_id_at(&child, k), -EBADF);
	assert_int_equal(file_open(&child, 7, 0, NO_LIMIT, 0), 0);
	assert_int_equal(file_open(&child, 7, 200, NO_LIMIT, 0),
			 200); /* the reservation is not the child's */
	assert_int_equal(file_close(f, 1), 0);
	assert_int_equal(file_id_at(&child, 1), 101);
	fd_cancel(f->self, f->tab, k);
	fd_table_leave(f->self, child.tab, drop_put, NULL);
}

static void small_copy_takes_one_object(void **state)
{
	struct fixture *f = *state;
	struct fd_table *copies[32];
	struct segment_space before, after;
	int k;

	for (k = 0; k < 60; k++)
		file_open(f, 1, 0, NO_LIMIT, 0);
	segment_space(f->seg, &before);
	for (k = 0; k < 32; k++)
		assert_int_equal(fd_table_copy(f->self, f->tab, &copies[k]), 0);
	segment_space(f->seg, &after);
	assert_true(before.free_pages - after.free_pages <= 64);
	for (k = 0; k < 32; k++)
		fd_table_leave(f->self, copies[k], drop_put, NULL);
}

static void exec_closes_what_is_marked(void **state)
{
	struct fixture *f = *state;
	unsigned dropped = 0;
	int k;

	for (k = 0; k < 90; k++)
		file_open(f, 1, 0, NO_LIMIT,
			  k % 3 == 0 ? FD_CLOEXEC_BIT :
			  k % 3 == 1 ? FD_CLOFORK_BIT :
				       0);
	fd_table_exec(f->self, f->tab, drop_put, &dropped);
	assert_int_equal(dropped, 30);
	for (k = 0; k < 90; k++)
		assert_int_equal(file_id_at(f, k), k % 3 ? 1 : -EBADF);
}

static void shared_table_ends_with_its_last_task(void **state)
{
	struct fixture *f = *state;
	unsigned dropped = 0;

	file_open(f, 1, 0, NO_LIMIT, 0);
	fd_table_share(f->self, f->tab);
	fd_table_leave(f->self, f->tab, drop_put, &dropped);
	assert_int_equal(dropped, 0);
	assert_int_equal(file_id_at(f, 0), 1);
	fd_table_leave(f->self, f->tab, drop_put, &dropped);
	assert_int_equal(dropped, 1);
	f->tab = NULL;
}

static void only_user_borrows_without_a_section(void **state)
{
	struct fixture *f = *state;
	struct fd_file *file;

	file_open(f, 1, 0, NO_LIMIT, 0);
	fd_table_set_users(f->self, f->tab, 1);
	assert_true(fd_table_is_sole(f->self, f->tab));
	assert_int_equal(fd_borrow(f->self, f->tab, 0, &file), 0);
	assert_false(epoch_inside(f->self));
	fd_return(f->self, f->tab, file);
	assert_int_equal(fd_borrow(f->self, f->tab, 1, &file), -EBADF);
	fd_table_set_users(f->self, f->tab, 2);
	assert_false(fd_table_is_sole(f->self, f->tab));
	fd_table_share(f->self, f->tab);
	fd_table_set_users(f->self, f->tab, 1); /* another task is there: no */
	assert_false(fd_table_is_sole(f->self, f->tab));
	fd_table_leave(f->self, f->tab, drop_put, NULL);
	fd_table_set_users(f->self, f->tab, 1);
	assert_true(fd_table_is_sole(f->self, f->tab));
}

static void *borrow_in_thread(void *arg)
{
	struct fixture mine = *(struct fixture *)arg;

	mine.self = slot_self(mine.seg);
	CHECK(!fd_table_is_sole(mine.self, mine.tab));
	CHECK(file_id_at(&mine, 0) == 1);
	return NULL;
}

static void another_thread_is_never_the_only_user(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;

	file_open(f, 1, 0, NO_LIMIT, 0);
	fd_table_set_users(f->self, f->tab, 1);
	assert_int_equal(pthread_create(&thread, NULL, borrow_in_thread, f), 0);
	pthread_join(thread, NULL);
}

static int child_uses_table(void *arg)
{
	struct fixture child = *(struct fixture *)arg;

	child.self = slot_self(child.seg);
	if (file_id_at(&child, 0) != 1 || file_close(&child, 0))
		return 1;
	return file_open(&child, 9, 0, NO_LIMIT, 0) == 0 ? 0 : 2;
}

static void forked_process_uses_the_same_table(void **state)
{
	struct fixture *f = *state;

	file_open(f, 1, 0, NO_LIMIT, 0);
	assert_int_equal(test_in_child(child_uses_table, f), 0);
	assert_int_equal(file_id_at(f, 0), 9);
	assert_int_equal(file_close(f, 0), 0);
	assert_int_equal(load_acquire(&files_released),
			 1); /* the other was released by the child */
}

static int child_dies_holding(void *arg)
{
	struct fixture child = *(struct fixture *)arg;
	struct fd_file *file;

	child.self = slot_self(child.seg);
	fd_get(child.self, child.tab, 0, &file);
	fd_reserve(child.self, child.tab, 0, NO_LIMIT);
	raise(SIGKILL);
	return 0;
}

static void references_and_reservations_of_the_dead_come_back(void **state)
{
	struct fixture *f = *state;

	if (!FD_LEDGER)
		return; /* a scheme that is only compared with */
	file_open(f, 1, 0, NO_LIMIT, 0);
	fd_table_share(f->self, f->tab); /* the child's use of it */
	assert_int_equal(test_in_child(child_dies_holding, f), 128 + SIGKILL);
	assert_int_equal(file_open(f, 2, 1, NO_LIMIT, 0), 2); /* 1 is still reserved */
	slot_reap(f->self);
	fd_table_leave(f->self, f->tab, drop_put, NULL); /* for the child */
	assert_int_equal(file_open(f, 2, 1, NO_LIMIT, 0), 1);
	assert_int_equal(file_close(f, 0), 0);
	assert_int_equal(load_acquire(&files_released), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fd_test(copy_has_the_same_files_without_clofork),
		fd_test(small_copy_takes_one_object),
		fd_test(exec_closes_what_is_marked),
		fd_test(shared_table_ends_with_its_last_task),
		fd_test(only_user_borrows_without_a_section),
		fd_test(another_thread_is_never_the_only_user),
		fd_test(forked_process_uses_the_same_table),
		fd_test(references_and_reservations_of_the_dead_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

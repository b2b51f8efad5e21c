// SPDX-License-Identifier: MIT
/*
 * A child dies at its n-th tracked store inside each operation, for every n.
 * After it the table is as before the operation or as after it, its bitmaps
 * agree with its words, its lock is free, and no file stays open for the dead.
 *
 * The library is built without kill points, so the files that hold them are
 * compiled into this test once more.
 */
#include <signal.h>

#ifndef SHELF_KILL_POINTS
#define SHELF_KILL_POINTS

#include "fd/fd_priv.h"

static uint64_t kill_n, kill_at;

void kill_point(void)
{
	if (++kill_n == kill_at)
		raise(SIGKILL);
}

void kill_point_arm(uint64_t n)
{
	kill_n = 0;
	kill_at = n;
}

#include "fd/map.c"
#include "fd/near.c"
#include "fd/range.c"
#include "fd/slots.c"
#include "fd/tables.c"
#endif

#include "unit/fd/lib/fixture.h"

#define FAR 100000 /* needs the far directory, a node, a map and a page */
#define LAST_N 500

/* What the child does; 0 is open as file 10, 1 as file 11, 2 is free. */
typedef void operation(struct fixture *f);

struct attempt {
	struct fixture *f;
	operation *run;
	uint64_t n;
	bool alone;
};

static int child(void *arg)
{
	struct attempt *a = arg;

	a->f->self = slot_self(a->f->seg);
	if (a->alone)
		fd_table_set_users(a->f->self, a->f->tab, 1);
	kill_point_arm(a->n);
	a->run(a->f);
	kill_point_arm(0);
	return 0;
}

static void do_open(struct fixture *f)
{
	file_open(f, 12, 0, NO_LIMIT, 0);
}

static void do_install(struct fixture *f)
{
	struct fd_file *file = file_make(f, TYPE_A, 12);

	assert_int_equal(fd_install(f->self, f->tab, file, NO_LIMIT, 0), 2);
}

static void do_open_far(struct fixture *f)
{
	file_open(f, 12, FAR, NO_LIMIT, 0);
}

static void do_cancel(struct fixture *f)
{
	fd_cancel(f->self, f->tab, fd_reserve(f->self, f->tab, 0, NO_LIMIT));
}

static void do_dup(struct fixture *f)
{
	fd_dup(f->self, f->tab, 0, 64, NO_LIMIT, 0);
}

static void do_dup2(struct fixture *f)
{
	struct fd_file *replaced;

	fd_dup2(f->self, f->tab, 0, 1, NO_LIMIT, FD_CLOEXEC_BIT, &replaced);
	fd_put(f->self, replaced);
}

static void do_dup2_far(struct fixture *f)
{
	struct fd_file *replaced;

	fd_dup2(f->self, f->tab, 0, FAR, NO_LIMIT, 0, &replaced);
}

static void do_dup2_same_file(struct fixture *f)
{
	struct fd_file *replaced;

	fd_dup2(f->self, f->tab, 0, 3, NO_LIMIT, 0, &replaced);
	fd_put(f->self, replaced);
}

static void do_close(struct fixture *f)
{
	file_close(f, 1);
}

static void do_close_range(struct fixture *f)
{
	fd_close_range(f->self, f->tab, 1, ~0U, 0, drop_put, NULL);
}

/* A task's field, in the segment: the table's address and the table come and go together. */
static fd_table_home *home_of(struct fixture *f)
{
	return (fd_table_home *)&fd_root_of(f->self)->anchor[0];
}

static void do_copy(struct fixture *f)
{
	if (!fd_table_copy_to(f->self, f->tab, home_of(f)))
		fd_table_leave_at(f->self, home_of(f), drop_put, NULL);
}

/* Numbers in several pages: what was made for the first is not taken back with the last. */
static void do_copy_far(struct fixture *f)
{
	fd_dup(f->self, f->tab, 0, 700, NO_LIMIT, 0);
	fd_dup(f->self, f->tab, 0, FAR, NO_LIMIT, 0);
	do_copy(f);
}

static void do_share(struct fixture *f)
{
	fd_table_share_to(f->self, f->tab, home_of(f));
	fd_table_leave_at(f->self, home_of(f), drop_put, NULL);
}

static bool is_one_of(int64_t id, int64_t before, int64_t after)
{
	return id == before || id == after;
}

/* Bits as words have them, and every number as before or after. */
static void check_table(struct fixture *f)
{
	int fd;

	for (fd = 0; fd < 512; fd++) {
		uint64_t word = fd_word_load(f->tab, fd);

		assert_false(word & FD_WORD_RESERVED);
		assert_int_equal(fd_map_next_used(f->tab, (unsigned)fd) == (unsigned)fd, word != 0);
	}
	assert_int_equal(file_id_at(f, 0), 10);
	assert_true(is_one_of(file_id_at(f, 1), 11, 10) || file_id_at(f, 1) == -EBADF);
	assert_true(is_one_of(file_id_at(f, 2), -EBADF, 12));
	assert_true(is_one_of(file_id_at(f, 3), 10, -EBADF));
	assert_true(is_one_of(file_id_at(f, 64), -EBADF, 10));
	assert_true(is_one_of(file_id_at(f, FAR), -EBADF, 10) || file_id_at(f, FAR) == 12);
}

/* The table in the child's hands: it is the only user, or one of two tasks whose other goes on. */
enum users { ALONE, SHARED };

/* False: the operation ran to its end before the n-th store. */
static bool die_once(operation *run, uint64_t n, enum users users)
{
	struct attempt a = {NULL, run, n, users == ALONE};
	struct fd_file *replaced;
	void *state;
	int status;

	assert_int_equal(fixture_setup(&state), 0);
	a.f = state;
	file_open(a.f, 10, 0, NO_LIMIT, 0);
	file_open(a.f, 11, 0, NO_LIMIT, 0);
	fd_dup2(a.f->self, a.f->tab, 0, 3, NO_LIMIT, 0, &replaced);
	if (users == SHARED)
		fd_table_share(a.f->self, a.f->tab);
	status = test_in_child(child, &a);
	slot_reap(a.f->self);
	fd_table_set_users(a.f->self, a.f->tab, 0);
	fd_table_leave_at(a.f->self, home_of(a.f), drop_put, NULL); /* for the dead task */
	if (users == ALONE)
		fd_table_share(a.f->self, a.f->tab); /* so that the leave is not the last one's */
	fd_table_leave(a.f->self, a.f->tab, drop_put, NULL);
	check_table(a.f);
	assert_int_equal(load_relaxed(&a.f->tab->refs), 1);
	assert_int_equal(file_open(a.f, 13, 200, NO_LIMIT, 0), 200); /* the lock is free */
	assert_int_equal(fd_files_open(a.f->seg) >= 2, 1);
	assert_int_equal(fixture_teardown(&state), 0); /* no file is left open */
	assert_true(status == 0 || status == 128 + SIGKILL);
	return status != 0;
}

static void die_everywhere(operation *run, uint64_t least)
{
	uint64_t n = 1;

	if (!FD_LEDGER)
		return; /* a scheme that is only compared with */
	while (die_once(run, n, SHARED))
		assert_true(++n < LAST_N);
	assert_true(n > least); /* there were that many stores to die at */
	for (n = 1; die_once(run, n, ALONE); n++)
		assert_true(n < LAST_N);
	assert_true(n > least);
}

static void death_in_open(void **state)
{
	(void)state;
	die_everywhere(do_open, 2);
}

static void death_in_install(void **state)
{
	(void)state;
	die_everywhere(do_install, 4);
}

static void death_in_open_of_a_far_number(void **state)
{
	(void)state;
	die_everywhere(do_open_far, 6);
}

static void death_in_cancel(void **state)
{
	(void)state;
	die_everywhere(do_cancel, 1);
}

static void death_in_dup(void **state)
{
	(void)state;
	die_everywhere(do_dup, 3);
}

static void death_in_dup2(void **state)
{
	(void)state;
	die_everywhere(do_dup2, 1);
	die_everywhere(do_dup2_far, 5);
	die_everywhere(do_dup2_same_file, 1);
}

static void death_in_close(void **state)
{
	(void)state;
	die_everywhere(do_close, 1);
	die_everywhere(do_close_range, 2);
}

static void death_in_copy_for_fork(void **state)
{
	(void)state;
	die_everywhere(do_copy, 6);
	die_everywhere(do_copy_far, 20);
}

static void death_in_sharing_and_leaving(void **state)
{
	(void)state;
	die_everywhere(do_share, 4);
}

static int makes_a_file_and_dies(void *arg)
{
	struct fixture *f = arg;
	struct shelf_file *file;

	f->self = slot_self(f->seg);
	CHECK(shelf_file_alloc(f->space, TYPE_A, sizeof(struct payload), &file) == 0);
	raise(SIGKILL); /* before it writes the payload */
	return 0;
}

static void a_file_that_its_dead_maker_had_not_filled_is_released_as_zeroes(void **state)
{
	struct fixture *f;

	(void)state;
	if (!FD_LEDGER)
		return;
	assert_int_equal(fixture_setup((void **)&f), 0);
	assert_int_equal(test_in_child(makes_a_file_and_dies, f), 128 + SIGKILL);
	slot_reap(f->self);
	assert_int_equal(load_relaxed(&files_released), 1); /* and the hook found released == 0 */
	assert_int_equal(fd_files_open(f->seg), 0);
	assert_int_equal(fixture_teardown((void **)&f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death_in_open),
		cmocka_unit_test(death_in_install),
		cmocka_unit_test(death_in_open_of_a_far_number),
		cmocka_unit_test(death_in_cancel),
		cmocka_unit_test(death_in_dup),
		cmocka_unit_test(death_in_dup2),
		cmocka_unit_test(death_in_close),
		cmocka_unit_test(death_in_copy_for_fork),
		cmocka_unit_test(death_in_sharing_and_leaving),
		cmocka_unit_test(a_file_that_its_dead_maker_had_not_filled_is_released_as_zeroes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

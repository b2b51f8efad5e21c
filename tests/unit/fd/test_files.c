// SPDX-License-Identifier: MIT
/* Files behind numbers: sharing by dup, lifetime, flags, kinds. */
#include "unit/fd/lib/fixture.h"

static uint64_t released(void)
{
	return load_acquire(&files_released);
}

static void dup_shares_the_file_and_its_offset(void **state)
{
	struct fixture *f = *state;
	struct fd_file *a, *b;
	int fd = file_open(f, 0, 0, NO_LIMIT, 0),
	    copy = fd_dup(f->self, f->tab, fd, 0, NO_LIMIT, 0);

	/* The payload's id stands for the offset: 3 bytes read by the first. */
	assert_int_equal(fd_get(f->self, f->tab, fd, &a), 0);
	file_payload(a)->id += 3;
	assert_int_equal(fd_get(f->self, f->tab, copy, &b), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(file_payload(b)->id, 3);
	fd_put(f->self, b);
	fd_put(f->self, a);
	assert_int_equal(file_close(f, copy), 0);
	assert_int_equal(file_id_at(f, fd), 3);
	assert_int_equal(released(), 0);
}

static void two_opens_are_two_files(void **state)
{
	struct fixture *f = *state;
	int a = file_open(f, 10, 0, NO_LIMIT, 0), b = file_open(f, 20, 0, NO_LIMIT, 0);
	struct fd_file *file = NULL;

	assert_int_equal(fd_borrow(f->self, f->tab, a, &file), 0);
	file_payload(file)->id = 11;
	fd_return(f->self, f->tab, file);
	assert_int_equal(file_id_at(f, b), 20);
}

static void last_close_releases_once_whatever_the_order(void **state)
{
	struct fixture *f = *state;
	static const int order[] = {2, 0, 4, 1, 3};
	unsigned k;

	file_open(f, 1, 0, NO_LIMIT, 0);
	for (k = 1; k < 5; k++)
		assert_int_equal(fd_dup(f->self, f->tab, 0, 0, NO_LIMIT, 0), k);
	for (k = 0; k < 5; k++) {
		assert_int_equal(released(), 0);
		assert_int_equal(file_close(f, order[k]), 0);
		assert_int_equal(file_close(f, order[k]), -EBADF);
	}
	assert_int_equal(released(), 1);
	assert_int_equal(fd_files_open(f->seg), 0);
}

static void closed_file_stays_good_while_borrowed_or_held(void **state)
{
	struct fixture *f = *state;
	struct fd_file *borrowed = NULL, *held = NULL;
	int fd = file_open(f, 42, 0, NO_LIMIT, 0);

	assert_int_equal(fd_borrow(f->self, f->tab, fd, &borrowed), 0);
	assert_int_equal(fd_get(f->self, f->tab, fd, &held), 0);
	assert_int_equal(file_close(f, fd), 0);
	assert_int_equal(released(), 0);
	fd_put(f->self, held);
	assert_int_equal(file_payload(borrowed)->id, 42);
	fd_return(f->self, f->tab, borrowed);
	assert_int_equal(released(), 1);
}

static void replaced_file_is_released_once(void **state)
{
	struct fixture *f = *state;
	struct fd_file *replaced;
	int k;

	file_open(f, 1, 0, NO_LIMIT, 0);
	file_open(f, 2, 0, NO_LIMIT, 0);
	for (k = 0; k < 1000; k++) {
		assert_int_equal(file_open(f, 3, 0, NO_LIMIT, 0), 2);
		assert_int_equal(fd_dup2(f->self, f->tab, k % 2, 2, NO_LIMIT, 0, &replaced), 2);
		assert_int_equal(file_payload(replaced)->id, 3);
		fd_put(f->self, replaced);
		assert_int_equal(file_close(f, 2), 0);
	}
	assert_int_equal(released(), 1000);
}

static void flags_belong_to_the_number(void **state)
{
	struct fixture *f = *state;
	int fd = file_open(f, 1, 0, NO_LIMIT, FD_CLOEXEC_BIT),
	    copy = fd_dup(f->self, f->tab, fd, 0, NO_LIMIT, 0);

	assert_int_equal(fd_get_bits(f->self, f->tab, fd), FD_CLOEXEC_BIT);
	assert_int_equal(fd_get_bits(f->self, f->tab, copy), 0);
	assert_int_equal(fd_set_bits(f->self, f->tab, copy, FD_CLOFORK_BIT), 0);
	assert_int_equal(fd_set_bits(f->self, f->tab, fd, 0), 0);
	assert_int_equal(fd_get_bits(f->self, f->tab, copy), FD_CLOFORK_BIT);
	assert_int_equal(fd_get_bits(f->self, f->tab, fd), 0);
	assert_int_equal(fd_set_bits(f->self, f->tab, 77, 1), -EBADF);
	assert_int_equal(fd_get_bits(f->self, f->tab, 77777777), -EBADF);
	assert_int_equal(fd_get_bits(f->self, f->tab, -1), -EBADF);
	assert_int_equal(file_id_at(f, fd), 1);
}

static void typed_lookup_tells_kind_from_absence(void **state)
{
	struct fixture *f = *state;
	struct fd_file *file = file_make(f, TYPE_B, 1), *found;
	int fd = fd_reserve(f->self, f->tab, 0, NO_LIMIT);

	assert_int_equal(fd_get_typed(f->self, f->tab, fd, TYPE_B, &found), -EBADF);
	fd_publish(f->self, f->tab, fd, file, 0);
	assert_int_equal(fd_get_typed(f->self, f->tab, fd, TYPE_A, &found), -EINVAL);
	assert_int_equal(fd_get_typed(f->self, f->tab, fd, TYPE_B, &found), 0);
	assert_ptr_equal(found, file);
	fd_put(f->self, found);
	assert_int_equal(file_close(f, fd), 0);
	assert_int_equal(fd_get_typed(f->self, f->tab, fd, TYPE_A, &found), -EBADF);
	assert_int_equal(released(), 1);
}

static void segment_limit_gives_enfile_and_rolls_back(void **state)
{
	struct fixture *f = *state;
	struct shelf_file *file;
	int k;

	fd_set_segment_limit(f->seg, 50);
	for (k = 0; k < 50; k++)
		assert_int_equal(file_open(f, 1, 0, NO_LIMIT, 0), k);
	for (k = 0; k < 3; k++)
		assert_int_equal(shelf_file_alloc(f->space, TYPE_A, 8, &file), -ENFILE);
	assert_int_equal(fd_files_open(f->seg), 50);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 0, NO_LIMIT, 0), 50); /* dup makes no file */
	assert_int_equal(file_close(f, 7), 0);
	assert_int_equal(file_open(f, 1, 0, NO_LIMIT, 0), 7);
}

/* A failing page leaves neither number nor mark behind. */
static void full_segment_gives_enomem_and_rolls_back(void **state)
{
	struct fixture *f = *state;
	void **list = NULL, **page;
	struct fd_file *replaced;

	file_open(f, 1, 0, NO_LIMIT, 0);
	while ((page = page_alloc(f->self, 0, PAGE_DATA, 0))) {
		*page = list;
		list = page;
	}
	assert_int_equal(fd_dup(f->self, f->tab, 0, 100000, NO_LIMIT, 0), -ENOMEM);
	assert_int_equal(fd_dup2(f->self, f->tab, 0, 200000, NO_LIMIT, 0, &replaced), -ENOMEM);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 0, NO_LIMIT, 0), 1);
	while ((page = list)) {
		list = *page;
		page_free(f->self, page, 0);
	}
	assert_int_equal(fd_dup(f->self, f->tab, 0, 100000, NO_LIMIT, 0), 100000);
	assert_int_equal(fd_next_open(f->self, f->tab, 2), 100000);
	assert_int_equal(file_close(f, 0), 0);
	assert_int_equal(file_close(f, 1), 0);
	assert_int_equal(file_close(f, 100000), 0);
	assert_int_equal(released(), 1);
}

static void file_nobody_installed_goes_by_put(void **state)
{
	struct fixture *f = *state;

	fd_put(f->self, file_make(f, TYPE_A, 5));
	assert_int_equal(released(), 1);
	assert_int_equal(load_relaxed(&f->self->ledger[0]), 0);
}

static void a_put_in_one_step_tells_the_last_and_leaves_dead_and_saturated_alone(void **state)
{
	struct ref r;
	bool last;

	(void)state;
	ref_init(&r, 2);
	assert_true(ref_put_at_once(&r, &last) && !last);
	assert_int_equal(ref_read(&r), 1);
	assert_true(ref_put_at_once(&r, &last) && last);
	assert_true(ref_read(&r) >= REF_DEAD);
	assert_false(ref_put_at_once(&r, &last));
	assert_false(ref_get(&r));
	ref_init(&r, REF_SATURATED);
	assert_false(ref_put_at_once(&r, &last));
	assert_int_equal(ref_read(&r), REF_SATURATED);
	ref_init(&r, 0);
	assert_false(ref_put_at_once(&r, &last));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_put_in_one_step_tells_the_last_and_leaves_dead_and_saturated_alone),
		fd_test(dup_shares_the_file_and_its_offset),
		fd_test(two_opens_are_two_files),
		fd_test(last_close_releases_once_whatever_the_order),
		fd_test(closed_file_stays_good_while_borrowed_or_held),
		fd_test(replaced_file_is_released_once),
		fd_test(flags_belong_to_the_number),
		fd_test(typed_lookup_tells_kind_from_absence),
		fd_test(segment_limit_gives_enfile_and_rolls_back),
		fd_test(full_segment_gives_enomem_and_rolls_back),
		fd_test(file_nobody_installed_goes_by_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

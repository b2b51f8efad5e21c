// SPDX-License-Identifier: MIT
/* Which number an open, dup or dup2 gets, and what is said when it gets none. */
#include "unit/fd/lib/fixture.h"

static void first_numbers_are_lowest_free(void **state)
{
	struct fixture *f = *state;
	int k;

	for (k = 0; k < 10; k++)
		assert_int_equal(file_open(f, 100 + (uint64_t)k, 0, NO_LIMIT, 0), k);
	assert_int_equal(file_close(f, 1), 0);
	assert_int_equal(file_close(f, 7), 0);
	assert_int_equal(file_open(f, 1, 0, NO_LIMIT, 0), 1);
	assert_int_equal(file_open(f, 2, 0, NO_LIMIT, 0), 7);
	assert_int_equal(file_open(f, 3, 0, NO_LIMIT, 0), 10);
	assert_int_equal(file_id_at(f, 1), 1);
	assert_int_equal(file_id_at(f, 7), 2);
}

/* Around the ends of the head's words, of a page, of the directory, of a node. */
static void lowest_free_crosses_every_boundary(void **state)
{
	static const int edges[] = {63, 64, 511, 512, 8191, 8192, 65535, 65536};
	struct fixture *f = *state;
	unsigned k;
	int fd;

	assert_int_equal(file_open(f, 0, 0, NO_LIMIT, 0), 0);
	for (fd = 1; fd < 66000; fd++)
		assert_int_equal(fd_dup(f->self, f->tab, 0, 0, NO_LIMIT, 0), fd);
	for (k = 0; k < ARRAY_SIZE(edges); k++) {
		assert_int_equal(file_close(f, edges[k]), 0);
		assert_int_equal(file_open(f, 1000 + k, 0, NO_LIMIT, 0), edges[k]);
		assert_int_equal(file_id_at(f, edges[k]), 1000 + k);
	}
	assert_int_equal(file_close(f, 8192), 0);
	assert_int_equal(file_close(f, 65535), 0);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 8193, NO_LIMIT, 0), 65535);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 65536, NO_LIMIT, 0), 66000);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 3, NO_LIMIT, 0), 8192);
	assert_int_equal(load_relaxed(&f->tab->full), 0xffff);
}

#define MODEL 1500 /* numbers of the random test */

struct model {
	uint64_t id[MODEL]; /* 0: free */
	uint64_t next_id;
};

static int model_lowest(struct model *m, int min, int limit)
{
	for (; min < limit; min++)
		if (!m->id[min])
			return min;
	return -EMFILE;
}

static void model_step(struct fixture *f, struct model *m, uint64_t *random)
{
	int a = (int)(test_random(random) % MODEL), b = (int)(test_random(random) % MODEL), want;
	struct fd_file *replaced;

	switch (test_random(random) % 5) {
	case 0:
	case 1:
		want = model_lowest(m, a, MODEL);
		assert_int_equal(file_open(f, ++m->next_id, a, MODEL, 0), want);
		if (want >= 0)
			m->id[want] = m->next_id;
		break;
	case 2:
		want = m->id[a] ? model_lowest(m, b, MODEL) : -EBADF;
		assert_int_equal(fd_dup(f->self, f->tab, a, b, MODEL, 0), want);
		if (want >= 0)
			m->id[want] = m->id[a];
		break;
	case 3:
		want = m->id[a] ? b : -EBADF;
		assert_int_equal(fd_dup2(f->self, f->tab, a, b, MODEL, 0, &replaced), want);
		assert_int_equal(replaced != NULL, want >= 0 && m->id[b] && a != b);
		if (replaced)
			fd_put(f->self, replaced);
		if (want >= 0)
			m->id[b] = m->id[a];
		break;
	default:
		assert_int_equal(file_close(f, a), m->id[a] ? 0 : -EBADF);
		m->id[a] = 0;
	}
}

static void random_calls_agree_with_an_array(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	uint64_t random = test_seed();
	unsigned long k, steps = test_scaled(100000);
	int fd, next;

	for (k = 0; k < steps; k++)
		model_step(*state, m, &random);
	for (fd = 0, next = 0; fd < MODEL; fd++) {
		struct fixture *f = *state;

		assert_int_equal(file_id_at(f, fd), m->id[fd] ? (int64_t)m->id[fd] : -EBADF);
		if (!m->id[fd])
			continue;
		next = fd_next_open(f->self, f->tab, next);
		assert_int_equal(next++, fd);
	}
	free(m);
}

static void dup2_rules(void **state)
{
	struct fixture *f = *state;
	struct fd_file *replaced;
	int reserved;

	file_open(f, 1, 0, NO_LIMIT, FD_CLOEXEC_BIT);
	assert_int_equal(fd_dup2(f->self, f->tab, 0, 0, 1024, 0, &replaced), 0);
	assert_int_equal(fd_get_bits(f->self, f->tab, 0), FD_CLOEXEC_BIT);
	reserved = fd_reserve(f->self, f->tab, 0, 1024);
	assert_int_equal(fd_dup2(f->self, f->tab, 0, reserved, 1024, 0, &replaced), -EBUSY);
	assert_int_equal(file_close(f, reserved), -EBADF);
	assert_int_equal(file_id_at(f, reserved), -EBADF);
	assert_int_equal(fd_dup2(f->self, f->tab, reserved, 5, 1024, 0, &replaced), -EBADF);
	fd_cancel(f->self, f->tab, reserved);
	assert_int_equal(fd_dup2(f->self, f->tab, 0, 1024, 1024, 0, &replaced), -EBADF);
	assert_int_equal(fd_dup2(f->self, f->tab, 0, -1, 1024, 0, &replaced), -EBADF);
	assert_int_equal(fd_dup2(f->self, f->tab, 0, INT32_MAX, UINT64_MAX, 0, &replaced), -EBADF);
	assert_int_equal(fd_dup2(f->self, f->tab, 9, 10, 1024, 0, &replaced), -EBADF);
	assert_int_equal(fd_dup2(f->self, f->tab, 9, 9, 1024, 0, &replaced), -EBADF);
	assert_int_equal(fd_dup2(f->self, f->tab, 0, 1023, 1024, FD_CLOFORK_BIT, &replaced), 1023);
	assert_null(replaced);
	assert_int_equal(fd_get_bits(f->self, f->tab, 1023), FD_CLOFORK_BIT);
}

static void dupfd_rules(void **state)
{
	struct fixture *f = *state;

	file_open(f, 1, 0, NO_LIMIT, 0);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 100, 100, 0), -EINVAL);
	assert_int_equal(fd_dup(f->self, f->tab, 0, -1, 100, 0), -EINVAL);
	assert_int_equal(fd_dup(f->self, f->tab, 0, INT32_MAX, 100, 0), -EINVAL);
	assert_int_equal(fd_dup(f->self, f->tab, 3, 0, 100, 0), -EBADF);
	assert_int_equal(fd_dup(f->self, f->tab, -1, 0, 100, 0), -EBADF);
	assert_int_equal(fd_dup(f->self, f->tab, INT32_MAX, 0, 100, 0), -EBADF);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 99, 100, 0), 99);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 99, 100, 0), -EMFILE);
	assert_int_equal(fd_reserve(f->self, f->tab, 0, 0), -EMFILE);
	assert_int_equal(fd_reserve(f->self, f->tab, -1, 100), -EINVAL);
}

static void full_table_says_emfile_and_keeps_no_trace(void **state)
{
	struct fixture *f = *state;
	int k;

	for (k = 0; k < 20; k++)
		assert_int_equal(file_open(f, 1, 0, 20, 0), k);
	assert_int_equal(file_open(f, 1, 0, 20, 0), -EMFILE);
	assert_int_equal(fd_files_open(f->seg), 20);
	assert_int_equal(fd_dup(f->self, f->tab, 3, 0, 20, 0), -EMFILE);
	assert_int_equal(file_open(f, 1, 0, 21, 0), 20);
	/* A pipe with one free number: the first is given back. */
	k = fd_reserve(f->self, f->tab, 0, 22);
	assert_int_equal(k, 21);
	assert_int_equal(fd_reserve(f->self, f->tab, 0, 22), -EMFILE);
	fd_cancel(f->self, f->tab, k);
	assert_int_equal(file_open(f, 1, 0, 22, 0), 21);
}

static void lowered_limit_keeps_open_numbers(void **state)
{
	struct fixture *f = *state;
	struct fd_file *replaced;

	assert_int_equal(file_open(f, 7, 0, 1024, 0), 0);
	assert_int_equal(fd_dup(f->self, f->tab, 0, 900, 1024, 0), 900);
	assert_int_equal(file_id_at(f, 900), 7);
	assert_int_equal(fd_set_bits(f->self, f->tab, 900, FD_CLOEXEC_BIT), 0);
	assert_int_equal(fd_dup(f->self, f->tab, 900, 0, 10, 0), 1);
	assert_int_equal(fd_dup2(f->self, f->tab, 900, 5, 10, 0, &replaced), 5);
	assert_int_equal(fd_dup(f->self, f->tab, 900, 901, 10, 0), -EINVAL);
	assert_int_equal(file_close(f, 900), 0);
}

static uint64_t pages_in_use(struct fixture *f)
{
	struct segment_space space;

	segment_space(f->seg, &space);
	return space.total_pages - space.free_pages;
}

static void highest_number_costs_constant_memory(void **state)
{
	struct fixture *f = *state;
	struct fd_file *replaced;
	uint64_t before;

	file_open(f, 1, 0, NO_LIMIT, 0);
	before = pages_in_use(f);
	assert_int_equal(fd_dup2(f->self, f->tab, 0, FD_NUMBER_MAX - 1, NO_LIMIT, 0, &replaced),
			 FD_NUMBER_MAX - 1);
	assert_true(pages_in_use(f) - before <=
		    64); /* 4, and what the thread's stock took beside them */
	assert_int_equal(file_id_at(f, FD_NUMBER_MAX - 1), 1);
	assert_int_equal(fd_next_open(f->self, f->tab, 1), FD_NUMBER_MAX - 1);
	assert_int_equal(fd_dup(f->self, f->tab, 0, FD_NUMBER_MAX - 1, NO_LIMIT, 0), -EMFILE);
	assert_int_equal(fd_reserve(f->self, f->tab, 0, UINT64_MAX), 1);
	fd_cancel(f->self, f->tab, 1);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The last tenth of a million may not cost much more than the first. */
static void a_million_numbers_are_linear(void **state)
{
	struct fixture *f = *state;
	int total = (int)test_scaled(1000000), k;
	double start, first = 0, last = 0;

	total = max_of(total, 10);
	file_open(f, 1, 0, NO_LIMIT, 0);
	for (k = 0; k < 10; k++) {
		int end = total / 10 * (k + 1), fd;

		start = seconds();
		for (fd = total / 10 * k + 1; fd <= end; fd++)
			assert_int_equal(fd_dup(f->self, f->tab, 0, 0, NO_LIMIT, 0), fd);
		last = seconds() - start;
		if (k == 0)
			first = last;
	}
	assert_true(last < first * 5 + 0.05);
}

static void close_range_closes_marks_refuses(void **state)
{
	struct fixture *f = *state;
	unsigned dropped = 0;
	int k;

	for (k = 0; k < 100; k++)
		file_open(f, 1, 0, NO_LIMIT, k % 2 ? FD_CLOFORK_BIT : 0);
	fd_dup(f->self, f->tab, 0, 70000, NO_LIMIT, 0);
	assert_int_equal(fd_close_range(f->self, f->tab, 5, 4, 0, drop_put, NULL), -EINVAL);
	assert_int_equal(fd_close_range(f->self, f->tab, 3, 4, 8, drop_put, NULL), -EINVAL);
	assert_int_equal(fd_close_range(f->self, f->tab, 10, 20, FD_RANGE_CLOEXEC, drop_put, NULL),
			 0);
	assert_int_equal(fd_get_bits(f->self, f->tab, 9), FD_CLOFORK_BIT);
	assert_int_equal(fd_get_bits(f->self, f->tab, 11), FD_CLOEXEC_BIT | FD_CLOFORK_BIT);
	assert_int_equal(fd_get_bits(f->self, f->tab, 20), FD_CLOEXEC_BIT);
	assert_int_equal(fd_get_bits(f->self, f->tab, 22), 0);
	assert_int_equal(fd_close_range(f->self, f->tab, 3, ~0U, 0, drop_put, &dropped), 0);
	assert_int_equal(dropped, 98);
	assert_int_equal(fd_next_open(f->self, f->tab, 0), 0);
	assert_int_equal(fd_next_open(f->self, f->tab, 3), -1);
	assert_int_equal(file_open(f, 1, 0, NO_LIMIT, 0), 3);
	assert_int_equal(fd_close_range(f->self, f->tab, ~0U, ~0U, 0, drop_put, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fd_test(first_numbers_are_lowest_free),
		fd_test(lowest_free_crosses_every_boundary),
		fd_test(random_calls_agree_with_an_array),
		fd_test(dup2_rules),
		fd_test(dupfd_rules),
		fd_test(full_table_says_emfile_and_keeps_no_trace),
		fd_test(lowered_limit_keeps_open_numbers),
		fd_test(highest_number_costs_constant_memory),
		fd_test(a_million_numbers_are_linear),
		fd_test(close_range_closes_marks_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

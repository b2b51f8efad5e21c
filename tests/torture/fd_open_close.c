// SPDX-License-Identifier: MIT
/*
 * Four threads open and close in one shared table, a million times each (scaled):
 * no number is handed out twice, none is lost, the count is zero at the end.
 * Oracle: who owns each number, by exchange.
 */
#include "torture/lib/fd_torture.h"

#define THREADS 4
#define HELD 12 /* numbers a thread has open at once */
#define NUMBERS (THREADS * HELD)

static atomic_u32 owner[NUMBERS];

struct worker {
	struct torture *t;
	uint32_t id;
	unsigned long steps;
};

static void take(struct worker *w, struct slot *self, int *fd)
{
	*fd = torture_open(w->t, self, w->t->tab, w->id);
	CHECK(*fd < NUMBERS); /* lowest free: there are never more in use */
	CHECK(xchg_acq_rel(&owner[*fd], w->id) == 0);
}

static void give(struct worker *w, struct slot *self, int *fd)
{
	CHECK(xchg_acq_rel(&owner[*fd], 0u) == w->id);
	CHECK(!torture_close(self, w->t->tab, *fd));
	*fd = -1;
}

static void look(struct worker *w, struct slot *self, int fd)
{
	struct fd_file *file;

	CHECK(!fd_borrow(self, w->t->tab, fd, &file));
	CHECK(torture_check(file) == w->id);
	fd_return(self, w->t->tab, file);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct slot *self = slot_self(w->t->seg);
	uint64_t random = w->t->seed + w->id;
	int held[HELD];
	unsigned long k;
	unsigned n;

	for (n = 0; n < HELD; n++)
		held[n] = -1;
	for (k = 0; k < w->steps; k++) {
		n = (unsigned)(test_random(&random) % HELD);
		if (held[n] < 0)
			take(w, self, &held[n]);
		else
			give(w, self, &held[n]);
		if (held[n] >= 0)
			look(w, self, held[n]);
	}
	for (n = 0; n < HELD; n++)
		if (held[n] >= 0)
			give(w, self, &held[n]);
	return NULL;
}

static void no_number_is_handed_out_twice_or_lost(void **state)
{
	struct worker workers[THREADS];
	struct torture t;
	uint32_t k;

	(void)state;
	torture_start(&t);
	for (k = 0; k < THREADS; k++)
		workers[k] = (struct worker){&t, k + 1, 2 * test_scaled(1000000)};
	torture_threads(THREADS, work, workers, sizeof(workers[0]));
	assert_int_equal(fd_next_open(slot_self(t.seg), t.tab, 0), -1);
	assert_int_equal(fd_map_next_used(t.tab, 0), FD_NUMBER_MAX);
	assert_int_equal(fd_files_open(t.seg), 0);
	torture_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_number_is_handed_out_twice_or_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

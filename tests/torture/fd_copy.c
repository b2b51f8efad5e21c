// SPDX-License-Identifier: MIT
/*
 * One table is changed by threads of two processes while others copy it, as fork
 * would, and forked children use and leave their copies: every file found in a
 * copy is alive, and at the end each file was released and freed once.
 */
#include "torture/lib/fd_torture.h"

/*
 * ThreadSanitizer sees one process: memory freed by a thread here, made a file by the
 * child, and closed by another thread here looks like a race to it.  There the test
 * has no children.
 */
#if defined(__SANITIZE_THREAD__)
#define CHILDREN 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILDREN 0
#endif
#endif
#ifndef CHILDREN
#define CHILDREN 2
#endif

#define NUMBERS 700 /* beyond the head and the first page */

struct worker {
	struct torture *t;
	uint32_t id;
	unsigned long steps;
};

static void change(struct torture *t, struct slot *self, uint64_t *random)
{
	int a = (int)(test_random(random) % NUMBERS), b = (int)(test_random(random) % NUMBERS);
	struct fd_file *replaced, *dropped = NULL;
	int err;

	switch (test_random(random) % 4) {
	case 0:
		torture_open(t, self, t->tab, 1);
		break;
	case 1:
		err = fd_dup2(self, t->tab, a, b, NUMBERS, 0, &replaced);
		CHECK(err == b || err == -EBADF || err == -EBUSY);
		dropped = replaced;
		break;
	case 2:
		err = fd_dup(self, t->tab, a, b, NUMBERS, FD_CLOFORK_BIT);
		CHECK(err >= 0 || err == -EBADF || err == -EMFILE);
		break;
	default:
		torture_close(self, t->tab, a);
		torture_close(self, t->tab, b);
	}
	if (dropped)
		fd_put(self, dropped);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct slot *self = slot_self(w->t->seg);
	uint64_t random = w->t->seed + w->id;
	unsigned long k;

	for (k = 0; k < w->steps; k++)
		change(w->t, self, &random);
	return NULL;
}

static void use_and_leave_copy(struct torture *t, struct slot *self)
{
	struct fd_table *copy;
	struct fd_file *file;
	int fd;

	CHECK(!fd_table_copy(self, t->tab, &copy));
	for (fd = fd_next_open(self, copy, 0); fd >= 0; fd = fd_next_open(self, copy, fd + 1)) {
		CHECK(fd_get_bits(self, copy, fd) == 0);
		CHECK(!fd_borrow(self, copy, fd, &file));
		torture_check(file);
		fd_return(self, copy, file);
	}
	torture_open(t, self, copy, 2);
	fd_table_leave(self, copy, torture_drop, NULL);
}

static void *copier(void *arg)
{
	struct worker *w = arg;
	struct slot *self = slot_self(w->t->seg);
	unsigned long k;

	for (k = 0; k < w->steps / 100 + 1; k++)
		use_and_leave_copy(w->t, self);
	return NULL;
}

static void *change_or_copy(void *arg)
{
	struct worker *w = arg;

	return w->id % 2 ? work(w) : copier(w);
}

static int child(void *arg)
{
	struct worker *w = arg;

	work(w);
	copier(w);
	/* What it retired is freed by others, unless it does it: the parent waits for that. */
	return epoch_barrier(slot_self(w->t->seg), INT64_C(10000000000)) ? 1 : 0;
}

static void copies_hold_live_files_only(void **state)
{
	struct worker workers[4];
	struct torture t;
	pid_t pids[2];
	int k;

	(void)state;
	torture_start(&t);
	for (k = 0; k < 4; k++)
		workers[k] = (struct worker){&t, (uint32_t)k + 1, test_scaled(40000)};
	for (k = 0; k < CHILDREN; k++)
		pids[k] = test_fork(child, &workers[2 + k]);
	torture_threads(4, change_or_copy, workers, sizeof(workers[0]));
	for (k = 0; k < CHILDREN; k++)
		assert_int_equal(test_wait(pids[k]), 0);
	slot_reap(slot_self(t.seg));
	torture_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_hold_live_files_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

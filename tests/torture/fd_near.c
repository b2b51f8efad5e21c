// SPDX-License-Identifier: MIT
/*
 * Few numbers, all near, many hands: opens, closes, dup, dup2 and fork's copy meet on the
 * same words.  Nobody reserves, so dup2 never says EBUSY, and a file is released and freed once.
 * Then the same by processes that are killed in the middle of it: the table's other
 * user goes on, and at the end no number is taken by the dead.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "torture/lib/fd_torture.h"

#if defined(__SANITIZE_THREAD__)
#define VICTIMS 0 /* as in fd_copy.c: ThreadSanitizer sees one process */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VICTIMS 0
#endif
#endif
#ifndef VICTIMS
#define VICTIMS test_scaled(300)
#endif

#define NUMBERS 6
#define THREADS 4

struct worker {
	struct torture *t;
	uint32_t id;
	unsigned long steps;
};

static int below(uint64_t *random, unsigned n)
{
	return (int)(test_random(random) % n);
}

static void open_one(struct torture *t, struct slot *self)
{
	struct fd_file *file = torture_make(t, self, 1);
	int fd = fd_install(self, t->tab, file, NUMBERS, 0);

	CHECK(fd == -EMFILE || (fd >= 0 && fd < NUMBERS));
	if (fd < 0)
		fd_put(self, file);
}

static void dup2_one(struct torture *t, struct slot *self, uint64_t *random)
{
	int a = below(random, NUMBERS), b = below(random, NUMBERS);
	struct fd_file *replaced;
	int err = fd_dup2(self, t->tab, a, b, NUMBERS, FD_CLOEXEC_BIT, &replaced);

	if (FD_SCHEME_NEAR_FREE)
		CHECK(err == b || err == -EBADF);
	if (replaced)
		fd_put(self, replaced);
}

static void look_one(struct torture *t, struct slot *self, int fd)
{
	struct fd_file *file;

	if (fd_borrow(self, t->tab, fd, &file))
		return;
	CHECK(torture_check(file) == 1);
	fd_return(self, t->tab, file);
}

static void copy_once(struct torture *t, struct slot *self)
{
	struct fd_table *copy;
	int fd;

	CHECK(!fd_table_copy(self, t->tab, &copy));
	for (fd = fd_next_open(self, copy, 0); fd >= 0; fd = fd_next_open(self, copy, fd + 1))
		CHECK(!torture_close(self, copy, fd));
	fd_table_leave(self, copy, torture_drop, NULL);
}

static void change(struct torture *t, struct slot *self, uint64_t *random)
{
	switch (below(random, 16)) {
	case 0:
		copy_once(t, self);
		break;
	case 1:
	case 2:
		dup2_one(t, self, random);
		break;
	case 3:
		(void)fd_dup(self, t->tab, below(random, NUMBERS), below(random, NUMBERS), NUMBERS, 0);
		break;
	case 4:
		(void)fd_set_bits(self, t->tab, below(random, NUMBERS), FD_CLOEXEC_BIT);
		break;
	case 5:
	case 6:
	case 7:
		look_one(t, self, below(random, NUMBERS));
		break;
	case 8:
	case 9:
	case 10:
	case 11:
		open_one(t, self);
		break;
	default:
		(void)torture_close(self, t->tab, below(random, NUMBERS));
	}
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

static void every_file_goes_once(void **state)
{
	struct worker workers[THREADS];
	struct torture t;
	uint32_t k;

	(void)state;
	torture_start(&t);
	for (k = 0; k < THREADS; k++)
		workers[k] = (struct worker){&t, k + 1, test_scaled(300000)};
	torture_threads(THREADS, work, workers, sizeof(workers[0]));
	torture_end(&t);
}

/* ---- death ------------------------------------------------------------------------------------- */

static atomic_u32 done;

static void *work_until_done(void *arg)
{
	struct worker *w = arg;
	struct slot *self = slot_self(w->t->seg);
	uint64_t random = w->t->seed + w->id;

	while (!load_relaxed(&done)) /* nothing is learned from it but that it is time to go */
		change(w->t, self, &random);
	return NULL;
}

static void use_for_ever(struct torture *t, uint64_t random)
{
	struct slot *self = slot_self(t->seg);

	for (;;)
		change(t, self, &random);
}

/* A second task of the table that ends at any instruction. */
static void kill_one(struct torture *t, struct slot *self, uint64_t *random)
{
	struct timespec ts = {0, below(random, 300000)};
	pid_t pid;

	fd_table_share(self, t->tab);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		use_for_ever(t, test_random(random));
	nanosleep(&ts, NULL); /* not to wait for something: any moment is a good one to die */
	add_acq_rel(&t->counts->killed, 1u);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	slot_reap(self);
	fd_table_leave(self, t->tab, torture_drop, NULL);
}

static void the_dead_keep_no_number(void **state)
{
	struct worker w;
	struct torture t;
	struct slot *self;
	pthread_t thread;
	unsigned long k, victims = VICTIMS;
	uint64_t random;
	int fd;

	(void)state;
	if (!FD_LEDGER)
		return; /* a scheme that is only compared with */
	torture_start(&t);
	self = slot_self(t.seg);
	random = t.seed;
	w = (struct worker){&t, 77, 0};
	CHECK(!pthread_create(&thread, NULL, work_until_done, &w));
	for (k = 0; k < victims; k++)
		kill_one(&t, self, &random);
	store_release(&done, 1u);
	pthread_join(thread, NULL);
	for (fd = 0; fd < NUMBERS; fd++)
		(void)torture_close(self, t.tab, fd);
	assert_int_equal(fd_map_next_used(t.tab, 0), FD_NUMBER_MAX); /* a word of the dead would be used */
	fd_table_leave(self, t.tab, torture_drop, NULL);
	CHECK(epoch_barrier(self, INT64_C(10000000000)) == 0); /* a file released or freed twice ends the test */
	shelf_fdspace_detach(t.space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_goes_once),
		cmocka_unit_test(the_dead_keep_no_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Processes are killed in the middle of anything while others go on: the others
 * neither wait for long nor find their memory in other hands.
 */
#include "lib/seg_test.h"

#include <signal.h>
#include <sys/mman.h>

enum { WORKERS = 4, OWN = 200 };

/* In shared memory. */
struct progress {
	_Atomic(uint64_t) operations[WORKERS];
	_Atomic(uint64_t) full[WORKERS];
};
static struct progress *progress;

struct owned {
	uint64_t *p;
	uint64_t how; /* 0: nothing; 1..6 run of order how - 1; 16.. object */
	uint64_t mark;
};

static size_t owned_words(uint64_t how)
{
	return (how < 16 ? PAGE_BYTES << (how - 1) : slab_sizes[how - 16]) / 8;
}

static void take(struct slot *self, struct owned *o, uint64_t *rnd)
{
	uint64_t r = test_random(rnd);

	o->how = r & 1 ? 16 + r / 2 % CACHE_IDS : r & 14 ? 1 : 1 + r / 16 % 6;
	o->p = o->how < 16 ? page_alloc(self, (unsigned)o->how - 1, PAGE_DATA, 0) :
			     cache_alloc(self, (enum cache_id)(o->how - 16));
	if (!o->p) {
		o->how = 0;
		return;
	}
	o->mark = r;
	o->p[0] = o->p[owned_words(o->how) - 1] = r;
}

static void drop(struct slot *self, struct owned *o)
{
	CHECK(o->p[0] == o->mark && o->p[owned_words(o->how) - 1] == o->mark);
	if (o->how < 16)
		page_free(self, o->p, (unsigned)o->how - 1);
	else
		cache_free(self, (enum cache_id)(o->how - 16), o->p);
	o->how = 0;
}

static int worker(void *arg)
{
	unsigned k = (unsigned)(uintptr_t)arg;
	struct slot *self = slot_self(seg_test.seg);
	uint64_t rnd = test_seed() + (uint64_t)getpid() * 77;
	struct owned own[OWN] = {0};

	for (;;) {
		struct owned *o = &own[test_random(&rnd) % OWN];

		if (o->how)
			drop(self, o);
		else
			take(self, o, &rnd);
		if (!o->how)
			atomic_fetch_add(&progress->full[k], 1);
		if (atomic_fetch_add(&progress->operations[k], 1) % 5000 == 4999)
			slot_reap_quick(self);
	}
	return 0;
}

/* Everyone moves on within a second, and a machine shared with other work gets ten. */
static void all_move_on(const uint64_t *before)
{
	unsigned k, n;

	for (k = 0; k < WORKERS; k++) {
		for (n = 0; n < 10000 && atomic_load(&progress->operations[k]) == before[k]; n++)
			usleep(1000);
		CHECK(n < 10000);
	}
}

static void look(uint64_t *operations)
{
	unsigned k;

	for (k = 0; k < WORKERS; k++)
		operations[k] = atomic_load(&progress->operations[k]);
}

static void killed_at_random(uint64_t size)
{
	uint64_t rnd = test_seed(), before[WORKERS];
	pid_t pid[WORKERS];
	unsigned long n;
	unsigned k;

	seg_test_make(size);
	memset(progress, 0, sizeof(*progress));
	for (k = 0; k < WORKERS; k++)
		pid[k] = test_fork(worker, (void *)(uintptr_t)k);
	for (n = test_scaled(60); n; n--) {
		usleep((useconds_t)(test_random(&rnd) % 8000));
		k = test_random(&rnd) % WORKERS;
		kill(pid[k], SIGKILL);
		assert_int_equal(test_wait(pid[k]), 128 + SIGKILL);
		look(before);
		pid[k] = test_fork(worker, (void *)(uintptr_t)k);
		all_move_on(before);
	}
	for (k = 0; k < WORKERS; k++) {
		kill(pid[k], SIGKILL);
		test_wait(pid[k]);
	}
	slot_reap(slot_self(seg_test.seg));
	assert_int_equal(seg_test_counts().cached, load_relaxed(&slot_self(seg_test.seg)->page_count));
	for (k = 1; k <= slot_limit(seg_test.seg); k++)
		assert_int_equal(slot_alive(seg_test.seg, k), k == slot_id(slot_self(seg_test.seg)));
}

static void survivors_go_on(void **state)
{
	(void)state;
	killed_at_random(1 << 30);
}

/* What the dead ones hold is lost, so the segment fills up; then all workers steal from one another. */
static void survivors_go_on_in_a_full_segment(void **state)
{
	(void)state;
	killed_at_random(8 << 20);
}

static int make_progress(void **state)
{
	(void)state;
	test_seed();
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return progress == MAP_FAILED;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(survivors_go_on, seg_test_remove),
		cmocka_unit_test_teardown(survivors_go_on_in_a_full_segment, seg_test_remove),
	};

	return cmocka_run_group_tests(tests, make_progress, NULL);
}

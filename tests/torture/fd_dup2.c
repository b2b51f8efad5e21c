// SPDX-License-Identifier: MIT
/*
 * 300,000 times (scaled) dup2 puts a new file over one number while other threads
 * look it up: never EBADF, never a freed file, never an older file than seen before;
 * each replaced file is released once.
 */
#include <sched.h>

#include "torture/lib/fd_torture.h"

#define LOOKERS 3

struct looker {
	struct torture *t;
	unsigned how;
	unsigned long looks;
};

static atomic_u32 looking, done;
static int target;

static uint64_t look_once(struct looker *l, struct slot *self)
{
	struct fd_file *file;
	uint64_t generation;

	if (l->how == 0) {
		CHECK(!fd_borrow(self, l->t->tab, target, &file));
		generation = torture_check(file);
		fd_return(self, l->t->tab, file);
	} else {
		CHECK(!(l->how == 1 ? fd_get(self, l->t->tab, target, &file) :
				      fd_get_typed(self, l->t->tab, target, TORTURE_TYPE, &file)));
		generation = torture_check(file);
		fd_put(self, file);
	}
	return generation;
}

static void *look(void *arg)
{
	struct looker *l = arg;
	struct slot *self = slot_self(l->t->seg);
	uint64_t last = 0;

	while (!load_acquire(&done)) {
		uint64_t generation = look_once(l, self);

		CHECK(generation >= last);
		last = generation;
		if (l->looks == 0)
			add_acq_rel(&looking, 1u);
		/* Flags meet dup2's exchange: they may only land on an open number. */
		if (l->looks++ % 64 == 0)
			CHECK(!fd_set_bits(self, l->t->tab, target, (unsigned)l->looks / 64 & 3));
	}
	return NULL;
}

static void swap(struct torture *t, struct slot *self, uint64_t generation)
{
	struct fd_file *replaced = NULL;
	int fd = torture_open(t, self, t->tab, generation);

	CHECK(fd_dup2(self, t->tab, fd, target, 1024, 0, &replaced) == target);
	if (replaced)
		fd_put(self, replaced);
	CHECK(!torture_close(self, t->tab, fd));
}

static void never_absent(int number)
{
	unsigned long k, swaps = test_scaled(300000);
	struct looker lookers[LOOKERS];
	pthread_t threads[LOOKERS];
	struct torture t;
	struct slot *self;

	target = number;
	store_relaxed(&looking, 0); /* no threads yet */
	store_relaxed(&done, 0);
	torture_start(&t);
	self = slot_self(t.seg);
	swap(&t, self, 1);
	for (k = 0; k < LOOKERS; k++) {
		lookers[k] = (struct looker){&t, (unsigned)k, 0};
		CHECK(!pthread_create(&threads[k], NULL, look, &lookers[k]));
	}
	while (load_acquire(&looking) < LOOKERS)
		sched_yield();
	for (k = 2; k < swaps + 2; k++) {
		swap(&t, self, k);
		if (k % 4096 == 0)
			sched_yield(); /* on few processors the others may never meet us otherwise */
	}
	store_release(&done, 1u);
	for (k = 0; k < LOOKERS; k++)
		pthread_join(threads[k], NULL);
	torture_end(&t);
}

static void dup2_over_an_open_near_number_is_never_absent(void **state)
{
	(void)state;
	never_absent(5);
}

/* With a page on the way. */
static void dup2_over_an_open_far_number_is_never_absent(void **state)
{
	(void)state;
	never_absent(70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dup2_over_an_open_near_number_is_never_absent),
		cmocka_unit_test(dup2_over_an_open_far_number_is_never_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/*
 * One thread opens and closes a number again and again; others look it up all the
 * while: whoever finds a file there finds it whole.  The payload is plain memory, so a publish that
 * does not release it is a data race for ThreadSanitizer.
 */
#include <sched.h>

#include "torture/lib/fd_torture.h"

#define LOOKERS 2

static atomic_u32 looking, done;

static void *look(void *arg)
{
	struct torture *t = arg;
	struct slot *self = slot_self(t->seg);
	struct fd_file *file;
	uint64_t last = 0;

	add_acq_rel(&looking, 1u);
	while (!load_relaxed(&done)) { /* nothing is learned from it but that it is time to go */
		uint64_t generation;

		if (fd_borrow(self, t->tab, 0, &file))
			continue;
		generation = torture_check(file);
		fd_return(self, t->tab, file);
		CHECK(generation >= last);
		last = generation;
	}
	return NULL;
}

/* The number first, as open does it: so only the publish itself can carry the file's contents over. */
static void open_zero(struct torture *t, struct slot *self, uint64_t generation)
{
	CHECK(fd_reserve(self, t->tab, 0, 1024) == 0);
	fd_publish(self, t->tab, 0, torture_make(t, self, generation), 0);
}

static void who_finds_a_file_finds_it_whole(void **state)
{
	unsigned long k, rounds = test_scaled(300000);
	pthread_t threads[LOOKERS];
	struct torture t;
	struct slot *self;

	(void)state;
	torture_start(&t);
	self = slot_self(t.seg);
	for (k = 0; k < LOOKERS; k++)
		CHECK(!pthread_create(&threads[k], NULL, look, &t));
	while (load_acquire(&looking) < LOOKERS)
		sched_yield();
	for (k = 1; k <= rounds; k++) {
		open_zero(&t, self, k);
		if (k % 256 == 0)
			sched_yield(); /* on few processors the others may never meet us otherwise */
		CHECK(!torture_close(self, t.tab, 0));
	}
	store_relaxed(&done, 1u);
	for (k = 0; k < LOOKERS; k++)
		pthread_join(threads[k], NULL);
	torture_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_finds_a_file_finds_it_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

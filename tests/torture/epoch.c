/* SPDX-License-Identifier: MIT */
/*
 * Readers, retirers and death, with an age oracle.
 *
 * A table of cells points to objects. Writers replace objects and retire the old ones; freeing poisons them.
 * A reader keeps an object for a while inside a section and then checks that it is still the object it found.
 * Readers are threads, and forked processes of which some are killed inside a section.
 * Objects come from a pool of their own and are reused at once, so that a free too early shows.
 */
#include "base/clock.h"
#include "base/copy.h"
#include "epoch/epoch_priv.h"
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define SECOND INT64_C(1000000000)
enum { CELLS = 16, FILL = 6, READERS = 2, WRITERS = 2, CHILDREN = 3 };

/* Plain on purpose: ThreadSanitizer checks them. */
struct object {
	struct retired retired;
	uint64_t born, same[FILL];
	uint64_t pad[3];
};

struct shared {
	atomic_ptr(struct object) cell[CELLS];
	_Alignas(CACHE_LINE) atomic_u64 made, freed;
	atomic_u32 stop, inside;
};

static struct segment *seg;
static struct shared *sh;

static void free_object(struct slot *by, struct retired *r)
{
	struct object *obj = container_of(r, struct object, retired);
	unsigned i;

	obj->born = 0;
	for (i = 0; i < FILL; i++)
		obj->same[i] = ~UINT64_C(0);
	add_relaxed(&sh->freed, 1);
	cache_free(by, CACHE_128, obj);
}

static struct object *make_object(struct slot *by)
{
	struct object *obj = cache_alloc(by, CACHE_128);
	unsigned i;

	CHECK(obj);
	obj->born = 1 + add_relaxed(&sh->made, 1);
	for (i = 0; i < FILL; i++)
		obj->same[i] = obj->born;
	return obj;
}

/* ThreadSanitizer sees plain reads by threads; what a process reads is compared only. */
static void read_once(struct slot *me, uint64_t *seed)
{
	struct object *obj;
	uint64_t born;
	unsigned i, spins = test_random(seed) % 64;

	epoch_enter(me);
	obj = load_acquire(&sh->cell[test_random(seed) % CELLS]); /* pairs with the exchange in write_once */
	if (obj) {
		born = obj->born;
		CHECK(born);
		while (spins--)
			cpu_relax();
		for (i = 0; i < FILL; i++)
			CHECK(obj->same[i] == born);
		CHECK(obj->born == born);
	}
	epoch_exit(me);
}

static void write_once(struct slot *me, uint64_t *seed)
{
	struct object *obj = test_random(seed) % 8 ? make_object(me) : NULL;
	bool inside = test_random(seed) % 4 == 0;

	if (inside)
		epoch_enter(me);
	obj = xchg_acq_rel(&sh->cell[test_random(seed) % CELLS], obj);
	if (obj)
		epoch_retire(me, &obj->retired, RETIRE_SPECIAL, 0);
	if (inside)
		epoch_exit(me);
}

static void *reader(void *arg)
{
	struct slot *me = slot_self(seg);
	uint64_t seed = *(uint64_t *)arg;

	while (!load_acquire(&sh->stop))
		read_once(me, &seed);
	return NULL;
}

static void *writer(void *arg)
{
	struct slot *me = slot_self(seg);
	uint64_t seed = *(uint64_t *)arg;
	unsigned long n = test_scaled(30000);

	while (n--)
		write_once(me, &seed);
	return NULL;
}

/* One that passes, as it retires, and has sections in between. */
static void *writer_that_reads(void *arg)
{
	struct slot *me = slot_self(seg);
	uint64_t seed = *(uint64_t *)arg;
	unsigned long n = test_scaled(30000);

	while (n--) {
		write_once(me, &seed);
		read_once(me, &seed);
	}
	return NULL;
}

/* One that is asleep at most of its entries, as it is away for longer than a batch lasts. */
static void *seldom_reader(void *arg)
{
	struct slot *me = slot_self(seg);
	uint64_t seed = *(uint64_t *)arg;

	while (!load_acquire(&sh->stop)) {
		unsigned n = test_random(&seed) % 8;

		usleep(test_random(&seed) % 300);
		while (n--)
			read_once(me, &seed);
	}
	return NULL;
}

static int reading_process(void *arg)
{
	struct slot *me = slot_self(seg);
	uint64_t seed = *(uint64_t *)arg;

	while (!load_acquire(&sh->stop))
		read_once(me, &seed);
	return 0;
}

/* Writes a while, then stays inside a section until it is killed. */
static int dying_process(void *arg)
{
	struct slot *me = slot_self(seg);
	uint64_t seed = *(uint64_t *)arg;
	unsigned n;

	for (n = 0; n < 1000; n++)
		write_once(me, &seed);
	epoch_enter(me);
	store_release(&sh->inside, 1);
	while (!load_acquire(&sh->stop))
		pause();
	return 0;
}

static void begin(void)
{
	struct segment_options opt = {.size = 64 << 20};
	char name[TEST_NAME_SIZE], why[256];

	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(sh != MAP_FAILED);
	if (segment_create(fresh_name(name), &opt, &seg, why))
		fail_msg("%s", why);
	retire_register(RETIRE_SPECIAL, free_object);
	assert_int_equal(epoch_init(seg), 0);
	segment_set_ready(seg);
	segment_remove(name, why);
}

/* Everything made was freed, but for what the cells hold. */
static void end(void)
{
	struct slot *self = slot_self(seg);
	unsigned i, held = 0;

	slot_reap(self);
	assert_int_equal(epoch_barrier(self, 5 * SECOND), 0);
	for (i = 0; i < CELLS; i++)
		held += load_acquire(&sh->cell[i]) != NULL;
	assert_int_equal(load_relaxed(&sh->made) - load_relaxed(&sh->freed), held);
	segment_detach(seg);
	munmap(sh, sizeof(*sh));
}

typedef void *thread_fn(void *);

static void run_threads_of(uint64_t *seed, thread_fn *reads, thread_fn *writes)
{
	pthread_t thread[READERS + WRITERS];
	uint64_t seeds[READERS + WRITERS];
	unsigned i;

	for (i = 0; i < READERS + WRITERS; i++) {
		seeds[i] = test_random(seed);
		CHECK(!pthread_create(&thread[i], NULL, i < READERS ? reads : writes, &seeds[i]));
	}
	for (i = READERS; i < READERS + WRITERS; i++)
		pthread_join(thread[i], NULL);
	store_release(&sh->stop, 1);
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
}

static void run_threads(uint64_t *seed)
{
	run_threads_of(seed, reader, writer);
}

static void threads_never_see_a_freed_object(void **state)
{
	uint64_t seed = test_seed();

	(void)state;
	begin();
	run_threads(&seed);
	end();
}

static void writers_alone_free_by_passing_and_never_see_a_freed_object(void **state)
{
	uint64_t seed = test_seed(), seeds[WRITERS + 1];
	pthread_t thread[WRITERS];
	unsigned i;

	(void)state;
	begin();
	seg->membarrier = false; /* nobody can be interrupted */
	for (i = 0; i < WRITERS; i++) {
		seeds[i] = test_random(&seed);
		CHECK(!pthread_create(&thread[i], NULL, writer_that_reads, &seeds[i]));
	}
	seeds[WRITERS] = test_random(&seed);
	writer_that_reads(&seeds[WRITERS]); /* this thread has a slot, too, and must pass */
	for (i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	assert_true(load_relaxed(&sh->freed) > 0);
	seg->membarrier = true;
	end();
}

static void sleepers_wake_in_time(void **state)
{
	uint64_t seed = test_seed();

	(void)state;
	begin();
	run_threads_of(&seed, seldom_reader, writer_that_reads);
	end();
}

static void threads_never_see_a_freed_object_with_fences(void **state)
{
	uint64_t seed = test_seed();

	(void)state;
	begin();
	epoch_use_fence(seg->hdr->epoch);
	run_threads(&seed);
	end();
}

static void fences_may_come_while_readers_are_inside(void **state)
{
	uint64_t seed = test_seed(), s = test_random(&seed);
	pthread_t thread[2];

	(void)state;
	begin();
	CHECK(!pthread_create(&thread[0], NULL, reader, &s));
	CHECK(!pthread_create(&thread[1], NULL, writer, &s));
	usleep(5000);
	epoch_use_fence(seg->hdr->epoch);
	pthread_join(thread[1], NULL);
	store_release(&sh->stop, 1);
	pthread_join(thread[0], NULL);
	end();
}

static void processes_never_see_a_freed_object(void **state)
{
	uint64_t seed = test_seed(), s[CHILDREN];
	pid_t pid[CHILDREN];
	unsigned i;

	(void)state;
	begin();
	for (i = 0; i < CHILDREN; i++) {
		s[i] = test_random(&seed);
		pid[i] = test_fork(reading_process, &s[i]);
	}
	run_threads(&seed);
	for (i = 0; i < CHILDREN; i++)
		assert_int_equal(test_wait(pid[i]), 0);
	end();
}

static void reclaim_goes_on_within_a_second_of_a_kill(void **state)
{
	uint64_t seed = test_seed();
	struct slot *self;
	unsigned round;

	(void)state;
	begin();
	self = slot_self(seg);
	for (round = 0; round < test_scaled(8); round++) {
		uint64_t s = test_random(&seed);
		pid_t pid;
		int64_t start;
		unsigned i;

		store_release(&sh->inside, 0);
		pid = test_fork(dying_process, &s);
		while (!load_acquire(&sh->inside))
			usleep(200);
		for (i = 0; i < 3000; i++)
			write_once(self, &seed);
		kill(pid, SIGKILL);
		test_wait(pid);
		start = clock_now_monotonic();
		assert_int_equal(epoch_barrier(self, SECOND), 0);
		assert_true(clock_now_monotonic() - start < SECOND);
	}
	store_release(&sh->stop, 1);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_never_see_a_freed_object),
		cmocka_unit_test(writers_alone_free_by_passing_and_never_see_a_freed_object),
		cmocka_unit_test(sleepers_wake_in_time),
		cmocka_unit_test(threads_never_see_a_freed_object_with_fences),
		cmocka_unit_test(fences_may_come_while_readers_are_inside),
		cmocka_unit_test(processes_never_see_a_freed_object),
		cmocka_unit_test(reclaim_goes_on_within_a_second_of_a_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

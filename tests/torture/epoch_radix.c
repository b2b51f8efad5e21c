/* SPDX-License-Identifier: MIT */
/*
 * One writer, many readers on a radix tree, against a plain array.
 *
 * A value carries its index, and a stamp that never goes back at one index. Every place has a window: the stamp
 * the writer is about to store and the last one it finished. What a reader finds must lie in the window
 * it saw around its look; places that are never touched must always be found.
 */
#include "epoch/epoch_priv.h"
#include "epoch/radix.h"
#include "harness.h"

#include <pthread.h>

#define SECOND INT64_C(1000000000)
enum { PLACES = 512, READERS = 3, FIXED = 7 };

static struct segment *seg;
static struct radix tree;
static atomic_u32 stop;

/* Even stamps: nothing there. The writer sets `begun`, changes the tree, sets `done`. */
static struct place {
	atomic_u64 begun, done;
} places[PLACES];

/* Sparse, so that the tree grows and shrinks; no two alike. */
static uint64_t index_of(unsigned place)
{
	return place < 100 ? place : ((UINT64_C(1) << (place % 40)) * 1024) + place;
}

static uint64_t value_of(unsigned place, uint64_t stamp)
{
	return (stamp << 16 | place) << 6;
}

static void check_value(unsigned place, uint64_t value, uint64_t done, uint64_t begun)
{
	uint64_t stamp = value >> 22;

	if (!value) /* there was a moment with nothing */
		CHECK(begun > done || !(done & 1));
	else
		CHECK((value >> 6 & 0xffff) == place && stamp & 1 && stamp >= done && stamp <= begun);
}

static void look_up(unsigned place)
{
	uint64_t done = load_acquire(&places[place].done); /* pairs with change() */
	uint64_t value = radix_lookup_epoch(&tree, index_of(place));

	check_value(place, value, done, load_acquire(&places[place].begun));
}

/* A walk finds every fixed place, in order. */
static void walk_all(void)
{
	uint64_t index = 0, value, last = 0;
	unsigned fixed = 0;

	for (; (value = radix_next_epoch(&tree, &index, UINT64_MAX)); index++) {
		unsigned place = value >> 6 & 0xffff;

		CHECK(place < PLACES && index_of(place) == index && (!last || index > last));
		last = index;
		fixed += place % FIXED == 1;
	}
	CHECK(fixed == (PLACES + FIXED - 2) / FIXED);
}

static void *reader(void *arg)
{
	struct slot *me = slot_self(seg);
	uint64_t seed = *(uint64_t *)arg;

	while (!load_acquire(&stop)) {
		epoch_enter(me);
		if (test_random(&seed) % 256 == 0)
			walk_all();
		else
			look_up(test_random(&seed) % PLACES);
		epoch_exit(me);
	}
	return NULL;
}

static void change(struct slot *me, unsigned place, bool store)
{
	uint64_t stamp = load_relaxed(&places[place].done);
	uint64_t old, was = stamp & 1 ? value_of(place, stamp) : 0;

	stamp += (stamp & 1) == store ? 2 : 1;
	store_release(&places[place].begun, stamp);
	if (store) {
		CHECK(!radix_store(me, &tree, index_of(place), value_of(place, stamp), &old));
		CHECK(old == was);
	} else {
		CHECK(radix_erase(me, &tree, index_of(place)) == was);
	}
	store_release(&places[place].done, stamp);
}

static void writer(struct slot *me, uint64_t *seed)
{
	unsigned long n = test_scaled(150000);
	unsigned density = 50;

	while (n--) {
		unsigned place = test_random(seed) % PLACES;

		if (n % 4096 == 0)
			density = test_random(seed) % 100; /* full at times, all but empty at others */
		if (place % FIXED != 1)
			change(me, place, test_random(seed) % 100 < density);
	}
}

static void begin(void)
{
	struct segment_options opt = {.size = 64 << 20};
	char name[TEST_NAME_SIZE], why[256];

	if (segment_create(fresh_name(name), &opt, &seg, why))
		fail_msg("%s", why);
	assert_int_equal(epoch_init(seg), 0);
	segment_set_ready(seg);
	segment_remove(name, why);
	radix_init(&tree);
}

static void drop(struct slot *by, void *ctx, uint64_t index, uint64_t value)
{
	(void)by, (void)index, (void)value;
	++*(unsigned *)ctx;
}

static void readers_agree_with_an_array(void **state)
{
	uint64_t seed = test_seed(), seeds[READERS];
	pthread_t thread[READERS];
	unsigned i, dropped = 0;
	struct slot *me;

	(void)state;
	begin();
	me = slot_self(seg);
	for (i = 1; i < PLACES; i += FIXED)
		change(me, i, true);
	for (i = 0; i < READERS; i++) {
		seeds[i] = test_random(&seed);
		CHECK(!pthread_create(&thread[i], NULL, reader, &seeds[i]));
	}
	writer(me, &seed);
	store_release(&stop, 1);
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	radix_erase_range(me, &tree, 0, UINT64_MAX, drop, &dropped);
	assert_true(dropped >= PLACES / FIXED);
	assert_int_equal(radix_nodes(&tree), 0);
	assert_int_equal(epoch_barrier(me, 5 * SECOND), 0);
	segment_detach(seg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_agree_with_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

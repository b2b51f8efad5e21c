/* SPDX-License-Identifier: MIT */
/* Counts that change together with an entry of the ledger: what a death between any two steps leaves is decided once. */
#include "lib/seg_test.h"

#include "segment/tally.h"

#include <pthread.h>

enum { ENTRY = 3 };

static struct {
	struct slot *self, *other; /* the other's thread does nothing: the test acts for it */
	struct tally *t;
	uint64_t entry;
	pthread_barrier_t barrier;
	pthread_t thread;
} world;

static void *idle(void *arg)
{
	world.other = slot_self(seg_test.seg);
	pthread_barrier_wait(&world.barrier);
	pthread_barrier_wait(&world.barrier);
	return arg;
}

static int make(void **state)
{
	(void)state;
	seg_test_make(64 << 20);
	world.self = slot_self(seg_test.seg);
	world.t = cache_alloc(world.self, CACHE_128);
	world.entry = hand_entry_of(world.t, LEDGER_INODE);
	tally_init(world.t, 2);
	pthread_barrier_init(&world.barrier, NULL, 2);
	CHECK(pthread_create(&world.thread, NULL, idle, NULL) == 0);
	pthread_barrier_wait(&world.barrier);
	return 0;
}

static int end(void **state)
{
	pthread_barrier_wait(&world.barrier);
	pthread_join(world.thread, NULL);
	pthread_barrier_destroy(&world.barrier);
	return seg_test_remove(state);
}

static void comes_and_goes(void)
{
	int k;

	assert_true(tally_get(world.self, world.t, world.entry, &k));
	assert_false(tally_put(world.self, world.t, k));
}

/* The other dies in a change: before the CAS, or after it. */
static void begins(uint32_t came, bool does)
{
	uint64_t old = load_relaxed(&world.t->word);
	uint32_t tag = tally_announce(world.other, world.t, old, ENTRY, came);

	store_relaxed(&world.other->ledger[ENTRY], world.entry);
	if (does)
		CHECK(tally_try(world.other, world.t, &old, tag, came ? 3 : 1));
}

static void must_have(bool entry)
{
	hand_settle(world.other);
	assert_int_equal(load_relaxed(&world.other->ledger[ENTRY]), entry ? world.entry : 0);
	assert_int_equal(load_relaxed(&world.other->hand.where), 0);
	store_relaxed(&world.other->ledger[ENTRY], 0);
}

static void a_change_whose_number_is_in_the_word_was_done(void **state)
{
	(void)state;
	begins(HAND_COMES, true);
	must_have(true);
	tally_init(world.t, 2);
	begins(0, true);
	must_have(false);
}

static void a_change_whose_number_is_nowhere_was_not(void **state)
{
	(void)state;
	begins(HAND_COMES, false);
	must_have(false);
	begins(0, false);
	must_have(true);
	begins(HAND_COMES, false);
	comes_and_goes();
	must_have(false);
	begins(0, false);
	comes_and_goes();
	must_have(true);
	assert_int_equal(tally_read(world.t), 2);
}

static void what_was_written_over_is_known_to_be_done(void **state)
{
	(void)state;
	begins(HAND_COMES, true);
	comes_and_goes();
	assert_true(load_relaxed(&world.other->hand.change) & HAND_DONE);
	must_have(true);
	tally_init(world.t, 2);
	begins(0, true);
	comes_and_goes();
	must_have(false);
	assert_int_equal(tally_read(world.t), 1);
}

static void a_settled_change_is_written_over_without_a_look(void **state)
{
	int k;

	(void)state;
	CHECK(tally_get(world.other, world.t, world.entry, &k));
	comes_and_goes();
	assert_false(load_relaxed(&world.other->hand.change) & HAND_DONE);
	assert_false(tally_put(world.other, world.t, k));
}

/* So many that the 16 bits of it in the word come round: the other's last one, and one that it begins then. */
static void a_number_that_the_word_has_is_not_used_again(void **state)
{
	int k;

	(void)state;
	CHECK(tally_get(world.other, world.t, world.entry, &k));
	CHECK(!tally_put(world.other, world.t, k));
	store_relaxed(&world.other->hand.change, load_relaxed(&world.other->hand.change) + (0xffffULL << HAND_NUMBER));
	begins(0, false);
	must_have(true);
}

static void the_last_reference_stays_in_the_ledger(void **state)
{
	int k;

	(void)state;
	tally_init(world.t, 1);
	store_relaxed(&world.self->ledger[0], world.entry);
	assert_true(tally_put(world.self, world.t, 0));
	assert_int_equal(load_relaxed(&world.self->ledger[0]), world.entry);
	assert_int_equal(load_relaxed(&world.self->hand.where), 0);
	assert_true(tally_read(world.t) >= REF_DEAD);
	assert_false(tally_get(world.self, world.t, world.entry, &k));
	store_relaxed(&world.self->ledger[0], 0);
}

static void a_saturated_count_stays(void **state)
{
	const uint32_t middle = REF_SATURATED + (REF_DEAD - REF_SATURATED) / 2;

	(void)state;
	tally_init(world.t, middle);
	comes_and_goes();
	assert_int_equal(tally_read(world.t), middle);
}

static void a_full_ledger_counts_all_the_same(void **state)
{
	int k, n;

	(void)state;
	for (n = 0; n < (int)SLOT_LEDGER; n++)
		store_relaxed(&world.self->ledger[n], world.entry);
	assert_true(tally_get(world.self, world.t, world.entry, &k));
	assert_int_equal(k, -EAGAIN);
	assert_int_equal(tally_read(world.t), 3);
	assert_false(tally_put(world.self, world.t, k));
	for (n = 0; n < (int)SLOT_LEDGER; n++) {
		assert_int_equal(load_relaxed(&world.self->ledger[n]), world.entry);
		store_relaxed(&world.self->ledger[n], 0);
	}
}

#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, make, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(a_change_whose_number_is_in_the_word_was_done),
		WITH_WORLD(a_change_whose_number_is_nowhere_was_not),
		WITH_WORLD(what_was_written_over_is_known_to_be_done),
		WITH_WORLD(a_settled_change_is_written_over_without_a_look),
		WITH_WORLD(a_number_that_the_word_has_is_not_used_again),
		WITH_WORLD(the_last_reference_stays_in_the_ledger),
		WITH_WORLD(a_saturated_count_stays),
		WITH_WORLD(a_full_ledger_counts_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

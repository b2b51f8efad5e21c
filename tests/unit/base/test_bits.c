/* SPDX-License-Identifier: MIT */
#include "base/bits.h"
#include "harness.h"

static void words_answer_where_the_bit_is(void **state)
{
	unsigned n;

	(void)state;
	assert_int_equal(bits_first_one(0), 64);
	assert_int_equal(bits_first_zero(~UINT64_C(0)), 64);
	assert_int_equal(bits_last_one(0), 64);
	for (n = 0; n < 64; n++) {
		uint64_t w = UINT64_C(1) << n;

		assert_int_equal(bits_first_one(w), n);
		assert_int_equal(bits_last_one(w), n);
		assert_int_equal(bits_first_zero(~w), n);
		assert_int_equal(bits_next_one(w, n), n);
		assert_int_equal(bits_next_one(w, n + 1), 64);
		assert_int_equal(bits_next_zero(~w, 0), n);
		assert_int_equal(bits_count(w), 1);
		assert_int_equal(bits_count(w - 1), n);
	}
	assert_int_equal(bits_count(~UINT64_C(0)), 64);
}

static void order_is_the_smallest_power_that_holds_n(void **state)
{
	uint64_t n;

	(void)state;
	for (n = 0; n < 5000; n++) {
		unsigned k = bits_order(n);

		assert_true(UINT64_C(1) << k >= n);
		assert_true(k == 0 || UINT64_C(1) << (k - 1) < n);
	}
}

static void bitmaps_are_searched_like_arrays(void **state)
{
	enum { NBITS = 200 };
	uint64_t map[4], seed = test_seed();
	unsigned round, i, from;

	(void)state;
	for (round = 0; round < 200; round++) {
		for (i = 0; i < 4; i++)
			map[i] = test_random(&seed) & test_random(&seed);
		bitmap_set(map, test_random(&seed) % NBITS);
		bitmap_clear(map, test_random(&seed) % NBITS);
		for (from = 0; from <= NBITS; from++) {
			for (i = from; i < NBITS && !bitmap_test(map, i); i++)
				;
			assert_int_equal(bitmap_next_one(map, NBITS, from), i);
			for (i = from; i < NBITS && bitmap_test(map, i); i++)
				;
			assert_int_equal(bitmap_next_zero(map, NBITS, from), i);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_answer_where_the_bit_is),
		cmocka_unit_test(order_is_the_smallest_power_that_holds_n),
		cmocka_unit_test(bitmaps_are_searched_like_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

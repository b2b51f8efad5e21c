/* SPDX-License-Identifier: MIT */
/* The radix tree against a sorted array, and its costs and limits. */
#include "epoch/epoch_priv.h"
#include "epoch/radix.h"
#include "harness.h"

#define SECOND INT64_C(1000000000)

static struct segment *seg;
static struct slot *self;
static struct radix tree;

static int setup(void **state)
{
	struct segment_options opt = {.size = 32 << 20};
	char name[TEST_NAME_SIZE], why[256];

	(void)state;
	if (segment_create(fresh_name(name), &opt, &seg, why))
		fail_msg("%s", why);
	assert_int_equal(epoch_init(seg), 0);
	segment_set_ready(seg);
	segment_remove(name, why);
	self = slot_self(seg);
	radix_init(&tree);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	segment_detach(seg);
	return 0;
}

/* ---- the oracle: pairs sorted by index */

enum { MAX = 4000 };
static struct pair {
	uint64_t index, value;
} pairs[MAX];
static unsigned n_pairs;

static unsigned oracle_at(uint64_t index)
{
	unsigned i = 0;

	while (i < n_pairs && pairs[i].index < index)
		i++;
	return i;
}

static uint64_t oracle_get(uint64_t index)
{
	unsigned i = oracle_at(index);

	return i < n_pairs && pairs[i].index == index ? pairs[i].value : 0;
}

static void oracle_set(uint64_t index, uint64_t value)
{
	unsigned i = oracle_at(index);

	if (i == n_pairs || pairs[i].index != index) {
		CHECK(n_pairs < MAX);
		memmove(&pairs[i + 1], &pairs[i], (n_pairs++ - i) * sizeof(pairs[0]));
	}
	pairs[i] = (struct pair){index, value};
}

static void oracle_erase(uint64_t index)
{
	unsigned i = oracle_at(index);

	if (i < n_pairs && pairs[i].index == index)
		memmove(&pairs[i], &pairs[i + 1], (--n_pairs - i) * sizeof(pairs[0]));
}

static uint64_t oracle_hole(uint64_t index, uint64_t end)
{
	while (index < end && oracle_get(index))
		index++;
	return index < end ? index : end;
}

/* ---- */

/* Indexes of many sizes, crowded enough to meet. */
static uint64_t random_index(uint64_t *seed, unsigned bits)
{
	uint64_t r = test_random(seed), base = r % 5 == 0 ? UINT64_MAX >> (r >> 8) % 64 : 0;

	return r % 3 ? (r >> 20) & ((UINT64_C(1) << bits) - 1) : base - (r >> 20) % 100;
}

static uint64_t random_value(uint64_t *seed)
{
	uint64_t v = test_random(seed);

	return v % 4 ? (v | 64) & ~UINT64_C(63) : v | 1; /* most could live at height 0 */
}

static void drop_pair(struct slot *by, void *ctx, uint64_t index, uint64_t value)
{
	unsigned *count = ctx;

	CHECK(by == self);
	CHECK(oracle_get(index) == value);
	oracle_erase(index);
	(*count)++;
}

static void check_searches(uint64_t index, uint64_t end)
{
	unsigned i = oracle_at(index);
	uint64_t at = index;

	if (i < n_pairs && pairs[i].index < end) {
		assert_true(radix_next_epoch(&tree, &at, end) == pairs[i].value);
		assert_true(at == pairs[i].index);
	} else {
		assert_true(radix_next_epoch(&tree, &at, end) == 0 && at == index);
	}
	at = index;
	if (i < n_pairs && pairs[i].index == index)
		i++;
	if (i) {
		assert_true(radix_prev_epoch(&tree, &at) == pairs[i - 1].value);
		assert_true(at == pairs[i - 1].index);
	} else {
		assert_true(radix_prev_epoch(&tree, &at) == 0);
	}
	assert_true(radix_next_hole_epoch(&tree, index, end) == oracle_hole(index, end));
	assert_true(radix_end_epoch(&tree) == (n_pairs ? pairs[n_pairs - 1].index + 1 : 0));
}

static void one_random_step(uint64_t *seed, unsigned bits)
{
	uint64_t index = random_index(seed, bits), value = random_value(seed), old;
	unsigned kind = test_random(seed) % 100, dropped = 0;

	if (kind < 55) {
		assert_int_equal(radix_store(self, &tree, index, value, &old), 0);
		assert_true(old == oracle_get(index));
		oracle_set(index, value);
	} else if (kind < 95) {
		assert_true(radix_erase(self, &tree, index) == oracle_get(index));
		oracle_erase(index);
	} else {
		uint64_t end = kind == 99 ? UINT64_MAX : index + test_random(seed) % 200;

		radix_erase_range(self, &tree, index, end, drop_pair, &dropped);
		assert_true(oracle_at(index) == oracle_at(end) || end <= index);
	}
	assert_true(radix_lookup_epoch(&tree, index) == oracle_get(index));
	check_searches(random_index(seed, bits), random_index(seed, bits));
	check_searches(index, UINT64_MAX);
}

static void random_steps_agree_with_an_array(void **state)
{
	uint64_t seed = test_seed();
	unsigned round, step, dropped = 0;

	(void)state;
	for (round = 0; round < 12; round++) {
		for (step = 0; step < test_scaled(1500); step++)
			one_random_step(&seed, 4 + round);
		radix_erase_range(self, &tree, 0, UINT64_MAX, drop_pair, &dropped);
		radix_erase(self, &tree, UINT64_MAX); /* the one that no range contains */
		oracle_erase(UINT64_MAX);
		assert_int_equal(n_pairs, 0);
		assert_int_equal(radix_nodes(&tree), 0);
		assert_true(load_relaxed(&tree.root) == 0);
	}
}

static void drop_counted(struct slot *by, void *ctx, uint64_t index, uint64_t value)
{
	(void)by, (void)index, (void)value;
	++*(unsigned *)ctx;
}

static void one_page_files_have_no_node(void **state)
{
	unsigned dropped = 0;
	uint64_t old;

	(void)state;
	assert_int_equal(radix_store(self, &tree, 0, 4096, &old), 0);
	assert_int_equal(radix_nodes(&tree), 0);
	assert_true(radix_lookup_epoch(&tree, 0) == 4096);
	assert_true(radix_lookup_epoch(&tree, 1) == 0);
	assert_int_equal(radix_store(self, &tree, 1, 8192, &old), 0);
	assert_int_equal(radix_nodes(&tree), 1);
	assert_true(radix_lookup_epoch(&tree, 0) == 4096);
	radix_erase_range(self, &tree, 1, UINT64_MAX, drop_counted, &dropped);
	assert_int_equal(dropped, 1);
	assert_int_equal(radix_nodes(&tree), 0); /* shrunk back to the direct value */
	assert_true(radix_lookup_epoch(&tree, 0) == 4096);
}

static void nodes_are_as_few_as_the_pages_need(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < 64 * 64; i++)
		assert_int_equal(radix_store(self, &tree, i, (i + 1) * 4096, NULL), 0);
	assert_int_equal(radix_nodes(&tree), 1 + 64);
	for (i = 64 * 64; i-- > 64;)
		assert_true(radix_erase(self, &tree, i) == (i + 1) * 4096);
	assert_int_equal(radix_nodes(&tree), 2);
}

static void a_full_segment_gives_enospc_and_changes_nothing(void **state)
{
	uint64_t i, nodes, root;

	(void)state;
	for (i = 1; radix_store(self, &tree, i << 40, 64, NULL) == 0; i++)
		;
	nodes = radix_nodes(&tree);
	root = load_relaxed(&tree.root);
	assert_int_equal(radix_store(self, &tree, i << 40, 64, NULL), -ENOSPC);
	assert_int_equal(radix_store(self, &tree, UINT64_MAX, 64, NULL), -ENOSPC);
	assert_true(radix_lookup_epoch(&tree, i << 40) == 0);
	assert_int_equal(radix_nodes(&tree), nodes);
	assert_true(load_relaxed(&tree.root) == root);
	while (--i)
		assert_true(radix_erase(self, &tree, i << 40) == 64);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(radix_store(self, &tree, UINT64_MAX, 64, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RADIX_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		RADIX_TEST(random_steps_agree_with_an_array),
		RADIX_TEST(one_page_files_have_no_node),
		RADIX_TEST(nodes_are_as_few_as_the_pages_need),
		RADIX_TEST(a_full_segment_gives_enospc_and_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "harness.h"

#include <sys/mman.h>

static void fill_name(uint64_t *seed, char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		do
			s[i] = (char)test_random(seed);
		while (!s[i] || s[i] == '/');
}

/* Two pages, the second without access: nothing may be read past the first. */
static char *page_before_a_hole(void)
{
	char *p = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED && mprotect(p + PAGE_BYTES, PAGE_BYTES, PROT_NONE) == 0);
	return p + PAGE_BYTES;
}

static void scan_and_hash_agree_at_every_length_and_end(void **state)
{
	uint64_t seed = test_seed(), key = test_random(&seed);
	char *end = page_before_a_hole();
	size_t n, len;

	(void)state;
	for (n = 0; n < 300; n++) {
		char *s = end - n - 1;

		fill_name(&seed, s, n);
		s[n] = n & 1 ? '/' : 0; /* a '/' as the last byte of all is where no NUL follows */
		assert_true(name_scan(key, s, &len) == name_hash(key, s, n));
		assert_int_equal(len, n);
	}
}

static void hash_reads_exactly_n_bytes(void **state)
{
	char *end = page_before_a_hole();
	size_t n;

	(void)state;
	memset(end - 100, 'x', 100);
	for (n = 0; n < 100; n++)
		assert_true(name_hash(1, end - n, n) != 0 || n == 0);
}

static void scan_stops_at_the_first_end_of_several(void **state)
{
	size_t len;

	(void)state;
	name_scan(7, "a/b\0c", &len);
	assert_int_equal(len, 1);
	name_scan(7, "/x", &len);
	assert_int_equal(len, 0);
	name_scan(7, "\x01\x80.0\x2e\x30/", &len); /* bytes next to '/' and to NUL */
	assert_int_equal(len, 6);
}

static void every_bit_of_name_and_seed_counts(void **state)
{
	uint64_t seed = test_seed();
	char name[40];
	size_t n;
	unsigned bit;

	(void)state;
	for (n = 1; n <= sizeof(name); n++) {
		uint64_t h;
		unsigned flips = 0;

		fill_name(&seed, name, n);
		h = name_hash(42, name, n);
		assert_true(h != name_hash(43, name, n));
		for (bit = 0; bit < 8 * n; bit++) {
			name[bit / 8] ^= (char)(1 << bit % 8);
			flips += (unsigned)__builtin_popcountll(h ^ name_hash(42, name, n));
			name[bit / 8] ^= (char)(1 << bit % 8);
		}
		/* On average half of the 64 bits change. */
		assert_in_range(flips, 8 * n * 24, 8 * n * 40);
	}
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void numbered_names_spread_over_buckets(void **state)
{
	enum { NAMES = 100000, BUCKETS = 1024 };
	static unsigned low[BUCKETS], high[BUCKETS];
	static uint64_t all[NAMES];
	char name[32];
	unsigned i;

	(void)state;
	for (i = 0; i < NAMES; i++) {
		int n = snprintf(name, sizeof(name), "file-%06u.txt", i);

		all[i] = name_hash(99, name, (size_t)n);
		low[all[i] % BUCKETS]++;
		high[all[i] >> 54]++;
	}
	for (i = 0; i < BUCKETS; i++) {
		assert_in_range(low[i], 40, 170);
		assert_in_range(high[i], 40, 170);
	}
	qsort(all, NAMES, sizeof(all[0]), compare_u64);
	for (i = 1; i < NAMES; i++)
		assert_true(all[i] != all[i - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scan_and_hash_agree_at_every_length_and_end),
		cmocka_unit_test(hash_reads_exactly_n_bytes),
		cmocka_unit_test(scan_stops_at_the_first_end_of_several),
		cmocka_unit_test(every_bit_of_name_and_seed_counts),
		cmocka_unit_test(numbered_names_spread_over_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

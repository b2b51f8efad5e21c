/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer: on the files named as arguments, or, without arguments,
 * on seeded pseudo-random inputs. Bounded by SHELF_TEST_SCALE; the seed is printed.
 */
#include "harness.h"

enum { FUZZ_RUNS = 2000, FUZZ_MAX_LEN = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int run_file(const char *path)
{
	static uint8_t buf[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t len;

	if (!f) {
		perror(path);
		return 1;
	}
	len = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	LLVMFuzzerTestOneInput(buf, len);
	return 0;
}

static void run_random(void)
{
	static uint8_t buf[FUZZ_MAX_LEN];
	uint64_t rng = test_seed();
	unsigned long runs = test_scaled(FUZZ_RUNS);

	for (unsigned long i = 0; i < runs; i++) {
		size_t len = test_random(&rng) % (sizeof(buf) + 1);

		/* Short inputs reach deeper into a decoder than long noise does. */
		if (i % 2)
			len %= 64;
		for (size_t j = 0; j < len; j++)
			buf[j] = (uint8_t)test_random(&rng);
		LLVMFuzzerTestOneInput(buf, len);
	}
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= run_file(argv[i]);
	if (argc == 1)
		run_random();
	return failed;
}

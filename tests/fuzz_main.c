/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer: on the files named as arguments, on the target's own examples, on
 * these with bytes changed, and on noise. Bounded by SHELF_TEST_SCALE and by a share of time; the seed is printed.
 */
#include "fuzz/lib/fuzz.h"

#include <time.h>

enum { FUZZ_RUNS = 2000, FUZZ_SECONDS = 5, ROOM = 1 << 16, NOISE_MAX = 4096 };

static uint8_t input[ROOM];
static uint64_t rng;

static unsigned pick(size_t n)
{
	return (unsigned)(test_random(&rng) % n);
}

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

static size_t make_noise(void)
{
	size_t len = pick(NOISE_MAX + 1);

	/* Short inputs reach deeper into a decoder than long noise does. */
	if (pick(2))
		len %= 64;
	for (size_t j = 0; j < len; j++)
		input[j] = (uint8_t)test_random(&rng);
	return len;
}

static size_t mutate_once(size_t len)
{
	static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, '0', '/', '"'};
	size_t at = pick(len), n = 1 + pick(8);

	n = n < len - at ? n : len - at;
	switch (pick(5)) {
	case 0:
		input[at] ^= (uint8_t)(1u << pick(8));
		return len;
	case 1:
		memset(input + at, odd[pick(sizeof(odd))], n);
		return len;
	case 2: /* out */
		memmove(input + at, input + at + n, len - at - n);
		return len > n ? len - n : len;
	case 3: /* twice */
		n = n < ROOM - len ? n : ROOM - len;
		memmove(input + at + n, input + at, len - at);
		return len + n;
	default: /* from elsewhere */
		memmove(input + at, input + pick(len - n + 1), n);
		return len;
	}
}

static size_t make_mutant(unsigned examples)
{
	size_t len = fuzz_example(pick(examples), input, ROOM);

	for (unsigned k = 1 + pick(12); k && len; k--)
		len = mutate_once(len);
	return len;
}

static unsigned run_examples(void)
{
	unsigned k = 0;
	size_t len;

	while (fuzz_example && (len = fuzz_example(k, input, ROOM))) {
		LLVMFuzzerTestOneInput(input, len);
		k++;
	}
	return k;
}

/* Slow targets (a process, a file for each input) end by the clock. */
static void run_made_up(unsigned examples)
{
	unsigned long runs = test_scaled(FUZZ_RUNS), i;
	time_t end = time(NULL) + (time_t)test_scaled(FUZZ_SECONDS);

	for (i = 0; i < runs && time(NULL) <= end; i++) {
		size_t len = examples && pick(4) ? make_mutant(examples) : make_noise();

		LLVMFuzzerTestOneInput(input, len);
	}
	fprintf(stderr, "%u examples, %lu made up\n", examples, i);
}

int main(int argc, char **argv)
{
	int failed = 0;

	rng = test_seed();
	for (int i = 1; i < argc; i++)
		failed |= run_file(argv[i]);
	if (argc == 1)
		run_made_up(run_examples());
	return failed;
}

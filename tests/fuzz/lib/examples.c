/* SPDX-License-Identifier: MIT */
/* examples.c - writes a target's valid inputs to the directory FUZZ_EXAMPLES, where libFuzzer's corpus begins. */
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static uint8_t example[1 << 16];
	const char *dir = getenv("FUZZ_EXAMPLES");
	char path[4096];
	size_t n;

	(void)argc, (void)argv;
	for (unsigned k = 0; dir && fuzz_example && (n = fuzz_example(k, example, sizeof(example))); k++) {
		FILE *to;

		snprintf(path, sizeof(path), "%s/example-%u", dir, k);
		to = fopen(path, "wb");
		CHECK(to && fwrite(example, 1, n, to) == n && !fclose(to));
	}
	return 0;
}

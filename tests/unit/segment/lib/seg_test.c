/* SPDX-License-Identifier: MIT */
#include "seg_test.h"

struct seg_test seg_test;

void seg_test_make(uint64_t size)
{
	struct segment_options opt = {.size = size};
	char why[SEG_WHY_MAX];

	fresh_name(seg_test.name);
	if (segment_create(seg_test.name, &opt, &seg_test.seg, why)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	segment_set_ready(seg_test.seg);
}

int seg_test_remove(void **state)
{
	(void)state;
	if (!seg_test.seg)
		return 0;
	segment_detach(seg_test.seg);
	segment_remove(seg_test.name, NULL);
	seg_test.seg = NULL;
	return 0;
}

struct segment_counts seg_test_counts(void)
{
	struct segment_counts c;

	if (segment_check(slot_self(seg_test.seg), &c)) {
		fprintf(stderr, "segment_check: %s, %llu errors\n", c.first_error, (unsigned long long)c.errors);
		abort();
	}
	CHECK(!segment_poisoned(seg_test.seg));
	return c;
}

const char *seg_test_path(void)
{
	static char path[SEG_PATH_MAX];

	CHECK(local_path(path, sizeof(path), local_dir(), seg_test.name) == 0);
	return path;
}

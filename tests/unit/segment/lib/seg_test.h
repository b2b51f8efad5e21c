/* SPDX-License-Identifier: MIT */
/* What the tests of the segment share: a segment for each test, and checks of what it adds up to. */
#ifndef TESTS_SEG_TEST_H
#define TESTS_SEG_TEST_H

#include "harness.h"
#include "segment/segment_priv.h"

struct seg_test {
	char name[TEST_NAME_SIZE];
	struct segment *seg;
};
extern struct seg_test seg_test;

/* Makes seg_test.seg, ready, of `size` bytes. */
void seg_test_make(uint64_t size);
int seg_test_remove(void **state);
/* The counts, after checking that they add up. */
struct segment_counts seg_test_counts(void);
/* The path of the segment's file. */
const char *seg_test_path(void);

#endif

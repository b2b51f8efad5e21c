/* SPDX-License-Identifier: MIT */
/*
 * points.h - where a test build (SHELF_FAIL_POINTS) lets a request fail: memory of the segment, and the system calls
 * that may fail when the machine has too little.  Nothing of it is in the product.
 */
#ifndef SHELF_BASE_POINTS_H
#define SHELF_BASE_POINTS_H

#include <stdbool.h>
#include <stdint.h>

enum fail_kind { FAIL_NONE, FAIL_ALLOC, FAIL_FALLOCATE, FAIL_MMAP, FAIL_MADVISE, FAIL_MEMBARRIER, FAIL_FUTEX, FAIL_KINDS };

#ifdef SHELF_FAIL_POINTS
/* From now on the n-th request of the kind fails, and no other; with FAIL_NONE none. */
void fail_arm(enum fail_kind kind, uint64_t n);
uint64_t fail_count(void); /* requests of the kind since then */
bool fail_point(enum fail_kind kind); /* true: this one is to fail */
#else
static inline bool fail_point(enum fail_kind kind)
{
	(void)kind;
	return false;
}
#endif

#endif

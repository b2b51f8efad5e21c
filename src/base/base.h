/* SPDX-License-Identifier: MIT */
/*
 * base.h - what every layer may use: atomics, bits, hash, lists, clock,
 * copies, assertions, counted references.  No state, no allocation.
 */
#ifndef SHELF_BASE_BASE_H
#define SHELF_BASE_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

#define CACHE_LINE 64
#define PAGE_SHIFT 12
#define PAGE_BYTES (1UL << PAGE_SHIFT)
#define PAGE_MASK (PAGE_BYTES - 1)

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
/* For the few functions whose arguments must stay in registers. */
#define inline_always inline __attribute__((always_inline))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ALIGN_UP(x, a) (((x) + (a)-1) & ~((typeof(x))(a)-1))
#define ALIGN_DOWN(x, a) ((x) & ~((typeof(x))(a)-1))
#define min_of(a, b)                                                                               \
	({                                                                                         \
		typeof(a) min_a_ = (a);                                                            \
		typeof(b) min_b_ = (b);                                                            \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})
#define max_of(a, b)                                                                               \
	({                                                                                         \
		typeof(a) max_a_ = (a);                                                            \
		typeof(b) max_b_ = (b);                                                            \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})

#endif

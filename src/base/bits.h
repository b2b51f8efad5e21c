/* SPDX-License-Identifier: MIT */
/* bits.h - single words and plain bitmaps of 64-bit words.  Results that "are not there" are 64 or `nbits`. */
#ifndef SHELF_BASE_BITS_H
#define SHELF_BASE_BITS_H

#include "base/base.h"

#define BITS_WORD 64u
#define BIT_OF(n) (UINT64_C(1) << ((n) % BITS_WORD))

static inline unsigned bits_first_one(uint64_t w)
{
	return w ? (unsigned)__builtin_ctzll(w) : BITS_WORD;
}

static inline unsigned bits_first_zero(uint64_t w)
{
	return bits_first_one(~w);
}

static inline unsigned bits_last_one(uint64_t w)
{
	return w ? 63u - (unsigned)__builtin_clzll(w) : BITS_WORD;
}

/* The first set bit at or after `from` (0..64). */
static inline unsigned bits_next_one(uint64_t w, unsigned from)
{
	return from < BITS_WORD ? bits_first_one(w & (~UINT64_C(0) << from)) : BITS_WORD;
}

static inline unsigned bits_next_zero(uint64_t w, unsigned from)
{
	return bits_next_one(~w, from);
}

static inline unsigned bits_count(uint64_t w)
{
	w -= (w >> 1) & UINT64_C(0x5555555555555555);
	w = (w & UINT64_C(0x3333333333333333)) + ((w >> 2) & UINT64_C(0x3333333333333333));
	w = (w + (w >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (unsigned)((w * UINT64_C(0x0101010101010101)) >> 56);
}

/* The smallest k with 1 << k >= n; 0 for n <= 1. */
static inline unsigned bits_order(uint64_t n)
{
	return n <= 1 ? 0 : bits_last_one(n - 1) + 1;
}

static inline bool bitmap_test(const uint64_t *map, uint64_t n)
{
	return map[n / BITS_WORD] & BIT_OF(n);
}

static inline void bitmap_set(uint64_t *map, uint64_t n)
{
	map[n / BITS_WORD] |= BIT_OF(n);
}

static inline void bitmap_clear(uint64_t *map, uint64_t n)
{
	map[n / BITS_WORD] &= ~BIT_OF(n);
}

/* The first bit at or after `from` that differs from `skip` (all ones or all zeros), else nbits. */
static inline uint64_t bitmap_next(const uint64_t *map, uint64_t nbits, uint64_t from, uint64_t skip)
{
	while (from < nbits) {
		uint64_t w = (map[from / BITS_WORD] ^ skip) & (~UINT64_C(0) << (from % BITS_WORD));

		from = ALIGN_DOWN(from, (uint64_t)BITS_WORD);
		if (w)
			return min_of(from + bits_first_one(w), nbits);
		from += BITS_WORD;
	}
	return nbits;
}

static inline uint64_t bitmap_next_one(const uint64_t *map, uint64_t nbits, uint64_t from)
{
	return bitmap_next(map, nbits, from, 0);
}

static inline uint64_t bitmap_next_zero(const uint64_t *map, uint64_t nbits, uint64_t from)
{
	return bitmap_next(map, nbits, from, ~UINT64_C(0));
}

#endif

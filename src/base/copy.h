/* SPDX-License-Identifier: MIT */
/*
 * copy.h - copies and fills of file data, by assembly on general registers.
 *
 * Readers copy data that a writer may be changing and check a sequence count
 * afterwards (lock/seqcount.h).  The compiler must not move, split, widen or
 * instrument such a copy, so it never sees it; and the dispatcher of `shelf run` may not
 * touch vector registers.  Sanitizers do not see these accesses either.
 * Source and destination do not overlap (move_bytes: they may).
 */
#ifndef SHELF_BASE_COPY_H
#define SHELF_BASE_COPY_H

#include "base/base.h"

#define COPY_SMALL 32u
#define COPY_WORDS 256u /* up to here moves beat the start-up of rep movsb, on any processor */

#define COPY_DEFINE_WORD(type, bits, insn, reg)                                                    \
	static inline type raw_load##bits(const void *p)                                           \
	{                                                                                          \
		type v;                                                                            \
		__asm__ volatile(insn " %1, %0"                                                    \
				 : "=" reg(v)                                                      \
				 : "m"(*(const char(*)[sizeof(type)])p)                            \
				 : "memory");                                                      \
		return v;                                                                          \
	}                                                                                          \
	static inline void raw_store##bits(void *p, type v)                                        \
	{                                                                                          \
		__asm__ volatile(insn " %1, %0"                                                    \
				 : "=m"(*(char(*)[sizeof(type)])p)                                 \
				 : reg(v)                                                          \
				 : "memory");                                                      \
	}
COPY_DEFINE_WORD(uint64_t, 64, "movq", "r")
COPY_DEFINE_WORD(uint32_t, 32, "movl", "r")
COPY_DEFINE_WORD(uint16_t, 16, "movw", "r")
COPY_DEFINE_WORD(uint8_t, 8, "movb", "q")
#undef COPY_DEFINE_WORD

/* 16 to 32 bytes: two pairs of words that may overlap. */
static inline void copy_bytes_16_32(char *d, const char *s, size_t n)
{
	uint64_t a = raw_load64(s), b = raw_load64(s + 8);
	uint64_t y = raw_load64(s + n - 16), z = raw_load64(s + n - 8);

	raw_store64(d, a);
	raw_store64(d + 8, b);
	raw_store64(d + n - 16, y);
	raw_store64(d + n - 8, z);
}

static inline void copy_bytes_below_16(char *d, const char *s, size_t n)
{
	if (n >= 8) {
		uint64_t a = raw_load64(s), z = raw_load64(s + n - 8);

		raw_store64(d, a);
		raw_store64(d + n - 8, z);
	} else if (n >= 4) {
		uint32_t a = raw_load32(s), z = raw_load32(s + n - 4);

		raw_store32(d, a);
		raw_store32(d + n - 4, z);
	} else if (n >= 2) {
		uint16_t a = raw_load16(s), z = raw_load16(s + n - 2);

		raw_store16(d, a);
		raw_store16(d + n - 2, z);
	} else if (n) {
		raw_store8(d, raw_load8(s));
	}
}

static inline void copy_bytes_rep(void *dst, const void *src, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}

/* More than 32: pairs of words, the last two over what is there already. */
static inline void copy_bytes_words(char *d, const char *s, size_t n)
{
	for (; n > 32; n -= 16, d += 16, s += 16) {
		uint64_t a = raw_load64(s), b = raw_load64(s + 8);

		raw_store64(d, a);
		raw_store64(d + 8, b);
	}
	copy_bytes_16_32(d, s, n);
}

static inline void copy_bytes(void *dst, const void *src, size_t n)
{
	if (n > COPY_WORDS)
		copy_bytes_rep(dst, src, n);
	else if (n > COPY_SMALL)
		copy_bytes_words(dst, src, n);
	else if (n >= 16)
		copy_bytes_16_32(dst, src, n);
	else
		copy_bytes_below_16(dst, src, n);
}

/* A whole aligned page. */
static inline void copy_page(void *dst, const void *src)
{
	size_t words = PAGE_BYTES / 8;

	__asm__ volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(words) : : "memory");
}

/* They may overlap.  The backward way is slow (a byte a cycle): for short moves inside an object. */
static inline void move_bytes(void *dst, const void *src, size_t n)
{
	const char *s = (const char *)src + n - 1;
	char *d = (char *)dst + n - 1;

	if ((uintptr_t)dst - (uintptr_t)src >= n) {
		copy_bytes(dst, src, n);
		return;
	}
	__asm__ volatile("std; rep movsb; cld" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

static inline void fill_bytes(void *dst, unsigned char value, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(dst), "+c"(n) : "a"(value) : "memory");
}

static inline void zero_bytes(void *dst, size_t n)
{
	char *d = dst;

	if (n > COPY_WORDS || n < 8) {
		fill_bytes(dst, 0, n);
		return;
	}
	for (; n > 8; n -= 8, d += 8)
		raw_store64(d, 0);
	raw_store64(d + n - 8, 0); /* the last 1 to 8 bytes; overlaps what is zero already */
}

static inline void zero_page(void *dst)
{
	size_t words = PAGE_BYTES / 8;

	__asm__ volatile("rep stosq" : "+D"(dst), "+c"(words) : "a"(0UL) : "memory");
}

#endif

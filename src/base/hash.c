/* SPDX-License-Identifier: MIT */
/* hash.c - one pass over a path component: where it ends and what it hashes to. */
#include "base/hash.h"

#define SLASHES (UINT64_C(0x0101010101010101) * '/')

/* Eight bytes at s by assembly: the read past the string's end is meant, and sanitizers would object. */
static inline uint64_t scan_load8(const char *s)
{
	uint64_t w;

	__asm__("movq %1, %0" : "=r"(w) : "m"(*(const char(*)[8])s));
	return w;
}

/* Near the end of a page: byte by byte, as the next page may not be there. */
static uint64_t scan_load_edge(const char *s)
{
	uint64_t w = 0;
	unsigned i;

	for (i = 0; i < 8; i++) {
		w |= (uint64_t)(unsigned char)s[i] << (8 * i);
		if (!s[i] || s[i] == '/')
			break;
	}
	return w;
}

uint64_t name_scan(uint64_t seed, const char *s, size_t *len)
{
	uint64_t h = seed ^ HASH_K1;
	const char *at = s;

	for (;; at += 8) {
		uint64_t w = likely(((uintptr_t)at & PAGE_MASK) <= PAGE_BYTES - 8) ? scan_load8(at)
										    : scan_load_edge(at);
		uint64_t end = hash_zero_bytes(w) | hash_zero_bytes(w ^ SLASHES);
		unsigned bits;

		if (!end) {
			h = hash_step(h, w);
			continue;
		}
		bits = (unsigned)__builtin_ctzll(end) & ~7u;
		*len = (size_t)(at - s) + bits / 8;
		if (bits)
			h = hash_step(h, w & ((UINT64_C(1) << bits) - 1));
		return hash_end(h, *len);
	}
}

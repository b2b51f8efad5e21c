/* SPDX-License-Identifier: MIT */
/*
 * hash.h - a seeded 64-bit hash of names: eight bytes a step, one multiplication each.
 *
 * The seed is the segment's own random number, so names that collide here do
 * not collide in the next segment.  Not a cryptographic hash.
 * name_hash() and name_scan() give the same value for the same bytes.
 */
#ifndef SHELF_BASE_HASH_H
#define SHELF_BASE_HASH_H

#include <string.h>

#include "base/base.h"

#define HASH_K1 UINT64_C(0x9e3779b97f4a7c15)
#define HASH_K2 UINT64_C(0xd6e8feb86659fd93)

/* Both halves of the 128-bit product, folded. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* For numbers: inode, pid, address. */
static inline uint64_t hash_u64(uint64_t seed, uint64_t v)
{
	return hash_mix(hash_mix(v ^ seed ^ HASH_K1, HASH_K2) ^ v, HASH_K1);
}

static inline uint64_t hash_step(uint64_t h, uint64_t word)
{
	return hash_mix(h ^ word, HASH_K2) + word;
}

/* Names hold no NUL, so the zeros behind a tail make the length part of the words already. */
static inline uint64_t hash_end(uint64_t h)
{
	return h ^ h >> 29;
}

static inline uint64_t hash_load8(const char *s)
{
	uint64_t w;

	memcpy(&w, s, 8); /* one move */
	return w;
}

/* n (1..7) bytes, zeros above them; reads nothing beyond. */
static inline uint64_t hash_load_tail(const char *s, size_t n)
{
	uint32_t lo, hi;

	if (n >= 4) {
		memcpy(&lo, s, 4);
		memcpy(&hi, s + n - 4, 4);
		return lo | (uint64_t)hi << (8 * (n - 4));
	}
	lo = (unsigned char)s[0];
	lo |= (uint32_t)(unsigned char)s[n / 2] << (8 * (n / 2));
	return lo | (uint64_t)(unsigned char)s[n - 1] << (8 * (n - 1));
}

/* Exactly n bytes are read. */
static inline uint64_t name_hash(uint64_t seed, const char *s, size_t n)
{
	uint64_t h = seed ^ HASH_K1;
	size_t left = n;

	for (; left >= 8; left -= 8, s += 8)
		h = hash_step(h, hash_load8(s));
	if (left)
		h = hash_step(h, hash_load_tail(s, left));
	return hash_end(h);
}

/* 0x80 in the lowest byte of w that is zero (bytes above it may be marked wrongly). */
static inline uint64_t hash_zero_bytes(uint64_t w)
{
	return (w - UINT64_C(0x0101010101010101)) & ~w & UINT64_C(0x8080808080808080);
}

#define HASH_SLASHES (UINT64_C(0x0101010101010101) * '/')

/* Eight bytes at s by assembly: the read past the string's end is meant, and sanitizers would object. */
static inline uint64_t hash_scan8(const char *s)
{
	uint64_t w;

	__asm__("movq %1, %0" : "=r"(w) : "m"(*(const char(*)[8])s));
	return w;
}

/* Near the end of a page, byte by byte: the next page may not be there. */
uint64_t hash_scan_edge(const char *s);

/* A path component: its bytes, their hash, and its last word as a dentry keeps it (zeros behind). */
struct component {
	const char *name;
	size_t len;
	uint64_t hash;
	uint64_t tail; /* the last len % 8 bytes; 0 when there are none */
};

/*
 * One pass over the component at s, which ends at '/' or NUL: length, hash, last word.
 * Reads up to 7 bytes past the end, but never past the page the end is in.
 */
static inline void component_scan(struct component *c, uint64_t seed, const char *s)
{
	uint64_t h = seed ^ HASH_K1;
	const char *at = s;

	for (;; at += 8) {
		uint64_t w = likely(((uintptr_t)at & PAGE_MASK) <= PAGE_BYTES - 8) ? hash_scan8(at) : hash_scan_edge(at);
		uint64_t end = hash_zero_bytes(w) | hash_zero_bytes(w ^ HASH_SLASHES);

		if (likely(end)) {
			end &= -end; /* its lowest mark: bytes above it may be marked wrongly */
			w &= (end >> 7) - 1;
			c->name = s;
			c->len = (size_t)(at - s) + (unsigned)__builtin_ctzll(end) / 8;
			c->tail = w;
			c->hash = hash_end(w ? hash_step(h, w) : h);
			return;
		}
		h = hash_step(h, w);
	}
}

/* The same as a function: the hash and the length. */
uint64_t name_scan(uint64_t seed, const char *s, size_t *len);

#endif

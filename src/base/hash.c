/* SPDX-License-Identifier: MIT */
/* hash.c - the rare halves of scanning a path component. */
#include "base/hash.h"

uint64_t hash_scan_edge(const char *s)
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
	struct component c;

	component_scan(&c, seed, s);
	*len = c.len;
	return c.hash;
}

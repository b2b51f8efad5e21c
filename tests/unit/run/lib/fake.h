/* SPDX-License-Identifier: MIT */
/*
 * fake.h - a small ELF image made by a test: headers, build id and unwind table, one page of text,
 * one of data.  Code is put in function by function.
 */
#ifndef TESTS_RUN_FAKE_H
#define TESTS_RUN_FAKE_H

#include "run/scan.h"

enum {
	FAKE_PAGES = 4,
	FAKE_FUNCTIONS = 32,
	FAKE_TEXT = 0x1000, /* offset of the text */
	FAKE_DATA = 0x2000, /* offset of the data */
	FAKE_FRAMES = 0x3000,
};

struct fake {
	uint8_t *base;
	uint32_t used; /* bytes of the text */
	uint32_t functions;
	struct run_image im;
};

/* Starts an image in FAKE_PAGES pages at BASE, which are writable. */
void fake_start(struct fake *f, void *base);
/* Adds a function of LEN bytes, and after it PAD bytes of int3.  Returns its offset. */
uint32_t fake_function(struct fake *f, const uint8_t *code, size_t len, size_t pad);
#define FAKE_CODE(f, ...)                                                                          \
	fake_function((f), (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), \
		      16)
/* Ends it: image_at reads what was made.  The text becomes executable and not writable. */
void fake_finish(struct fake *f);

#endif

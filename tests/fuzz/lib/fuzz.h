/* SPDX-License-Identifier: MIT */
/* fuzz.h - what the fuzz targets share: reading an input, a small shelf, and what must hold of every call. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>

#include "harness.h"

#include <shelf/shelf.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * A target may define it: writes the k-th valid input to `out`, which has room for `room` bytes, and
 * returns its length, 0 behind the last.  tests/fuzz_main.c and libFuzzer's corpus start from these.
 */
size_t fuzz_example(unsigned k, uint8_t *out, size_t room) __attribute__((weak));

/* ---- the input as a stream: zeros behind its end --------------------------------------- */

struct bytes {
	const uint8_t *at;
	size_t left;
};

uint64_t fuzz_take(struct bytes *in, unsigned n); /* little-endian, n <= 8 */
unsigned fuzz_below(struct bytes *in, unsigned n); /* n <= 65536 */
/* Takes up to `most` bytes into `out`; returns how many there were. */
size_t fuzz_take_block(struct bytes *in, void *out, size_t most);

/* ---- a shelf for the life of the process, empty before each input ----------------------- */

struct shelf *fuzz_shelf(void);
struct shelf_task *fuzz_task(void); /* a fresh one, root's */
void fuzz_empty(void); /* removes every name */
/* Nothing is open, nothing is left, and every so often: the segment adds up. */
void fuzz_settle(void);

/* A result that a system call can give: no error we do not know, and never EIO. Returns ret. */
int64_t fuzz_result(int64_t ret);

/* ---- where a call writes ---------------------------------------------------------------- */

enum { FUZZ_BUFFER = 65536 };
void *fuzz_buffer(size_t count); /* of `count` bytes; no more than FUZZ_BUFFER of them are there */
void fuzz_buffer_intact(size_t count); /* nothing was written behind them */

#endif

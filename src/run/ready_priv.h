/* SPDX-License-Identifier: MIT */
/* ready_priv.h - a ready copy's file, for its maker and its reader. */
#ifndef SHELF_RUN_READY_PRIV_H
#define SHELF_RUN_READY_PRIV_H

#include <sys/stat.h>

#include "run/ready.h"
#include "run/slots.h"

#define READY_MAGIC 0x5944524653464853ull /* "SHSFRDY" */
#define READY_ENDING ".so"

enum {
	READY_VERSION = 2,
	READY_SITES = 1000,
	READY_MAX = 64 << 20, /* bytes of a file */
};

/* The last page of the file. */
struct ready_tail {
	uint64_t magic;
	uint64_t sum; /* of what follows, up to the last slot's */
	uint64_t key;
	uint32_t version, sites; /* in the table */
	uint32_t text, text_len; /* of the image */
	uint32_t text_at, slots_at; /* bytes into the file; the text's first page */
	uint32_t first, count; /* slots */
	uint8_t id[BUILD_ID_MAX];
	uint32_t ends[READY_SITES]; /* by slot: where the window ends */
};

_Static_assert(sizeof(struct ready_tail) <= PAGE_BYTES, "ready_priv.h");

/* Of which file, numbers and slots a copy is: FIRST is its first slot; and whose it is, if that is one user's own. */
uint64_t ready_key(const struct stat *source, const uint8_t *wanted, uint32_t first, bool own);
uint64_t ready_sum(const struct ready_tail *tail);

static inline uint32_t ready_text_start(const struct run_image *im)
{
	return ALIGN_DOWN(im->text, (uint32_t)PAGE_BYTES);
}

static inline uint32_t ready_text_pages(const struct run_image *im)
{
	return (uint32_t)(ALIGN_UP(im->text + im->text_len, (uint32_t)PAGE_BYTES) - ready_text_start(im)) >> PAGE_SHIFT;
}

/* Offset of the words that the sites jump through. */
static inline uint32_t ready_words(const struct run_image *im)
{
	return ready_text_start(im) + (ready_text_pages(im) << PAGE_SHIFT) + READY_DISTANCE;
}

static inline size_t ready_slot_bytes(uint32_t count)
{
	return ALIGN_UP((size_t)count * SLOT_BYTES, PAGE_BYTES);
}

/* Whether the jumps of IM reach its words. */
static inline bool ready_reaches(const struct run_image *im)
{
	return im->path && im->id_len && ready_text_pages(im) << PAGE_SHIFT < 0x800000;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * patch.h - writes jumps over the sites of an image, and takes them out again.
 *
 * The caller has blocked signals, and either no other thread exists or no thread can have entered
 * the image (it has just been mapped).  All or nothing: every site of the table is checked against
 * the bytes in memory and its slot made before the first jump is written.
 */
#ifndef SHELF_RUN_PATCH_H
#define SHELF_RUN_PATCH_H

#include "run/regs.h"
#include "run/table.h"

struct patch_count {
	uint32_t sites; /* in the table */
	uint32_t patched;
	uint32_t left; /* wanted, and not replaceable */
};

/* Whether SITE is one of those that are patched: its number is in WANTED (RUN_NUMBERS bytes), or not known. */
bool patch_wants(const struct run_site *site, const uint8_t *wanted);

/*
 * Patches the sites whose number is in WANTED (RUN_NUMBERS bytes) or not known.  C is where
 * table_open left it.  -ESTALE: other bytes in memory than in the table; -EBADMSG: damaged table;
 * -ENOSPC: no room for slots within reach; or what mprotect says.
 */
int patch_image(const struct run_image *im, struct table_cursor c, const uint8_t *wanted,
		struct patch_count *n);

/* Restores the sites of IM.  Slots stay: a thread may wait in one. */
int unpatch_image(const struct run_image *im, struct table_cursor c);

#endif

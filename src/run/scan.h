/* SPDX-License-Identifier: MIT */
/*
 * scan.h - finds the system calls of an image and decides how each can be replaced by a jump.
 *
 * A site is a `syscall` instruction at a true instruction boundary: reached by decoding, without a
 * gap, from the start of the function that holds it, where the function's end is an instruction
 * boundary too.  Its window is a run of whole instructions of at least 5 bytes that contains it,
 * all of which mean the same elsewhere, and into the middle of which no branch leads: of 6 bytes,
 * and none of which refers to a place at a distance from itself, where that can be had.
 *
 * Branch targets are over-estimated: direct branches, every word of data and every table entry that
 * could be an address in the text, addresses taken by code, function starts, landing pads.
 */
#ifndef SHELF_RUN_SCAN_H
#define SHELF_RUN_SCAN_H

#include "run/image.h"

enum {
	JUMP_LEN = 5,
	FAR_JUMP_LEN = 6, /* through memory: ready.h */
	SYSCALL_LEN = 2,
	WINDOW_MAX = 20,
};

enum site_why {
	SITE_OK,
	SITE_TARGET, /* a branch leads into each window */
	SITE_FIXED, /* the instructions around it cannot be moved */
	SITE_SIGRETURN, /* unwinders know signal frames by these bytes */
	SITE_UNSURE, /* outside functions, or in one that does not decode to its end */
	SITE_WHYS
};

struct run_site {
	uint32_t at; /* offset of the syscall instruction */
	int16_t nr; /* the number it asks for, -1 if not known */
	uint8_t before; /* bytes of the window before the syscall */
	uint8_t len; /* bytes of the window; 0 unless why is SITE_OK */
	uint8_t why; /* enum site_why */
	const uint8_t *bytes; /* of the window */
};

struct run_sites {
	struct run_site *sites; /* sorted by place */
	uint32_t count;
	size_t bytes; /* of the mapping that holds them */
};

/* Finds the sites of IM.  Allocates with mmap; sites_free gives it back. */
int scan_image(const struct run_image *im, struct run_sites *out);
void sites_free(struct run_sites *sites);

const char *site_why_text(enum site_why why);

#endif

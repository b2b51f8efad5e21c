/* SPDX-License-Identifier: MIT */
/* scan_priv.h - the scanner's working state, between its files. */
#ifndef SHELF_RUN_SCAN_PRIV_H
#define SHELF_RUN_SCAN_PRIV_H

#include "run/insn.h"
#include "run/scan.h"

enum {
	LOOK_BACK = 12, /* instructions remembered before a site */
};

/* A syscall instruction met by the sweep, and the lengths of those before it, nearest first. */
struct candidate {
	uint32_t at;
	uint32_t start, limit; /* its function, or the piece of code it lies in */
	uint8_t back_count;
	uint8_t back[LOOK_BACK];
	bool sure;
};

struct scan {
	const struct run_image *im;
	uint64_t *targets; /* a bit for each byte of the text */
	struct candidate *found;
	uint32_t count, room;
};

static inline void target_add(struct scan *s, uint64_t offset)
{
	uint64_t bit = offset - s->im->text;

	if (bit < s->im->text_len)
		s->targets[bit / 64] |= 1UL << bit % 64;
}

static inline bool target_at(const struct scan *s, uint32_t offset)
{
	uint32_t bit = offset - s->im->text;

	return s->targets[bit / 64] >> bit % 64 & 1;
}

/* targets.c: what one instruction refers to, and what the data refers to. */
void targets_of_insn(struct scan *s, const struct insn *in, const uint8_t *p, uint32_t at);
void targets_of_data(struct scan *s);
void targets_of_functions(struct scan *s);

/* number.c: the number that candidate C, which is sure, asks for; -1 if not known. */
int16_t number_of(const struct scan *s, const struct candidate *c);

/* window.c: fills SITE for candidate C; PREV_END is where the window before it ends. */
void window_choose(const struct scan *s, const struct candidate *c, uint32_t prev_end,
		   struct run_site *site);

#endif

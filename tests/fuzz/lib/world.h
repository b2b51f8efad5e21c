/* SPDX-License-Identifier: MIT */
/*
 * world.h - a small shelf with one of everything in it, made once and damaged again and again.
 *
 * The process maps it privately: what an input does to it is gone with world_reset(), and its file never changes.
 */
#ifndef TESTS_FUZZ_WORLD_H
#define TESTS_FUZZ_WORLD_H

#include "fuzz.h"
#include "segment/segment_priv.h"

enum { WORLD_TASKS = 2 };

struct world {
	struct shelf *shelf;
	struct slot *self; /* this thread's, which no input damages */
	struct shelf_task *task[WORLD_TASKS];
	char name[TEST_NAME_SIZE];
	char *base, *copy;
	size_t bytes;
	uint32_t *page; /* page numbers that are not all zero and may be damaged */
	uint32_t *pointer, *number; /* words of these by their numbers: those that point into the segment; others not zero */
	size_t pages, pointers, numbers;
};

/* `dead`: a process was killed in it and nobody has cleared that away. */
struct world *world_of(bool dead);
void world_reset(struct world *w);
/* Changes as the input says. */
void world_damage(struct world *w, struct bytes *in);
/* Everything in it is used once; answers do not matter, as long as there are any. */
void world_use(struct world *w);

#endif

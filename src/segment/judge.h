/* SPDX-License-Identifier: MIT */
/*
 * judge.h - is what the allocator and the slots say about themselves possible at all?
 *
 * For a check that is alone, and before anything is done with any of it: nothing is locked, nothing is followed that was
 * not looked at, each walk is bounded.  What a dead thread was in the middle of is not judged here: its slot may say
 * anything (api/check_trial.c).
 */
#ifndef SHELF_SEGMENT_JUDGE_H
#define SHELF_SEGMENT_JUDGE_H

#include "segment/marks.h"

/* `mends`: repairing puts it right. */
typedef void judge_fault_fn(void *ctx, bool mends, const char *what, uint64_t number);

struct judge {
	struct slot *self;
	bool repair; /* faults that it mends are mended at once */
	judge_fault_fn *fault;
	void *ctx;
	struct seg_marks marks; /* its own: free objects and retired ones */
};

/* How much of everything there is: without this nothing can be looked at.  NULL, or what is wrong. */
const char *segment_bounds(const struct segment *seg);
/* segment_check() without locks, and without the threads' own. */
void segment_look(struct slot *self, struct segment_counts *out);
/* Frames, lists, counters.  -EIO: frames make no sense, and so nothing that is in use does. */
int judge_allocator(struct judge *j);
/* Slots that nobody has, and what the own one keeps. */
void judge_slots(struct judge *j);
/* False: the lock is nobody's, and yet not free. */
bool judge_lock(struct judge *j, struct lock *l, uint64_t number);
/* Has anybody died and left something, or does something wait to be freed? */
bool slots_unsettled(struct slot *self);
/* What all the dead left is forgotten: whose it was is found by who marks and sweeps. */
void slots_forget_dead(struct slot *self);

#endif

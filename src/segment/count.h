/* SPDX-License-Identifier: MIT */
/*
 * count.h - slot.inodes and slot.files: how many an owner of the slot made, less how many it ended.
 *
 * What is counted begins and ends by a store of its own, to the ledger or to a magazine.  So the count is stored twice: before
 * that store, with a mark in its low bits that says which store it is; and after it, without.  A death in between leaves the
 * mark: whoever takes the slot over looks whether the store was done, and takes the count back with one store if not.
 * Who reads it meanwhile is one off, as with any sum of moving parts.
 * Cost: one store more to the own slot.  Wait-free.
 */
#ifndef SHELF_SEGMENT_COUNT_H
#define SHELF_SEGMENT_COUNT_H

#include "segment/slot.h"

#define COUNT_SCALE 256 /* below it the mark */

/* What a mark is made of. */
enum count_mark {
	COUNT_ENTRY = 63, /* 1 + the entry of the ledger that changes; 0: none */
	COUNT_FREED = 64, /* or: what slot.freeing names becomes free */
	COUNT_DOWN = 128, /* one less; without it one more */
};
_Static_assert(SLOT_LEDGER < COUNT_ENTRY, "each entry has a mark");

static inline int64_t count_read(const atomic_i64 *c)
{
	int64_t word = load_relaxed((atomic_i64 *)(uintptr_t)c); /* a snapshot; or the slot is the caller's */

	return (word - (word & (COUNT_SCALE - 1))) / COUNT_SCALE;
}

static inline unsigned count_mark(const atomic_i64 *c)
{
	return (unsigned)load_relaxed((atomic_i64 *)(uintptr_t)c) & (COUNT_SCALE - 1); /* the slot is the caller's */
}

static inline void count_set(atomic_i64 *c, int64_t n)
{
	store_release(c, n * COUNT_SCALE); /* read after our death */
}

/* Entry `k` of the ledger is about to name it (-1: none is). */
static inline void count_up(atomic_i64 *c, int k)
{
	store_release(c, (count_read(c) + 1) * COUNT_SCALE + (k < 0 ? 0 : k + 1)); /* the same */
}

/* Entry `k` is about to name it no more. */
static inline void count_down(atomic_i64 *c, int k)
{
	store_release(c, (count_read(c) - 1) * COUNT_SCALE + (COUNT_DOWN | (k < 0 ? 0 : k + 1))); /* the same */
}

/* What slot.freeing names is about to be free. */
static inline void count_down_freeing(atomic_i64 *c)
{
	store_release(c, (count_read(c) - 1) * COUNT_SCALE + (COUNT_DOWN | COUNT_FREED)); /* the same */
}

static inline void count_done(atomic_i64 *c)
{
	count_set(c, count_read(c));
}

/* It was not done. */
static inline void count_undo(atomic_i64 *c)
{
	count_set(c, count_read(c) + (count_mark(c) & COUNT_DOWN ? 1 : -1));
}

/* Recovery, before the dead one's intent (whose recovery may use its ledger): was what its counts are marked for done? */
void count_settle(struct slot *self, struct slot *dead);

#endif

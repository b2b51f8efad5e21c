/* SPDX-License-Identifier: MIT */
/*
 * crew.h - T workers, as threads or as processes, started together and timed.
 *
 * A timed run ends when the clock says so: each worker calls step() (a batch of
 * operations) until told to stop, and the rate is the sum of the workers' own
 * rates.  A bounded run ends when the work is done: the rate is all work over
 * the time from the first start to the last end.
 */
#ifndef SHELF_BENCH_CREW_H
#define SHELF_BENCH_CREW_H

#include <stdbool.h>
#include <stdint.h>

struct worker {
	unsigned index;
	void *state; /* the workload's, made by begin() in the worker */
	uint64_t random;
};

struct workload {
	const char *name, *case_;
	const char *unit; /* "op/s" or "MB/s" */
	bool processes;
	bool own_table; /* threads of one task, each with a descriptor table of its own */
	void (*setup)(unsigned threads); /* once, in the parent */
	void (*begin)(struct worker *w); /* in each worker, before the clock starts */
	uint64_t (*step)(struct worker *w); /* operations (or bytes) done */
	bool bounded; /* one call of step() is the whole work */
	void (*teardown)(unsigned threads); /* once, after the last case of the program */
};

/* The rate in operations (bytes) a second. */
double crew_run(const struct workload *wl, unsigned threads, unsigned ms);

static inline uint64_t worker_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

#endif

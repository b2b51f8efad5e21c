/* SPDX-License-Identifier: MIT */
/*
 * step.h - a child that is killed after its n-th machine instruction.
 *
 * No special build is needed, and it stops between any two stores, not only at tracked ones.
 * A repeated string instruction counts as two: its first turn, and the rest.
 *
 * A step costs two switches of processes.  So the way is kept from one death to the next: where it is known, the child runs
 * up to a breakpoint close by, and is stepped from there.  If it goes another way this time, for a count in it that stands
 * elsewhere, it dies at about its n-th instruction.
 */
#ifndef TESTS_KILL_STEP_H
#define TESTS_KILL_STEP_H

#include <stdbool.h>

#include "harness.h"

/* What the child runs before the count begins (its slot, lazy binding), and what is counted. */
struct step_job {
	void (*prepare)(void *arg);
	void (*run)(void *arg);
	void *arg;
};

/* Where a job was before each of its steps; all zero at first. */
struct step_path {
	struct step_place {
		unsigned long ip, turn; /* it was there so often before */
	} *at;
	unsigned long n, room;
};
void step_path_end(struct step_path *p);

/*
 * Runs the job in a child and kills it after n instructions of run(); false: run() returned before that.  PATH: of this job.
 * True also if it went so different a way that it returned before: it died at its end.
 */
bool step_kill(const struct step_job *job, struct step_path *path, unsigned long n);
/* Can this machine single-step a child?  If not, the test is to be skipped. */
bool step_possible(void);

/* Where the last one died, from the beginning of the program: for addr2line. */
extern unsigned long step_last;

#endif

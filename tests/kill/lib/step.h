/* SPDX-License-Identifier: MIT */
/*
 * step.h - a child that is killed after its n-th machine instruction.
 *
 * No special build is needed, and it stops between any two stores, not only at tracked ones.
 * A repeated string instruction counts as two: its first turn, and the rest.
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
/* Runs the job in a child and kills it after n instructions of run(); false: run() returned before that. */
bool step_kill(const struct step_job *job, unsigned long n);
/* Can this machine single-step a child?  If not, the test is to be skipped. */
bool step_possible(void);

/* Where the last one died, from the beginning of the program: for addr2line. */
extern unsigned long step_last;

#endif

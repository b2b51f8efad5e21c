/* SPDX-License-Identifier: MIT */
/*
 * calls.h - every system call of x86-64 Linux that takes or gives a path or a descriptor, as data.
 *
 * Who asks: refuse.c (what is a shelf's among the arguments), strict.c (does a call that slipped through concern the
 * shelf), `shelf doctor --calls` and with it the table in docs/interposition.md.
 */
#ifndef SHELF_RUN_PRELOAD_CALLS_H
#define SHELF_RUN_PRELOAD_CALLS_H

#include "run/preload/serve.h"

/*
 * `args`, one letter for each argument up to the last that counts:
 *	f  descriptor		d  directory for the path behind it, or AT_FDCWD
 *	p  path			m  memory that holds descriptors or paths
 *	-  something else
 * and behind a '>' what the call gives: n  a number, or several.
 */
struct call_info {
	uint16_t nr;
	/* Arrays, not pointers: nothing to relocate at each start. */
	char name[26];
	char args[12];
	char note[44]; /* what `served` and `passed` leave open; "" */
};

const struct call_info *call_info(long nr); /* NULL: none of these calls */

/* A path of the shelf's, or a number of its, among the arguments. */
bool call_concerns_shelf(const struct call_info *call, const uint64_t a[6]);
/* A parked number among the descriptors. */
bool call_has_parked(const struct call_info *call, const uint64_t a[6]);

/* Prints the table, a line for each call, and what becomes of it: "NAME ARGS ANSWER NOTE" between tabs. */
void calls_print(void);

/* refuse.c: what a call for which there is no handler answers when a shelf's path or number is among its arguments. */
long serve_refused(struct run_regs *r);
int refused_errno(long nr);

#endif

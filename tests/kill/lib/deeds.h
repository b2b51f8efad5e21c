/* SPDX-License-Identifier: MIT */
/*
 * deeds.h - one call of every kind, on a small tree, and the tree in words: for tests that let each call die or fail.
 */
#ifndef TESTS_KILL_DEEDS_H
#define TESTS_KILL_DEEDS_H

#include <stdbool.h>

#include <shelf/shelf.h>

#include "harness.h"

enum { DUMP_SIZE = 4096 };
#define CRED (&(struct shelf_cred){.caps = SHELF_CAP_ALL})

/* A call, by a task that has /a/one open as 0 and 1, /b/three as 2. */
struct deed {
	const char *name;
	bool loose; /* changes file data: old and new may be mixed */
	void (*run)(struct shelf_task *t);
};
extern const struct deed deeds[];
extern const unsigned deed_count;

/* The shelf of the test, and the task of the process that looks at it all. */
extern struct shelf *shelf;
extern char deeds_name[TEST_NAME_SIZE];
extern struct shelf_task *ours;

int deeds_setup(void **state); /* and its end: of a test program */
int deeds_teardown(void **state);
/* A task as struct deed wants it. */
struct shelf_task *deed_task(void);
bool deed_wanted(const struct deed *d); /* DEED in the environment: part of its name */

void tree_make(void);
void tree_remove(void);
void tree_dump(char out[DUMP_SIZE]);

#endif

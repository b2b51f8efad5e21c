/* SPDX-License-Identifier: MIT */
/*
 * fd_torture.h - files for the descriptor torture tests: each knows its generation, whether it
 * is alive, and is counted when it is made, released and freed, over all processes of the test.
 */
#ifndef TESTS_FD_TORTURE_H
#define TESTS_FD_TORTURE_H

#include <pthread.h>

#include "harness.h"

#include "fd/fd_priv.h"
#include "fd/public.h"

#define TORTURE_TYPE (FD_TYPE_USER + 7)
#define TORTURE_LIVE UINT64_C(0x6576696c6576696c)
#define TORTURE_DEAD UINT64_C(0x6461656464616564)

struct torture_file {
	uint64_t magic; /* plain on purpose: a use after free is a data race too */
	uint64_t generation;
	atomic_u32 released;
};

/* Shared with forked children. */
struct torture_counts {
	atomic_u64 made, released, freed;
	atomic_u64 killed; /* makers that were; a file that one had not filled goes as the zeroes it began as */
};

struct torture {
	struct shelf_fdspace *space;
	struct segment *seg;
	struct fd_table *tab;
	struct torture_counts *counts;
	uint64_t seed;
};

void torture_start(struct torture *t); /* a fresh segment and an empty table */
void torture_end(struct torture *t); /* leaves the table; all that was made is released and freed */
struct fd_file *torture_make(struct torture *t, struct slot *self, uint64_t generation);
int torture_open(struct torture *t, struct slot *self, struct fd_table *tab, uint64_t generation);
int torture_close(struct slot *self, struct fd_table *tab, int fd);
uint64_t torture_check(struct fd_file *file); /* alive, or the test ends; its generation */
void torture_drop(struct slot *self, void *ctx, int fd, struct fd_file *file);
void torture_threads(unsigned n, void *(*fn)(void *), void *args, size_t size); /* run and join */

#endif

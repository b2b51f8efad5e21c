/* SPDX-License-Identifier: MIT */
/* fdget.h - what fdget.c asks of an engine; see there. */
#ifndef BENCH_FDGET_H
#define BENCH_FDGET_H

#include <stdint.h>

#define FDGET_TABLES 64 /* most threads, so most tables */

struct engine_thread;
static int engine_start(int shared, int threads); /* 0, or prints what failed */
static void engine_join(struct engine_thread *t, int table);
static uint64_t engine_lookup(struct engine_thread *t, int fd); /* 1, read from the file */
static void engine_leave(struct engine_thread *t);
static void engine_end(void);

#endif

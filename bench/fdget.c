// SPDX-License-Identifier: MIT
/*
 * fdget.c - lookup and release of a descriptor, alone.
 *
 * One source for all engines: FDGET_ENGINE names a header that gives
 *	struct engine_thread			what a thread keeps
 *	engine_start(shared, threads)		tables with the numbers 0..threads-1 open, each its own file
 *	engine_join(t, table)			called by each thread first; table 0 when shared
 *	engine_lookup(t, fd)			find it, read one word of the file, let it go
 *	engine_leave(t)				called by each thread last
 * so that each engine is compiled into the loop as its users would have it.
 *
 *	fdget_ENGINE --case shared|unshared|shared_hot [--file own|hot] [--threads N] [--ms M]
 *
 * shared: N threads of one table (it counts as shared with N = 1 as well).
 * unshared: N tables with one thread each, which has said that it is alone.
 * own (default): each thread looks up its own number, so that what is measured is
 * the table.  hot: all look up number 0, so counting schemes meet on its count;
 * shared_hot is the shared case with it.
 * Prints "rate R": lookups a second, all threads together.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fdget.h"
#include FDGET_ENGINE

#define BATCH 4096

struct worker {
	pthread_t thread;
	int table, fd;
	double rate;
};

static struct {
	int shared, hot, threads, ms;
} opt = {.shared = 1, .threads = 2, .ms = 200};

static pthread_barrier_t start_line;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The loop that is measured.  What was read is needed in a register, and no more is done with it. */
static void __attribute__((noinline)) batch(struct engine_thread *t, int fd)
{
	struct engine_thread mine = *t; /* in registers: no engine's stores can change it */
	int k;

	for (k = 0; k < BATCH; k++) {
		uint64_t found = engine_lookup(&mine, fd);

		__asm__ volatile("" : : "r"(found));
	}
}

/* Before it counts: do the lookups find the files? */
static void check(struct engine_thread *t, int fd)
{
	int k;

	for (k = 0; k < BATCH; k++) {
		if (engine_lookup(t, fd) != 1) {
			fprintf(stderr, "fdget: number %d was not found\n", fd);
			exit(1);
		}
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct engine_thread t;
	uint64_t count = 0;
	double from, until;

	engine_join(&t, w->table);
	check(&t, w->fd);
	pthread_barrier_wait(&start_line);
	from = now();
	do {
		batch(&t, w->fd);
		count += BATCH;
		until = now();
	} while (until - from < opt.ms * 1e-3);
	w->rate = (double)count / (until - from);
	engine_leave(&t);
	return NULL;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: fdget_ENGINE --case shared|unshared|shared_hot [--file own|hot] [--threads N] [--ms M]\n");
	return 2;
}

static int parse_case(const char *name)
{
	opt.hot |= !strcmp(name, "shared_hot");
	opt.shared = strcmp(name, "unshared") != 0;
	return strcmp(name, "shared") && strcmp(name, "unshared") && strcmp(name, "shared_hot");
}

static int parse(int argc, char **argv)
{
	int k;

	for (k = 1; k + 1 < argc; k += 2) {
		const char *value = argv[k + 1];

		if (!strcmp(argv[k], "--case") && parse_case(value))
			return -1;
		else if (!strcmp(argv[k], "--case"))
			continue;
		else if (!strcmp(argv[k], "--file"))
			opt.hot = !strcmp(value, "hot");
		else if (!strcmp(argv[k], "--threads"))
			opt.threads = atoi(value);
		else if (!strcmp(argv[k], "--ms"))
			opt.ms = atoi(value);
		else
			return -1;
	}
	return k == argc && opt.threads > 0 && opt.threads <= 64 && opt.ms > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct worker workers[64];
	double rate = 0;
	int k;

	if (parse(argc, argv))
		return usage();
	if (engine_start(opt.shared, opt.threads))
		return 1;
	pthread_barrier_init(&start_line, NULL, (unsigned)opt.threads);
	for (k = 0; k < opt.threads; k++) {
		workers[k].table = opt.shared ? 0 : k;
		workers[k].fd = opt.hot ? 0 : k;
		if (pthread_create(&workers[k].thread, NULL, work, &workers[k]))
			return 1;
	}
	for (k = 0; k < opt.threads; k++) {
		pthread_join(workers[k].thread, NULL);
		rate += workers[k].rate;
	}
	engine_end();
	printf("rate %.0f\n", rate);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * bench.h - `shelf bench`: a plan is a list of rows (workload, case, engine,
 * threads); a run takes one sample of each row, engines alternating; the table,
 * the JSON file and the report are made from the samples alone.
 */
#ifndef SHELF_CLI_BENCH_H
#define SHELF_CLI_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_MAX_RUNS 64
#define BENCH_MAX_THREADS 8 /* different thread counts in one plan */

struct bench_row {
	char workload[24], case_[32], engine[24], unit[8];
	unsigned threads;
	unsigned group; /* rows of one group are taken by one program call (tiobench's cases) */
	unsigned samples;
	double sample[BENCH_MAX_RUNS];
};

struct bench_plan {
	struct bench_row *row;
	size_t rows, room;
	unsigned groups;
	unsigned runs, ms;
	uint64_t file_bytes;
	const char *dir; /* for tmpfs */
	char programs[4096]; /* where the engine programs are */
};

struct bench_options {
	const char *workload; /* or "all" */
	const char *engines; /* comma list, NULL: all that fit */
	const char *cases; /* comma list, NULL: all */
	unsigned threads[BENCH_MAX_THREADS];
	unsigned thread_counts;
};

/* bench_plan.c */
bool bench_plan_knows(const char *workload);
/* 0, or an exit status after a message. */
int bench_plan_make(struct bench_plan *plan, const struct bench_options *options);
void bench_plan_free(struct bench_plan *plan);
struct bench_row *bench_plan_add_row(struct bench_plan *plan); /* all zero; NULL: no memory */
/* bench_run.c: takes all samples; 0, or an exit status after a message. */
int bench_run(struct bench_plan *plan);
/* bench_report.c */
double bench_mean(const struct bench_row *row);
double bench_stdev(const struct bench_row *row);
void bench_print(const struct bench_plan *plan, FILE *to);
int bench_write_json(const struct bench_plan *plan, const char *path);
/* bench_html.c: `shelf bench report FILE... -o OUT` */
int bench_html(int argc, char **argv);

#endif

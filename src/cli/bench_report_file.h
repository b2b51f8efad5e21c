/* SPDX-License-Identifier: MIT */
/* bench_report_file.h - parts of `shelf bench report`: a file of results, the page, the plots. */
#ifndef SHELF_CLI_BENCH_REPORT_FILE_H
#define SHELF_CLI_BENCH_REPORT_FILE_H

#include "bench.h"

struct bench_file {
	const char *path;
	char machine[1024]; /* "cpu: ..., cores: 2, ..." */
	struct bench_plan plan; /* rows with their samples; nothing else of it is set */
};

/* bench_json.c: 0, or EXIT_FAILED after a message that names the file and the line. */
int bench_file_read(struct bench_file *file, const char *path);
void bench_file_free(struct bench_file *file);

/* bench_plot.c: an <svg> element for one workload, to be freed; NULL: gnuplot is missing or failed, *why says. */
char *bench_plot(const struct bench_plan *plan, const char *workload, const char **why);

/* Rows before `row` of the same case (or workload) do not exist: it opens a table (a section). */
bool bench_first_of_case(const struct bench_plan *plan, size_t row);
bool bench_first_of_workload(const struct bench_plan *plan, size_t row);
bool bench_same_case(const struct bench_row *a, const struct bench_row *b);

#endif

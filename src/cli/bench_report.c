/* SPDX-License-Identifier: MIT */
/* bench_report.c - mean, deviation, the table and the JSON file. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"
#include "config.h"

double bench_mean(const struct bench_row *row)
{
	double sum = 0;

	for (unsigned i = 0; i < row->samples; i++)
		sum += row->sample[i];
	return row->samples ? sum / row->samples : 0;
}

double bench_stdev(const struct bench_row *row)
{
	double mean = bench_mean(row), sum = 0;

	for (unsigned i = 0; i < row->samples; i++)
		sum += (row->sample[i] - mean) * (row->sample[i] - mean);
	return row->samples > 1 ? sqrt(sum / (row->samples - 1)) : 0;
}

static bool same_case(const struct bench_row *a, const struct bench_row *b)
{
	return !strcmp(a->workload, b->workload) && !strcmp(a->case_, b->case_) &&
	       a->threads == b->threads;
}

/* The mean of the same case with another engine; 0 when it was not run. */
static double mean_of(const struct bench_plan *plan, const struct bench_row *like,
		      const char *engine)
{
	for (size_t i = 0; i < plan->rows; i++)
		if (same_case(&plan->row[i], like) && !strcmp(plan->row[i].engine, engine))
			return bench_mean(&plan->row[i]);
	return 0;
}

static void print_ratio(FILE *to, double mean, double base)
{
	if (base > 0)
		fprintf(to, " %9.2f", mean / base);
	else
		fprintf(to, " %9s", "-");
}

static void print_row(const struct bench_plan *plan, const struct bench_row *row, FILE *to)
{
	double mean = bench_mean(row);

	fprintf(to, "  %-10s", row->engine);
	if (!strcmp(row->unit, "op/s"))
		fprintf(to, " %14.0f +- %-11.0f %9.1f ns", mean, bench_stdev(row), 1e9 / mean);
	else
		fprintf(to, " %14.1f +- %-11.1f %12s", mean, bench_stdev(row), "");
	print_ratio(to, mean, mean_of(plan, row, "spinlock"));
	print_ratio(to, mean, mean_of(plan, row, "tmpfs"));
	fputc('\n', to);
}

static void print_case(const struct bench_plan *plan, const struct bench_row *first, FILE *to)
{
	fprintf(to, "\n%s %s, %u thread%s, %s (higher is better)\n", first->workload, first->case_,
		first->threads, first->threads == 1 ? "" : "s", first->unit);
	fprintf(to, "  %-10s %14s    %-11s %12s %9s %9s\n", "engine", "mean", "stdev",
		"all threads", "/spinlock", "/tmpfs");
	for (size_t i = 0; i < plan->rows; i++)
		if (same_case(&plan->row[i], first))
			print_row(plan, &plan->row[i], to);
}

void bench_print(const struct bench_plan *plan, FILE *to)
{
	for (size_t i = 0; i < plan->rows; i++) {
		size_t j = 0;

		while (j < i && !same_case(&plan->row[j], &plan->row[i]))
			j++;
		if (j == i)
			print_case(plan, &plan->row[i], to);
	}
	fprintf(to,
		"\n%u runs, engines alternating; ns: time over operations, all threads together.\n",
		plan->runs);
	for (size_t i = 0; i < plan->rows; i++)
		if (!strcmp(plan->row[i].workload, "tiobench")) {
			fprintf(to, "tiobench: %.1f MiB for each thread.\n",
				(double)plan->file_bytes / (1 << 20));
			break;
		}
}

static void cpu_model(char out[128])
{
	char line[512];
	FILE *f = fopen("/proc/cpuinfo", "re");

	snprintf(out, 128, "unknown");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
			line[strcspn(line, "\n")] = 0;
			snprintf(out, 128, "%.120s", strchr(line, ':') + 2);
			break;
		}
	if (f)
		fclose(f);
}

static void json_machine(FILE *to)
{
	struct utsname u;
	char model[128];

	uname(&u);
	cpu_model(model);
	fputs("{\"machine\":{\"cpu\":", to);
	json_string(to, model);
	fprintf(to, ",\"cores\":%ld,\"memory_mib\":%ld,\"kernel\":", sysconf(_SC_NPROCESSORS_ONLN),
		(long)(sysconf(_SC_PHYS_PAGES) / 256));
	json_string(to, u.release);
	fputs(",\"compiler\":", to);
	json_string(to, __VERSION__);
	fputs(",\"flags\":", to);
	json_string(to, SHELF_BUILD_FLAGS);
	fputs(",\"commit\":", to);
	json_string(to, SHELF_COMMIT);
	fputs("},\n\"results\":[", to);
}

static void json_row(FILE *to, const struct bench_row *row)
{
	fputs("{\"workload\":", to);
	json_string(to, row->workload);
	fputs(",\"case\":", to);
	json_string(to, row->case_);
	fputs(",\"engine\":", to);
	json_string(to, row->engine);
	fprintf(to, ",\"threads\":%u,\"unit\":", row->threads);
	json_string(to, row->unit);
	fputs(",\"samples\":[", to);
	for (unsigned i = 0; i < row->samples; i++)
		fprintf(to, "%s%.6g", i ? "," : "", row->sample[i]);
	fprintf(to, "],\"mean\":%.6g,\"stdev\":%.6g}", bench_mean(row), bench_stdev(row));
}

int bench_write_json(const struct bench_plan *plan, const char *path)
{
	FILE *to = strcmp(path, "-") ? fopen(path, "we") : stdout;
	bool bad;

	if (!to) {
		cli_error("%s: %s", path, strerror(errno));
		return EXIT_FAILED;
	}
	json_machine(to);
	for (size_t i = 0; i < plan->rows; i++) {
		fputs(i ? ",\n" : "\n", to);
		json_row(to, &plan->row[i]);
	}
	fputs("\n]}\n", to);
	bad = fflush(to) || ferror(to);
	if (to != stdout)
		bad |= fclose(to) != 0;
	if (bad)
		cli_error("%s: %s", path, strerror(errno));
	return bad ? EXIT_FAILED : EXIT_OK;
}

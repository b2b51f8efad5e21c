/* SPDX-License-Identifier: MIT */
/*
 * files.c - one benchmark program for each engine: runs each case named once and
 * prints a line "CASE RATE" for each.  `shelf bench` calls these in turn, so that engines alternate.
 *
 *	files_ENGINE --workload NAME --case NAME[,NAME...] [--threads N] [--ms N] [--file-bytes N] [--dir DIR]
 *	files_ENGINE --list		workload, case and unit, a line each
 */
#include <getopt.h>

#include "engine.h"
#include "workloads.h"

struct bench_options bench_options = {.threads = 1, .file_bytes = 1 << 20};

static const struct workload *const lists[] = {
	pread_workloads,
	tiobench_workloads,
#ifndef BENCH_MEMCPY
	threadperf_workloads,
	names_workloads,
#endif
};

#define LISTS (sizeof(lists) / sizeof(lists[0]))

static const struct workload *find(const char *name, const char *case_)
{
	for (size_t i = 0; i < LISTS; i++)
		for (const struct workload *w = lists[i]; w->name; w++)
			if (!strcmp(w->name, name) && !strcmp(w->case_, case_))
				return w;
	return NULL;
}

static void list_all(void)
{
	for (size_t i = 0; i < LISTS; i++)
		for (const struct workload *w = lists[i]; w->name; w++)
#ifdef BENCH_MEMCPY
			if (!strcmp(w->name, "tiobench") || !strcmp(w->case_, "pread4k_shared"))
#endif
				printf("%s %s %s\n", w->name, w->case_, w->unit);
}

static uint64_t number(const char *flag, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || v < min || v > max) {
		fprintf(stderr, "bench: --%s %s: a number from %llu to %llu is wanted\n", flag,
			text, (unsigned long long)min, (unsigned long long)max);
		exit(2);
	}
	return v;
}

struct arguments {
	const char *workload, *case_, *dir;
	unsigned ms;
};

static void parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{"workload", required_argument, NULL, 'w'},
		{"case", required_argument, NULL, 'c'},
		{"threads", required_argument, NULL, 't'},
		{"ms", required_argument, NULL, 'm'},
		{"file-bytes", required_argument, NULL, 'b'},
		{"dir", required_argument, NULL, 'd'},
		{"list", no_argument, NULL, 'l'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'w':
			a->workload = optarg;
			break;
		case 'c':
			a->case_ = optarg;
			break;
		case 'd':
			a->dir = optarg;
			break;
		case 't':
			bench_options.threads = (unsigned)number("threads", optarg, 1, 1024);
			break;
		case 'm':
			a->ms = (unsigned)number("ms", optarg, 1, 3600000);
			break;
		case 'b':
			bench_options.file_bytes = number("file-bytes", optarg, 4096, 1ULL << 40);
			break;
		case 'l':
			list_all();
			exit(0);
		default:
			exit(2);
		}
	}
}

static const struct workload *find_or_exit(const char *name, const char *case_)
{
	const struct workload *wl = name && case_ ? find(name, case_) : NULL;

	if (!wl) {
		fprintf(stderr, "bench: no such workload and case; --list names them\n");
		exit(2);
	}
	return wl;
}

static void run_case(const struct workload *wl, unsigned ms)
{
	double rate;

	if (wl->setup)
		wl->setup(bench_options.threads);
	rate = crew_run(wl, bench_options.threads, ms);
	printf("%s %.6g\n", wl->case_, strcmp(wl->unit, "MB/s") ? rate : rate / 1e6);
}

int main(int argc, char **argv)
{
	struct arguments a = {.ms = 200};
	const struct workload *list[16];
	struct engine_config config = {0};
	size_t count = 0;
	char *cases, *save = NULL;

	parse(argc, argv, &a);
	cases = strdup(a.case_ ? a.case_ : "");
	for (char *c = strtok_r(cases, ",", &save); c && count < 16; c = strtok_r(NULL, ",", &save))
		list[count++] = find_or_exit(a.workload, c);
	free(cases);
	if (!count)
		find_or_exit(NULL, NULL);
	config.dir = a.dir;
	config.files = bench_options.threads;
	config.file_bytes = bench_options.file_bytes;
	if (list[0]->bounded)
		config.size = bench_options.file_bytes * bench_options.threads;
	engine_start(&config);
	for (size_t i = 0; i < count; i++)
		run_case(list[i], a.ms);
	if (list[count - 1]->teardown)
		list[count - 1]->teardown(bench_options.threads);
	engine_stop();
	return 0;
}

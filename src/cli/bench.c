/* SPDX-License-Identifier: MIT */
/* bench.c - the options of `shelf bench`. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

struct arguments {
	struct bench_options options;
	const char *json;
};

static const struct option long_options[] = {
	{"json", required_argument, NULL, 'j'},
	{"runs", required_argument, NULL, 'r'},
	{"threads", required_argument, NULL, 't'},
	{"engine", required_argument, NULL, 'e'},
	{"case", required_argument, NULL, 'c'},
	{"ms", required_argument, NULL, 'm'},
	{"bytes", required_argument, NULL, 'b'},
	{"dir", required_argument, NULL, 'd'},
	{NULL, 0, NULL, 0},
};

static int parse_threads(struct bench_options *o, const char *text)
{
	char list[128], *save = NULL;
	uint64_t v;

	if (strlen(text) >= sizeof(list))
		return cli_usage("--threads: the list is too long");
	strcpy(list, text);
	o->thread_counts = 0;
	for (char *t = strtok_r(list, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (o->thread_counts == BENCH_MAX_THREADS)
			return cli_usage("--threads: at most %d counts", BENCH_MAX_THREADS);
		if (!cli_parse_count(t, 1, 1024, &v))
			return cli_usage(
				"--threads '%s': numbers from 1 to 1024 with commas are wanted",
				text);
		o->threads[o->thread_counts++] = (unsigned)v;
	}
	return o->thread_counts ? 0 : cli_usage("--threads: a number is wanted");
}

static int parse_option(int c, struct bench_plan *plan, struct arguments *a)
{
	uint64_t v;

	switch (c) {
	case 'j':
		a->json = optarg;
		return 0;
	case 'e':
		a->options.engines = optarg;
		return 0;
	case 'c':
		a->options.cases = optarg;
		return 0;
	case 'd':
		plan->dir = optarg;
		return 0;
	case 't':
		return parse_threads(&a->options, optarg);
	case 'r':
		if (!cli_parse_count(optarg, 1, BENCH_MAX_RUNS, &v))
			return cli_usage("--runs '%s': a number from 1 to %d is wanted", optarg,
					 BENCH_MAX_RUNS);
		plan->runs = (unsigned)v;
		return 0;
	case 'm':
		if (!cli_parse_count(optarg, 1, 600000, &v))
			return cli_usage("--ms '%s': a number from 1 to 600000 is wanted", optarg);
		plan->ms = (unsigned)v;
		return 0;
	case 'b':
		if (!cli_parse_size(optarg, &plan->file_bytes) || plan->file_bytes < 4096)
			return cli_usage("--bytes '%s': a size of at least 4K is wanted", optarg);
		plan->file_bytes &= ~4095ULL;
		return 0;
	}
	return -1;
}

/* A file that cannot be written is better known before the samples are taken. */
static int check_writable(const char *path)
{
	int fd = !path || !strcmp(path, "-") ? 0 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0) {
		cli_error("%s: %s", path, strerror(errno));
		return EXIT_FAILED;
	}
	if (fd > 0)
		close(fd);
	return 0;
}

static int parse(int argc, char **argv, struct bench_plan *plan, struct arguments *a)
{
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		status = parse_option(c, plan, a);
		if (status)
			return status < 0 ? cli_bad_option(argc, argv) : status;
	}
	if (optind + 1 != argc)
		return cli_usage(optind == argc ? "a workload is wanted" :
						  "one workload at a time, or all");
	a->options.workload = argv[optind];
	if (strcmp(a->options.workload, "all") && !bench_plan_knows(a->options.workload))
		return cli_usage("there is no workload '%s'", a->options.workload);
	return 0;
}

static int bench_command(int argc, char **argv)
{
	struct bench_plan plan = {.runs = 8, .ms = 200, .file_bytes = 100 << 20};
	struct arguments a = {0};
	int status;

	if (argc > 1 && !strcmp(argv[1], "report"))
		return bench_html(argc - 1, argv + 1);
	status = parse(argc, argv, &plan, &a);
	if (!status)
		status = check_writable(a.json);
	if (!status)
		status = bench_plan_make(&plan, &a.options);
	cli_catch_interrupts();
	if (!status)
		status = bench_run(&plan);
	if (!status) {
		bench_print(&plan, a.json && !strcmp(a.json, "-") ? stderr : stdout);
		if (a.json)
			status = bench_write_json(&plan, a.json);
	}
	bench_plan_free(&plan);
	return status;
}

const struct command command_bench = {
	.name = "bench",
	.summary = "measure lookups, reads, names against tmpfs and other schemes",
	.run = bench_command,
	.usage =
		"usage: shelf bench WORKLOAD [OPTION...]\n"
		"       shelf bench report FILE... -o report.html\n"
		"\n"
		"WORKLOAD\n"
		"  fdget       descriptor lookup and release alone, and small reads through it\n"
		"  threadperf  tasks that open, write, read and close a file of their own, as threads and as processes\n"
		"  tiobench    sequential and random reads and writes of 4 KiB, 48 threads\n"
		"  names       stat, open, create, unlink, rename, readdir\n"
		"  all         each of them\n"
		"\n"
		"Engines alternate inside one run. The table gives mean, standard deviation, and the ratio to the\n"
		"spinlock scheme and to the kernel's tmpfs.\n"
		"\n"
		"  --engine LIST   of biglock,spinlock,rwlock,refcount,fileref,borrow,tmpfs,urcu,ck,memcpy\n"
		"  --case LIST     of the workload's cases, which `man shelf-bench` lists\n"
		"  --threads LIST  thread counts (default: what the workload is known for)\n"
		"  --runs N        samples of each figure (8)\n"
		"  --ms N          length of a timed sample (200)\n"
		"  --bytes SIZE    tiobench: of each thread's file (100M, less when memory is short)\n"
		"  --dir DIR       where tmpfs is, if none can be mounted (/dev/shm)\n"
		"  --json FILE     write machine and samples; - is standard output\n"
		"\n"
		"Exit status: 0, 1 a program failed or a file could not be read or written, 2 usage,\n"
		"129, 130 or 143 ended by SIGHUP, SIGINT or SIGTERM.\n",
};

/* SPDX-License-Identifier: MIT */
/* bench_plan.c - which rows a workload has: cases, engines that can run them, thread counts. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"

#define SCHEMES "biglock,spinlock,rwlock,refcount,fileref,borrow"

struct plan_case {
	const char *workload, *case_, *unit, *engines;
	const char *threads; /* when the user names none */
	bool grouped; /* all cases of the workload in one program call */
};

static const struct plan_case plan_cases[] = {
	{"fdget", "shared", "op/s", SCHEMES ",urcu,ck,tmpfs", "1,2", false},
	{"fdget", "shared_hot", "op/s", SCHEMES ",urcu,ck,tmpfs", "2", false},
	{"fdget", "unshared", "op/s", SCHEMES ",urcu,ck,tmpfs", "1,2", false},
	{"fdget", "pread1_shared", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"fdget", "pread1_unshared", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"fdget", "pread4k_shared", "op/s", SCHEMES ",tmpfs,memcpy", "1,2", false},
	{"threadperf", "threads", "op/s", SCHEMES ",tmpfs", "8", false},
	{"threadperf", "processes", "op/s", SCHEMES ",tmpfs", "8", false},
	{"tiobench", "seqwrite", "MB/s", SCHEMES ",tmpfs,memcpy", "48", true},
	{"tiobench", "seqread", "MB/s", SCHEMES ",tmpfs,memcpy", "48", true},
	{"tiobench", "randread", "MB/s", SCHEMES ",tmpfs,memcpy", "48", true},
	{"tiobench", "randwrite", "MB/s", SCHEMES ",tmpfs,memcpy", "48", true},
	{"names", "stat", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "open_close", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "missing", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "create_unlink", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "rename", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "readdir1000", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "stat_same", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "stat_onedir", "op/s", SCHEMES ",tmpfs", "2", false},
	{"names", "open_close_onedir", "op/s", SCHEMES ",tmpfs", "2", false},
	{"names", "missing_onedir", "op/s", SCHEMES ",tmpfs", "2", false},
	{"names", "create_unlink_onedir", "op/s", SCHEMES ",tmpfs", "2", false},
	{"names", "rename_onedir", "op/s", SCHEMES ",tmpfs", "2", false},
	{"names", "readdir1000_onedir", "op/s", SCHEMES ",tmpfs", "2", false},
	{"names", "open_close_owntable", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "create_unlink_owntable", "op/s", SCHEMES ",tmpfs", "1,2", false},
	{"names", "rename_owntable", "op/s", SCHEMES ",tmpfs", "1,2", false},
};

#define CASES (sizeof(plan_cases) / sizeof(plan_cases[0]))

/* Does the comma list hold the word? */
static bool list_has(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ',') && (p[n] == ',' || !p[n]))
			return true;
	return false;
}

struct bench_row *bench_plan_add_row(struct bench_plan *plan)
{
	if (plan->rows == plan->room) {
		size_t room = plan->room ? plan->room * 2 : 64;
		struct bench_row *row = realloc(plan->row, room * sizeof(*row));

		if (!row)
			return NULL;
		plan->row = row;
		plan->room = room;
	}
	memset(&plan->row[plan->rows], 0, sizeof(*plan->row));
	return &plan->row[plan->rows++];
}

/* Rows that one program call fills share a group number: same workload, engine, threads. */
static unsigned group_of(struct bench_plan *plan, const struct bench_row *row, bool grouped)
{
	for (size_t i = 0; grouped && i + 1 < plan->rows; i++) {
		const struct bench_row *r = &plan->row[i];

		if (!strcmp(r->workload, row->workload) && !strcmp(r->engine, row->engine) &&
		    r->threads == row->threads)
			return r->group;
	}
	return plan->groups++;
}

static int add_case_engine(struct bench_plan *plan, const struct plan_case *c, const char *engine,
			   unsigned threads)
{
	struct bench_row *row = bench_plan_add_row(plan);

	if (!row) {
		cli_error("out of memory");
		return EXIT_FAILED;
	}
	snprintf(row->workload, sizeof(row->workload), "%s", c->workload);
	snprintf(row->case_, sizeof(row->case_), "%s", c->case_);
	snprintf(row->unit, sizeof(row->unit), "%s", c->unit);
	snprintf(row->engine, sizeof(row->engine), "%s", engine);
	row->threads = threads;
	row->group = group_of(plan, row, c->grouped);
	return 0;
}

static int add_case_threads(struct bench_plan *plan, const struct plan_case *c, const char *wanted,
			    unsigned threads)
{
	char engines[256], *save = NULL;

	snprintf(engines, sizeof(engines), "%s", c->engines);
	for (char *e = strtok_r(engines, ",", &save); e; e = strtok_r(NULL, ",", &save)) {
		int status =
			wanted && !list_has(wanted, e) ? 0 : add_case_engine(plan, c, e, threads);

		if (status)
			return status;
	}
	return 0;
}

static int add_case(struct bench_plan *plan, const struct plan_case *c,
		    const struct bench_options *o)
{
	char threads[32], *save = NULL;
	int status = 0;

	for (unsigned i = 0; i < o->thread_counts && !status; i++)
		status = add_case_threads(plan, c, o->engines, o->threads[i]);
	if (o->thread_counts)
		return status;
	snprintf(threads, sizeof(threads), "%s", c->threads);
	for (char *t = strtok_r(threads, ",", &save); t && !status; t = strtok_r(NULL, ",", &save))
		status = add_case_threads(plan, c, o->engines, (unsigned)atoi(t));
	return status;
}

bool bench_plan_knows(const char *workload)
{
	for (size_t i = 0; i < CASES; i++)
		if (!strcmp(plan_cases[i].workload, workload))
			return true;
	return false;
}

static bool known_engine(const char *engine)
{
	for (size_t i = 0; i < CASES; i++)
		if (list_has(plan_cases[i].engines, engine))
			return true;
	return false;
}

static bool known_case(const char *workload, const char *case_)
{
	for (size_t i = 0; i < CASES; i++)
		if ((!strcmp(workload, "all") || !strcmp(workload, plan_cases[i].workload)) &&
		    !strcmp(case_, plan_cases[i].case_))
			return true;
	return false;
}

static int unknown_case(const char *workload, const char *case_)
{
	char known[512] = "";
	size_t n = 0;

	for (size_t i = 0; i < CASES && n < sizeof(known); i++)
		if (!strcmp(workload, "all") || !strcmp(workload, plan_cases[i].workload))
			n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? "," : "",
					      plan_cases[i].case_);
	return cli_usage("%s has no case '%s'; there are %s", workload, case_, known);
}

/* Every word of the user's lists must be known. */
static int check_lists(const struct bench_options *o)
{
	char list[512], *save = NULL;

	snprintf(list, sizeof(list), "%s", o->engines ? o->engines : "");
	for (char *e = strtok_r(list, ",", &save); e; e = strtok_r(NULL, ",", &save))
		if (!known_engine(e))
			return cli_usage(
				"there is no engine '%s'; there are %s,tmpfs,urcu,ck,memcpy", e,
				SCHEMES);
	snprintf(list, sizeof(list), "%s", o->cases ? o->cases : "");
	for (char *c = strtok_r(list, ",", &save); c; c = strtok_r(NULL, ",", &save))
		if (!known_case(o->workload, c))
			return unknown_case(o->workload, c);
	return 0;
}

/* tiobench: 48 x 100 MiB unless memory is short; shelf and tmpfs are never alive at once. */
static void fit_file_bytes(struct bench_plan *plan)
{
	struct sysinfo si;
	uint64_t available, wanted, largest = 0;

	for (size_t i = 0; i < plan->rows; i++)
		if (!strcmp(plan->row[i].workload, "tiobench") && plan->row[i].threads > largest)
			largest = plan->row[i].threads;
	if (!largest || sysinfo(&si))
		return;
	available = (uint64_t)(si.freeram + si.bufferram) * si.mem_unit / 2;
	wanted = largest * plan->file_bytes;
	if (wanted <= available)
		return;
	plan->file_bytes = available / largest / 4096 * 4096;
	if (plan->file_bytes < 4096)
		plan->file_bytes = 4096;
	cli_error("tiobench: memory is short, files are %llu KiB each instead of %llu KiB",
		  (unsigned long long)plan->file_bytes >> 10,
		  (unsigned long long)(wanted / largest) >> 10);
}

/* Beside the command in a build tree, or where they are installed, or SHELF_BENCH_DIR. */
static int find_programs(struct bench_plan *plan)
{
	static const char *const places[] = {"/../../bench", "/../libexec/shelf", ""};
	char exe[PATH_MAX], probe[PATH_MAX + 64];
	const char *env = getenv("SHELF_BENCH_DIR");
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (env) {
		snprintf(plan->programs, sizeof(plan->programs), "%s", env);
		return 0;
	}
	exe[n < 0 ? 0 : n] = 0;
	if ((slash = strrchr(exe, '/')))
		*slash = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(probe, sizeof(probe), "%s%s/files_borrow", exe, places[i]);
		if (access(probe, X_OK) == 0) {
			probe[strlen(probe) - strlen("/files_borrow")] = 0;
			snprintf(plan->programs, sizeof(plan->programs), "%.4000s", probe);
			return 0;
		}
	}
	cli_error(
		"the engine programs (files_borrow, ...) are not beside the command nor in ../libexec/shelf: "
		"build them with `make`, or name their directory in SHELF_BENCH_DIR");
	return EXIT_FAILED;
}

int bench_plan_make(struct bench_plan *plan, const struct bench_options *o)
{
	int status = check_lists(o);

	for (size_t i = 0; i < CASES && !status; i++) {
		const struct plan_case *c = &plan_cases[i];

		if (strcmp(o->workload, "all") && strcmp(o->workload, c->workload))
			continue;
		if (!o->cases || list_has(o->cases, c->case_))
			status = add_case(plan, c, o);
	}
	if (!status && !plan->rows)
		status = cli_usage("no engine of the list runs %s", o->workload);
	if (!status)
		status = find_programs(plan);
	if (!status)
		fit_file_bytes(plan);
	return status;
}

void bench_plan_free(struct bench_plan *plan)
{
	free(plan->row);
	plan->row = NULL;
	plan->rows = plan->room = 0;
}

/* SPDX-License-Identifier: MIT */
/* report.c - ls, df, stat, check: what is there and how it is. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <shelf/shelf.h>

#include "cli.h"
#include "runs.h"

#define PREFIX "shelf."
#define PAGE 4096u

struct names {
	char **name;
	size_t count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All shelves of the machine.  False after a message. */
static bool find_shelves(struct names *out)
{
	DIR *dir;
	struct dirent *e;

	if (*cli_shm_dir() != '/') {
		cli_error("SHELF_SHM_DIR is '%s'; set it to an absolute path, or unset it", cli_shm_dir());
		return false;
	}
	cli_clear_dead_runs(cli_shm_dir());
	dir = opendir(cli_shm_dir());
	if (!dir) {
		cli_error("%s: open directory: %s%s", cli_shm_dir(), strerror(errno),
			  getenv("SHELF_SHM_DIR") ? "; SHELF_SHM_DIR names it" : "");
		return false;
	}
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)))
			continue;
		out->name = realloc(out->name, (out->count + 1) * sizeof(char *));
		if (!out->name || !(out->name[out->count++] = strdup(e->d_name + strlen(PREFIX)))) {
			cli_error("out of memory");
			closedir(dir);
			return false;
		}
	}
	closedir(dir);
	if (out->count)
		qsort(out->name, out->count, sizeof(char *), by_name);
	return true;
}

static void free_names(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
}

bool cli_each_shelf(bool (*look_at)(const char *name, void *ctx), void *ctx)
{
	struct names names = {0};
	bool ok = find_shelves(&names);

	for (size_t i = 0; i < names.count; i++)
		if (!look_at(names.name[i], ctx))
			ok = false;
	free_names(&names);
	return ok;
}

struct view {
	const char *name;
	bool ok;
	char why[SHELF_WHY];
	struct shelf_counters c;
};

/* Attaches, reads the counters, detaches: one shelf at a time, as two may want the same range. */
static void look(const char *name, struct view *v)
{
	struct shelf *shelf;
	int err;

	memset(v, 0, sizeof(*v));
	v->name = name;
	if (cli_attach(name, SHELF_READ_ONLY, &shelf, v->why) < 0)
		return;
	err = shelf_counters(shelf, &v->c);
	v->ok = err == 0;
	if (err)
		snprintf(v->why, sizeof(v->why), "counters: %s", strerror(-err));
	shelf_detach(shelf);
}

static void print_json(const struct view *v, bool first)
{
	fputs(first ? "\n{\"name\":" : ",\n{\"name\":", stdout);
	json_string(stdout, v->name);
	if (!v->ok) {
		fputs(",\"error\":", stdout);
		json_string(stdout, v->why);
		fputs("}", stdout);
		return;
	}
	printf(",\"size\":%" PRIu64 ",\"used\":%" PRIu64 ",\"committed\":%" PRIu64
	       ",\"inodes\":%" PRIu64 ",\"files_open\":%" PRIu64 ",\"tasks\":%" PRIu64
	       ",\"threads\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"retired_waiting\":%" PRIu64
	       ",\"calls_past\":%" PRIu64 ",\"poisoned\":%s,\"poison_reason\":",
	       v->c.size_pages * PAGE, v->c.used_pages * PAGE, v->c.committed_pages * PAGE,
	       v->c.inodes, v->c.files_open, v->c.tasks, v->c.threads, v->c.epoch,
	       v->c.retired_waiting, v->c.calls_past, v->c.poisoned ? "true" : "false");
	json_string(stdout, v->c.poison_reason);
	fputs("}", stdout);
}

static void print_ls(const struct view *v)
{
	char size[16], used[16];

	if (!v->ok) {
		printf("%-24s %s\n", v->name, v->why);
		return;
	}
	cli_format_size(v->c.size_pages * PAGE, size);
	cli_format_size(v->c.used_pages * PAGE, used);
	printf("%-24s %8s %8s %10" PRIu64 " %6" PRIu64 "%s\n", v->name, size, used, v->c.inodes,
	       v->c.tasks, v->c.poisoned ? "  DAMAGED" : "");
}

static void print_df(const struct view *v)
{
	uint64_t k = PAGE / 1024, size = v->c.size_pages * k, used = v->c.used_pages * k;

	if (!v->ok)
		printf("%-24s %s\n", v->name, v->why);
	else
		printf("%-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %3" PRIu64
		       "%%\n",
		       v->name, size, used, size - used, v->c.committed_pages * k,
		       size ? (used * 100 + size - 1) / size : 0);
}

static void print_stat(const struct view *v)
{
	char size[16], used[16], committed[16];

	if (!v->ok) {
		cli_error("%s", v->why);
		return;
	}
	cli_format_size(v->c.size_pages * PAGE, size);
	cli_format_size(v->c.used_pages * PAGE, used);
	cli_format_size(v->c.committed_pages * PAGE, committed);
	printf("name              %s\n"
	       "size              %s\n"
	       "used              %s\n"
	       "taken from RAM    %s\n"
	       "inodes            %" PRIu64 "\n"
	       "open files        %" PRIu64 "\n"
	       "tasks             %" PRIu64 "\n"
	       "threads           %" PRIu64 "\n"
	       "epoch             %" PRIu64 "\n"
	       "waiting for it    %" PRIu64 " objects\n"
	       "state             %s%s\n",
	       v->name, size, used, committed, v->c.inodes, v->c.files_open, v->c.tasks,
	       v->c.threads, v->c.epoch, v->c.retired_waiting, v->c.poisoned ? "damaged: " : "good",
	       v->c.poison_reason);
	if (v->c.calls_past)
		printf("past the shelf    %" PRIu64 " system calls, told by shelf run --strict\n", v->c.calls_past);
}

typedef void print_fn(const struct view *v);

static int show(const struct names *names, bool json, const char *title, print_fn *print)
{
	int status = EXIT_OK;
	struct view v;

	if (json)
		fputs("[", stdout);
	else if (title && names->count)
		puts(title);
	for (size_t i = 0; i < names->count; i++) {
		look(names->name[i], &v);
		if (json)
			print_json(&v, i == 0);
		else
			print(&v);
		if (!v.ok)
			status = EXIT_FAILED;
	}
	if (json)
		fputs("\n]\n", stdout);
	return status;
}

/* Options and names common to ls, df, stat. */
static int list_command(int argc, char **argv, bool need_name, const char *title, print_fn *print)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{NULL, 0, NULL, 0}};
	struct names names = {0};
	bool json = false;
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c != 'j')
			return cli_bad_option(argc, argv);
		json = true;
	}
	if (optind < argc) {
		names.name = argv + optind;
		names.count = (size_t)(argc - optind);
	} else if (need_name) {
		return cli_usage("a name is wanted; `shelf ls` lists the shelves");
	} else if (!find_shelves(&names)) {
		return EXIT_FAILED;
	}
	status = show(&names, json, title, print);
	if (optind == argc)
		free_names(&names);
	return status;
}

static int ls_command(int argc, char **argv)
{
	return list_command(argc, argv, false,
			    "NAME                         SIZE     USED     INODES  TASKS",
			    print_ls);
}

static int df_command(int argc, char **argv)
{
	return list_command(
		argc, argv, false,
		"NAME                        1K-blocks         Used    Available    From RAM Use%",
		print_df);
}

static int stat_command(int argc, char **argv)
{
	return list_command(argc, argv, true, NULL, print_stat);
}

const struct command command_ls = {
	.name = "ls",
	.summary = "list shelves",
	.run = ls_command,
	.usage =
		"usage: shelf ls [--json] [NAME...]\n"
		"\n"
		"Lists the shelves of this machine, or those named: size, used space, inodes, tasks. A shelf that cannot be\n"
		"attached is listed with the reason.\n"
		"\n"
		"  --json   as a list of objects\n"
		"\n"
		"Exit status: 0, 1 one could not be looked at, 2 usage.\n",
};

const struct command command_df = {
	.name = "df",
	.summary = "space of shelves",
	.run = df_command,
	.usage =
		"usage: shelf df [--json] [NAME...]\n"
		"\n"
		"Space of all shelves or those named, in KiB: the limit, what files use, what is left, and what has been\n"
		"taken from RAM so far.\n"
		"\n"
		"  --json   as a list of objects, in bytes\n"
		"\n"
		"Exit status: 0, 1 one could not be looked at, 2 usage.\n",
};

const struct command command_stat = {
	.name = "stat",
	.summary = "counters of a shelf",
	.run = stat_command,
	.usage =
		"usage: shelf stat [--json] NAME...\n"
		"\n"
		"Counters of each shelf: space, inodes, open files, tasks, threads, the epoch and what waits for it, and\n"
		"whether damage was found.\n"
		"\n"
		"  --json   as a list of objects\n"
		"\n"
		"Exit status: 0, 1 one could not be looked at, 2 usage.\n",
};

/* ---- check --------------------------------------------------------------------------- */

static void say_fault(void *ctx, const char *fault)
{
	progress_clear();
	printf("%s: %s\n", (const char *)ctx, fault);
}

static void say_progress(void *ctx, uint64_t done, uint64_t total)
{
	progress_show("%s: %" PRIu64 " of %" PRIu64 " looked at", (const char *)ctx, done, total);
}

static void print_result(const char *name, const struct shelf_check_report *r, bool repair)
{
	uint64_t n = r->faults;

	printf("%s: %" PRIu64 " fault%s", name, n, n == 1 ? "" : "s");
	if (repair && r->faults)
		printf(", %" PRIu64 " mended", r->mended);
	if (r->left)
		printf(", %" PRIu64 " left over by dead processes%s", r->left,
		       repair ? " and taken back" : "; --repair takes them back");
	if (!r->alone)
		printf("; others have it, so what may be left over was not looked for");
	putchar('\n');
}

static int check_one(const char *name, bool repair)
{
	struct shelf_check_options o = {.flags = repair ? SHELF_VERIFY_REPAIR : 0, .say = say_fault, .progress = say_progress,
					.ctx = (void *)(uintptr_t)name};
	struct shelf_check_report r;
	char why[SHELF_WHY];
	struct shelf *shelf;
	int err;

	if (cli_attach(name, SHELF_TO_CHECK, &shelf, why) < 0) {
		cli_error("%s", why);
		return EXIT_FAILED;
	}
	err = shelf_verify(shelf, &o, &r);
	progress_clear();
	shelf_detach(shelf);
	if (err) {
		cli_error("%s: %s", name, strerror(-err));
		return EXIT_FAILED;
	}
	print_result(name, &r, repair);
	if (repair && !r.alone) {
		cli_error("%s: repairing needs the shelf alone; end the programs that use it (`shelf stat` counts their threads)", name);
		return EXIT_FAILED;
	}
	return r.faults > r.mended ? EXIT_FAILED : EXIT_OK;
}

static int check_command(int argc, char **argv)
{
	static const struct option options[] = {{"repair", no_argument, NULL, 'r'}, {NULL, 0, NULL, 0}};
	int c, status = EXIT_OK;
	bool repair = false;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c != 'r')
			return cli_bad_option(argc, argv);
		repair = true;
	}
	if (optind == argc)
		return cli_usage("a name is wanted; `shelf ls` lists the shelves");
	for (; optind < argc; optind++)
		if (check_one(argv[optind], repair))
			status = EXIT_FAILED;
	return status;
}

const struct command command_check = {
	.name = "check",
	.summary = "verify a shelf's structures",
	.run = check_command,
	.usage =
		"usage: shelf check [--repair] NAME...\n"
		"\n"
		"Closes what dead processes had open, then verifies names, link counts, open files, counts of references, pages,\n"
		"attributes, locks and the allocator of each shelf against one another and tells every fault it finds. Other\n"
		"processes should be at rest: what they are in the middle of may be told as a fault. When no other has the shelf,\n"
		"what killed calls left over is told too: things counted too often, objects and pages that are nobody's.\n"
		"Damage that cannot be mended poisons the shelf: calls give EIO, and `shelf stat` tells the reason.\n"
		"\n"
		"  --repair   take back what is left over, put right what follows from other things (counts, lists, maps of\n"
		"             what is free), free locks that are nobody's; no other process may have the shelf\n"
		"\n"
		"Exit status: 0 no faults, or all mended; 1 faults, or the shelf cannot be attached or be had alone; 2 usage.\n",
};

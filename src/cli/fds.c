/* SPDX-License-Identifier: MIT */
/*
 * fds.c - `shelf fds`: open descriptors, as lsof shows them.
 *
 * The shelf is attached for reading, so that nothing in it changes by being looked at. The tables of other
 * processes are read in one section each: a number that is opened or closed meanwhile is there or not, and each line
 * is one file's.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "cli.h"

#define OWN_NUMBERS (1 << 23) /* from here on numbers are the runtime's of `shelf run` */
#define WATCH_NUMBERS (OWN_NUMBERS + (1 << 22)) /* and from here on they stand beside an inotify descriptor of the kernel's */

struct row {
	uint32_t pid;
	int fd;
	bool cloexec, deleted;
	uint32_t type, flags;
	uint64_t pos;
	struct attr attr;
	char path[PATH_LIMIT + 16];
};

struct view {
	const char *shelf;
	uint32_t pid; /* 0: all */
	bool json;
	bool any; /* a line was printed */
	struct row *rows;
	size_t count, room;
};

/* ---- collecting ---------------------------------------------------------------------------- */

static struct row *new_row(struct view *v)
{
	if (v->count == v->room) {
		size_t room = v->room ? 2 * v->room : 64;
		struct row *rows = realloc(v->rows, room * sizeof(*rows));

		if (!rows)
			return NULL;
		v->rows = rows;
		v->room = room;
	}
	return memset(&v->rows[v->count++], 0, sizeof(struct row));
}

static void fill_inode(struct row *row, struct use *u)
{
	char *at = row->path;
	int err;

	attr_read_epoch(u->w.self, u->f->inode, &row->attr);
	err = ramfs_path_epoch(&u->w, u->f->inode, load_acquire(&u->w.fs->root), row->path, PATH_LIMIT, &at); /* pairs with fs_set_root */
	row->deleted = err == -ENOENT;
	if (err)
		*row->path = '\0';
	else
		memmove(row->path, at, strlen(at) + 1);
}

/* In a section.  False: out of memory. */
static bool take_number(struct view *v, struct shelf_task *t, int fd)
{
	struct row *row;
	struct use u;

	if (use_begin(&u, t, fd, true))
		return true; /* the kernel's, or closed by now */
	if (fd >= OWN_NUMBERS && fd < WATCH_NUMBERS && u.f->head.type != FD_TYPE_MAP) {
		use_end(&u); /* what a map was made of; the map is told */
		return true;
	}
	row = new_row(v);
	if (row) {
		row->pid = task_owner_pid(load_relaxed(&t->owner)); /* a number */
		row->fd = fd < WATCH_NUMBERS ? fd : fd - WATCH_NUMBERS;
		row->type = u.f->head.type;
		row->flags = load_relaxed(&u.f->flags); /* flags */
		row->pos = load_relaxed(&u.f->pos); /* of some moment */
		row->cloexec = fd_get_bits(u.w.self, u.w.files, fd) > 0;
		if (file_has_inode(u.f))
			fill_inode(row, &u);
	}
	use_end(&u);
	return row;
}

static bool take_task(struct view *v, struct shelf_task *t)
{
	bool ok = true;

	for (int fd = task_next_number(t, 0); ok && fd >= 0; fd = task_next_number(t, fd + 1))
		ok = take_number(v, t, fd);
	return ok;
}

/* False: out of memory. */
static bool take_tasks(struct view *v, struct slot *self)
{
	struct shelf_task *t = NULL;
	bool ok = true;

	epoch_enter(self);
	while (ok && (t = task_next_epoch(self, t))) {
		uint32_t pid = task_owner_pid(load_relaxed(&t->owner)); /* a number */

		if (load_acquire(&t->state) == TASK_LIVE && (!v->pid || v->pid == pid)) /* pairs with task_start: it is whole */
			ok = take_task(v, t);
	}
	epoch_exit(self);
	return ok;
}

/* ---- printing --------------------------------------------------------------------------------- */

static const char *type_text(const struct row *row)
{
	if (row->type == FD_TYPE_INOTIFY)
		return "inotify";
	switch (row->attr.mode & S_IFMT) {
	case S_IFREG:
		return "REG";
	case S_IFDIR:
		return "DIR";
	case S_IFLNK:
		return "LINK";
	case S_IFIFO:
		return "FIFO";
	case S_IFSOCK:
		return "unix";
	case S_IFCHR:
		return "CHR";
	case S_IFBLK:
		return "BLK";
	}
	return "OTHER";
}

/* lsof's letters: r, w, u for both; - for O_PATH. */
static char mode_letter(const struct row *row)
{
	if (row->flags & O_PATH || row->type == FD_TYPE_PATH)
		return '-';
	return "rwu-"[row->flags & O_ACCMODE];
}

static void flags_text(const struct row *row, char *out, size_t size)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {{O_APPEND, "AP"}, {O_NONBLOCK, "NB"}, {O_DIRECT, "DIR"}, {O_NOATIME, "NA"}, {O_SYNC, "SY"}};
	int n = 0;

	*out = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if ((row->flags & names[i].flag) == names[i].flag)
			n += snprintf(out + n, size - (size_t)n, "%s%s", n ? "," : "", names[i].name);
	if (row->cloexec)
		n += snprintf(out + n, size - (size_t)n, "%sCX", n ? "," : "");
	if (!n)
		snprintf(out, size, "-");
}

/* The process's name, as ps shows it. */
static void command_of(uint32_t pid, char out[32])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(out, 32, f))
		snprintf(out, 32, "?");
	if (f)
		fclose(f);
	out[strcspn(out, "\n")] = '\0';
	for (char *p = out; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			*p = '?';
}

/* Nothing in a name may steer a terminal or look like another line. */
static void print_name(const struct row *row)
{
	for (const char *p = *row->path ? row->path : "-"; *p; p++)
		putchar((unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p);
	puts(row->deleted ? " (deleted)" : "");
}

static void print_text(const struct view *v, const struct row *row)
{
	char command[32], flags[64], number[24];

	command_of(row->pid, command);
	flags_text(row, flags, sizeof(flags));
	if (row->fd >= OWN_NUMBERS)
		snprintf(number, sizeof(number), "run%d", row->fd - OWN_NUMBERS);
	else
		snprintf(number, sizeof(number), "%d%c", row->fd, mode_letter(row));
	if (!v->any)
		puts("COMMAND            PID    FD  TYPE FLAGS           OFFSET         SIZE      INODE SHELF:NAME");
	printf("%-15s %6u %5s %5s %-8s %13" PRIu64 " %12" PRIu64 " %10" PRIu64 " %s:", command, row->pid, number, type_text(row),
	       flags, row->pos, row->attr.size, row->attr.ino, v->shelf);
	print_name(row);
}

static void print_json(const struct view *v, const struct row *row)
{
	char command[32];

	command_of(row->pid, command);
	fputs(v->any ? ",\n{\"shelf\":" : "\n{\"shelf\":", stdout);
	json_string(stdout, v->shelf);
	fputs(",\"command\":", stdout);
	json_string(stdout, command);
	printf(",\"pid\":%u,\"fd\":%d,\"own\":%s,\"mode\":\"%c\",\"type\":\"%s\",\"flags\":%u,\"cloexec\":%s,\"offset\":%" PRIu64
	       ",\"size\":%" PRIu64 ",\"inode\":%" PRIu64 ",\"deleted\":%s,\"path\":",
	       row->pid, row->fd, row->fd >= OWN_NUMBERS ? "true" : "false", mode_letter(row), type_text(row), row->flags,
	       row->cloexec ? "true" : "false", row->pos, row->attr.size, row->attr.ino, row->deleted ? "true" : "false");
	json_string(stdout, row->path);
	fputs("}", stdout);
}

static int by_pid_and_number(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : x->fd < y->fd ? -1 : x->fd > y->fd;
}

static void print_rows(struct view *v)
{
	if (v->count)
		qsort(v->rows, v->count, sizeof(*v->rows), by_pid_and_number);
	for (size_t i = 0; i < v->count; i++) {
		(v->json ? print_json : print_text)(v, &v->rows[i]);
		v->any = true;
	}
	v->count = 0;
}

/* ---- the command --------------------------------------------------------------------------------- */

static bool look(const char *name, void *ctx)
{
	struct view *v = ctx;
	char why[SHELF_WHY];
	struct shelf_task *t;
	struct shelf *shelf;
	int err = cli_attach(name, SHELF_READ_ONLY, &shelf, why);

	if (err) {
		cli_error("%s", why);
		return false;
	}
	v->shelf = name;
	err = shelf_task_create(shelf, NULL, &t);
	if (!err) {
		err = take_tasks(v, task_slot(t)) ? 0 : -ENOMEM;
		shelf_task_exit(t);
	}
	shelf_detach(shelf);
	print_rows(v);
	if (err)
		cli_error("%s: %s", name, strerror(-err));
	return !err;
}

static int fds_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"name", required_argument, NULL, 'n'},
		{"json", no_argument, NULL, 'j'},
		{NULL, 0, NULL, 0},
	};
	const char *name = NULL;
	struct view v = {0};
	uint64_t pid = 0;
	bool ok;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n')
			name = optarg;
		else if (c == 'j')
			v.json = true;
		else
			return cli_bad_option(argc, argv);
	}
	if (optind + 1 < argc)
		return cli_usage("one process at a time");
	if (optind < argc && !cli_parse_count(argv[optind], 1, 1u << 22, &pid))
		return cli_usage("'%s': a process id is wanted", argv[optind]);
	v.pid = (uint32_t)pid;
	if (v.json)
		fputs("[", stdout);
	ok = name ? look(name, &v) : cli_each_shelf(look, &v);
	if (v.json)
		fputs("\n]\n", stdout);
	free(v.rows);
	if (ok && v.pid && !v.any && !v.json)
		cli_error("process %u has nothing open in a shelf", v.pid);
	return ok && (v.any || !v.pid) ? EXIT_OK : EXIT_FAILED;
}

const struct command command_fds = {
	.name = "fds",
	.summary = "open descriptors in shelves",
	.run = fds_command,
	.usage =
		"usage: shelf fds [--name NAME] [--json] [PID]\n"
		"\n"
		"Lists what processes have open in all shelves, or in one, a line for each descriptor: command, process,\n"
		"number with r, w, u (both) or - (O_PATH), type, flags (AP append, NB non-blocking, DIR direct, NA no access\n"
		"times, SY synchronous, CX close-on-exec), offset, size, inode, name. Numbers run0, run1, ... are those of\n"
		"`shelf run` itself.\n"
		"\n"
		"  --name NAME   this shelf only\n"
		"  --json        as a list of objects\n"
		"\n"
		"Exit status: 0, 1 a shelf could not be looked at, or PID has nothing open, 2 usage.\n",
};

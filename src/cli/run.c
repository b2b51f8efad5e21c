/* SPDX-License-Identifier: MIT */
/*
 * run.c - `shelf run`: a program and its children on a shelf.
 *
 * Makes or finds the shelf, tells the preloaded library where it is by two environment variables, and waits. The
 * program's own exit status, or the signal that ended it, becomes ours. What processes left behind that were killed is
 * taken apart when the program ends, and whenever another process waits for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shelf/shelf.h>

#include "cli.h"
#include "run.h"
#include "run/program.h"

#define LIBRARY "libshelf-run.so"
#define EXIT_NOT_STARTED 126
#define EXIT_NOT_FOUND 127

struct run {
	const char *name;
	const char *at;
	struct shelf_options options;
	bool keep; /* --name: the shelf stays */
	bool strict;
	char scratch[64];
	char prefix[PATH_MAX];
	char library[PATH_MAX];
	char tables[PATH_MAX];
};

/* ---- what is asked for ---------------------------------------------------------------------- */

static int run_options(struct run *r, int argc, char **argv)
{
	static const struct option options[] = {
		{"name", required_argument, NULL, 'n'},
		{"size", required_argument, NULL, 's'},
		{"at", required_argument, NULL, 'a'},
		{"strict", no_argument, NULL, 'S'},
		{NULL, 0, NULL, 0},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			r->name = optarg;
			r->keep = true;
			break;
		case 'a':
			r->at = optarg;
			break;
		case 'S':
			r->strict = true;
			break;
		case 's':
			if (!cli_parse_size(optarg, &r->options.size))
				return cli_usage("--size '%s': a size such as 512M, 4G or 25%% is wanted", optarg);
			break;
		default:
			return cli_bad_option(argc, argv);
		}
	}
	if (optind == argc)
		return cli_usage("a program is wanted");
	return EXIT_OK;
}

/* ---- the prefix -------------------------------------------------------------------------------- */

static bool directory_is_empty(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	bool empty = true;

	while (dir && empty && (e = readdir(dir)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (dir)
		closedir(dir);
	return empty;
}

/* The directory that stands for the shelf must be there and empty: programs see the shelf in its place. */
static bool find_prefix(struct run *r)
{
	struct stat st;

	if (mkdir(r->at, 0555) && errno != EEXIST) {
		cli_error("%s: cannot be made (%s); --at DIR names an empty directory to show the shelf at", r->at,
			  strerror(errno));
		return false;
	}
	if (!realpath(r->at, r->prefix) || stat(r->prefix, &st)) {
		cli_error("%s: %s", r->at, strerror(errno));
		return false;
	}
	if (!S_ISDIR(st.st_mode) || !r->prefix[1]) {
		cli_error("%s: an empty directory is wanted", r->at);
		return false;
	}
	if (!directory_is_empty(r->prefix)) {
		cli_error("%s: is not empty; --at DIR names an empty directory to show the shelf at", r->at);
		return false;
	}
	return true;
}

/* ---- the library and its tables ------------------------------------------------------------------ */

bool run_find_library(char library[PATH_MAX])
{
	static const char *const beside[] = {"/../run/" LIBRARY, "/../lib/" LIBRARY, "/../lib/x86_64-linux-gnu/" LIBRARY, "/../lib64/" LIBRARY};
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	if (strrchr(self, '/'))
		*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", self, beside[i]);
		if (realpath(path, library) && !access(library, R_OK) && !strpbrk(library, ": "))
			return true;
	}
	cli_error("%s is not installed beside %s, where the loader can find it", LIBRARY, self);
	return false;
}

/* A folder of our own for the site tables; without one each start is slower, no more. */
void run_find_tables(char tables[PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *given = getenv("SHELF_RUN_TABLES");

	*tables = '\0';
	if (given) {
		snprintf(tables, PATH_MAX, "%s", given);
		return;
	}
	if (cache && *cache == '/')
		snprintf(tables, PATH_MAX, "%.*s/shelf", PATH_MAX - 16, cache);
	else if (home && *home == '/')
		snprintf(tables, PATH_MAX, "%.*s/.cache/shelf", PATH_MAX - 16, home);
	else
		return;
	*strrchr(tables, '/') = '\0';
	mkdir(tables, 0700);
	tables[strlen(tables)] = '/';
	mkdir(tables, 0700);
}

/* ---- the shelf -------------------------------------------------------------------------------------- */

/* Made or found, and let go: while we wait nobody but the program uses it. */
static bool find_shelf(struct run *r)
{
	struct shelf_task *keeper;
	struct shelf *shelf = NULL;
	char why[SHELF_WHY];
	int err = -ENOENT;

	if (r->keep)
		err = shelf_attach(r->name, 0, &shelf, why);
	if (!r->keep) {
		snprintf(r->scratch, sizeof(r->scratch), "run-%ld", (long)getpid());
		r->name = r->scratch;
	}
	if (err == -ENOENT)
		err = shelf_create(r->name, &r->options, &shelf, why);
	if (err) {
		cli_error("%s", why);
		return false;
	}
	/* Keeps what is in flight between processes for as long as we live, attached or not: preload/carry.c. */
	err = shelf_task_create(shelf, NULL, &keeper);
	if (err)
		cli_error("%s: no room for a task: %s", r->name, strerror(-err));
	shelf_detach(shelf);
	return !err;
}

static bool put_variable(const char *name, const char *value)
{
	if (!setenv(name, value, 1))
		return true;
	cli_error("%s: %s", name, strerror(errno));
	return false;
}

static bool set_environment(const struct run *r)
{
	const char *theirs = getenv("LD_PRELOAD");
	char *preload, *state;
	bool ok;

	if (asprintf(&preload, "%s%s%s", r->library, theirs && *theirs ? ":" : "", theirs ? theirs : "") < 0 ||
	    asprintf(&state, "%c%ld:%s%s", r->strict ? '4' : '0', (long)getpid(), r->name, r->prefix) < 0)
		return false;
	ok = put_variable("LD_PRELOAD", preload) && put_variable("SHELF_RUN", state);
	if (ok && getenv("SHELF_SHM_DIR"))
		ok = put_variable("SHELF_RUN_DIR", getenv("SHELF_SHM_DIR"));
	if (ok && *r->tables)
		ok = put_variable("SHELF_RUN_TABLES", r->tables);
	free(preload);
	free(state);
	return ok;
}

/* ---- the program --------------------------------------------------------------------------------------- */

/* The file that execvp() will take for NAME; false: there is none, as it will say. */
static bool find_program(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) < (int)size;
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		snprintf(path, size, "%.*s%s%s", (int)(end - dirs), dirs, end > dirs ? "/" : "./", name);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

static long host_read(const struct program_file *f, void *buf, size_t n, off_t at)
{
	return pread(f->fd, buf, n, at);
}

static long host_stat(const struct program_file *f, struct stat *st)
{
	return fstat(f->fd, st);
}

/* What the program's own exec refuses (preload/exec.c) is refused for the first one too. */
static bool may_start(const char *name)
{
	struct program_file f = {host_read, host_stat, -1};
	struct program_head head;
	const char *why = NULL;
	char path[PATH_MAX];

	if (find_program(name, path, sizeof(path)))
		f.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f.fd < 0)
		return true; /* exec says what is wrong */
	why = program_refusal(program_look(&f, path, &head));
	if (why)
		cli_error("%s %s", path, why);
	close(f.fd);
	return !why;
}

static int start_failed(const char *program)
{
	int err = errno;

	cli_error("%s: %s", program, strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_STARTED;
}

/* Keys reach the program as well: it decides, we wait for it. */
static void leave_keys_to_program(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return W_EXITCODE(EXIT_FAILED, 0);
	return status;
}

/* What ended the program ends us, without another core file. */
static int pass_on(int status)
{
	struct rlimit none = {0, 0};

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* A script without "#!", as execvp() starts it. */
static int spawn_by_shell(pid_t *pid, char **argv)
{
	char path[PATH_MAX], **args;
	size_t n = 0;
	int err;

	while (argv[n])
		n++;
	args = calloc(n + 2, sizeof(*args));
	if (!args)
		return ENOMEM;
	if (!find_program(argv[0], path, sizeof(path)))
		path[0] = '\0';
	args[0] = (char *)(uintptr_t)"/bin/sh";
	args[1] = path;
	memcpy(args + 2, argv + 1, (n - 1) * sizeof(*args));
	err = posix_spawn(pid, args[0], NULL, NULL, args, environ);
	free(args);
	return err;
}

/* Not fork(): a copy of our page tables would cost more than all else here. */
static int run_program(struct run *r, char **argv)
{
	pid_t pid;

	if (!may_start(argv[0]) || !set_environment(r))
		return W_EXITCODE(EXIT_NOT_STARTED, 0);
	errno = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (errno == ENOEXEC)
		errno = spawn_by_shell(&pid, argv);
	if (errno)
		return W_EXITCODE(start_failed(argv[0]), 0);
	leave_keys_to_program();
	return wait_for(pid);
}

/* A shelf that stays: attaching once more closes what the dead had open. */
static void clean_up(struct run *r)
{
	struct shelf_task *keeper;
	struct shelf *shelf;
	char why[SHELF_WHY];

	if (!r->keep) {
		cli_remove_shelf(r->name, why);
		return;
	}
	cli_remove_carriers(r->name);
	if (shelf_attach(r->name, 0, &shelf, NULL))
		return;
	if (!shelf_task_find(shelf, getpid(), &keeper))
		shelf_task_exit(keeper);
	shelf_detach(shelf);
}

static int run_command(int argc, char **argv)
{
	struct run r = {.at = "/shelf", .options = {.uid = (uint32_t)-1, .gid = (uint32_t)-1}};
	int status = run_options(&r, argc, argv);

	if (status != EXIT_OK)
		return status;
	if (getenv("SHELF_RUN")) {
		cli_error("this process runs on a shelf already; a shelf in a shelf is not supported");
		return EXIT_FAILED;
	}
	if (!run_find_library(r.library) || !find_prefix(&r) || !find_shelf(&r))
		return EXIT_NOT_STARTED;
	run_find_tables(r.tables);
	status = run_program(&r, argv + optind);
	clean_up(&r);
	return pass_on(status);
}

const struct command command_run = {
	.name = "run",
	.summary = "run a program on a shelf",
	.run = run_command,
	.usage =
		"usage: shelf run [--name NAME] [--size SIZE] [--at DIR] [--strict] [--] PROGRAM [ARGUMENT...]\n"
		"\n"
		"Runs PROGRAM with a shelf in place of the empty directory DIR. The program and its children use the files\n"
		"there without system calls; all other files are the kernel's as before.\n"
		"\n"
		"  --name NAME   a shelf that stays, made if it does not exist; without it a fresh one, removed at the end\n"
		"  --size SIZE   of a shelf that is made: bytes, or with K, M, G, T, or a percentage of RAM (50%)\n"
		"  --at DIR      where programs see it (/shelf); an empty directory, made if it can be\n"
		"  --strict      for debugging: tell of each system call that reaches the kernel past the shelf and\n"
		"                concerns it; slow\n"
		"\n"
		"Statically linked programs and programs with other rights than their caller's are not started.\n"
		"\n"
		"Exit status: the program's own, or its signal; 126 it or the shelf could not be had, 127 no such program.\n",
};

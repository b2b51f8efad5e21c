/* SPDX-License-Identifier: MIT */
/*
 * run.c - `shelf run`: a program and its children on a shelf.
 *
 * Makes or finds the shelf, tells the preloaded library where it is by its environment, and waits. The
 * program's own exit status, or the signal that ended it, becomes ours. What processes left behind that were killed is
 * taken apart when the program ends, and whenever another process waits for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/dir_each.h"
#include "base/syscall.h"
#include "base/tmpfs.h"
#include "cli/nodes.h"
#include "cli/places.h"
#include "cli/runs.h"
#include "front.h"
#include "run/alone/libc.h"
#include "run/library.h"
#include "run/program.h"
#include "run/promise.h"

/* ---- the prefix -------------------------------------------------------------------------------- */

static bool no_name(void *ctx, long dir, const char *name)
{
	(void)ctx, (void)dir, (void)name;
	return false;
}

static bool directory_is_empty(long dir)
{
	return dir_each(dir, no_name, NULL) == 0;
}

static long open_prefix(const char *at)
{
	return sys_call3(SYS_open, (long)at, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

/* Its canonical path. */
static bool spell_prefix(struct run *r, long dir)
{
	char link[64];
	long n;

	snprintf(link, sizeof(link), "/proc/self/fd/%ld", dir);
	n = sys_call3(SYS_readlink, (long)link, (long)r->prefix, sizeof(r->prefix) - 1);
	r->prefix[n > 0 ? n : 0] = '\0';
	return n > 0 && *r->prefix == '/';
}

static bool check_prefix(struct run *r, long dir)
{
	if (!spell_prefix(r, dir)) {
		front_error("%s: cannot be read for its own path; is /proc mounted?", r->at);
		return false;
	}
	if (!r->prefix[1]) {
		front_error("%s: an empty directory is wanted", r->at);
		return false;
	}
	if (!directory_is_empty(dir)) {
		front_error("%s: is not empty; --at DIR names an empty directory to show the shelf at", r->at);
		return false;
	}
	return true;
}

/* The directory that stands for the shelf must be there and empty: programs see the shelf in its place. */
static bool find_prefix(struct run *r)
{
	long err, dir = open_prefix(r->at);
	bool ok;

	if (dir == -ENOENT) {
		err = sys_call3(SYS_mkdir, (long)r->at, 0555, 0);
		if (err && err != -EEXIST) {
			front_error("%s: cannot be made (%s); --at DIR names an empty directory to show the shelf at", r->at,
				    front_reason(err));
			return false;
		}
		dir = open_prefix(r->at);
	}
	if (dir < 0) {
		front_error("%s: %s", r->at, dir == -ENOTDIR ? "an empty directory is wanted" : front_reason(dir));
		return false;
	}
	ok = check_prefix(r, dir);
	sys_call3(SYS_close, dir, 0, 0);
	return ok;
}

static bool find_library(struct run *r)
{
	char here[PATH_MAX];

	if (place_library(r->library))
		return true;
	place_here(here);
	front_error("libshelf-run.so is not installed beside %s, where the loader can find it", here);
	return false;
}

/* ---- the shelf -------------------------------------------------------------------------------------- */

static int promise_of(const struct run *r, char path[PROMISE_PATH_MAX])
{
	return promise_path(path, libc_env(r->envp, "SHELF_SHM_DIR"), r->name);
}

/* A file that is ours as long as we live.  -EEXIST: somebody has the name, or takes us for dead; another one will do. */
static long promise_open(const char *path)
{
	struct stat st;
	long fd = sys_call3(SYS_open, (long)path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return fd;
	if (promise_hold(fd) == -EAGAIN || sys_call3(SYS_fstat, fd, (long)&st, 0) || !st.st_nlink) {
		sys_call3(SYS_close, fd, 0, 0);
		return -EEXIST;
	}
	if (!sys_call3(SYS_fchmod, fd, 0600, 0)) /* whatever the umask took away */
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	sys_call3(SYS_unlink, (long)path, 0, 0);
	return -EPERM;
}

/* Others may have our pid: in another pid namespace, or of a run whose remains are still there. */
static void name_scratch(struct run *r)
{
	uint32_t random = 0;

	sys_call3(SYS_getrandom, (long)&random, sizeof(random), 0);
	snprintf(r->scratch, sizeof(r->scratch), "run-%ld-%x", sys_call3(SYS_getpid, 0, 0, 0), random);
	r->name = r->scratch;
}

/* Who asks for a size learns at once whether it can be had; and where no promise can be given nothing can. */
static void promise_shelf(struct run *r)
{
	const char *in = promise_dir(libc_env(r->envp, "SHELF_SHM_DIR"));
	bool fits = *in == '/' && tmpfs_is(in); /* else find_shelf() says why not */
	char path[PROMISE_PATH_MAX];
	long fd = -EEXIST;

	for (int tries = 0; tries < 16 && fd == -EEXIST; tries++) {
		name_scratch(r);
		fd = fits && promise_of(r, path) < PROMISE_PATH_MAX ? promise_open(path) : -ENAMETOOLONG;
	}
	r->promised = fd >= 0 && !r->options.size;
}

void front_make(const struct run *r)
{
	struct shelf *shelf;
	char why[SHELF_WHY];

	if (r->promised && !promise_attach(libc_env(r->envp, "SHELF_SHM_DIR"), r->name, &shelf, why))
		shelf_detach(shelf);
}

/* Made or found, and let go: while we wait nobody but the program uses it. */
static bool find_shelf(struct run *r)
{
	struct shelf_task *keeper;
	struct shelf *shelf = NULL;
	char why[SHELF_WHY];
	int err = -ENOENT;

	if (r->keep)
		err = shelf_attach(r->name, 0, &shelf, why);
	if (err == -ENOENT)
		err = shelf_create(r->name, &r->options, &shelf, why);
	if (err) {
		front_error("%s", why);
		return false;
	}
	/* Keeps what is in flight between processes for as long as we live, attached or not: preload/carry.c. */
	err = shelf_task_create(shelf, NULL, &keeper);
	if (err)
		front_error("%s: no room for a task: %s", r->name, front_reason(err));
	shelf_detach(shelf);
	return !err;
}

/* Who is killed in between leaves the promise, by which the next run finds the shelf, or a maker who looks behind himself. */
static void remove_scratch(const struct run *r)
{
	char promise[PROMISE_PATH_MAX];

	cli_remove_shelf(r->name, NULL);
	if (promise_of(r, promise) < PROMISE_PATH_MAX && !sys_call3(SYS_unlink, (long)promise, 0, 0) && r->promised)
		cli_remove_shelf(r->name, NULL);
}

/* A shelf that stays: attaching once more closes what the dead had open. */
static void clean_up(struct run *r)
{
	struct shelf_task *keeper;
	struct shelf *shelf;

	if (!r->keep) {
		remove_scratch(r);
		return;
	}
	cli_remove_carriers(r->name);
	if (shelf_attach(r->name, 0, &shelf, NULL))
		return;
	if (!shelf_task_find(shelf, (pid_t)sys_call3(SYS_getpid, 0, 0, 0), &keeper))
		shelf_task_exit(keeper);
	shelf_detach(shelf);
}

/* ---- the environment ---------------------------------------------------------------------------------- */

static const char *const our_variables[] = {"SHELF_RUN", "SHELF_RUN_DIR", "SHELF_RUN_TABLES", STATIC_VARIABLE};

static bool is_ours(const char *entry)
{
	if (library_env_is(entry))
		return true;
	for (unsigned i = 0; i < ARRAY_SIZE(our_variables); i++) {
		size_t n = strlen(our_variables[i]);

		if (!strncmp(entry, our_variables[i], n) && entry[n] == '=')
			return true;
	}
	return false;
}

static unsigned count_strings(char **v)
{
	unsigned n = 0;

	while (v[n])
		n++;
	return n;
}

/* What of the environment is not ours; where the next one goes. */
static char **copy_others(char **to, char **envp)
{
	for (; *envp; envp++)
		if (!is_ours(*envp))
			*to++ = *envp;
	return to;
}

/* The program in the environment that makes it run on the shelf.  Its pid, or -errno. */
static long start_program(struct run *r, const char *path)
{
	const char *dir = libc_env(r->envp, "SHELF_SHM_DIR");
	char state[PATH_MAX + RUN_KEY + 384], place[dir ? strlen(dir) + 16 : 1], tables[PATH_MAX + 32];
	char alone[PATH_MAX + 32], loader[PATH_MAX], whole[PATH_MAX];
	char *env[count_strings(r->envp) + ARRAY_SIZE(our_variables) + LIBRARY_ENV + 1], **end = copy_others(env, r->envp);
	char *ours[LIBRARY_ENV];
	struct library_env library;

	library_env_take(&library, r->envp, r->library, r->early);

	char text[library_env_size(&library)];

	library_env_write(&library, text, ours);
	for (unsigned i = 0; i < LIBRARY_ENV; i++)
		if (ours[i])
			*end++ = ours[i];
	snprintf(state, sizeof(state), "SHELF_RUN=%c%ld%s%s%s:%s%s", r->strict ? '4' : '0', sys_call3(SYS_getpid, 0, 0, 0),
		 r->promised ? "+" : "", *r->key ? "," : "", r->key, r->name, r->prefix);
	snprintf(tables, sizeof(tables), "SHELF_RUN_TABLES=%s", r->tables);
	*end++ = state;
	if (dir) {
		snprintf(place, sizeof(place), "SHELF_RUN_DIR=%s", dir);
		*end++ = place;
	}
	if (*r->tables)
		*end++ = tables;
	if (r->static_fd >= 0) {
		long err = library_static_program(loader, sizeof(loader), r->library);

		if (err == -ENOENT)
			front_error("%s %s", path, STATIC_MISSING);
		if (err < 0)
			return err == -ENOENT ? -EPERM : err;
		err = program_path((int)r->static_fd, whole, sizeof(whole));
		if (err < 0)
			return err;
		snprintf(alone, sizeof(alone), "%s=%ld:%s", STATIC_VARIABLE, r->static_fd, whole);
		*end++ = alone;
		path = loader;
	}
	*end = NULL;
	return front_start(r->argv, env, path);
}

/* ---- the program --------------------------------------------------------------------------------------- */

/* The kernel finds the interpreter of the first program, and would not start what loads a static one.  NULL: it may be started. */
static const char *interpreter_refusal(struct program_head *head)
{
	struct program_head inner;
	enum program_kind kind;
	struct program_file f;
	char *path, *argument;

	if (!program_script(head, &path, &argument))
		return NULL; /* exec says what is wrong */
	f = program_kernels((int)program_open(AT_FDCWD, path));
	if (f.fd < 0)
		return NULL;
	kind = program_look(&f, path, &inner);
	sys_call3(SYS_close, f.fd, 0, 0);
	if (kind == PROGRAM_STATIC)
		return "wants a statically linked interpreter: start that, with the script as its argument";
	return program_refusal(kind) ? "wants an interpreter that would not see the shelf: not started" : NULL;
}

/* What the program's own exec refuses (preload/exec.c) is refused for the first one too. */
static bool may_start(struct run *r, const char *path)
{
	struct library_place reached = {.prefix = r->prefix};
	enum program_kind kind;
	struct program_file f = program_kernels((int)program_open(AT_FDCWD, path));
	struct program_head head;
	const char *why;

	if (f.fd < 0)
		return true; /* exec says what is wrong */
	kind = program_look(&f, path, &head);
	why = kind == PROGRAM_SCRIPT ? interpreter_refusal(&head) : program_refusal(kind);
	if (kind == PROGRAM_STATIC && !program_may_run(&f)) { /* else exec says what is wrong */
		r->static_fd = sys_call3(SYS_dup, f.fd, 0, 0);
		why = r->static_fd < 0 ? "cannot be opened: there are too many open files" : why;
	}
	r->early = kind == PROGRAM_PLAIN && (program_is_loader(path) || library_list_reaches(&reached, libc_env(r->envp, "LD_LIBRARY_PATH")) ||
					     library_program_reaches(&reached, &f, &head));
	if (why)
		front_error("%s %s", path, why);
	sys_call3(SYS_close, f.fd, 0, 0);
	return !why;
}

static int run_program(struct run *r)
{
	const char *dir = libc_env(r->envp, "SHELF_SHM_DIR");
	char path[PATH_MAX], segment[PATH_MAX + 384];
	long listener = front_listen(r->key);
	long pid = front_find(r->argv[0], libc_env(r->envp, "PATH"), path);

	if (!pid && !may_start(r, path))
		return W_EXITCODE(EXIT_NOT_STARTED, 0);
	if (!pid)
		pid = start_program(r, path);
	if (r->static_fd >= 0)
		sys_call3(SYS_close, r->static_fd, 0, 0);
	if (pid < 0) {
		front_error("%s: %s", r->argv[0], front_reason(pid));
		return W_EXITCODE(pid == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_STARTED, 0);
	}
	front_pass_signals_to(pid);
	cli_clear_dead_runs(dir);
	snprintf(segment, sizeof(segment), "%s/shelf.%s", dir && *dir ? dir : "/dev/shm", r->name);
	return front_keep(pid, listener, r, segment);
}

int front_run(struct run *r)
{
	int status;

	if (libc_env(r->envp, "SHELF_RUN")) {
		front_error("this process runs on a shelf already; a shelf in a shelf is not supported");
		return EXIT_NOT_STARTED;
	}
	if (!find_library(r) || !find_prefix(r))
		return EXIT_NOT_STARTED;
	if (!r->keep)
		promise_shelf(r);
	if (!r->promised && !find_shelf(r)) {
		if (!r->keep)
			remove_scratch(r);
		return EXIT_NOT_STARTED;
	}
	place_tables(r->envp, r->tables);
	status = run_program(r);
	clean_up(r);
	return front_pass_on(status);
}

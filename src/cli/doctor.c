/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - `shelf doctor`: what of this machine `shelf run` can work with, and a proof that it does.
 *
 * Each check says good, a limit (something is slower or missing), or failed. The self-check runs this command
 * on a shelf: there libc's calls must see a file that the same calls, made past libc, do not.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <link.h>
#include <linux/membarrier.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/tmpfs.h"
#include "cli.h"
#include "doctor.h"
#include "places.h"
#include "run/table.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

enum verdict { GOOD, LIMIT, FAILED };

static struct {
	bool json, any, failed;
	char library[PATH_MAX], tables[PATH_MAX];
} doctor;

/* ---- saying --------------------------------------------------------------------------------- */

static void say(enum verdict verdict, const char *check, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(enum verdict verdict, const char *check, const char *format, ...)
{
	static const char *const words[] = {"good", "limit", "failed"};
	char text[PATH_MAX + 256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	doctor.failed |= verdict == FAILED;
	if (!doctor.json) {
		printf("%-6s  %-22s %s\n", words[verdict], check, text);
		return;
	}
	printf("%s\n{\"check\":", doctor.any ? "," : "");
	json_string(stdout, check);
	printf(",\"verdict\":\"%s\",\"text\":", words[verdict]);
	json_string(stdout, text);
	fputs("}", stdout);
	doctor.any = true;
}

/* ---- libc and the loader ---------------------------------------------------------------------- */

struct libs {
	char path[2][PATH_MAX]; /* "": not loaded here */
};

static const char *const lib_names[2] = {"libc.so.6", "ld-linux-x86-64.so.2"};

static int find_lib(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	struct libs *libs = ctx;

	(void)size;
	for (int k = 0; k < 2; k++)
		if (slash && !strcmp(slash + 1, lib_names[k]))
			snprintf(libs->path[k], PATH_MAX, "%s", info->dlpi_name);
	return 0;
}

static void say_table(const char *check, const struct run_image *im)
{
	struct table_cursor c;
	const void *buf;
	size_t size;
	int rc;

	if (!*doctor.tables)
		return;
	rc = table_load(im, doctor.tables, &buf, &size);
	if (!rc) {
		rc = table_open(im, buf, size, &c);
		table_unload(buf, size);
	}
	if (!rc)
		say(GOOD, check, "its table is kept in %s", doctor.tables);
	else
		say(rc == -ENOENT ? GOOD : LIMIT, check, "no table in %s (%s); made when it is next wanted", doctor.tables, strerror(-rc));
}

static void say_left(const char *check, const struct run_sites *sites)
{
	for (int why = SITE_OK + 1; why < SITE_WHYS; why++) {
		char text[256] = "";
		unsigned n = 0;
		int at = 0;

		for (uint32_t i = 0; i < sites->count; i++) {
			if (sites->sites[i].why != why)
				continue;
			if (++n <= 4)
				at += snprintf(text + at, sizeof(text) - (size_t)at, " 0x%x", sites->sites[i].at);
		}
		if (n) /* the one that returns from handlers concerns no file */
			say(why == SITE_SIGRETURN ? GOOD : LIMIT, check, "%u left as it is at%s%s: %s", n, text, n > 4 ? " ..." : "",
			    site_why_text((enum site_why)why));
	}
}

static void say_sites(const char *check, const struct run_image *im, const char *path)
{
	char id[2 * BUILD_ID_MAX + 1] = "none";
	unsigned ok = 0, known = 0;
	struct run_sites sites;
	int rc = scan_image(im, &sites);

	if (rc) {
		say(FAILED, check, "%s: cannot be read for system calls: %s", path, strerror(-rc));
		return;
	}
	for (unsigned i = 0; i < im->id_len; i++)
		snprintf(id + 2 * i, 3, "%02x", im->id[i]);
	for (uint32_t i = 0; i < sites.count; i++) {
		ok += sites.sites[i].why == SITE_OK;
		known += sites.sites[i].nr >= 0;
	}
	say(sites.count ? GOOD : FAILED, check, "%s, build id %s: %u system calls, %u can be replaced, number known of %u", path, id,
	    sites.count, ok, known);
	say_left(check, &sites);
	sites_free(&sites);
}

static void check_libs(void)
{
	struct libs libs = {0};

	dl_iterate_phdr(find_lib, &libs);
	for (int k = 0; k < 2; k++) {
		struct run_image im;
		int rc;

		if (!*libs.path[k]) {
			say(FAILED, lib_names[k], "not loaded in this program: only glibc is covered");
			continue;
		}
		rc = image_map_file(&im, libs.path[k]);
		if (rc && rc != -ENODATA) {
			say(FAILED, lib_names[k], "%s: %s", libs.path[k], strerror(-rc));
			continue;
		}
		say_sites(lib_names[k], &im, libs.path[k]);
		if (im.id_len)
			say_table(lib_names[k], &im);
		else
			say(LIMIT, lib_names[k], "no build id: scanned at each start");
		image_unmap_file(&im);
	}
}

/* ---- the runtime -------------------------------------------------------------------------------- */

/* Runs ARGV with its output in OUT.  The exit status, or -1. */
static int run_child(char *const argv[], const char *ask, char *out, size_t size)
{
	size_t got = 0;
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe(fds) || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		if (ask && (setenv("LD_PRELOAD", doctor.library, 1) || setenv("SHELF_RUN", "00:doctor/proc", 1) ||
			    setenv("SHELF_RUN_DOCTOR", ask, 1) || setenv("SHELF_RUN_TABLES", doctor.tables, 1)))
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	while (got < size - 1 && (n = read(fds[0], out + got, size - 1 - got)) > 0)
		got += (size_t)n;
	out[got] = '\0';
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char self_path[] = "/proc/self/exe";

static bool find_library(void)
{
	char here[PATH_MAX];

	if (place_library(doctor.library))
		return true;
	place_here(here);
	cli_error("libshelf-run.so is not installed beside %s, where the loader can find it", here);
	return false;
}

/* The program that people start, which runs others on a shelf. */
static bool find_front(char path[PATH_MAX])
{
	static const char *const beside[] = {"/shelf", "/../../bin/shelf"};
	char here[PATH_MAX];

	place_here(here);
	return place_beside(here, beside, 2, path);
}

static void check_attach(void)
{
	char *argv[] = {self_path, (char[]){"--version"}, NULL}, out[512];
	unsigned images, scanned, ready, sites, patched, left;
	int rc;

	if (run_child(argv, "attach", out, sizeof(out)) ||
	    sscanf(out, "attach %d %u %u %u %u %u %u", &rc, &images, &scanned, &ready, &sites, &patched, &left) != 7)
		say(FAILED, "attaching", "a program with %s did not start", doctor.library);
	else if (rc)
		say(FAILED, "attaching", "the system calls cannot be rewritten: %s", strerror(rc));
	else
		say(left ? FAILED : GOOD, "attaching", "%u of %u system calls rewritten, %u wanted and left, %s", patched, sites, left,
		    scanned ? "scanned anew" : ready == images ? "ready copies" : "by tables");
}

static int print_calls(void)
{
	char *argv[] = {self_path, (char[]){"--version"}, NULL};
	static char out[65536];

	if (!find_library())
		return EXIT_FAILED;
	if (run_child(argv, "calls", out, sizeof(out)) || !strchr(out, '\t')) {
		cli_error("a program with %s did not start", doctor.library);
		return EXIT_FAILED;
	}
	fputs(out, stdout);
	return EXIT_OK;
}

/* ---- the kernel ------------------------------------------------------------------------------------ */

static void check_membarrier(void)
{
	long can = sys_call3(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	long want = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;

	if (can >= 0 && (can & want) == want)
		say(GOOD, "membarrier", "global, expedited: readers need no fence");
	else
		say(LIMIT, "membarrier", "missing (%s): each read section costs a fence", can < 0 ? strerror((int)-can) : "no such command");
}

static void check_kernel(void)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	long fd = sys_call6(SYS_openat2, AT_FDCWD, (long)"/", (long)&how, sizeof(how), 0, 0), err;
	FILE *f = fopen("/proc/sys/vm/memfd_noexec", "re");
	struct utsname un;
	int noexec = 0;

	uname(&un);
	say(GOOD, "kernel", "%s %s", un.sysname, un.release);
	check_membarrier();
	if (fd >= 0)
		close((int)fd);
	else
		say(LIMIT, "openat2", "%s: symbolic links that lead into a shelf from outside are not seen", strerror((int)-fd));
	if (f && fscanf(f, "%d", &noexec) == 1 && noexec >= 2)
		say(LIMIT, "memfd", "vm.memfd_noexec is %d: programs stored in a shelf cannot be run", noexec);
	if (f)
		fclose(f);
	err = sys_call6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0, 0);
	if (err)
		say(LIMIT, "user dispatch", "%s: no `shelf run --strict`", strerror((int)-err));
	else
		say(GOOD, "user dispatch", "there, for `shelf run --strict`");
}

static void check_shm(void)
{
	const char *dir = cli_shm_dir();
	struct statfs fs;
	char size[16];

	if (statfs(dir, &fs)) {
		say(FAILED, dir, "%s; shelves lie there, or where SHELF_SHM_DIR says", strerror(errno));
		return;
	}
	cli_format_size((uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize, size);
	if (!tmpfs_is(dir))
		say(FAILED, dir, "not on a tmpfs: no shelf is made there");
	else if (access(dir, W_OK | X_OK))
		say(FAILED, dir, "cannot be written: %s", strerror(errno));
	else
		say(GOOD, dir, "a tmpfs, %s free", size);
}

static void check_prefix(const char *at)
{
	struct stat st;

	if (!stat(at, &st))
		say(S_ISDIR(st.st_mode) ? GOOD : LIMIT, at, "%s", S_ISDIR(st.st_mode) ? "is there, to show a shelf at" : "is no directory; --at DIR names one");
	else if (!access("/", W_OK))
		say(GOOD, at, "will be made when first wanted");
	else
		say(LIMIT, at, "is missing and cannot be made; `shelf run --at DIR` names another");
}

/* ---- the self-check ---------------------------------------------------------------------------------- */

static void check_self(void)
{
	const char *tmp = getenv("TMPDIR");
	char dir[PATH_MAX], out[1024], self[PATH_MAX];
	bool found = find_front(self);
	char *argv[] = {self, (char[]){"run"}, (char[]){"--size"}, (char[]){"64M"}, (char[]){"--at"}, dir, (char[]){"--"}, self,
			(char[]){"doctor"}, (char[]){"--self-check"}, dir, NULL};
	int status;

	if (getenv("SHELF_RUN")) {
		say(LIMIT, "self-check", "left out: this process runs on a shelf already");
		return;
	}
	snprintf(dir, sizeof(dir), "%.4000s/shelf-doctor.XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (!found || !mkdtemp(dir)) {
		say(FAILED, "self-check", "%s: %s", found ? dir : "the program shelf", strerror(errno));
		return;
	}
	status = run_child(argv, NULL, out, sizeof(out));
	out[strcspn(out, "\n")] = '\0';
	if (status == 0)
		say(GOOD, "self-check", "%s", out);
	else
		say(FAILED, "self-check", "%s", *out ? out : "a program on a shelf did not start");
	if (rmdir(dir))
		say(FAILED, "self-check", "%s: something was written to the directory in place of the shelf", dir);
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int examine(void)
{
	if (!find_library())
		return EXIT_FAILED;
	place_tables(environ, doctor.tables);
	if (doctor.json)
		fputs("[", stdout);
	check_libs();
	check_attach();
	check_kernel();
	check_shm();
	check_prefix("/shelf");
	check_self();
	if (doctor.json)
		fputs("\n]\n", stdout);
	return doctor.failed ? EXIT_FAILED : EXIT_OK;
}

static int doctor_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"calls", no_argument, NULL, 'c'},
		{"self-check", required_argument, NULL, 's'}, /* by ourselves, on a shelf */
		{NULL, 0, NULL, 0},
	};
	bool calls = false;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			return doctor_self_check(optarg);
		if (c == 'j')
			doctor.json = true;
		else if (c == 'c')
			calls = true;
		else
			return cli_bad_option(argc, argv);
	}
	if (optind < argc)
		return cli_usage("no argument is wanted");
	if (calls && doctor.json)
		return cli_usage("--calls prints a table: --json does not go with it");
	return calls ? print_calls() : examine();
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "what of this machine shelf run covers",
	.run = doctor_command,
	.usage =
		"usage: shelf doctor [--json]\n"
		"       shelf doctor --calls\n"
		"\n"
		"Tells what `shelf run` finds on this machine: the system calls in libc and in the loader, those that it\n"
		"cannot rewrite and why, its tables, what the kernel can do, where shelves lie; and runs a program on a\n"
		"shelf that proves that its calls are caught. A line each, with good, limit (something is slower or\n"
		"missing) or failed.\n"
		"\n"
		"  --json    as a list of objects\n"
		"  --calls   each system call that takes or gives a path or a descriptor, and what becomes of it\n"
		"\n"
		"Exit status: 0, 1 something failed, 2 usage.\n",
};

/* SPDX-License-Identifier: MIT */
/*
 * cases.c - runs the cases of a program.
 *
 *   PROGRAM OUT              all of them, each in a directory of its name in the current one; OUT/NAME gets what it says
 *   PROGRAM --case OUT NAME  one, here
 */
#include <stdarg.h>

#include "cases.h"

const char *self_path;
static char text[1 << 16];
static size_t text_len;
static char text_path[4096];

void say_flush(void)
{
	int fd;

	if (!text_len)
		return;
	fd = open(text_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, text_len) != (ssize_t)text_len)
		abort();
	close(fd);
	text_len = 0;
}

void say(const char *format, ...)
{
	int saved = errno, n;
	va_list ap;

	if (sizeof(text) - text_len < 8192)
		say_flush();
	va_start(ap, format);
	n = vsnprintf(text + text_len, sizeof(text) - text_len - 1, format, ap);
	va_end(ap);
	text_len += (size_t)n < sizeof(text) - text_len - 1 ? (size_t)n : sizeof(text) - text_len - 1;
	text[text_len++] = '\n';
	errno = saved;
}

long say_result(const char *what, long result)
{
	const char *name = strerrorname_np(errno);

	if (result == -1)
		say("%s: -1 %s", what, name ? name : "?");
	else
		say("%s: %ld", what, result);
	return result;
}

/* ---- children ---------------------------------------------------------------------------- */

pid_t child_start(void (*fn)(void *), void *arg)
{
	pid_t pid;

	say_flush();
	pid = fork();
	if (pid)
		return pid;
	fn(arg);
	say_flush();
	_exit(0);
}

void child_end(const char *what, pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		say("%s: signal %d", what, WTERMSIG(status));
	else
		say("%s: status %d", what, WEXITSTATUS(status));
}

void child_run(const char *what, void (*fn)(void *), void *arg)
{
	child_end(what, child_start(fn, arg));
}

/* ---- files --------------------------------------------------------------------------------- */

void put_file(const char *path, const char *contents)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, contents, strlen(contents)) != (ssize_t)strlen(contents))
		say("%s cannot be written: %s", path, strerrorname_np(errno));
	if (fd >= 0)
		close(fd);
}

void say_rest(const char *what, int fd)
{
	char buf[4096];
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	if (n < 0) {
		say("%s: cannot be read: %s", what, strerrorname_np(errno));
		return;
	}
	buf[n] = '\0';
	say("%s: '%s'", what, buf);
}

void say_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		say("%s: %s", path, strerrorname_np(errno));
		return;
	}
	say_rest(path, fd);
	close(fd);
}

void say_names(const char *path)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, alphasort);

	say("%s: %d names", path, n);
	for (int i = 0; i < n; i++)
		say("  %s", list[i]->d_name);
}

void say_numbers(const char *what)
{
	char line[512];
	int len = 0;

	for (int fd = 0; fd < 64; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0)
			len += snprintf(line + len, sizeof(line) - (size_t)len, " %d%s", fd, flags & FD_CLOEXEC ? "c" : "");
	}
	line[len] = '\0';
	say("%s: open:%s", what, line);
}

/* ---- running them ------------------------------------------------------------------------------ */

unsigned scaled(unsigned n)
{
	const char *s = getenv("SHELF_TEST_SCALE");
	double m = n * (s ? atof(s) : 1.0);

	return m < 1 ? 1 : (unsigned)m;
}

const char *host_dir(void)
{
	const char *h = getenv("HOST");

	return h ? h : "/tmp";
}

static const struct program_case *find_case(const char *name)
{
	for (const struct program_case *c = program_cases; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	fprintf(stderr, "no case '%s'\n", name);
	exit(2);
}

static void start_case(const char *out, const struct program_case *c)
{
	char log[4096];
	int fd;

	snprintf(log, sizeof(log), "%s/%s", out, c->name);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0 || mkdir(c->name, 0755) || chdir(c->name))
		_exit(99);
	dup2(fd, 1);
	dup2(fd, 2);
	close(fd);
	close_range(3, ~0U, 0);
	umask(022);
	alarm(c->seconds ? c->seconds : 60);
	execl(self_path, self_path, "--case", out, c->name, (char *)NULL);
	_exit(98);
}

static void run_one(const char *out, const struct program_case *c)
{
	char log[4096];
	int status = -1;
	pid_t pid = fork();
	FILE *f;

	if (pid == 0)
		start_case(out, c);
	waitpid(pid, &status, 0);
	snprintf(log, sizeof(log), "%s/%s", out, c->name);
	f = fopen(log, "a");
	if (!f)
		abort();
	if (WIFSIGNALED(status))
		fprintf(f, "ended by signal %d\n", WTERMSIG(status));
	else
		fprintf(f, "ended with %d\n", WEXITSTATUS(status));
	fclose(f);
}

int main(int argc, char **argv)
{
	self_path = realpath("/proc/self/exe", NULL);
	if (argc > 2 && !strcmp(argv[1], "--helper") && main_helper) {
		int status;

		snprintf(text_path, sizeof(text_path), "%s", getenv("SAY_TO"));
		status = main_helper(argc - 2, argv + 2);
		say_flush();
		return status;
	}
	if (argc == 4 && !strcmp(argv[1], "--case")) {
		snprintf(text_path, sizeof(text_path), "%s/%s", argv[2], argv[3]);
		setenv("SAY_TO", text_path, 1);
		find_case(argv[3])->run();
		say_flush();
		return 0;
	}
	if (argc < 2) {
		fprintf(stderr, "usage: %s OUT [CASE...]\n", argv[0]);
		return 2;
	}
	if (argc > 2)
		for (int i = 2; i < argc; i++)
			run_one(argv[1], find_case(argv[i]));
	for (const struct program_case *c = program_cases; argc == 2 && c->name; c++)
		run_one(argv[1], c);
	return 0;
}

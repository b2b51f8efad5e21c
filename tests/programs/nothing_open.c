// SPDX-License-Identifier: MIT
/*
 * A process that stands outside the shelf and has nothing of it open, its children, and what it execs: they have no task
 * of the shelf until they use it, and nobody can tell.
 */
#include "cases.h"

#include <spawn.h>

static char top[4096]; /* the case's directory, by its full name */

static const char *in_top(const char *name)
{
	static char path[2][4200];
	static unsigned turn;

	snprintf(path[++turn % 2], sizeof(path[0]), "%s/%s", top, name);
	return path[turn % 2];
}

static int make(const char *name)
{
	return open(in_top(name), O_RDWR | O_CREAT, 0666);
}

/* The shelf has been used, numbers of its are parked, nothing is open, and the directory is another. */
static void stand_outside(void)
{
	MUST(getcwd(top, sizeof(top)));
	MUST(!chdir("/"));
	for (int i = 0; i < 3; i++)
		close(make("used"));
}

static int wait_status(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

static void say_mode(const char *name)
{
	struct stat st = {0};

	MUST(!stat(in_top(name), &st));
	say("%s: mode %o, %ld bytes", name, st.st_mode, (long)st.st_size);
}

static void uses_the_shelf(void *name)
{
	int fd;

	umask(027);
	fd = make(name);
	say("number %d", fd);
	SAY(write(fd, "child\n", 6));
	say_numbers("child");
	SAY(close(fd));
	SAY(close(fd));
	SAY(write(fd, "x", 1));
}

static void forked_child_uses_the_shelf_after_all(void)
{
	stand_outside();
	child_run("child", uses_the_shelf, (void *)(uintptr_t)"f");
	say_file(in_top("f"));
	say_mode("f");
	umask(022);
	close(make("g"));
	say_mode("g");
}

static void looks_at_numbers(void *unused)
{
	int pair[2];

	(void)unused;
	SAY(close(3)); /* parked in the parent */
	SAY(fcntl(3, F_GETFD));
	SAY(open("/dev/null", O_RDONLY));
	SAY(pipe(pair));
	say("pipe %d %d", pair[0], pair[1]);
	say_numbers("child");
	say("number %d", make("f"));
	say_numbers("child");
}

static void parked_numbers_of_the_parent_are_free_in_the_child(void)
{
	stand_outside();
	child_run("child", looks_at_numbers, NULL);
	say("number %d", make("g"));
	say_numbers("parent");
}

static void vfork_child_uses_the_shelf_after_all(void)
{
	pid_t pid;

	stand_outside();
	pid = vfork();
	if (pid == 0) {
		umask(077);
		dup2(make("f"), 1);
		close(3);
		execl("/bin/sh", "sh", "-c", "echo from the child; umask", (char *)NULL);
		_exit(9);
	}
	say("status %d", wait_status(pid));
	say_file(in_top("f"));
	say_mode("f");
	close(make("g"));
	say_mode("g");
	say_numbers("parent");
}

static void vfork_child_goes_into_the_shelf(void)
{
	pid_t pid;

	stand_outside();
	pid = vfork();
	if (pid == 0) {
		(void)!chdir(top);
		execl("/bin/sh", "sh", "-c", "echo here >f; pwd >g", (char *)NULL);
		_exit(9);
	}
	say("status %d", wait_status(pid));
	say_file(in_top("f"));
	say_file(in_top("g"));
	SAY(access("used", F_OK)); /* we still stand outside */
}

static void vfork_child_exits_or_is_killed(void)
{
	stand_outside();
	for (int i = 0; i < 20; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			(void)!write(make("f"), "x", 1);
			if (i % 2)
				kill(getpid(), SIGKILL);
			_exit(3);
		}
		if (wait_status(pid) != (i % 2 ? SIGKILL : 3 << 8))
			say("another end");
	}
	say("number %d", make("f"));
	say_numbers("parent");
	say_file(in_top("f"));
}

static void vfork_in_a_vforks_child(void)
{
	pid_t pid, inner;

	stand_outside();
	pid = vfork();
	if (pid == 0) {
		inner = vfork();
		if (inner == 0) {
			dup2(make("inner"), 1);
			execl("/bin/echo", "echo", "innermost", (char *)NULL);
			_exit(9);
		}
		wait_status(inner);
		(void)!write(make("outer"), "outer\n", 6);
		_exit(0);
	}
	say("status %d", wait_status(pid));
	say_file(in_top("inner"));
	say_file(in_top("outer"));
	say("number %d", make("f"));
}

static void spawn_opens_files_of_the_shelf(void)
{
	char *argv[] = {"sh", "-c", "read line; echo \"got $line\"; echo more >&7", NULL};
	extern char **environ;
	posix_spawn_file_actions_t actions;
	pid_t pid;

	stand_outside();
	put_file(in_top("in"), "word\n");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, in_top("in"), O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, in_top("out"), O_WRONLY | O_CREAT, 0600);
	posix_spawn_file_actions_adddup2(&actions, 1, 7);
	SAY(posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ));
	say("status %d", wait_status(pid));
	say_file(in_top("out"));
	say_numbers("parent");
}

static void failed_exec_is_followed_by_use(void)
{
	int fd;

	stand_outside();
	SAY(execl("/nonexistent", "x", (char *)NULL));
	fd = make("f");
	say("number %d", fd);
	SAY(write(fd, "after\n", 6));
	SAY(execl("/nonexistent", "x", (char *)NULL));
	SAY(write(fd, "again\n", 6));
	close(fd);
	SAY(execl("/nonexistent", "x", (char *)NULL));
	say_file(in_top("f"));
	child_run("child", uses_the_shelf, (void *)(uintptr_t)"g");
}

static void execs_a_shell(void *command)
{
	execl("/bin/sh", "sh", "-c", (char *)command, top, (char *)NULL);
	_exit(9);
}

static void new_image_uses_the_shelf_after_all(void)
{
	stand_outside();
	child_run("sh", execs_a_shell, (void *)(uintptr_t)"echo one >\"$0/f\"; (cd \"$0\"; echo two >>f); cat \"$0/f\" >\"$0/g\"; exec cat \"$0/g\" >\"$0/h\"");
	say_file(in_top("h"));
}

static void one_open_file_is_inherited(void)
{
	int fd;

	stand_outside();
	fd = make("f");
	SAY(fcntl(make("cloexec"), F_SETFD, FD_CLOEXEC));
	MUST(fd == 3);
	child_run("sh", execs_a_shell, (void *)(uintptr_t)"echo three >&3; (echo four >&4) 2>/dev/null || echo closed >&3");
	SAY(write(fd, "parent\n", 7));
	say_file(in_top("f"));
}

const struct program_case program_cases[] = {
	CASE(forked_child_uses_the_shelf_after_all),
	CASE(parked_numbers_of_the_parent_are_free_in_the_child),
	CASE(vfork_child_uses_the_shelf_after_all),
	CASE(vfork_child_goes_into_the_shelf),
	CASE(vfork_child_exits_or_is_killed),
	CASE(vfork_in_a_vforks_child),
	CASE(spawn_opens_files_of_the_shelf),
	CASE(failed_exec_is_followed_by_use),
	CASE(new_image_uses_the_shelf_after_all),
	CASE(one_open_file_is_inherited),
	{NULL, NULL, 0},
};

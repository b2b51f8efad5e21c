/* SPDX-License-Identifier: MIT */
/* spawn.c - children of every kind: what they inherit, what they leave alone. */
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/time.h>

#include "cases.h"

extern char **environ;

static int make(const char *name)
{
	return open(name, O_RDWR | O_CREAT, 0644);
}

static int wait_status(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* ---- posix_spawn --------------------------------------------------------------------------- */

static void spawn_actions_act_on_the_child_alone(void)
{
	char *argv[] = {"sh", "-c", "echo out; echo err >&2; cat; ls /proc/self/fd | wc -l >&7; echo more >&8", NULL};
	int in, keep = make("keep"), shut = make("shut");
	posix_spawn_file_actions_t a;
	pid_t pid;

	put_file("in", "from the file\n");
	in = open("in", O_RDONLY);
	posix_spawn_file_actions_init(&a);
	posix_spawn_file_actions_addopen(&a, 1, "out", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	posix_spawn_file_actions_addopen(&a, 2, "err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&a, in, 0);
	posix_spawn_file_actions_adddup2(&a, keep, 7);
	posix_spawn_file_actions_adddup2(&a, 7, 8);
	posix_spawn_file_actions_addclose(&a, shut);
	SAY(posix_spawn(&pid, "/bin/sh", &a, NULL, argv, environ));
	say("status %d", wait_status(pid));
	say_numbers("here");
	say_file("out");
	say_file("err");
	say_file("keep");
	SAY(lseek(in, 0, SEEK_CUR));
	SAY(write(shut, "x", 1));
}

static void spawn_of_a_missing_program_changes_nothing(void)
{
	char *argv[] = {"none", NULL};
	posix_spawn_file_actions_t a;
	int fd = make("f");
	pid_t pid = 0;

	posix_spawn_file_actions_init(&a);
	posix_spawn_file_actions_adddup2(&a, fd, 9);
	posix_spawn_file_actions_addclose(&a, fd);
	say("%s", strerrorname_np(posix_spawn(&pid, "./none", &a, NULL, argv, environ)));
	say_numbers("here");
	SAY(write(fd, "x", 1));
	posix_spawn_file_actions_addopen(&a, 5, "no/such/file", O_RDONLY, 0);
	say("%s", strerrorname_np(posix_spawn(&pid, "/bin/true", &a, NULL, argv, environ)));
	say_numbers("here");
}

static void a_thousand_spawns(void)
{
	char *argv[] = {"true", NULL};
	int fd = make("f");
	unsigned fine = 0;
	pid_t pid;

	for (int i = 0; i < 1000; i++)
		fine += !posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) && !wait_status(pid);
	say("%u fine", fine);
	say_numbers("here");
	SAY(write(fd, "x", 1));
}

static void *thread_writes(void *arg)
{
	int fd = make("threads");

	(void)arg;
	if (fd < 0 || write(fd, "x", 1) != 1 || close(fd))
		return "";
	return NULL;
}

static void a_thousand_threads(void)
{
	unsigned fine = 0;
	void *result;
	pthread_t t;

	for (int i = 0; i < 1000; i++)
		fine += !pthread_create(&t, NULL, thread_writes, NULL) && !pthread_join(t, &result) && !result;
	say("%u fine", fine);
	say_numbers("here");
}

static void *thread_spawns(void *arg)
{
	char *argv[] = {"sh", "-c", "echo x >>all", NULL};
	unsigned bad = 0;
	pid_t pid;

	(void)arg;
	for (unsigned i = 0; i < scaled(30); i++)
		bad += posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) || wait_status(pid);
	return (void *)(uintptr_t)bad;
}

static void threads_spawn_while_others_open_and_close(void)
{
	pthread_t t[4];
	struct stat st;
	void *bad;

	put_file("all", "");
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread_spawns, NULL);
	for (int i = 0; i < 2000; i++)
		close(make("f"));
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		say("%lu bad", (unsigned long)(uintptr_t)bad);
	}
	SAY(stat("all", &st));
	say("%d", (long)st.st_size == 4 * 2 * (long)scaled(30));
}

/* ---- vfork ----------------------------------------------------------------------------------- */

static int forks_seen;

static void count_fork(void)
{
	forks_seen++;
}

static void vfork_child_changes_its_own_table_only(void)
{
	int fd = make("f"), other = make("other");
	pid_t pid;

	pthread_atfork(count_fork, count_fork, count_fork);
	pid = vfork();
	if (pid == 0) {
		dup2(fd, 1);
		dup2(other, 20);
		close(fd);
		close(other);
		fcntl(20, F_SETFD, FD_CLOEXEC);
		execl("/bin/sh", "sh", "-c", "echo from the child; echo x >&20 || echo no 20", (char *)NULL);
		_exit(9);
	}
	say("status %d", wait_status(pid));
	say_numbers("here");
	SAY(write(fd, "P", 1));
	SAY(lseek(other, 0, SEEK_CUR));
	say_file("f");
	say("%d handlers", forks_seen);
}

static void vfork_child_that_exits_leaves_the_parent_whole(void)
{
	int fd = make("f");
	pid_t pid = vfork();

	if (pid == 0) {
		close(fd);
		(void)!chdir("/");
		umask(0);
		_exit(write(open("/dev/null", O_WRONLY), "x", 1) == 1 ? 3 : 4);
	}
	say("status %d", wait_status(pid) >> 8);
	SAY(write(fd, "abc", 3));
	SAY(make("g"));
	SAY(access("f", F_OK));
	say_numbers("here");
	/* umask and cwd are the parent's again: vfork copies them */
	struct stat st;
	SAY(fchmod(make("h"), 0666));
	SAY(mkdir("d", 0777));
	SAY(stat("d", &st));
	say("mode %o", st.st_mode);
}

static void vfork_child_that_is_killed_leaves_the_parent_whole(void)
{
	int fd = make("f");

	for (int i = 0; i < 20; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			close(fd);
			make("in the child");
			kill(getpid(), SIGKILL);
		}
		if (wait_status(pid) != SIGKILL)
			say("not killed");
	}
	SAY(write(fd, "abc", 3));
	say_numbers("here");
	SAY(make("g"));
	say_names(".");
}

static void vfork_in_a_vforks_child(void)
{
	int fd = make("f");
	pid_t pid = vfork();

	if (pid == 0) {
		pid_t inner = vfork();

		if (inner == 0) {
			dup2(fd, 1);
			close(fd);
			execl("/bin/echo", "echo", "innermost", (char *)NULL);
			_exit(9);
		}
		wait_status(inner);
		(void)!write(fd, "child\n", 6);
		close(fd);
		_exit(0);
	}
	say("status %d", wait_status(pid));
	SAY(write(fd, "parent\n", 7));
	say_file("f");
}

/* 0: mapped and equal, else errno. */
static int map_and_look(int fd)
{
	const char *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	return at == MAP_FAILED ? errno : memcmp(at, "text", 4) != 0;
}

static void vfork_child_maps_what_it_may_read(void)
{
	int status;
	pid_t pid;

	put_file("f", "text");
	for (int how = O_RDONLY; how <= O_RDWR; how++) {
		int fd = open("f", how);

		pid = vfork();
		if (pid == 0)
			_exit(map_and_look(fd));
		status = wait_status(pid);
		say("opened %d: %d", how, status >> 8);
		close(fd);
	}
}

static void vfork_failed_exec_then_another(void)
{
	int fd = make("f");
	pid_t pid;

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	pid = vfork();
	if (pid == 0) {
		execl("./none", "none", (char *)NULL);
		dup2(fd, 1);
		execl("/bin/echo", "echo", "second", (char *)NULL);
		_exit(9);
	}
	say("status %d", wait_status(pid));
	say_numbers("here");
	say_file("f");
}

/* ---- exec ------------------------------------------------------------------------------------- */

int main_helper(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[0], "append")) {
		(void)!write(atoi(argv[1]), "child ", 6);
		return 0;
	}
	if (!strcmp(argv[0], "numbers")) {
		say_numbers("after exec");
		SAY(make("new"));
		return 0;
	}
	if (!strcmp(argv[0], "place")) {
		char buf[4096];
		struct stat st;

		say("%s", getcwd(buf, sizeof(buf)) ? buf : strerrorname_np(errno));
		SAY(mkdir("made", 0777));
		SAY(stat("made", &st));
		say("mode %o", st.st_mode);
		return 0;
	}
	if (!strcmp(argv[0], "locked"))
		SAY(fcntl(atoi(argv[1]), F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK}));
	return 0;
}

static void run_helper(const char *what, const char *arg)
{
	say_flush();

	pid_t pid = fork();

	if (pid == 0) {
		execl(self_path, self_path, "--helper", what, arg, (char *)NULL);
		_exit(98);
	}
	say("%s: %d", what, wait_status(pid));
}

static void failed_exec_leaves_cloexec_descriptors(void)
{
	int a = open("f", O_RDWR | O_CREAT | O_CLOEXEC, 0644), b = make("g"), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char *argv[] = {"x", NULL};

	put_file("text", "not a program");
	put_file("badint", "#!/no/such/interpreter\n");
	chmod("badint", 0755);
	for (int i = 0; i < 3; i++) {
		SAY(execve("./none", argv, environ));
		SAY(execve("/no/such", argv, environ));
		SAY(execve("./text", argv, environ));
		chmod("text", 0755);
		SAY(execve("./text", argv, environ));
		chmod("text", 0644);
		SAY(execve("./badint", argv, environ));
		SAY(execve(".", argv, environ));
		SAY(execve("text/x", argv, environ));
		SAY(write(a, "x", 1));
		SAY(write(b, "x", 1));
		SAY(fcntl(a, F_GETFD));
		SAY(fcntl(null, F_GETFD));
	}
	say_numbers("after");
	SAY(close(a));
	SAY(make("h"));
}

static void cloexec_closes_at_exec(void)
{
	MUST(make("a") == 3 && open("b", O_RDWR | O_CREAT | O_CLOEXEC, 0644) == 4 && open("/dev/null", O_RDONLY | O_CLOEXEC) == 5);
	MUST(open("/dev/null", O_RDONLY) == 6 && make("c") == 7);
	MUST(fcntl(7, F_DUPFD_CLOEXEC, 20) == 20 && dup3(3, 21, O_CLOEXEC) == 21 && dup2(4, 22) == 22);
	close(3);
	run_helper("numbers", NULL);
	say_numbers("here");
}

static void offset_is_shared_over_fork_and_exec(void)
{
	int fd = make("f");

	for (int i = 0; i < 50; i++) {
		MUST(write(fd, "parent ", 7) == 7);
		pid_t pid = fork();

		if (pid == 0) {
			execl(self_path, self_path, "--helper", "append", "3", (char *)NULL);
			_exit(98);
		}
		MUST(wait_status(pid) == 0);
	}
	SAY(lseek(fd, 0, SEEK_CUR));
	SAY(lseek(fd, 0, SEEK_SET));
	char buf[40] = "";
	SAY(read(fd, buf, 39));
	say("%s", buf);
}

static void cwd_and_umask_survive_exec(void)
{
	MUST(!mkdir("deep", 0755) && !mkdir("deep/er", 0755) && !chdir("deep/er"));
	umask(027);
	run_helper("place", NULL);
	MUST(!chdir("/"));
	run_helper("append", "1");
	MUST(fchdir(open(host_dir(), O_RDONLY | O_DIRECTORY)) == 0);
	SAY(access("made", F_OK));
}

static void closed_standard_descriptors_stay_closed(void)
{
	close(0);
	MUST(make("f") == 0);
	MUST(fcntl(0, F_SETFD, FD_CLOEXEC) == 0);
	run_helper("numbers", NULL);
	close(0), close(1), close(2);
	run_helper("numbers", NULL);
	MUST(make("g") == 0);
	say_numbers("here");
}

static void environment_of_its_own_keeps_the_child_attached(void)
{
	char *argv[] = {"sh", "-c", "echo x >in_child; env | grep -c '^FOO='; exec ls", NULL}, *env[] = {"FOO=1", NULL};
	int fd = make("f");
	pid_t pid = fork();

	if (pid == 0) {
		dup2(fd, 1);
		execve("/bin/sh", argv, env);
		_exit(9);
	}
	say("%d", wait_status(pid));
	say_file("f");
	pid = fork();
	if (pid == 0) {
		dup2(fd, 1);
		clearenv();
		execv("/bin/sh", argv);
		_exit(9);
	}
	say("%d", wait_status(pid));
	say_names(".");
}

/* ---- fork ---------------------------------------------------------------------------------------- */

static void child_closes_everything(void *arg)
{
	(void)arg;
	closefrom(3);
	say_numbers("in the child");
	SAY(make("in_child"));
	SAY(chdir(".."));
	umask(0);
}

static void forked_child_has_a_table_of_its_own(void)
{
	int fd = make("f");
	struct stat st;

	MUST(make("g") == 4);
	child_run("child", child_closes_everything, NULL);
	say_numbers("here");
	SAY(write(fd, "x", 1));
	SAY(access("f", F_OK));
	SAY(mkdir("d", 0777));
	SAY(stat("d", &st));
	say("mode %o", st.st_mode);
}

static void child_looks_at_locks(void *arg)
{
	int fd = *(int *)arg, other = open("f", O_RDWR);
	struct flock l = {.l_type = F_WRLCK};

	SAY(fcntl(fd, F_GETLK, &l));
	say("type %d whence %d, the parent's %d", l.l_type, l.l_whence, l.l_pid == getppid());
	l = (struct flock){.l_type = F_WRLCK};
	SAY(fcntl(fd, F_SETLK, &l));
	SAY(flock(other, LOCK_EX | LOCK_NB));
	SAY(flock(fd, LOCK_EX | LOCK_NB));
	SAY(close(fd));
	SAY(close(other));
}

static void record_locks_stay_with_the_parent_and_flock_with_the_description(void)
{
	int fd = make("f");
	struct flock l = {.l_type = F_WRLCK};

	SAY(fcntl(fd, F_SETLK, &l));
	SAY(flock(fd, LOCK_EX));
	child_run("child", child_looks_at_locks, &fd);
	child_run("again", child_looks_at_locks, &fd);
	SAY(flock(open("f", O_RDWR), LOCK_EX | LOCK_NB));
	SAY(flock(fd, LOCK_UN));
	SAY(flock(open("f", O_RDWR), LOCK_EX | LOCK_NB));
	child_run("and again", child_looks_at_locks, &fd);
}

static void *thread_forks(void *arg)
{
	unsigned bad = 0;

	(void)arg;
	for (unsigned i = 0; i < scaled(50); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			int fd = make("child");

			_exit(fd < 0 || write(fd, "x", 1) != 1 || close(fd));
		}
		bad += wait_status(pid) != 0;
	}
	return (void *)(uintptr_t)bad;
}

static void threads_fork_while_others_write(void)
{
	pthread_t t[3];
	int fd = make("f");
	void *bad;

	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, thread_forks, NULL);
	for (int i = 0; i < 20000; i++)
		MUST(pwrite(fd, "0123456789", 10, i % 100 * 10) == 10);
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], &bad);
		say("%lu bad", (unsigned long)(uintptr_t)bad);
	}
	say_numbers("here");
}

static int cloned(void *arg)
{
	int fd = make("cloned");

	close(*(int *)arg);
	return fd < 0;
}

static void clone_with_a_stack_of_its_own(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int fd = make("f");
	pid_t pid = clone(cloned, stack + sizeof(stack), SIGCHLD, &fd);

	say("status %d", wait_status(pid));
	SAY(write(fd, "x", 1));
	pid = clone(cloned, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &fd);
	say("status %d", wait_status(pid));
	SAY(write(fd, "x", 1));
	say_numbers("here");
}

static void system_and_popen(void)
{
	char buf[64] = "";
	FILE *p;

	SAY(system("echo one >a; cat a; false"));
	p = popen("echo two >b; cat a b", "r");
	SAY(fread(buf, 1, 63, p));
	SAY(pclose(p));
	say("%s", buf);
	p = popen("cat >c", "w");
	fprintf(p, "three");
	SAY(pclose(p));
	say_file("c");
}

static void child_lives_whose_parent_ends_at_once(void)
{
	struct stat st;
	int ended[2];
	char c;

	MUST(!pipe(ended));
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			if (fork())
				_exit(0);
			_exit(write(open("all", O_WRONLY | O_CREAT | O_APPEND, 0600), "x", 1) != 1);
		}
		wait_status(pid);
	}
	close(ended[1]);
	MUST(read(ended[0], &c, 1) == 0); /* all have ended */
	MUST(!stat("all", &st));
	say("%ld of 200", (long)st.st_size);
}

static void deep_chain_of_forks(void)
{
	int fd = make("f");

	say_flush();
	for (int i = 0; i < 30; i++) {
		pid_t pid = fork();

		if (pid) {
			int status = wait_status(pid);

			(void)!write(fd, ".", 1);
			if (i)
				_exit(status >> 8);
			say("status %d", status);
			break;
		}
		if (i == 29)
			_exit(write(fd, "!", 1) != 1);
	}
	say_file("f");
}

/* Threads that others start and end at once, each with something of its own, under a rain of signals that use files. */
enum { STARTERS = 4, LEAVES = 200 };

static __thread long leaf;
static int alarms_bad;

static void on_alarm(int sig)
{
	struct stat st;

	(void)sig;
	if (stat("base", &st) || st.st_size != 5)
		alarms_bad = 1;
}

static void *leaf_writes(void *number)
{
	char name[32], back[32] = "";
	int fd;

	leaf = (long)number;
	snprintf(name, sizeof(name), "leaf%ld", leaf);
	fd = make(name);
	(void)!write(fd, name, strlen(name));
	(void)!pread(fd, back, sizeof(back) - 1, 0);
	close(fd);
	unlink(name);
	return !strcmp(name, back) && leaf == (long)number ? NULL : "not so";
}

static void *starts_leaves(void *number)
{
	void *result, *bad = NULL;
	pthread_t t;

	for (long i = 0; i < LEAVES; i++) {
		if (pthread_create(&t, NULL, leaf_writes, (char *)number + i) || pthread_join(t, &result) || result)
			bad = "not so";
	}
	return bad;
}

static void threads_start_threads_while_signals_come(void)
{
	const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, 2000}, {0, 2000}};
	pthread_t t[STARTERS];
	void *result;

	put_file("base", "five\n");
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < STARTERS; i++)
		MUST(!pthread_create(&t[i], NULL, starts_leaves, (void *)(i * 1000)));
	for (long i = 0; i < STARTERS; i++)
		MUST(!pthread_join(t[i], &result) && !result);
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	MUST(!alarms_bad);
}

const struct program_case program_cases[] = {
	CASE(spawn_actions_act_on_the_child_alone),
	CASE(spawn_of_a_missing_program_changes_nothing),
	{"a_thousand_spawns", a_thousand_spawns, 300},
	CASE(a_thousand_threads),
	CASE(threads_start_threads_while_signals_come),
	{"threads_spawn_while_others_open_and_close", threads_spawn_while_others_open_and_close, 200},
	CASE(vfork_child_changes_its_own_table_only),
	CASE(vfork_child_that_exits_leaves_the_parent_whole),
	CASE(vfork_child_that_is_killed_leaves_the_parent_whole),
	CASE(vfork_in_a_vforks_child),
	CASE(vfork_child_maps_what_it_may_read),
	CASE(vfork_failed_exec_then_another),
	CASE(failed_exec_leaves_cloexec_descriptors),
	CASE(cloexec_closes_at_exec),
	CASE(offset_is_shared_over_fork_and_exec),
	CASE(cwd_and_umask_survive_exec),
	CASE(closed_standard_descriptors_stay_closed),
	CASE(environment_of_its_own_keeps_the_child_attached),
	CASE(forked_child_has_a_table_of_its_own),
	CASE(record_locks_stay_with_the_parent_and_flock_with_the_description),
	CASE(threads_fork_while_others_write),
	CASE(clone_with_a_stack_of_its_own),
	CASE(system_and_popen),
	CASE(child_lives_whose_parent_ends_at_once),
	CASE(deep_chain_of_forks),
	{0},
};

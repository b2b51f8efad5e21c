/* SPDX-License-Identifier: MIT */
/* callers.c - who makes a call: on little stack, with many arguments, in the middle of signals, beside other threads. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/statfs.h>

#include "cases.h"

extern char **environ;

static int wait_status(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* ---- many arguments -------------------------------------------------------------------------- */

#define MANY 30000

static char **many_strings(const char *first, const char *second, const char *third)
{
	static char *v[MANY + 5];
	unsigned n = 0;

	for (const char *const *head = (const char *const[]){first, second, third, NULL}; *head; head++)
		v[n++] = (char *)(uintptr_t)*head;
	for (int i = 0; i < MANY; i++) {
		v[n] = malloc(16);
		snprintf(v[n++], 16, "v%d=%d", i, i);
	}
	v[n] = NULL;
	return v;
}

static void put_script(const char *name, const char *text)
{
	put_file(name, text);
	MUST(!chmod(name, 0755));
}

static void many_variables_reach_a_spawned_program(void)
{
	char *argv[] = {"sh", "-c", "env | grep -c '^v' >count; echo $v0 $v29999 >>count", NULL};
	char **env = many_strings("PATH=/bin:/usr/bin", NULL, NULL);
	pid_t pid;

	for (int i = 0; i < 3; i++) {
		MUST(!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env));
		say("status %d", wait_status(pid));
		say_file("count");
	}
	pid = vfork();
	if (pid == 0) {
		execve("/bin/sh", argv, env);
		_exit(9);
	}
	say("status %d", wait_status(pid));
	say_file("count");
}

static void many_arguments_reach_a_spawned_script(void)
{
	char **argv = many_strings("a", "b", NULL);
	pid_t pid;

	put_script("inner", "#!/bin/sh -e\necho $# $1 $30001 ${30001} >count\n");
	put_script("outer", "#!./inner with an argument\n");
	for (int i = 0; i < 3; i++) {
		MUST(!posix_spawn(&pid, "./inner", NULL, NULL, argv, environ));
		say("status %d", wait_status(pid));
		say_file("count");
		MUST(!posix_spawn(&pid, "./outer", NULL, NULL, argv, environ));
		say("status %d", wait_status(pid));
		say_file("count");
	}
}

static long mapped_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	MUST(f && fscanf(f, "%ld", &pages) == 1);
	fclose(f);
	return pages * 4096;
}

static void spawning_leaves_no_memory_behind(void)
{
	char *argv[] = {"true", NULL};
	long before = 0, grown;
	pid_t pid;

	for (int i = 0; i < 60; i++) {
		if (i == 20)
			before = mapped_bytes();
		MUST(!posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) && !wait_status(pid));
	}
	grown = mapped_bytes() - before;
	say("grown by less than one map for each: %d", grown < 40 * 4096L);
}

static void bad_vectors_are_refused(void)
{
	char *volatile nowhere = (char *)16; /* the compiler does not see what it is */
	char *good[] = {"true", NULL}, *bad[] = {"true", nowhere, NULL}, **none = (char **)(void *)nowhere;

	SAY(execve("/bin/true", good, none));
	SAY(execve("/bin/true", good, bad));
	SAY(execve("/bin/true", none, environ));
	SAY(execve("/bin/true", bad, environ));
	put_script("script", "#!/bin/sh\n");
	SAY(execve("./script", none, environ));
	SAY(execve("./script", good, none));
}

/* ---- little stack -------------------------------------------------------------------------------- */

/* What the loader and libc need for the first call of a function is not asked of the small stack. */
static int quietly(int bad[16])
{
	char text[64], *p;
	struct stat st;
	int fd, n = 0;

	fd = openat(AT_FDCWD, "dir/../dir/./file", O_RDWR | O_CREAT, 0644);
	bad[n++] = fd < 0 ? errno : 0;
	bad[n++] = write(fd, "text", 4) == 4 ? 0 : errno;
	bad[n++] = stat("../../../../../../../../../../proc/self/../self/exe", &st) ? errno : 0;
	bad[n++] = stat("dir/link/../file", &st) ? errno : 0;
	bad[n++] = rename("dir/../dir/file", "dir/link/other") ? errno : 0;
	bad[n++] = link("dir/other", "dir/again") ? errno : 0;
	bad[n++] = readlink("dir/link", text, sizeof(text)) == 4 ? 0 : errno;
	bad[n++] = unlink("dir/again") ? errno : 0;
	p = getcwd(text, 1);
	bad[n++] = p ? 0 : errno;
	bad[n++] = mkdir("dir/deep", 0700) ? errno : 0;
	bad[n++] = rmdir("dir/deep") ? errno : 0;
	bad[n++] = close(fd) ? errno : 0;
	return n;
}

static int bad_calls[16], calls_made;

static void say_calls(void)
{
	for (int i = 0; i < calls_made; i++)
		say("call %d: %s", i, bad_calls[i] ? strerrorname_np(bad_calls[i]) : "done");
}

static void prepare_calls(void)
{
	MUST(!mkdir("dir", 0755) && !symlink("../d/", "dir/none") && !symlink(".//.", "dir/link"));
	calls_made = quietly(bad_calls);
	say_calls();
	memset(bad_calls, 0, sizeof(bad_calls));
}

static void *thread_calls(void *arg)
{
	(void)arg;
	calls_made = quietly(bad_calls);
	return NULL;
}

static void the_least_of_stacks_is_enough(void)
{
	pthread_attr_t attr;
	pthread_t t;

	prepare_calls();
	pthread_attr_init(&attr);
	MUST(!pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
	MUST(!pthread_create(&t, &attr, thread_calls, NULL) && !pthread_join(t, NULL));
	say_calls();
}

static void *waits(void *go)
{
	char c;

	(void)!read(*(int *)go, &c, 1);
	thread_calls(NULL);
	return NULL;
}

static void a_hundred_threads_on_the_least_of_stacks(void)
{
	pthread_attr_t attr;
	pthread_t t[100];
	int go[2];

	prepare_calls();
	MUST(!pipe(go));
	pthread_attr_init(&attr);
	MUST(!pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
	for (int i = 0; i < 100; i++)
		MUST(!pthread_create(&t[i], &attr, waits, &go[0]));
	for (int i = 0; i < 100; i++)
		MUST(write(go[1], "g", 1) == 1);
	for (int i = 0; i < 100; i++)
		MUST(!pthread_join(t[i], NULL));
	SAY(access("dir/other", F_OK));
}

static void on_signal_calls(int sig)
{
	(void)sig;
	calls_made = quietly(bad_calls);
}

static void a_handlers_own_stack_is_enough(void)
{
	struct sigaction sa = {.sa_handler = on_signal_calls, .sa_flags = SA_ONSTACK | SA_RESTART};
	size_t frame = getauxval(AT_MINSIGSTKSZ), size = ((frame ? frame : 2048) + 8192 + 4095) & ~4095UL;
	char *guarded = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = guarded + 4096, .ss_size = size};
	pid_t pid;
	int fd;

	prepare_calls();
	MUST(!mprotect(guarded, 4096, PROT_NONE) && !sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	MUST(!raise(SIGUSR1));
	say_calls();
	/* And while the thread is in a call with a path: the opening of a FIFO of the kernel's, which waits. */
	char fifo[4200];

	snprintf(fifo, sizeof(fifo), "%s/fifo", host_dir());
	MUST(!mkfifo(fifo, 0600));
	say_flush();
	pid = fork();
	if (pid == 0) {
		char state[64] = "", path[64];

		snprintf(path, sizeof(path), "/proc/%d/wchan", getppid());
		do {
			int w = open(path, O_RDONLY);

			memset(state, 0, sizeof(state));
			(void)!read(w, state, sizeof(state) - 1);
			close(w);
		} while (!strstr(state, "fifo") && !strstr(state, "wait_for_partner"));
		kill(getppid(), SIGUSR1);
		_exit(open(fifo, O_WRONLY) < 0);
	}
	memset(bad_calls, 0, sizeof(bad_calls));
	calls_made = 0;
	fd = open(fifo, O_RDONLY);
	MUST(fd >= 0 && !wait_status(pid));
	say_calls();
	unlink(fifo);
}

/* ---- signals together ------------------------------------------------------------------------------ */

static volatile sig_atomic_t told[65];

static void note(int sig, siginfo_t *info, void *context)
{
	(void)context;
	told[sig] += info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
}

static const int together[] = {SIGUSR1, SIGSEGV, SIGUSR2, SIGBUS, SIGHUP, SIGTERM};
#define TOGETHER (sizeof(together) / sizeof(together[0]))

static bool all_told(int round)
{
	for (size_t i = 0; i < TOGETHER; i++)
		if (told[together[i]] < round)
			return false;
	return true;
}

/* Sends all of them, again and again: the next ones when the other has said that these have come. */
static void send_together(pid_t to, unsigned rounds, int answer)
{
	char c;

	for (unsigned r = 0; r < rounds; r++) {
		for (size_t i = 0; i < TOGETHER; i++)
			kill(to, together[(i + r) % TOGETHER]);
		if (read(answer, &c, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void signals_and_faults_that_come_together_are_all_told(void)
{
	static char block[1 << 20];
	unsigned rounds = scaled(400), tries = 0;
	struct sigaction sa = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t mask;
	int answer[2], fd = open("file", O_RDWR | O_CREAT, 0600);
	pid_t pid, me = getpid();

	for (size_t i = 0; i < TOGETHER; i++)
		MUST(!sigaction(together[i], &sa, NULL));
	MUST(!pipe(answer));
	say_flush();
	pid = fork();
	if (pid == 0)
		send_together(me, rounds, answer[0]);
	for (unsigned r = 1; r <= rounds; r++) {
		for (tries = 0; !all_told((int)r) && tries < 20000; tries++)
			(void)!pwrite(fd, block, sizeof(block), 0);
		if (tries == 20000) {
			for (size_t i = 0; i < TOGETHER; i++)
				say("round %u: %s %d", r, strsignal(together[i]), told[together[i]]);
			break;
		}
		MUST(write(answer[1], "a", 1) == 1);
	}
	kill(pid, SIGKILL);
	wait_status(pid);
	for (size_t i = 0; i < TOGETHER; i++)
		say("%s: each was told once: %d", strsignal(together[i]), told[together[i]] == (int)rounds);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (size_t i = 0; i < TOGETHER; i++)
		say("%s blocked: %d", strsignal(together[i]), sigismember(&mask, together[i]));
}

/* ---- other threads ---------------------------------------------------------------------------------- */

/* From here on a call of umask fails. */
static void forbid_umask(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_umask, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0));
}

static void *sleeps(void *end)
{
	char c;

	(void)!read(*(int *)end, &c, 1);
	return NULL;
}

/* A process that has threads and has not used the shelf yet. */
static void first_use_beside_a_thread(const char *top)
{
	char path[4200];
	struct stat st = {0};
	pthread_t t;
	int end[2];

	MUST(!pipe(end));
	MUST(!pthread_create(&t, NULL, sleeps, &end[0]));
	umask(027);
	forbid_umask();
	snprintf(path, sizeof(path), "%s/made", top);
	MUST(!mkdir(path, 0777) && !stat(path, &st));
	say("mode %o", st.st_mode);
	close(end[1]);
	pthread_join(t, NULL);
}

int main_helper(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[0], "first_use"))
		first_use_beside_a_thread(argv[1]);
	return 0;
}

static void first_use_of_a_process_with_threads_leaves_the_umask_alone(void)
{
	char top[4096];
	pid_t pid;

	MUST(getcwd(top, sizeof(top)));
	MUST(!chdir("/"));
	say_flush();
	pid = fork();
	if (pid == 0) {
		execl(self_path, self_path, "--helper", "first_use", top, (char *)NULL);
		_exit(98);
	}
	say("status %d", wait_status(pid));
	MUST(!chdir(top));
	say_names(".");
}

/* ---- what the file system is ---------------------------------------------------------------------------- */

static void the_file_system_says_that_it_is_a_tmpfs(void)
{
	struct statfs fs;
	int fd = open("f", O_RDWR | O_CREAT, 0600);

	MUST(!statfs(".", &fs));
	say("%lx %lx %ld", (long)fs.f_type, (long)fs.f_bsize, (long)fs.f_namelen);
	MUST(!fstatfs(fd, &fs));
	say("%lx %lx %ld", (long)fs.f_type, (long)fs.f_bsize, (long)fs.f_namelen);
	SAY(fstatfs(fd, (void *)(uintptr_t)(fd + 13)));
}

const struct program_case program_cases[] = {
	CASE(many_variables_reach_a_spawned_program),
	CASE(many_arguments_reach_a_spawned_script),
	CASE(spawning_leaves_no_memory_behind),
	CASE(bad_vectors_are_refused),
	CASE(the_least_of_stacks_is_enough),
	CASE(a_hundred_threads_on_the_least_of_stacks),
	CASE(a_handlers_own_stack_is_enough),
	{"signals_and_faults_that_come_together_are_all_told", signals_and_faults_that_come_together_are_all_told, 300},
	CASE(first_use_of_a_process_with_threads_leaves_the_umask_alone),
	CASE(the_file_system_says_that_it_is_a_tmpfs),
	{0},
};

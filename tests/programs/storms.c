/* SPDX-License-Identifier: MIT */
/* storms.c - children by vfork while signals come all the time, and files that get shorter under their readers. */
#include <sched.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/time.h>

#include "cases.h"

extern char **environ;

/* ---- vfork and signals ------------------------------------------------------------------------------ */

static atomic_uint handled;
static int log_fd, data_fd;

/* What a handler does to the shelf must not meet half a call, neither of the parent's nor of the child's. */
static void on_signal(int sig)
{
	int saved = errno, fd;
	struct stat st;

	if (write(log_fd, sig == SIGALRM ? "a" : "u", 1) == 1)
		atomic_fetch_add(&handled, 1);
	fd = open("data", O_RDONLY);
	if (fd < 0 || fstat(fd, &st) || close(fd))
		abort();
	errno = saved;
}

static void catch_all(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaddset(&sa.sa_mask, SIGALRM);
	sigaddset(&sa.sa_mask, SIGUSR1);
	MUST(!sigaction(SIGALRM, &sa, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	MUST(!setitimer(ITIMER_REAL, &(struct itimerval){{0, 300}, {0, 300}}, NULL));
}

static void send_signals(void *arg)
{
	(void)arg;
	while (!kill(getppid(), SIGUSR1) && getppid() != 1)
		sched_yield();
}

/* The child's own numbers; what it leaves with is what the parent expects of round K. */
static int vfork_round(unsigned k)
{
	int status = -1;
	volatile pid_t pid = vfork();

	if (!pid) {
		int fd = open("data", O_RDWR);

		if (dup2(fd, 9) != 9 || close(fd) || lseek(data_fd, 0, SEEK_SET) || close(data_fd))
			_exit(99);
		if (k % 3 == 0)
			_exit(7);
		if (k % 3 == 1)
			kill(getpid(), SIGKILL);
		execl("/bin/sh", "sh", "-c", "read x <&9; [ \"$x\" = text ] && echo line >>lines; exit 7", NULL);
		_exit(98);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return k % 3 == 1 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

static int spawn_round(void)
{
	char *argv[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", (char *)(uintptr_t)"cat >>lines", NULL};
	posix_spawn_file_actions_t fa;
	int status = -1, err;
	pid_t pid;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "data", O_RDONLY, 0);
	err = posix_spawnp(&pid, "sh", &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	while (!err && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return !err && status == 0;
}

static void children_by_vfork_in_a_storm_of_signals(void)
{
	unsigned rounds = scaled(300), right = 0, spawned = 0;
	struct sigaction ign = {.sa_handler = SIG_IGN};
	struct stat st;
	pid_t sender;

	put_file("data", "text\n");
	put_file("lines", "");
	log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	data_fd = open("data", O_RDWR | O_CLOEXEC);
	say_flush();
	catch_all();
	sender = child_start(send_signals, NULL);
	for (unsigned k = 0; k < rounds; k++) {
		right += vfork_round(k) == 1;
		if (k % 10 == 0)
			spawned += spawn_round() == 1;
	}
	kill(sender, SIGKILL);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	sigaction(SIGALRM, &ign, NULL);
	sigaction(SIGUSR1, &ign, NULL);
	while (waitpid(sender, NULL, 0) < 0 && errno == EINTR)
		;
	say("right %u of %u, spawned %u", right, rounds, spawned);
	MUST(!fstat(log_fd, &st));
	say("each handler's byte is there: %d", (unsigned)st.st_size == atomic_load(&handled) && st.st_size > 0);
	unlink("log");
	MUST(!stat("lines", &st));
	say("lines %ld", (long)st.st_size);
	say_numbers("in the end");
}

/* ---- shorter files ------------------------------------------------------------------------------------------ */

enum { SIZE = 300000 };

static unsigned char byte_at(size_t pos)
{
	return (unsigned char)(pos / 7 * 31 + pos + 1) | 1;
}

static void change_size(void *arg)
{
	static unsigned char text[SIZE];
	int fd = open("f", O_RDWR);
	uint64_t random = 12345;

	(void)arg;
	for (size_t i = 0; i < SIZE; i++)
		text[i] = byte_at(i);
	for (;;) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		size_t at = (size_t)(random >> 33) % SIZE;

		if (ftruncate(fd, (off_t)at) || (at & 1 && ftruncate(fd, SIZE)))
			_exit(1);
		while (pwrite(fd, text, SIZE, 0) != SIZE) /* while the reader does not run it keeps what it has mapped */
			sched_yield();
	}
}

/* Each byte is what was written there, or a hole's. */
static int wrong_bytes(const unsigned char *buf, size_t n, size_t pos)
{
	int wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += buf[i] && buf[i] != byte_at(pos + i);
	return wrong;
}

static sigjmp_buf beyond;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(beyond, 1);
}

static int look_at_map(const unsigned char *map, size_t pos, size_t n)
{
	static unsigned char copy[8192];

	if (sigsetjmp(beyond, 1))
		return 0; /* it lies beyond the end */
	memcpy(copy, map + pos, n);
	return wrong_bytes(copy, n, pos);
}

static void readers_of_a_file_that_gets_shorter(void)
{
	static unsigned char buf[8192];
	int wrong[4] = {0}, failed = 0, p[2], fd;
	uint64_t random = 99;
	pid_t changer;

	put_file("f", "");
	MUST(!truncate("f", SIZE) && !pipe(p));
	changer = child_start(change_size, NULL); /* before: one who maps it, too, keeps all until one of them is gone */
	fd = open("f", O_RDONLY);
	const unsigned char *shared = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	const unsigned char *private = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	MUST(shared != MAP_FAILED && private != MAP_FAILED);
	signal(SIGBUS, on_bus);
	for (unsigned k = 0; k < scaled(20000); k++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		size_t pos = (size_t)(random >> 33) % (SIZE - sizeof(buf));
		off_t at = (off_t)pos;
		ssize_t n = pread(fd, buf, sizeof(buf), at);

		failed += n < 0;
		wrong[0] += wrong_bytes(buf, n > 0 ? (size_t)n : 0, pos);
		wrong[1] += look_at_map(shared, pos, sizeof(buf));
		wrong[2] += look_at_map(private, pos, sizeof(buf));
		n = sendfile(p[1], fd, &at, sizeof(buf));
		failed += n < 0;
		if (n > 0 && read(p[0], buf, (size_t)n) == n)
			wrong[3] += wrong_bytes(buf, (size_t)n, pos);
	}
	kill(changer, SIGKILL);
	child_end("changer", changer);
	say("wrong: read %d, shared map %d, private map %d, sendfile %d; failed %d", wrong[0], wrong[1], wrong[2], wrong[3], failed);
	unlink("f");
}

/* A program that reads it line by line, and one that copies it. */
static void programs_read_a_file_that_gets_shorter(void)
{
	pid_t changer;

	put_file("f", "");
	MUST(!truncate("f", SIZE));
	changer = child_start(change_size, NULL);
	for (unsigned k = 0; k < scaled(20); k++) {
		int status = system("exec 2>/dev/null; cat f >/dev/null; cp f g; wc -c <f >/dev/null; grep -c x f >/dev/null; sort f >/dev/null\n"
				    "tail -c 1000 f >/dev/null; gzip -c f >/dev/null; [ $? -lt 3 ]");

		MUST(WIFEXITED(status) && !WEXITSTATUS(status));
	}
	kill(changer, SIGKILL);
	child_end("changer", changer);
	unlink("f");
	unlink("g");
}

const struct program_case program_cases[] = {
	{"children_by_vfork_in_a_storm_of_signals", children_by_vfork_in_a_storm_of_signals, 300},
	{"readers_of_a_file_that_gets_shorter", readers_of_a_file_that_gets_shorter, 300},
	{"programs_read_a_file_that_gets_shorter", programs_read_a_file_that_gets_shorter, 300},
	{NULL, NULL, 0},
};

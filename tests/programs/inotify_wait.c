/* SPDX-License-Identifier: MIT */
/*
 * inotify_wait.c - how one waits for events, alone, with other descriptors and with the host's watches beside; and who has the
 * descriptor: copies of it, children, new images, the killed.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "events.h"

/* ---- waiting --------------------------------------------------------------------------------------------------- */

static void say_ready(const char *what, int in)
{
	struct pollfd p = {in, POLLIN | POLLOUT, 0};
	struct timeval none = {0, 0};
	fd_set set;
	int n = poll(&p, 1, 0), k;

	FD_ZERO(&set);
	FD_SET(in, &set);
	k = select(in + 1, &set, NULL, NULL, &none);
	say("%s: poll %d %x, select %d %d", what, n, p.revents, k, FD_ISSET(in, &set) != 0);
}

static void readiness_follows_the_queue(void)
{
	int in = watching(".", IN_CREATE);

	say_ready("at first", in);
	touch("a"), touch("b"), touch("c");
	say_ready("three", in);
	read_once(in, 32);
	say_ready("two", in);
	read_once(in, 40);
	say_ready("one", in);
	read_once(in, 32);
	say_ready("none", in);
	touch("d");
	say_ready("again", in);
	read_once(in, 1000);
	say_ready("at last", in);
}

static void touch_later(void *path)
{
	touch(path);
}

static void waiting_for_others(void)
{
	int in = inotify_init(), pipes[2], ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = 7};
	struct pollfd p[2];
	pid_t pid;

	MUST(!pipe(pipes));
	/* Set up before the first watch. */
	SAY(epoll_ctl(ep, EPOLL_CTL_ADD, in, &ev));
	ev.data.u32 = 8;
	SAY(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &ev));
	SAY(inotify_add_watch(in, ".", IN_CREATE));
	p[0] = (struct pollfd){pipes[0], POLLIN, 0}, p[1] = (struct pollfd){in, POLLIN, 0};
	SAY(epoll_wait(ep, &ev, 1, 0));
	pid = child_start(touch_later, "by_child");
	SAY(poll(p, 2, 20000));
	say("%x %x", p[0].revents, p[1].revents);
	child_end("child", pid);
	SAY(epoll_wait(ep, &ev, 1, 20000));
	say("epoll: %x %u", ev.events, ev.data.u32);
	read_once(in, 1000);
	SAY(epoll_wait(ep, &ev, 1, 0));
	pid = child_start(touch_later, "another");
	read_once(in, 1000);
	child_end("child", pid);
	MUST(write(pipes[1], "x", 1) == 1);
	SAY(epoll_wait(ep, &ev, 1, 20000));
	say("epoll: %x %u", ev.events, ev.data.u32);
	ev.events = EPOLLIN | EPOLLET;
	SAY(epoll_ctl(ep, EPOLL_CTL_MOD, in, &ev));
	MUST(read(pipes[0], &pid, 1) == 1);
	SAY(epoll_wait(ep, &ev, 1, 0));
	touch("edge");
	SAY(epoll_wait(ep, &ev, 1, 20000));
	SAY(epoll_wait(ep, &ev, 1, 0));
	read_once(in, 1000);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void *touches(void *path)
{
	touch(path);
	return NULL;
}

static void a_signal_ends_the_wait(void)
{
	struct sigaction act = {.sa_handler = on_alarm};
	int in = inotify_init();
	pthread_t thread;

	SAY(inotify_add_watch(in, ".", IN_CREATE));
	sigaction(SIGALRM, &act, NULL);
	alarm(1);
	read_once(in, 1000);
	act.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &act, NULL);
	MUST(!raise(SIGUSR1));
	MUST(!pthread_create(&thread, NULL, touches, "by_thread"));
	read_once(in, 1000);
	pthread_join(thread, NULL);
}

/* ---- with the host's beside it ------------------------------------------------------------------------------------ */

static char beside[4096];

static const char *host_path(const char *name)
{
	static char path[4200];

	snprintf(path, sizeof(path), "%s/%s", beside, name);
	return path;
}

/* Those of the shelf and those of the kernel are in order each: said watch by watch. */
static void read_by_watch(int in)
{
	static _Alignas(8) char buf[4096];
	ssize_t n = read(in, buf, sizeof(buf)), at;
	struct inotify_event e;
	int wd;

	say("%zd", n);
	for (wd = 1; wd < 9; wd++)
		for (at = 0; at < n; at += (ssize_t)(sizeof(e) + e.len)) {
			memcpy(&e, buf + at, sizeof(e));
			if (e.wd == wd)
				say_events(buf + at, (ssize_t)(sizeof(e) + e.len));
		}
}

static void here_and_on_the_host(void)
{
	int in = inotify_init1(IN_NONBLOCK);

	snprintf(beside, sizeof(beside), "%s/watched", host_dir());
	MUST(!mkdir(beside, 0755) && !mkdir(host_path("first"), 0755) && !mkdir("d", 0755));
	SAY(inotify_add_watch(in, host_path("first"), IN_CREATE));
	touch(host_path("first/one"));
	SAY(inotify_add_watch(in, ".", IN_CREATE | IN_DELETE));
	SAY(inotify_add_watch(in, beside, IN_CREATE | IN_DELETE));
	SAY(inotify_add_watch(in, "d", IN_CREATE | IN_DELETE));
	SAY(inotify_add_watch(in, beside, IN_CREATE | IN_DELETE));
	SAY(inotify_add_watch(in, host_path("first"), IN_CREATE));
	told("before", in);
	touch("here"), touch(host_path("there")), touch("d/here"), touch(host_path("first/two"));
	say_ready("all", in);
	read_by_watch(in);
	say_ready("read", in);
	touch("again"), touch(host_path("again"));
	read_by_watch(in);
	SAY(inotify_rm_watch(in, 3));
	told("one of the host's removed", in);
	SAY(inotify_rm_watch(in, 2));
	told("one of ours removed", in);
	SAY(inotify_rm_watch(in, 3));
	MUST(!unlink(host_path("first/one")) && !unlink(host_path("first/two")) && !rmdir(host_path("first")));
	told("the host's first is gone", in);
	SAY(inotify_rm_watch(in, 1));
	SAY(inotify_add_watch(in, beside, IN_CREATE));
	SAY(inotify_add_watch(in, ".", IN_CREATE));
	MUST(!unlink(host_path("there")) && !unlink(host_path("again")) && !rmdir(beside));
	told("the end", in);
}

/* ---- who has the descriptor ------------------------------------------------------------------------------------------ */

static void read_here(void *in)
{
	read_once(*(int *)in, 1000);
}

static void add_here(void *in)
{
	SAY(inotify_add_watch(*(int *)in, ".", IN_CREATE));
}

static void copies_of_the_descriptor(void)
{
	int in = inotify_init1(IN_NONBLOCK), other = dup(in), third;

	child_run("a child adds the first watch", add_here, &in);
	touch("a");
	read_once(other, 1000);
	SAY(inotify_add_watch(other, ".", IN_CREATE | IN_DELETE));
	SAY(dup2(in, 40));
	third = fcntl(in, F_DUPFD_CLOEXEC, 20);
	say("%d", third);
	close(in);
	MUST(!unlink("a"));
	read_once(40, 1000);
	touch("b");
	child_run("a child", read_here, &third);
	say_numbers("now");
	SAY(close_range(other, 39, 0));
	touch("c");
	read_once(40, 1000);
	SAY(dup2(1, 40));
	SAY(inotify_add_watch(40, ".", IN_CREATE));
	SAY(close(40));
	in = inotify_init1(IN_NONBLOCK);
	SAY(inotify_add_watch(in, ".", IN_CREATE));
	touch("d");
	told("a new one", in);
}

static void start_again(const char *name, int in)
{
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%d", in);
	say_flush();
	pid = fork();
	if (!pid) {
		execl(self_path, self_path, "--helper", name, number, NULL);
		_exit(99);
	}
	child_end(name, pid);
}

int main_helper(int argc, char **argv)
{
	_Alignas(8) char buf[1000];
	int in = argc > 1 ? atoi(argv[1]) : -1;
	ssize_t n = read(in, buf, sizeof(buf));

	if (!strcmp(argv[0], "closed"))
		return n < 0 && errno == EBADF ? 3 : 4;
	if (n != 32 || strcmp(((struct inotify_event *)(void *)buf)->name, "before"))
		return 5;
	if (inotify_add_watch(in, "d", IN_CREATE) != 2)
		return 6;
	touch("d/x");
	n = read(in, buf, sizeof(buf));
	return n == 32 && ((struct inotify_event *)(void *)buf)->wd == 2 ? 7 : 8;
}

static void the_descriptor_after_exec(void)
{
	int in = inotify_init1(IN_NONBLOCK);

	SAY(inotify_add_watch(in, ".", IN_CREATE));
	MUST(!mkdir("d", 0755));
	read_once(in, 1000);
	touch("before");
	start_again("kept", in);
	touch("after");
	told("here", in);
	MUST(!fcntl(in, F_SETFD, FD_CLOEXEC));
	start_again("closed", in);
	told("still here", in);
}

static void killed(void *arg)
{
	int in = inotify_init();

	(void)arg;
	MUST(inotify_add_watch(in, "d", IN_ALL_EVENTS) == 1);
	raise(SIGKILL);
}

static void waits_and_is_killed(void *arg)
{
	char buf[1000];

	(void)arg;
	MUST(read(*(int *)arg, buf, sizeof(buf)) > 0);
}

static void the_killed_leave_nothing(void)
{
	int in = inotify_init1(IN_NONBLOCK), slow = inotify_init();
	pid_t pid;

	MUST(!mkdir("d", 0755));
	SAY(inotify_add_watch(in, "d", IN_CREATE));
	SAY(inotify_add_watch(slow, "d", IN_DELETE));
	child_run("killed", killed, NULL);
	pid = child_start(waits_and_is_killed, &slow);
	usleep(20000); /* it may wait by then, or not: both are to be survived */
	kill(pid, SIGKILL);
	child_end("waiting", pid);
	touch("d/f");
	told("afterwards", in);
	MUST(!unlink("d/f"));
	read_once(slow, 1000);
}

static void makes_noise(void *arg)
{
	(void)arg;
	for (;;) {
		touch("noise");
		unlink("noise");
	}
}

/* Reads on until NAME is made; how long that may take does not matter, but it must not be for ever. */
static bool hears(int in, const char *name)
{
	static _Alignas(8) char buf[65536];
	struct pollfd p = {in, POLLIN, 0};
	struct inotify_event e;
	ssize_t n, at;

	while (poll(&p, 1, 20000) == 1)
		for (n = read(in, buf, sizeof(buf)), at = 0; at < n; at += (ssize_t)(sizeof(e) + e.len)) {
			memcpy(&e, buf + at, sizeof(e));
			if (e.mask & IN_CREATE && !strcmp(buf + at + sizeof(e), name))
				return true;
		}
	return false;
}

/* What was heard so far is let go: a full queue (16,384 events) has no room for what comes. */
static void let_go(int in)
{
	static _Alignas(8) char buf[65536];
	struct pollfd p = {in, POLLIN, 0};

	while (poll(&p, 1, 0) == 1 && read(in, buf, sizeof(buf)) > 0)
		;
}

/* In whatever moment the one who changes things dies, the next who does is heard. */
static void the_killed_keep_nobody_from_being_heard(void)
{
	int in = watching(".", IN_CREATE | IN_DELETE), round, heard = 0;
	char mark[32];
	pid_t pid;

	for (round = 0; round < 40; round++) {
		pid = child_start(makes_noise, NULL);
		for (int k = 0; k <= round % 7; k++)
			MUST(hears(in, "noise"));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		unlink("noise");
		let_go(in);
		snprintf(mark, sizeof(mark), "mark%d", round);
		touch(mark);
		heard += hears(in, mark);
		MUST(!unlink(mark));
	}
	say("heard %d of %d", heard, round);
}

const struct program_case program_cases[] = {
	CASE(readiness_follows_the_queue), CASE(waiting_for_others), CASE(a_signal_ends_the_wait), CASE(here_and_on_the_host),
	CASE(copies_of_the_descriptor), CASE(the_descriptor_after_exec), CASE(the_killed_leave_nothing),
	CASE(the_killed_keep_nobody_from_being_heard), {NULL, NULL, 0},
};

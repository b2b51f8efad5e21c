/* SPDX-License-Identifier: MIT */
/*
 * inotify.c - what is told of files and directories, field by field, and how one waits for it; a directory of the host's is
 * watched beside.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#include "cases.h"

#ifndef IN_MASK_CREATE
#define IN_MASK_CREATE 0x10000000
#endif

/* ---- saying events --------------------------------------------------------------------------------- */

/* The cookie as the n-th that was seen. */
static unsigned cookie_number(uint32_t cookie)
{
	static uint32_t seen[64];
	static unsigned count;
	unsigned k;

	if (!cookie)
		return 0;
	for (k = 0; k < count; k++)
		if (seen[k] == cookie)
			return k + 1;
	MUST(count < 64);
	seen[count++] = cookie;
	return count;
}

static void say_events(const char *buf, ssize_t n)
{
	ssize_t at;

	for (at = 0; at < n;) {
		struct inotify_event e;

		memcpy(&e, buf + at, sizeof(e));
		say("  wd %d mask %08x cookie %u len %u '%s'", e.wd, e.mask, cookie_number(e.cookie), e.len,
		    e.len ? buf + at + sizeof(e) : "");
		for (uint32_t k = 0; k < e.len; k++)
			if (k > strlen(buf + at + sizeof(e)))
				MUST(!buf[at + (ssize_t)sizeof(e) + k]);
		at += (ssize_t)(sizeof(e) + e.len);
	}
	MUST(at == n || n < 0);
}

/* One read of SIZE bytes. */
static ssize_t read_once(int in, size_t size)
{
	static _Alignas(8) char buf[65536];
	ssize_t n;

	memset(buf, 0x55, sizeof(buf));
	n = read(in, buf, size);
	if (n < 0)
		say("read: %s", strerrorname_np(errno));
	else
		say("read: %zd", n);
	say_events(buf, n);
	return n;
}

/* All that waits; `in` does not block. */
static void told(const char *what, int in)
{
	int waits = -1;

	ioctl(in, FIONREAD, &waits);
	say("%s: %d bytes", what, waits);
	while (read_once(in, 65536) > 0)
		;
}

static int watching(const char *path, uint32_t mask)
{
	int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	MUST(in >= 0);
	SAY(inotify_add_watch(in, path, mask));
	return in;
}

static void touch(const char *path)
{
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/* ---- what is told ------------------------------------------------------------------------------------- */

static void changes_in_a_directory(void)
{
	char buf[100];
	int in, fd;

	MUST(!mkdir("d", 0755));
	in = watching("d", IN_ALL_EVENTS);
	fd = open("d/file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	told("created", in);
	MUST(write(fd, "some text", 9) == 9 && write(fd, "", 0) == 0);
	MUST(pread(fd, buf, sizeof(buf), 0) == 9 && pread(fd, buf, sizeof(buf), 9) == 0);
	MUST(pwrite(fd, "x", 1, 5000) == 1 && !ftruncate(fd, 100) && !fallocate(fd, 0, 0, 8192));
	told("written and read", in);
	MUST(!fchmod(fd, 0600) && !fchown(fd, -1, getgid()) && !fchown(fd, -1, -1));
	told("attributes", in);
	close(fd);
	told("closed", in);
	close(open("d/file", O_RDONLY | O_CLOEXEC));
	close(open("d/file", O_PATH | O_CLOEXEC));
	close(open("d/file", O_WRONLY | O_TRUNC | O_CLOEXEC));
	MUST(!truncate("d/file", 10) && !truncate("d/file", 10) && !chmod("d/file", 0644));
	told("by path", in);
	MUST(!mkdir("d/sub", 0755) && !symlink("nowhere", "d/link") && !mknod("d/fifo", S_IFIFO | 0600, 0) && !link("d/file", "d/other"));
	told("names", in);
	MUST(!unlink("d/other") && !unlink("d/file") && !unlink("d/link") && !unlink("d/fifo") && !rmdir("d/sub"));
	told("removed", in);
}

static void times_and_attributes(void)
{
	struct timespec both[2] = {{1, 0}, {2, 0}}, access[2] = {{1, 0}, {0, UTIME_OMIT}}, mod[2] = {{0, UTIME_OMIT}, {1, 0}},
			none[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
	int in;

	put_file("f", "text");
	in = watching(".", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, "f", IN_ALL_EVENTS));
	MUST(!utimensat(AT_FDCWD, "f", both, 0));
	told("both times", in);
	MUST(!utimensat(AT_FDCWD, "f", access, 0));
	told("one", in);
	MUST(!utimensat(AT_FDCWD, "f", mod, 0) && !utimensat(AT_FDCWD, "f", none, 0));
	told("the other", in);
	MUST(!utimensat(AT_FDCWD, "f", NULL, 0));
	told("now", in);
	SAY(setxattr("f", "user.name", "value", 5, 0));
	SAY(removexattr("f", "user.name"));
	SAY(removexattr("f", "user.name"));
	told("xattrs", in);
	MUST(!mkdir("d", 0755));
	told("mkdir", in);
	SAY(inotify_add_watch(in, "d", IN_ALL_EVENTS));
	MUST(!chmod("d", 0700));
	told("a directory", in);
}

static void a_file_and_its_directory(void)
{
	int in, fd;

	put_file("f", "text");
	in = watching(".", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, "f", IN_ALL_EVENTS));
	fd = open("f", O_RDWR | O_CLOEXEC);
	MUST(write(fd, "abc", 3) == 3);
	told("both hear", in);
	MUST(!rename("f", "g"));
	told("renamed", in);
	MUST(!unlink("g"));
	told("unlinked, open", in);
	MUST(write(fd, "abc", 3) == 3);
	close(fd);
	told("closed", in);
	put_file("h", "text");
	told("made", in);
	SAY(inotify_add_watch(in, "h", IN_ALL_EVENTS));
	MUST(!unlink("h"));
	told("unlinked, closed", in);
	SAY(inotify_rm_watch(in, 2));
	MUST(!mkdir("d", 0755) && inotify_add_watch(in, "d", IN_ALL_EVENTS) == 4 && !rmdir("d"));
	told("a directory removed", in);
}

static void moves(void)
{
	int in;

	MUST(!mkdir("a", 0755) && !mkdir("b", 0755) && !mkdir("out", 0755) && !mkdir("a/sub", 0755));
	put_file("a/f", "f"), put_file("b/victim", "v"), put_file("out/o", "o"), put_file("a/x", "x"), put_file("b/y", "y");
	in = watching("a", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, "b", IN_ALL_EVENTS));
	SAY(inotify_add_watch(in, "a/f", IN_ALL_EVENTS));
	SAY(inotify_add_watch(in, "b/victim", IN_ALL_EVENTS));
	SAY(inotify_add_watch(in, "a/sub", IN_ALL_EVENTS));
	MUST(!rename("a/f", "a/g"));
	told("within", in);
	MUST(!rename("a/g", "b/g"));
	told("across", in);
	MUST(!rename("b/g", "b/victim"));
	told("over", in);
	MUST(!rename("b/victim", "out/v"));
	told("out", in);
	MUST(!rename("out/o", "a/o"));
	told("in", in);
	MUST(!rename("a/sub", "b/sub"));
	told("a directory", in);
	MUST(!renameat2(AT_FDCWD, "a/x", AT_FDCWD, "b/y", RENAME_EXCHANGE));
	told("exchanged", in);
	MUST(!rename("a/o", "a/o"));
	told("onto itself", in);
	MUST(!mkdir("b/empty", 0755) && inotify_add_watch(in, "b/empty", IN_ALL_EVENTS) == 6 && !rename("b/sub", "b/empty"));
	told("a directory over one", in);
}

static void links(void)
{
	int in, fd;

	put_file("f", "text");
	in = watching("f", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, ".", IN_ALL_EVENTS));
	MUST(!link("f", "g"));
	told("linked", in);
	SAY(inotify_add_watch(in, "g", IN_ATTRIB | IN_OPEN));
	MUST(!mkdir("d", 0755) && !link("f", "d/h"));
	told("linked elsewhere", in);
	fd = open("g", O_RDONLY | O_CLOEXEC);
	told("opened by its second name", in);
	MUST(!unlink("g") && !unlink("f"));
	told("two names less", in);
	close(fd);
	told("closed", in);
	MUST(!unlink("d/h"));
	told("the last", in);
}

static void listing_a_directory(void)
{
	int in, fd;
	DIR *dir;

	MUST(!mkdir("d", 0755) && !mkdir("d/e", 0755));
	in = watching("d", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, "d/e", IN_ALL_EVENTS));
	dir = opendir("d/e");
	told("opened", in);
	while (readdir(dir))
		;
	told("listed", in);
	closedir(dir);
	told("closed", in);
	fd = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(fd);
	told("the other", in);
}

static void copies(void)
{
	int in, from, to;

	put_file("from", "some text of the source");
	put_file("to", "");
	in = watching(".", IN_ALL_EVENTS);
	from = open("from", O_RDONLY | O_CLOEXEC), to = open("to", O_WRONLY | O_CLOEXEC);
	told("opened", in);
	MUST(sendfile(to, from, NULL, 4) == 4);
	told("sent", in);
	MUST(copy_file_range(from, NULL, to, NULL, 4, 0) == 4);
	told("copied", in);
}

static void the_mask_decides(void)
{
	static const uint32_t one[] = {IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_CLOSE_NOWRITE, IN_OPEN, IN_MOVED_FROM,
				       IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF};
	int in[12];
	char buf[10];

	MUST(!mkdir("d", 0755));
	for (unsigned k = 0; k < 12; k++)
		in[k] = watching("d", one[k]);
	put_file("d/f", "text");
	int fd = open("d/f", O_RDONLY | O_CLOEXEC);
	MUST(read(fd, buf, 10) == 4);
	close(fd);
	MUST(!chmod("d/f", 0600) && !rename("d/f", "d/g") && !unlink("d/g") && !rename("d", "e") && !rmdir("e"));
	for (unsigned k = 0; k < 12; k++)
		told("one bit", in[k]);
}

static void flags_of_a_watch(void)
{
	int in, fd;

	MUST(!mkdir("d", 0755) && !symlink("d", "link"));
	put_file("f", "text");
	in = inotify_init1(IN_NONBLOCK);
	SAY(inotify_add_watch(in, "f", IN_ONLYDIR | IN_OPEN));
	SAY(inotify_add_watch(in, "link", IN_DONT_FOLLOW | IN_DELETE_SELF | IN_ATTRIB));
	SAY(inotify_add_watch(in, "link", IN_ALL_EVENTS));
	SAY(inotify_add_watch(in, "link", IN_ALL_EVENTS | IN_DONT_FOLLOW | IN_ONLYDIR));
	MUST(!unlink("link"));
	told("the link", in);
	SAY(inotify_add_watch(in, "f", IN_ONESHOT | IN_OPEN | IN_CLOSE));
	close(open("f", O_RDONLY));
	close(open("f", O_RDONLY));
	told("once", in);
	SAY(inotify_add_watch(in, "f", IN_OPEN));
	SAY(inotify_add_watch(in, "f", IN_MASK_CREATE | IN_OPEN));
	SAY(inotify_add_watch(in, "f", IN_MASK_ADD | IN_ATTRIB));
	MUST(!chmod("f", 0600));
	close(open("f", O_RDONLY));
	told("added to", in);
	SAY(inotify_add_watch(in, "f", IN_CLOSE));
	MUST(!chmod("f", 0644));
	close(open("f", O_RDONLY));
	told("replaced", in);
	SAY(inotify_add_watch(in, "d", IN_ALL_EVENTS | IN_EXCL_UNLINK));
	fd = open("d/x", O_WRONLY | O_CREAT, 0644);
	MUST(write(fd, "a", 1) == 1 && !unlink("d/x") && write(fd, "b", 1) == 1);
	close(fd);
	told("unlinked ones excluded", in);
	SAY(inotify_add_watch(in, "d", IN_MASK_ADD));
	SAY(inotify_add_watch(in, "d", IN_ISDIR));
}

static void what_is_wrong(void)
{
	int in = inotify_init1(IN_NONBLOCK), fd;

	put_file("f", "text");
	fd = open("f", O_RDONLY);
	SAY(inotify_init1(1));
	SAY(inotify_add_watch(in, "none", IN_OPEN));
	SAY(inotify_add_watch(in, "f/x", IN_OPEN));
	SAY(inotify_add_watch(in, "", IN_OPEN));
	SAY(inotify_add_watch(in, "f", 0));
	SAY(inotify_add_watch(in, "f", 0x00010000));
	SAY(inotify_add_watch(in, "f", IN_OPEN | IN_MASK_ADD | IN_MASK_CREATE));
	SAY(inotify_add_watch(77, "f", IN_OPEN));
	SAY(inotify_add_watch(fd, "f", IN_OPEN));
	SAY(inotify_add_watch(1, "f", IN_OPEN));
	SAY(inotify_rm_watch(in, 1));
	SAY(inotify_rm_watch(fd, 1));
	SAY(inotify_rm_watch(77, 1));
	SAY(inotify_add_watch(in, "f", IN_OPEN));
	SAY(inotify_rm_watch(in, 5));
	SAY(inotify_rm_watch(in, -1));
	SAY(read(in, &fd, 4));
	SAY(write(in, "x", 1));
	SAY(lseek(in, 0, SEEK_SET));
	SAY(pread(in, &fd, 4, 0));
	SAY(ftruncate(in, 0));
	SAY(inotify_rm_watch(in, 1));
	told("removed", in);
	SAY(inotify_add_watch(in, "f", IN_OPEN));
	SAY(fcntl(in, F_GETFL));
}

/* ---- the queue --------------------------------------------------------------------------------------------- */

static void reading_in_pieces(void)
{
	_Alignas(8) char a[40], b[100];
	struct iovec iov[2] = {{a, 32}, {b, sizeof(b)}};
	int in = watching(".", IN_CREATE);
	ssize_t n;

	touch("short"), touch("a_name_of_15_by"), touch("a_name_of_16_byt"), touch("x");
	read_once(in, 0);
	read_once(in, 15);
	read_once(in, 16);
	read_once(in, 31);
	read_once(in, 32);
	read_once(in, 47);
	read_once(in, 80);
	read_once(in, 100);
	read_once(in, 100);
	touch("one"), touch("two"), touch("three");
	n = SAY(readv(in, iov, 2));
	say_events(a, 32);
	say_events(b, n - 32);
	SAY(syscall(SYS_read, in, (void *)8, 100));
	told("the rest", in);
}

static void equal_events_are_merged(void)
{
	int in = watching(".", IN_ATTRIB | IN_CREATE), k;

	touch("f"), touch("g");
	for (k = 0; k < 5; k++)
		MUST(!chmod("f", 0600));
	MUST(!chmod("g", 0600));
	for (k = 0; k < 5; k++)
		MUST(!chmod("f", 0600));
	told("merged", in);
}

static void too_many_events(void)
{
	int in = watching(".", IN_ATTRIB), waits = -1, events = 0, k;
	static _Alignas(8) char buf[65536];
	uint32_t last = 0;
	ssize_t n, at;

	touch("f"), touch("g");
	for (k = 0; k < 8500; k++)
		MUST(!chmod("f", 0600) && !chmod("g", 0600));
	MUST(!ioctl(in, FIONREAD, &waits));
	say("%d bytes", waits);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; events++) {
			struct inotify_event e;

			memcpy(&e, buf + at, sizeof(e));
			if (e.mask == IN_Q_OVERFLOW)
				say("overflow: wd %d len %u, event %d", e.wd, e.len, events);
			last = e.mask;
			at += (ssize_t)(sizeof(e) + e.len);
		}
	say("%d events, the last %x", events, last);
	MUST(!chmod("f", 0600));
	told("afterwards", in);
}

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

const struct program_case program_cases[] = {
	CASE(changes_in_a_directory), CASE(times_and_attributes), CASE(a_file_and_its_directory), CASE(moves), CASE(links),
	CASE(listing_a_directory), CASE(copies), CASE(the_mask_decides), CASE(flags_of_a_watch), CASE(what_is_wrong),
	CASE(reading_in_pieces), CASE(equal_events_are_merged), CASE(too_many_events), CASE(readiness_follows_the_queue),
	CASE(waiting_for_others), CASE(a_signal_ends_the_wait), CASE(here_and_on_the_host), CASE(copies_of_the_descriptor),
	CASE(the_descriptor_after_exec), CASE(the_killed_leave_nothing), {NULL, NULL, 0},
};

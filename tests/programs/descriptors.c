/* SPDX-License-Identifier: MIT */
/* descriptors.c - numbers: which one comes, what shares what, what closes. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <poll.h>
#include <pthread.h>

#include <sys/file.h>

#include "cases.h"

static int make(const char *name)
{
	return open(name, O_RDWR | O_CREAT, 0644);
}

static void dup_shares_the_offset_and_outlives_the_original(void)
{
	char buf[8] = "";
	int a, b;

	put_file("f", "abcdef");
	a = open("f", O_RDONLY);
	b = dup(a);
	SAY(read(a, buf, 3));
	say_rest("the second goes on", b);
	SAY(close(b));
	SAY(lseek(a, 0, SEEK_SET));
	say_rest("the first still reads", a);
}

static void many_dups_closed_in_any_order(void)
{
	int fd = make("f"), d[8];

	for (int i = 0; i < 8; i++)
		d[i] = fcntl(fd, F_DUPFD, 3 + i * 3);
	for (int i = 0; i < 8; i++)
		say("dup %d", d[i]);
	for (int i = 0; i < 8; i++)
		SAY(close(d[(i * 5) % 8]));
	SAY(close(fd));
	SAY(close(fd));
	say_numbers("in the end");
}

static void two_opens_have_two_offsets(void)
{
	int a, b;

	put_file("f", "");
	a = open("f", O_WRONLY);
	SAY(write(a, "12345", 5));
	b = open("f", O_WRONLY | O_TRUNC);
	SAY(lseek(a, 0, SEEK_CUR));
	SAY(write(a, "x", 1));
	SAY(lseek(b, 0, SEEK_END));
}

static void stream_and_descriptor_act_on_one_inode(void)
{
	FILE *f = fopen("f", "w");
	struct stat a, b;

	SAY(fchmod(fileno(f), 0600));
	SAY(fstat(fileno(f), &a));
	SAY(stat("f", &b));
	say("mode %o, the same inode %d", a.st_mode, a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	fclose(f);
}

/* The set of the numbers up to the first -1. */
static void fill_set(fd_set *s, const int *fds)
{
	FD_ZERO(s);
	for (; *fds >= 0; fds++)
		FD_SET(*fds, s);
}

static void say_set(const char *what, const fd_set *s, const int *fds)
{
	for (; *fds >= 0; fds++)
		say("  %s %d: %d", what, *fds, !!FD_ISSET(*fds, s));
}

static void select_takes_files_and_pipes_together(void)
{
	int f = make("f"), p[2], s[2];
	struct timeval tv = {0, 0};
	fd_set r, w;

	MUST(!pipe(p) && !socketpair(AF_UNIX, SOCK_STREAM, 0, s));

	const int in[] = {f, p[0], s[0], -1}, out[] = {f, p[1], -1}, only[] = {f, -1};

	fill_set(&r, in);
	fill_set(&w, out);
	SAY(select(16, &r, &w, NULL, NULL));
	say_set("in", &r, in);
	say_set("out", &w, out);
	MUST(write(p[1], "x", 1) == 1);
	fill_set(&r, in);
	SAY(select(16, &r, NULL, NULL, &tv));
	say_set("in", &r, in);
	SAY(close(f));
	fill_set(&r, only);
	SAY(select(16, &r, NULL, NULL, &tv));
}

static void poll_takes_files_and_pipes_together(void)
{
	int f = make("f"), p[2], s[2];

	MUST(!pipe(p) && !socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	MUST(write(p[1], "x", 1) == 1);

	struct pollfd set[5] = {
		{f, POLLIN | POLLOUT | POLLPRI, 0}, {p[0], POLLIN, 0}, {s[0], POLLIN | POLLOUT, 0}, {40, POLLIN, 0}, {-1, POLLIN, 0},
	};
	SAY(poll(set, 5, -1));
	for (int i = 0; i < 5; i++)
		say("  %d: %x", i, set[i].revents);
	struct pollfd many[100];
	for (int i = 0; i < 100; i++)
		many[i] = (struct pollfd){i % 3 == 0 ? f : i % 3 == 1 ? 50 : s[0], POLLIN, 0};
	SAY(poll(many, 100, -1));
	for (int i = 0; i < 6; i++)
		say("  %d: %x", i, many[i].revents);
	SAY(close(f));
	set[0].fd = f;
	SAY(poll(set, 1, 0));
	say("  closed: %x", set[0].revents);
}

static void epoll_refuses_regular_files_and_serves_the_rest(void)
{
	int f = make("f"), e = epoll_create1(0), p[2];
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = 7}, got[4];

	MUST(!pipe(p));
	SAY(epoll_ctl(e, EPOLL_CTL_ADD, f, &ev));
	SAY(epoll_ctl(e, EPOLL_CTL_DEL, f, &ev));
	SAY(epoll_ctl(e, EPOLL_CTL_ADD, p[0], &ev));
	SAY(epoll_ctl(f, EPOLL_CTL_ADD, p[0], &ev));
	SAY(epoll_ctl(e, EPOLL_CTL_ADD, 60, &ev));
	SAY(write(p[1], "x", 1));
	SAY(epoll_wait(e, got, 4, -1));
	say("data %u", got[0].data.u32);
	SAY(epoll_wait(f, got, 4, 0));
	close(f);
	SAY(epoll_ctl(e, EPOLL_CTL_ADD, f, &ev));
}

static void first_open_gives_three_then_the_lowest_free(void)
{
	int p[2];

	SAY(make("a"));
	SAY(make("b"));
	SAY(open("/dev/null", O_RDONLY));
	SAY(make("c"));
	SAY(close(4));
	SAY(open("/dev/null", O_RDONLY));
	SAY(close(3));
	SAY(make("d"));
	SAY(close(3));
	SAY(close(5));
	SAY(pipe(p));
	say("pipe %d %d", p[0], p[1]);
	SAY(close(3));
	SAY(close(4));
	SAY(dup(6));
	SAY(dup(0));
	SAY(socket(AF_UNIX, SOCK_STREAM, 0));
	SAY(eventfd(0, 0));
	SAY(close(0));
	SAY(make("e"));
	SAY(close(1));
	SAY(make("e"));
	SAY(close(1));
	SAY(open("/dev/null", O_WRONLY));
	say_numbers("in the end");
}

/* After each step the next number is the lowest: chosen at random between the kernel's and ours. */
static void random_opens_and_closes_always_give_the_lowest(void)
{
	unsigned seed = 12345;
	bool used[64] = {true, true, true};

	MUST(make("f") == 3 && !close(3));
	for (int i = 0; i < 20000; i++) {
		int want = 0, got, which;

		seed = seed * 1103515245 + 12345;
		which = (int)(seed >> 16) % 8;
		while (used[want])
			want++;
		if ((seed >> 8) % 2 && want < 40) {
			got = which == 0 ? open("/dev/null", O_RDONLY) :
			      which == 1 ? dup(0) :
			      which == 2 ? fcntl(0, F_DUPFD, 3) :
			      which == 3 ? eventfd(0, 0) :
					   open("f", O_RDONLY);
			if (got != want) {
				say("step %d: way %d gave %d, not %d", i, which, got, want);
				return;
			}
			used[got] = true;
		} else {
			int fd = 3 + (int)(seed >> 20) % 37;

			if ((close(fd) == 0) != used[fd]) {
				say("step %d: close(%d) %d", i, fd, used[fd]);
				return;
			}
			used[fd] = false;
		}
	}
	say("done");
}

static void ioctl_and_fcntl_agree_on_cloexec(void)
{
	int fd = make("f"), other;

	SAY(ioctl(fd, FIOCLEX));
	SAY(fcntl(fd, F_GETFD));
	SAY(other = dup(fd));
	SAY(fcntl(other, F_GETFD));
	SAY(fcntl(other, F_GETFL) & O_CLOEXEC);
	SAY(ioctl(fd, FIONCLEX));
	SAY(fcntl(fd, F_GETFD));
	SAY(fcntl(fd, F_DUPFD_CLOEXEC, 10));
	SAY(fcntl(10, F_GETFD));
	SAY(dup3(fd, 12, O_CLOEXEC));
	SAY(fcntl(12, F_GETFD));
	SAY(fcntl(12, F_SETFD, 0));
	SAY(fcntl(12, F_GETFD));
	SAY(fcntl(open("f", O_RDWR | O_CLOEXEC), F_GETFL) & O_CLOEXEC);
}

static void close_range_closes_marks_and_refuses(void)
{
	for (int i = 0; i < 6; i++)
		MUST((i & 1 ? open("/dev/null", O_RDONLY) : make("f")) >= 0);
	MUST(dup2(3, 40) == 40);
	MUST(dup2(4, 41) == 41);
	say_numbers("before");
	SAY(close_range(5, 6, 0));
	say_numbers("5 and 6");
	SAY(close_range(7, 40, 4 /* CLOSE_RANGE_CLOEXEC */));
	say_numbers("7 to 40 marked");
	SAY(close_range(9, 8, 0));
	SAY(close_range(3, 4, 64));
	SAY(close_range(3, ~0U, 0));
	say_numbers("all");
	SAY(make("f"));
	SAY(make("f"));
	SAY(open("/dev/null", O_RDONLY));
	SAY(close_range(4, 4, 0));
	SAY(open("/dev/null", O_RDONLY));
}

static void closefrom_and_proc_list_agree(void)
{
	DIR *d;
	struct dirent *e;
	int n = 0;

	for (int i = 0; i < 5; i++)
		MUST(make("f") >= 0);
	close(4);
	close(6);
	d = opendir("/proc/self/fd");
	while ((e = readdir(d)))
		n += e->d_name[0] != '.' && atoi(e->d_name) < 100;
	say("%d in /proc/self/fd", n);
	closedir(d);
	closefrom(3);
	say_numbers("after closefrom");
	d = opendir("/proc/self/fd");
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			say("  %s", e->d_name);
	closedir(d);
}

static void kernel_objects_work_at_numbers_the_shelf_had(void)
{
	int p[2], s[2];
	char buf[8] = "";
	uint64_t v = 3;

	MUST(make("f") == 3 && make("g") == 4);
	close(3), close(4);
	SAY(pipe2(p, O_CLOEXEC));
	say("pipe %d %d", p[0], p[1]);
	SAY(write(p[1], "hello", 5));
	SAY(read(p[0], buf, 5));
	say("'%s'", buf);
	SAY(close(3)), SAY(close(4));
	SAY(read(3, buf, 1));
	SAY(write(4, buf, 1));
	SAY(fcntl(3, F_GETFD));
	SAY(lseek(3, 0, SEEK_CUR));
	SAY(make("f")), SAY(close(3));
	SAY(read(3, buf, 1));
	SAY(dup(3));
	SAY(dup2(3, 9));
	SAY(fcntl(3, F_GETFL));
	SAY(fsync(3));
	SAY(close(3));
	SAY(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	SAY(send(s[0], "x", 1, 0));
	SAY(recv(s[1], buf, 1, 0));
	SAY(make("f"));
	SAY(send(5, "x", 1, 0));
	SAY(close(5));
	SAY(send(5, "x", 1, 0));
	SAY(eventfd(0, 0));
	SAY(write(5, &v, 8));
	SAY(read(5, &v, 8));
	SAY(dup2(s[0], 5));
	SAY(dup2(make("f"), 5));
	SAY(write(5, "abc", 3));
	SAY(dup2(s[0], 5));
	SAY(write(5, "abc", 3));
	say_numbers("in the end");
}

static void dup2_and_limits(void)
{
	struct rlimit l = {20, 20};
	int fd = make("f"), p[2];

	SAY(dup2(fd, fd));
	SAY(dup2(60, 60));
	SAY(dup2(60, fd));
	SAY(dup2(fd, -1));
	SAY(dup3(fd, fd, 0));
	SAY(dup3(fd, 5, O_APPEND));
	SAY(dup2(fd, 30));
	SAY(setrlimit(RLIMIT_NOFILE, &l));
	SAY(dup2(fd, 20));
	SAY(dup2(0, 20));
	SAY(fcntl(fd, F_DUPFD, 20));
	SAY(fcntl(0, F_DUPFD, 20));
	SAY(fcntl(fd, F_DUPFD, 19));
	SAY(fcntl(fd, F_DUPFD, 19));
	say("the one above the limit:");
	SAY(write(30, "abc", 3));
	SAY(lseek(30, 0, SEEK_SET));
	SAY(fcntl(30, F_GETFD));
	while (dup(fd) >= 0)
		;
	SAY(dup(fd));
	SAY(open("new", O_RDWR | O_CREAT, 0644));
	SAY(access("new", F_OK));
	SAY(open("f", O_RDWR | O_TRUNC));
	struct stat st;
	SAY(stat("f", &st));
	say("size %ld", (long)st.st_size);
	SAY(close(10));
	SAY(pipe(p));
	SAY(open("/dev/null", O_RDONLY));
	SAY(close(10));
	SAY(make("f"));
	SAY(make("f"));
	SAY(close(30));
	say_numbers("in the end");
}

static void descriptor_flags_are_the_descriptions(void)
{
	int a = open("f", O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0644), b = dup(a);

	SAY(fcntl(a, F_GETFL));
	SAY(fcntl(b, F_SETFL, O_NONBLOCK));
	SAY(fcntl(a, F_GETFL));
	SAY(fcntl(open("f", O_PATH), F_GETFL));
	SAY(fcntl(open(".", O_RDONLY | O_DIRECTORY), F_GETFL));
	SAY(fcntl(open("f", O_WRONLY | O_SYNC), F_GETFL));
}

static void sockets_calls_on_files_and_files_calls_on_sockets(void)
{
	int f = make("f"), s = socket(AF_UNIX, SOCK_STREAM, 0), p[2];
	struct sockaddr a = {0};
	socklen_t n = sizeof(a);
	char buf[8];

	MUST(!pipe(p));
	SAY(listen(f, 5));
	SAY(accept(f, NULL, NULL));
	SAY(connect(f, &a, n));
	SAY(bind(f, &a, n));
	SAY(getsockname(f, &a, &n));
	SAY(send(f, "x", 1, 0));
	SAY(recv(f, buf, 1, 0));
	SAY(shutdown(f, SHUT_RD));
	SAY(lseek(s, 0, SEEK_SET));
	SAY(lseek(p[0], 0, SEEK_SET));
	SAY(ftruncate(p[0], 0));
	SAY(pread(p[0], buf, 1, 0));
	SAY(ioctl(f, FIONREAD, &n));
	SAY(ioctl(f, 0x5401 /* TCGETS */, buf));
	SAY(isatty(f));
	SAY(syncfs(f));
}

struct many {
	int runs;
	int opens, closes; /* that failed */
	int error;
};

static void *open_and_close(void *arg)
{
	struct many *m = arg;

	for (int i = 0; i < m->runs; i++) {
		int fd = i & 7 ? open("f", O_RDONLY) : open("/dev/null", O_RDONLY);

		if (fd < 0)
			m->opens++, m->error = errno;
		else if (close(fd))
			m->closes++, m->error = errno;
	}
	return NULL;
}

static void threads_open_and_close_and_leave_nothing(void)
{
	pthread_t t[4];
	struct many m[4];

	MUST(close(make("f")) == 0);
	for (int i = 0; i < 4; i++) {
		m[i] = (struct many){(int)scaled(20000), 0, 0, 0};
		pthread_create(&t[i], NULL, open_and_close, &m[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		say("thread %d: %d opens and %d closes failed (%s)", i, m[i].opens, m[i].closes, strerrorname_np(m[i].error));
	}
	say_numbers("in the end");
	SAY(make("f"));
	SAY(open("/dev/null", O_RDONLY));
}

static bool stop;
static int swapped;

static void *look_at_number(void *arg)
{
	struct stat st;
	long *bad = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) /* pairs with the store of the swapper */
		if (fstat(swapped, &st) || (st.st_size != 1 && st.st_size != 2))
			++*bad;
	return NULL;
}

static void dup2_swaps_of_a_number_are_never_seen_half_done(void)
{
	int a, b;
	long bad = 0;
	pthread_t t;

	put_file("a", "1");
	put_file("b", "22");
	a = open("a", O_RDONLY), b = open("b", O_RDONLY), swapped = dup(a);
	pthread_create(&t, NULL, look_at_number, &bad);
	for (unsigned i = 0; i < scaled(300000); i++)
		if (dup2(i & 1 ? a : b, swapped) != swapped)
			bad++;
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE); /* pairs with the load of the looker */
	pthread_join(t, NULL);
	say("%ld bad", bad);
	say_numbers("in the end");
}

static void *blocked_read(void *arg)
{
	char c;
	int fd = *(int *)arg;

	return (void *)(intptr_t)read(fd, &c, 1);
}

static void close_of_another_number_during_a_wait_is_safe(void)
{
	int p[2], f = make("f");
	void *result;
	pthread_t t;

	MUST(!pipe(p));
	pthread_create(&t, NULL, blocked_read, &p[0]);
	SAY(close(f));
	SAY(make("f"));
	SAY(write(p[1], "x", 1));
	pthread_join(t, &result);
	say("read %ld", (long)(intptr_t)result);
}

static void high_numbers_and_many_of_them(void)
{
	struct rlimit l = {70000, 70000}, old;
	int fd = make("f"), n = 0;

	MUST(!getrlimit(RLIMIT_NOFILE, &old));
	if (old.rlim_max < 70000) {
		l.rlim_max = old.rlim_max;
		l.rlim_cur = old.rlim_max;
	}
	SAY(setrlimit(RLIMIT_NOFILE, &l));
	MUST(fcntl(fd, F_DUPFD, (int)l.rlim_cur - 1) == (int)l.rlim_cur - 1);
	SAY(close((int)l.rlim_cur - 1));
	for (int i = 0; i < 3000; i++)
		n += open("f", O_RDONLY) == 4 + i;
	say("%d as they should be", n);
	for (int i = 0; i < 3000; i++)
		n -= !close(4 + i);
	say("%d left", n);
	SAY(open("f", O_RDONLY));
	SAY(open("/dev/null", O_RDONLY));
	for (int i = 6; i < 3000; i++)
		n += fcntl(i, F_GETFD) >= 0;
	say("%d left", n);
}

static void a_map_holds_the_flock_of_what_it_was_made_of(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), other = open("f", O_RDWR);
	struct flock all = {.l_type = F_WRLCK};
	char *at;

	MUST(write(fd, "text", 4) == 4);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	SAY(flock(fd, LOCK_EX | LOCK_NB));
	SAY(fcntl(fd, F_SETLK, &all));
	SAY(close(fd));
	SAY(flock(other, LOCK_EX | LOCK_NB));
	SAY(munmap(at, 4096));
	SAY(flock(other, LOCK_EX | LOCK_NB));
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, other, 0);
	SAY(fcntl(other, F_SETLK, &all));
	SAY(munmap(at, 4096));
	say_flush();
	if (!fork()) {
		SAY(fcntl(other, F_SETLK, &all)); /* the map's end is no close */
		say_flush();
		_exit(0);
	}
	wait(NULL);
	say_numbers("end");
}

const struct program_case program_cases[] = {
	CASE(dup_shares_the_offset_and_outlives_the_original),
	CASE(many_dups_closed_in_any_order),
	CASE(two_opens_have_two_offsets),
	CASE(stream_and_descriptor_act_on_one_inode),
	CASE(select_takes_files_and_pipes_together),
	CASE(poll_takes_files_and_pipes_together),
	CASE(epoll_refuses_regular_files_and_serves_the_rest),
	CASE(first_open_gives_three_then_the_lowest_free),
	CASE(random_opens_and_closes_always_give_the_lowest),
	CASE(ioctl_and_fcntl_agree_on_cloexec),
	CASE(close_range_closes_marks_and_refuses),
	CASE(closefrom_and_proc_list_agree),
	CASE(kernel_objects_work_at_numbers_the_shelf_had),
	CASE(dup2_and_limits),
	CASE(descriptor_flags_are_the_descriptions),
	CASE(a_map_holds_the_flock_of_what_it_was_made_of),
	CASE(sockets_calls_on_files_and_files_calls_on_sockets),
	CASE(threads_open_and_close_and_leave_nothing),
	CASE(dup2_swaps_of_a_number_are_never_seen_half_done),
	CASE(close_of_another_number_during_a_wait_is_safe),
	CASE(high_numbers_and_many_of_them),
	{0},
};

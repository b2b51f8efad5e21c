/* SPDX-License-Identifier: MIT */
/* messages.c - open files sent between processes, also where the receiver or the sender has no number left. */
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "cases.h"

enum { MOST = 16 };

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int) * MOST)];
};

static ssize_t send_numbers(int to, const int *fds, int n)
{
	union control control = {.room = ""};
	struct iovec one = {(char *)(uintptr_t)"m", 1};
	struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n)};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
	memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * (size_t)n);
	return sendmsg(to, &m, 0);
}

/* How many came; those in FDS. */
static int take_numbers(int from, int *fds, int room, int flags)
{
	union control control = {.room = ""};
	char byte;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)room)};
	ssize_t n = recvmsg(from, &m, flags);
	int count = 0;

	say("recvmsg %zd %s, flags %x, control %zu", n, n < 0 ? strerrorname_np(errno) : "", n < 0 ? 0 : m.msg_flags & ~MSG_CMSG_CLOEXEC,
	    n < 0 ? 0 : m.msg_controllen);
	if (n < 0 || m.msg_controllen < CMSG_LEN(sizeof(int)))
		return 0;
	count = (int)((control.head.cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(&control.head), sizeof(int) * (size_t)count);
	for (int i = 0; i < count; i++)
		say("number %d, flags %d", fds[i], fcntl(fds[i], F_GETFD));
	return count;
}

static void take_all_numbers_but(int n)
{
	struct rlimit old;
	int fd, last[MOST];

	MUST(!getrlimit(RLIMIT_NOFILE, &old));
	MUST(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){32, old.rlim_max}));
	for (int k = 0; (fd = dup(0)) >= 0; k++)
		last[k % MOST] = fd;
	MUST(errno == EMFILE);
	(void)last;
	for (int k = 0; k < n; k++)
		close(10 + k);
}

static int open_text(const char *name, const char *text)
{
	put_file(name, text);
	return open(name, O_RDWR);
}

static void sent_files_share_their_offset(void)
{
	int s[2], fds[MOST], got[MOST];
	char buf[20] = "";

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	fds[0] = open_text("f", "0123456789");
	fds[1] = open(".", O_RDONLY | O_DIRECTORY);
	fds[2] = open("/dev/null", O_RDONLY);
	fds[3] = fds[0];
	SAY(read(fds[0], buf, 3));
	SAY(flock(fds[0], LOCK_EX));
	SAY(send_numbers(s[0], fds, 4));
	close(fds[0]);
	unlink("f");
	MUST(take_numbers(s[1], got, 4, MSG_CMSG_CLOEXEC) == 4);
	SAY(read(got[0], buf, 3));
	say("%.3s", buf);
	SAY(read(got[3], buf, 3));
	say("%.3s", buf);
	SAY(fchdir(got[1]));
	SAY(read(got[2], buf, 3));
	SAY(close(got[0]));
	SAY(read(got[3], buf, 3));
	say_numbers("in the end");
}

/* What does not fit is dropped, and what came is whole. */
static void a_receiver_without_numbers_gets_what_fits(void)
{
	int s[2], fds[MOST], got[MOST];
	char buf[20] = "";
	struct stat st;

	for (int room = 0; room < 5; room++) {
		MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		fds[0] = open_text("f", "0123456789");
		fds[1] = open("/dev/null", O_RDONLY);
		fds[2] = open_text("g", "abcdefghij");
		say("room for %d", room);
		SAY(send_numbers(s[0], fds, 3));
		say_flush();
		pid_t pid = fork();
		if (!pid) {
			close_range((unsigned)s[1] + 1, ~0U, 0);
			take_all_numbers_but(room);
			int n = take_numbers(s[1], got, 4, 0);
			for (int i = 0; i < n; i++) {
				memset(buf, 0, sizeof(buf));
				say("read %zd '%s'", read(got[i], buf, 5), buf);
				SAY(fstat(got[i], &st));
				SAY(lseek(got[i], 1, SEEK_SET));
			}
			SAY(dup(got[0]));
			SAY(open("f", O_RDONLY));
			if (n > 0)
				SAY(close(got[0]));
			SAY(open("f", O_RDONLY));
			close(20), close(21), close(22);
			say_flush();
			_exit(0);
		}
		child_end("receiver", pid);
		SAY(lseek(fds[0], 0, SEEK_CUR));
		SAY(lseek(fds[2], 0, SEEK_CUR));
		close_range(3, ~0U, 0);
	}
}

static void a_sender_without_numbers_sends(void)
{
	int s[2], fds[MOST], got[MOST], fd;
	char buf[20] = "";

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	fds[0] = open_text("f", "0123456789");
	fds[1] = fds[0];
	fds[2] = open_text("g", "abcdefghij");
	take_all_numbers_but(0);
	for (int i = 0; i < 3; i++)
		SAY(send_numbers(s[0], fds, 3));
	fd = dup(0);
	say("dup %d", fd);
	SAY(read(fds[0], buf, 4));
	close(fds[0]);
	close(fds[2]);
	SAY(take_numbers(s[1], got, 3, 0)); /* two of the three have room */
	memset(buf, 0, sizeof(buf));
	SAY(read(got[0], buf, 4));
	say("'%s'", buf);
	close_range(8, ~0U, 0);
	SAY(take_numbers(s[1], got, 3, 0));
	memset(buf, 0, sizeof(buf));
	SAY(read(got[2], buf, 4));
	say("'%s'", buf);
	close(s[0]);
	close(s[1]); /* with one message in it */
	say_numbers("in the end");
}

static void accept_without_numbers_leaves_the_peer_waiting(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int l = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0), f, fds[1], got[1], a;

	SAY(bind(l, (struct sockaddr *)&un, sizeof(un)));
	SAY(listen(l, 5));
	SAY(connect(c, (struct sockaddr *)&un, sizeof(un)));
	f = open_text("f", "0123456789");
	fds[0] = f;
	SAY(send_numbers(c, fds, 1));
	take_all_numbers_but(0);
	SAY(accept(l, NULL, NULL));
	SAY(accept4(l, NULL, NULL, SOCK_CLOEXEC));
	SAY(socket(AF_UNIX, SOCK_STREAM, 0));
	close(15);
	a = (int)SAY(accept(l, NULL, NULL));
	SAY(take_numbers(a, got, 1, 0));
	close(16);
	SAY(send_numbers(c, fds, 1));
	SAY(take_numbers(a, got, 1, 0));
	SAY(recv(a, &(char){0}, 1, MSG_DONTWAIT));
	close(17);
	say_rest("what came", 16);
}

/* The kept are let go of, however many went by while nobody could name them. */
static void messages_that_nobody_takes_leave_nothing(void)
{
	int s[2], fds[1];
	char name[32];
	struct stat st;

	for (unsigned i = 0; i < scaled(200); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		fds[0] = open_text(name, "0123456789");
		MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		MUST(send_numbers(s[0], fds, 1) == 1);
		MUST(!flock(fds[0], LOCK_EX));
		close(fds[0]);
		close(s[0]);
		close(s[1]);
		unlink(name);
	}
	say_names(".");
	SAY(stat("f0", &st));
	say_numbers("in the end");
}

const struct program_case program_cases[] = {
	CASE(sent_files_share_their_offset),
	CASE(a_receiver_without_numbers_gets_what_fits),
	CASE(a_sender_without_numbers_sends),
	CASE(accept_without_numbers_leaves_the_peer_waiting),
	CASE(messages_that_nobody_takes_leave_nothing),
	{NULL, NULL, 0},
};

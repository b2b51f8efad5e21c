/* SPDX-License-Identifier: MIT */
/* ask.c - the segment, from the process `shelf run`, for one that may not open it itself: run/key.h. */
#include <sys/stat.h>

#include "run/key.h"
#include "run/preload/serve.h"

#define ASK_SECONDS 30

/* The one descriptor that a message brought; more than one are all closed, as nobody knows what they are. */
static long only_one(const struct msghdr *m)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(m);
	const char *at = (const char *)head + CMSG_LEN(0), *end = (const char *)head + (head ? min_of(head->cmsg_len, m->msg_controllen) : 0);
	long first = -EACCES;
	int fd;

	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
		return -EACCES;
	for (unsigned n = 0; at + sizeof(fd) <= end; at += sizeof(fd), n++) {
		memcpy(&fd, at, sizeof(fd));
		if (n) {
			sys_call3(SYS_close, fd, 0, 0);
			if (first >= 0)
				sys_call3(SYS_close, first, 0, 0);
			first = -EACCES;
		} else {
			first = fd;
		}
	}
	return first;
}

static long receive(int from)
{
	union run_key_control control = {.room = ""};
	char byte;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	long n, fd;

	do
		n = sys_call3(SYS_recvmsg, from, (long)&m, MSG_CMSG_CLOEXEC);
	while (n == -EINTR);
	if (n < 0)
		return n == -EAGAIN ? -ETIMEDOUT : n;
	fd = only_one(&m);
	if (n == 1 || fd < 0)
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	return -EACCES;
}

/*
 * Another could have taken the name after `shelf run` ended: it must be that process, and root's, as only root listens.  What it gives
 * must be its own file.
 */
static bool is_keeper(long to)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return !sys_call6(SYS_getsockopt, to, SOL_SOCKET, SO_PEERCRED, (long)&peer, (long)&n, 0) &&
	       (uint32_t)peer.pid == runtime.keeper && peer.uid == 0;
}

static long ask(long to)
{
	struct stat st;
	long fd;

	if (!is_keeper(to) ||
	    sys_call6(SYS_sendto, to, (long)(runtime.key + RUN_KEY_NAME), RUN_KEY_SECRET, MSG_NOSIGNAL, 0, 0) != RUN_KEY_SECRET)
		return -EACCES;
	fd = receive((int)to);
	if (fd >= 0 && (sys_call3(SYS_fstat, fd, (long)&st, 0) || st.st_uid != 0)) {
		sys_call3(SYS_close, fd, 0, 0);
		fd = -EACCES;
	}
	return fd;
}

/* It answers in milliseconds: who is stopped or stuck is not waited for without end. */
static void limit_time(long to)
{
	const int64_t limit[2] = {ASK_SECONDS, 0};

	sys_call6(SYS_setsockopt, to, SOL_SOCKET, SO_RCVTIMEO, (long)limit, sizeof(limit), 0);
	sys_call6(SYS_setsockopt, to, SOL_SOCKET, SO_SNDTIMEO, (long)limit, sizeof(limit), 0); /* connect's too */
}

long run_ask_segment(void)
{
	struct sockaddr_un address;
	size_t n = run_key_address(runtime.key, &address);
	long to, fd = -EACCES;

	if (!runtime.key[0])
		return -EACCES;
	if (runtime.unanswered)
		return -ETIMEDOUT;
	to = sys_call3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (to < 0)
		return to;
	limit_time(to);
	do
		fd = sys_call3(SYS_connect, to, (long)&address, (long)n);
	while (fd == -EINTR);
	fd = !fd ? ask(to) : fd == -EAGAIN ? -ETIMEDOUT : -EACCES;
	sys_call3(SYS_close, to, 0, 0);
	runtime.unanswered = fd == -ETIMEDOUT;
	return fd;
}

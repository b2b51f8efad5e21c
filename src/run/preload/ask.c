/* SPDX-License-Identifier: MIT */
/* ask.c - the segment, from the process `shelf run`, for one that may not open it itself: run/key.h. */
#include <sys/stat.h>

#include "run/key.h"
#include "run/preload/serve.h"

static long receive(int from)
{
	union run_key_control control = {.room = ""};
	char byte;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	long n;
	int fd;

	do
		n = sys_call3(SYS_recvmsg, from, (long)&m, MSG_CMSG_CLOEXEC);
	while (n == -EINTR);
	if (n != 1 || m.msg_controllen < CMSG_LEN(sizeof(int)) || control.head.cmsg_type != SCM_RIGHTS)
		return n < 0 ? n : -EACCES;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
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

long run_ask_segment(void)
{
	struct sockaddr_un address;
	size_t n = run_key_address(runtime.key, &address);
	long to, fd = -EACCES;

	if (!runtime.key[0])
		return -EACCES;
	to = sys_call3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (to < 0)
		return to;
	if (!sys_call3(SYS_connect, to, (long)&address, (long)n))
		fd = ask(to);
	sys_call3(SYS_close, to, 0, 0);
	return fd;
}

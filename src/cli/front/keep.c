/* SPDX-License-Identifier: MIT */
/*
 * keep.c - `shelf run` while its program runs: it waits, and opens the segment for programs that gave up the
 * rights to do so (run/key.h).
 *
 * One asker at a time, and none for longer than ASKER_MS: whoever holds a connection open and says nothing delays others, no more.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/syscall.h"
#include "front.h"

#define ASKER_MS 200

/* ---- the key -------------------------------------------------------------------------------- */

static bool make_key(char key[RUN_KEY + 1])
{
	unsigned char random[RUN_KEY];

	if (sys_call3(SYS_getrandom, (long)random, sizeof(random), 0) != (long)sizeof(random))
		return false;
	for (size_t i = 0; i < RUN_KEY; i++)
		key[i] = "0123456789abcdef"[random[i] & 15];
	key[RUN_KEY] = '\0';
	return true;
}

static long listen_at(const char *key)
{
	long fd = sys_call3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	size_t n = run_key_address(key, &address);

	if (fd >= 0 && (sys_call3(SYS_bind, fd, (long)&address, (long)n) || sys_call3(SYS_listen, fd, 16, 0))) {
		sys_call3(SYS_close, fd, 0, 0);
		return -1;
	}
	return fd;
}

long front_listen(char key[RUN_KEY + 1])
{
	long fd = -1;

	if (!sys_call3(SYS_geteuid, 0, 0, 0) && make_key(key))
		fd = listen_at(key);
	if (fd < 0)
		key[0] = '\0';
	return fd;
}

/* ---- an asker ----------------------------------------------------------------------------------- */

static void give(long to, int segment)
{
	union run_key_control control = {.room = ""};
	char byte = 0;
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &segment, sizeof(int));
	sys_call3(SYS_sendmsg, to, (long)&m, MSG_NOSIGNAL | MSG_DONTWAIT); /* it may have gone */
}

/* All digits are looked at, whatever the first is. */
static bool secret_is(const char *key, const char *said)
{
	unsigned char differs = 0;

	for (size_t i = 0; i < RUN_KEY_SECRET; i++)
		differs |= (unsigned char)(key[RUN_KEY_NAME + i] ^ said[i]);
	return !differs;
}

static void answer_in_time(long asker, const struct run *r, const char *segment)
{
	struct pollfd said = {(int)asker, POLLIN, 0};
	char secret[RUN_KEY_SECRET + 1];
	long fd;

	if (sys_call3(SYS_poll, (long)&said, 1, ASKER_MS) != 1 ||
	    sys_call6(SYS_recvfrom, asker, (long)secret, sizeof(secret), MSG_DONTWAIT, 0, 0) != RUN_KEY_SECRET ||
	    !secret_is(r->key, secret))
		return;
	front_make(r);
	fd = sys_call3(SYS_open, (long)segment, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	give(asker, (int)fd);
	sys_call3(SYS_close, fd, 0, 0);
}

/* False: there is no descriptor or no memory for it now, and it goes on asking. */
static bool answer(long listener, const struct run *r, const char *segment)
{
	long asker = sys_call6(SYS_accept4, listener, 0, 0, SOCK_CLOEXEC, 0, 0);

	if (asker < 0)
		return asker == -EINTR || asker == -EAGAIN || asker == -ECONNABORTED;
	answer_in_time(asker, r, segment);
	sys_call3(SYS_close, asker, 0, 0);
	return true;
}

/* ---- waiting ------------------------------------------------------------------------------------- */

int front_keep(long pid, long listener, const struct run *r, const char *segment)
{
	struct pollfd set[2] = {{-1, POLLIN, 0}, {(int)listener, POLLIN, 0}};
	struct timespec a_while; /* the kernel stores what is left of it */
	uint64_t mask = front_waiting_mask();
	bool rest = false;
	long err = 0;

	if (listener < 0)
		return front_wait(pid);
	set[0].fd = (int)sys_call3(SYS_pidfd_open, pid, 0, 0);
	while (set[0].fd >= 0 && (err >= 0 || err == -EINTR) && !(set[0].revents & POLLIN)) {
		rest = set[1].revents & POLLIN && !answer(listener, r, segment);
		set[0].revents = set[1].revents = 0;
		a_while = (struct timespec){0, ASKER_MS * 1000000L};
		err = sys_call6(SYS_ppoll, (long)set, rest ? 1 : 2, (long)(rest ? &a_while : NULL), (long)&mask, sizeof(mask), 0);
	}
	if (set[0].fd >= 0)
		sys_call3(SYS_close, set[0].fd, 0, 0);
	sys_call3(SYS_close, listener, 0, 0);
	return front_wait(pid);
}

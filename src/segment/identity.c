/* SPDX-License-Identifier: MIT */
/*
 * identity.c - who a thread is, and whether it still exists.
 *
 * A thread is known by pid, tid and its process's start time (field 22 of
 * /proc/PID/stat), which tells a reused pid apart.  A stopped process is alive; a
 * zombie is not, nor is a thread that left its process or fell to another's exec.
 * Where /proc is missing the kernel is asked whether the number is in use.
 * Limits: processes must share one pid namespace.  A process that calls exec
 * and never attaches again goes on looking like its first thread.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "base/syscall.h"
#include "segment/segment_priv.h"

static atomic_u64 own_start; /* of this process; 0: not read yet */

uint32_t slot_gettid(void)
{
	return (uint32_t)sys_call3(SYS_gettid, 0, 0, 0);
}

uint32_t slot_getpid(void)
{
	return (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
}

void identity_after_fork(void)
{
	store_relaxed(&own_start, 0); /* one thread only */
}

/* Bytes read, or -errno. */
static long identity_read(const char *path, char *buf, size_t size)
{
	long fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0);
	long n;

	if (fd < 0)
		return fd;
	n = sys_call3(SYS_read, fd, (long)buf, (long)size - 1);
	sys_call3(SYS_close, fd, 0, 0);
	buf[n > 0 ? n : 0] = 0;
	return n;
}

/* State letter and start time out of a stat file; the name in brackets may hold anything. */
static bool identity_parse(const char *buf, long n, char *state, uint64_t *start)
{
	const char *p = buf + n;
	unsigned field;

	while (p > buf && *p != ')')
		p--;
	if (p == buf || p[1] != ' ')
		return false;
	*state = p[2];
	p += 2;
	for (field = 3; field < 22; field++) {
		while (*p && *p != ' ')
			p++;
		if (!*p++)
			return false;
	}
	for (*start = 0; *p >= '0' && *p <= '9'; p++)
		*start = *start * 10 + (uint64_t)(*p - '0');
	return true;
}

/* 0, or -errno when there is no such thread or no /proc. */
static long identity_stat(uint32_t pid, uint32_t tid, char *state, uint64_t *start)
{
	char path[64], buf[1024];
	long n;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	n = identity_read(path, buf, sizeof(buf));
	if (n < 0)
		return n;
	return identity_parse(buf, n, state, start) ? 0 : -EINVAL;
}

uint64_t slot_start_time(void)
{
	uint64_t start = load_relaxed(&own_start); /* every thread finds the same value */
	char state;

	if (start)
		return start;
	if (identity_stat(slot_getpid(), 0, &state, &start) || !start)
		start = 1; /* no /proc */
	store_relaxed(&own_start, start);
	return start;
}

uint64_t slot_start_time_of(uint32_t pid)
{
	uint64_t start;
	char state;

	return identity_stat(pid, 0, &state, &start) || !start ? 1 : start;
}

/* One system call.  A start time of 0 marks a slot of our own image before exec. */
bool slot_number_in_use(uint32_t pid, uint32_t tid, uint64_t start_time)
{
	return start_time && sys_call3(SYS_tgkill, pid, tid, 0) != -ESRCH;
}

/* kill() takes any thread's number, and finds its process. */
bool slot_tid_exists(uint32_t tid)
{
	return sys_call3(SYS_kill, tid, 0, 0) != -ESRCH;
}

bool slot_thread_exists(uint32_t pid, uint32_t tid, uint64_t start_time)
{
	uint64_t start;
	char state;

	if (!slot_number_in_use(pid, tid, start_time))
		return false;
	if (identity_stat(pid, tid, &state, &start))
		return slot_number_in_use(pid, tid, start_time);
	if (state == 'Z' || state == 'X' || state == 'x')
		return false;
	if (pid == slot_getpid() && start_time == slot_start_time())
		return true;
	return identity_stat(pid, 0, &state, &start) || start_time == start || start_time == 1;
}

/* Any of its threads. */
bool slot_process_exists(uint32_t pid, uint64_t start_time)
{
	uint64_t start;
	char state;

	if (sys_call3(SYS_kill, pid, 0, 0) == -ESRCH)
		return false;
	if (identity_stat(pid, 0, &state, &start))
		return sys_call3(SYS_kill, pid, 0, 0) != -ESRCH;
	return state != 'Z' && state != 'X' && state != 'x' && (start_time == start || start_time == 1);
}

/* SPDX-License-Identifier: MIT */
/* futex.c - sleeping on a word of shared memory.  The one place where shelf waits in the kernel. */
#include "base/syscall.h"
#include "lock/lock.h"

#include <linux/futex.h>
#include <time.h>

/* Not FUTEX_PRIVATE: the word is shared between processes. */
int futex_wait(atomic_u32 *word, uint32_t expected, int64_t timeout_ns)
{
	struct timespec ts;

	if (timeout_ns >= 0) {
		ts.tv_sec = timeout_ns / 1000000000;
		ts.tv_nsec = timeout_ns % 1000000000;
	}
	return (int)sys_call6(SYS_futex, (long)word, FUTEX_WAIT, expected, timeout_ns < 0 ? 0 : (long)&ts, 0, 0);
}

int futex_wake(atomic_u32 *word, int count)
{
	return (int)sys_call6(SYS_futex, (long)word, FUTEX_WAKE, count, 0, 0, 0);
}

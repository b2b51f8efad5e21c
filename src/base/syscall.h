/* SPDX-License-Identifier: MIT */
/*
 * syscall.h - system calls without libc: no errno, no cancellation point, and
 * never a site that `shelf run` has rewritten.  The result is the kernel's:
 * negative is -errno.
 */
#ifndef SHELF_BASE_SYSCALL_H
#define SHELF_BASE_SYSCALL_H

#include <stdbool.h>
#include <sys/syscall.h>

#ifdef SHELF_FAIL_POINTS
/* A test lets the n-th request of one kind fail (points.h). */
bool fail_sys_call(long nr, long c, long *ret);
#endif

static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
#ifdef SHELF_FAIL_POINTS
	long failed;

	if (fail_sys_call(nr, c, &failed))
		return failed;
#endif
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long sys_call3(long nr, long a, long b, long c)
{
	long ret;

#ifdef SHELF_FAIL_POINTS
	if (fail_sys_call(nr, c, &ret))
		return ret;
#endif

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * syscall.h - system calls without libc: no errno, no cancellation point, and
 * never a site that `shelf run` has rewritten.  The result is the kernel's:
 * negative is -errno.
 */
#ifndef SHELF_BASE_SYSCALL_H
#define SHELF_BASE_SYSCALL_H

#include <sys/syscall.h>

static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
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

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif

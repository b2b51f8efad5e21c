/* SPDX-License-Identifier: MIT */
/*
 * fault.h - copies to and from a caller's buffer, which may be a bad address.
 *
 * A kernel answers EFAULT.  So does shelf where somebody handles SIGSEGV and SIGBUS
 * for it: the handler calls fault_fixup() with the interrupted instruction pointer, and when the
 * fault was inside one of these copies the pointer is moved to where it goes on byte by byte, or to the
 * copy's end, which returns the number of bytes not copied - the kernel's exception table
 * in small.  It costs nothing while nothing faults.  `shelf run` installs such a
 * handler.  In a program that uses the library without one a bad buffer is
 * the caller's fault and SIGSEGV the answer, as with libc's memcpy.
 */
#ifndef SHELF_BASE_FAULT_H
#define SHELF_BASE_FAULT_H

#include "base/base.h"

/* Bytes not copied (0: all).  fault.c has it in assembly. */
size_t fault_copy(void *dst, const void *src, size_t n) __attribute__((visibility("hidden")));

/*
 * The same over memory that is likely to be out of the caches: rep movsb from two KiB on, which on some processors takes
 * whole lines without reading what stood there.
 */
size_t fault_copy_over(void *dst, const void *src, size_t n) __attribute__((visibility("hidden")));

/* True: the fault was in fault_copy and *ip now points at the way out.  Async-signal-safe. */
bool fault_fixup(uintptr_t *ip);

static inline int copy_to_user(void *user, const void *src, size_t n)
{
	return likely(!fault_copy(user, src, n)) ? 0 : -EFAULT;
}

static inline int copy_from_user(void *dst, const void *user, size_t n)
{
	return likely(!fault_copy(dst, user, n)) ? 0 : -EFAULT;
}

#endif

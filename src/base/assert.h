/* SPDX-License-Identifier: MIT */
/*
 * assert.h - shelf_assert() is checked in debug builds (-DSHELF_DEBUG) and
 * costs nothing elsewhere; shelf_panic() ends the process in every build, for
 * states in which going on would damage the segment.
 */
#ifndef SHELF_BASE_ASSERT_H
#define SHELF_BASE_ASSERT_H

#include "base/base.h"

/* One line on standard error, then SIGABRT.  No malloc, no stdio. */
_Noreturn void shelf_panic(const char *what, const char *file, int line);

#ifdef SHELF_DEBUG
#define shelf_assert(cond)                                                                         \
	do {                                                                                       \
		if (unlikely(!(cond)))                                                             \
			shelf_panic(#cond, __FILE__, __LINE__);                                    \
	} while (0)
#else
#define shelf_assert(cond)                                                                         \
	do {                                                                                       \
		if (0)                                                                             \
			(void)(cond);                                                              \
	} while (0)
#endif

#endif

/* SPDX-License-Identifier: MIT */
/*
 * clock.h - the time in nanoseconds, through the vDSO: no kernel entry where the
 * machine's clock source allows it.
 */
#ifndef SHELF_BASE_CLOCK_H
#define SHELF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts); /* cannot fail for the three below; errno untouched */
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Since 1970: what stat shows. */
static inline int64_t clock_now(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

/* Since 1970, as of the last timer tick: the kernel's own choice for file times. */
static inline int64_t clock_now_coarse(void)
{
	return clock_read_ns(CLOCK_REALTIME_COARSE);
}

/* For durations: never set back. */
static inline int64_t clock_now_monotonic(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * fsize.h - a file that is not the program's is made longer than the program may make its own (RLIMIT_FSIZE).
 *
 * The limit is raised meanwhile, as far as the process may.  What is beyond it all the same fails with EFBIG and without the
 * signal that would end the program.
 */
#ifndef SHELF_BASE_FSIZE_H
#define SHELF_BASE_FSIZE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/syscall.h"

#define FSIZE_SIGNAL (1ULL << (SIGXFSZ - 1))

struct fsize_stretch {
	bool limited; /* else there is nothing to do */
	struct rlimit was;
	uint64_t mask;
};

static inline long fsize_set(struct rlimit *new)
{
	return sys_call6(SYS_prlimit64, 0, RLIMIT_FSIZE, (long)new, 0, 0, 0);
}

static inline void fsize_stretch(struct fsize_stretch *s)
{
	struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY}, more;
	uint64_t set = FSIZE_SIGNAL;

	s->limited = !sys_call6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&s->was, 0, 0) && s->was.rlim_cur != RLIM_INFINITY;
	if (!s->limited)
		return;
	sys_call6(SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, (long)&s->mask, sizeof(set), 0, 0);
	more = s->was;
	more.rlim_cur = more.rlim_max;
	if (fsize_set(&none))
		fsize_set(&more);
}

static inline void fsize_shrink(struct fsize_stretch *s)
{
	static const int64_t at_once[2];
	uint64_t set = FSIZE_SIGNAL;

	if (!s->limited)
		return;
	fsize_set(&s->was);
	if (!(s->mask & FSIZE_SIGNAL))
		sys_call6(SYS_rt_sigtimedwait, (long)&set, 0, (long)at_once, sizeof(set), 0, 0);
	sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&s->mask, 0, sizeof(set), 0, 0);
}

#endif

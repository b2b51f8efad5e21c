/* SPDX-License-Identifier: MIT */
/* sigtable.h - the program's own signal actions, while the kernel has ours. */
#ifndef SHELF_RUN_PRELOAD_SIGTABLE_H
#define SHELF_RUN_PRELOAD_SIGTABLE_H

#include "base/base.h"

#define SIG_NUMBERS 65

struct sig_action { /* as the kernel's struct sigaction */
	uintptr_t handler;
	uint64_t flags;
	uintptr_t restorer;
	uint64_t mask;
};

struct sig_table {
	atomic_u32 lock; /* held for a few stores, with signals deferred */
	uint64_t ours; /* bit per signal: the kernel has our handler */
	struct sig_action action[SIG_NUMBERS]; /* [lock] good where `ours` is set */
};

#endif

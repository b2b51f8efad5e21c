/* SPDX-License-Identifier: MIT */
/* points.c - points.h: empty in the product. */
#include "base/points.h"

#ifdef SHELF_FAIL_POINTS
#include <errno.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/syscall.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static atomic_u32 armed;
static atomic_u64 count, at;

void fail_arm(enum fail_kind kind, uint64_t n)
{
	store_relaxed(&count, 0); /* a test's own thread, all of these */
	store_relaxed(&at, n);
	store_relaxed(&armed, (uint32_t)kind);
}

uint64_t fail_count(void)
{
	return load_relaxed(&count);
}

bool fail_point(enum fail_kind kind)
{
	return load_relaxed(&armed) == (uint32_t)kind && add_relaxed(&count, 1) + 1 == load_relaxed(&at);
}

static bool fails(enum fail_kind kind, long err, long *ret)
{
	*ret = err;
	return fail_point(kind);
}

/* With what the kernel says when it has no memory, or was interrupted. */
bool fail_sys_call(long nr, long c, long *ret)
{
	switch (nr) {
	case SYS_fallocate:
		return fails(FAIL_FALLOCATE, -ENOSPC, ret);
	case SYS_mmap:
		return fails(FAIL_MMAP, -ENOMEM, ret);
	case SYS_madvise:
		return c == MADV_POPULATE_WRITE && fails(FAIL_MADVISE, -ENOMEM, ret);
	case SYS_membarrier:
		return fails(FAIL_MEMBARRIER, -ENOMEM, ret);
	case SYS_futex:
		return fails(FAIL_FUTEX, -EINTR, ret);
	default:
		return false;
	}
}
#endif

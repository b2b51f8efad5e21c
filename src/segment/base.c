/* SPDX-License-Identifier: MIT */
/*
 * base.c - the address a segment is mapped at, the same in every process.
 *
 * Chosen by its creator: a hash of name, pid and time picks a place in a window where
 * neither programs, libraries nor heaps are put, so that segments made by different people can
 * be attached by one process.  The mapping itself shows whether the place is free.
 *
 *	plain, ASan	0x200000000000 .. 0x500000000000	48 TiB, above ASan's shadow
 *	TSan (clang 14)	0x7e8000000000 .. 0x7ef000000000	448 GiB of its high range
 */
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/syscall.h"
#include "segment/segment_priv.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define BASE_GRAIN (UINT64_C(1) << 30)

static bool base_tsan(void)
{
	return layout_build() & 1;
}

static uint64_t base_from(void)
{
	return base_tsan() ? UINT64_C(0x7e8000000000) : UINT64_C(0x200000000000);
}

static uint64_t base_to(void)
{
	return base_tsan() ? UINT64_C(0x7ef000000000) : UINT64_C(0x500000000000);
}

uint64_t base_choose(const char *name, unsigned attempt)
{
	uint64_t places = (base_to() - base_from()) / BASE_GRAIN;
	uint64_t h = name_hash((uint64_t)clock_now_monotonic(), name, __builtin_strlen(name));

	return base_from() + hash_u64(h, slot_getpid() + ((uint64_t)attempt << 32)) % places * BASE_GRAIN;
}

bool base_usable(uint64_t base, uint64_t size)
{
	if (!base || base + size < base)
		return false;
	return !base_tsan() || (base >= UINT64_C(0x7e8000000000) && base + size <= UINT64_C(0x800000000000)) ||
	       (base >= UINT64_C(0x550000000000) && base + size <= UINT64_C(0x568000000000));
}

void *base_map(int fd, uint64_t base, uint64_t size, int prot)
{
	long at = sys_call6(SYS_mmap, (long)base, (long)size, prot,
			    MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);

	if (at < 0 && at > -4096)
		return NULL;
	if ((uint64_t)at != base) { /* a kernel that does not know the flag took it as a hint */
		sys_call3(SYS_munmap, at, (long)size, 0);
		return NULL;
	}
	sys_call3(SYS_madvise, at, (long)size, MADV_DONTDUMP);
	return (void *)at;
}

/* SPDX-License-Identifier: MIT */
/*
 * touch.c - maps memory that another process committed, before it is written to.
 *
 * A page that is in memory but not in this process's page tables costs a fault at the first
 * write, 1.5-2.5 us here; MADV_POPULATE_WRITE over 64 KiB costs 0.6 us a page. Reads need
 * nothing: the kernel maps 16 pages around a read fault (0.37 us a page).
 * So each refill of a stock and each larger run maps the 64 KiB blocks it lies in, once.
 * Data: one bit a block, private to the process, wiped in a fork's child, whose page
 * tables do not have them.  A hint: a wrong bit costs a fault or a call.  Nothing shared is written.
 */
#include <sys/mman.h>

#include "base/syscall.h"
#include "segment/segment_priv.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define TOUCH_PAGES 16u

static uint64_t touch_bytes(uint64_t pages)
{
	return ALIGN_UP(pages / TOUCH_PAGES / 8 + 1, PAGE_BYTES);
}

void *touch_map(uint64_t pages)
{
	uint64_t bytes = touch_bytes(pages);
	long at = sys_call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at < 0 && at > -4096)
		return NULL;
	sys_call3(SYS_madvise, at, (long)bytes, MADV_WIPEONFORK);
	return (void *)at;
}

void touch_unmap(struct seg_local *sl)
{
	if (sl->touched)
		sys_call3(SYS_munmap, (long)sl->touched, (long)touch_bytes(sl->pages), 0);
}

static bool touch_bit(struct seg_local *sl, uint32_t block)
{
	return load_relaxed(&sl->touched[block / BITS_WORD]) & BIT_OF(block); /* a hint */
}

static void touch_set(struct seg_local *sl, uint32_t block)
{
	or_acq_rel(&sl->touched[block / BITS_WORD], BIT_OF(block)); /* a hint */
}

/* What of the block has memory; never more, for mapping would give it some. */
static void touch_block(struct seg_local *sl, uint32_t block)
{
	uint32_t first = block * TOUCH_PAGES;
	uint32_t committed = load_relaxed(&sl->infos[first / SEG_CHUNK_PAGES].committed); /* the caller has pages there */
	uint32_t inside = first % SEG_CHUNK_PAGES;

	if (committed <= inside)
		return;
	sys_call3(SYS_madvise, (long)frame_page(sl, first),
		  (long)(min_of(committed - inside, TOUCH_PAGES) << PAGE_SHIFT), MADV_POPULATE_WRITE);
	if (committed - inside >= TOUCH_PAGES)
		touch_set(sl, block);
}

/* The caller holds no lock and has the run. */
void touch_run(struct seg_local *sl, uint32_t i, uint32_t pages)
{
	uint32_t block;

	if (unlikely(!sl->touched))
		return;
	for (block = i / TOUCH_PAGES; block <= (i + pages - 1) / TOUCH_PAGES; block++)
		if (unlikely(!touch_bit(sl, block)))
			touch_block(sl, block);
}

/* Mapped already: we committed them ourselves. */
void touch_done(struct seg_local *sl, uint32_t i, uint32_t pages)
{
	uint32_t block;

	if (unlikely(!sl->touched))
		return;
	for (block = ALIGN_UP(i, TOUCH_PAGES) / TOUCH_PAGES; block < (i + pages) / TOUCH_PAGES; block++)
		touch_set(sl, block);
}

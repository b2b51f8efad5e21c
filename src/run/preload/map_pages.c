/* SPDX-License-Identifier: MIT */
/* map_pages.c - pages of the segment, and none, at addresses of the program's: map.h. */
#include <string.h>

#include "base/copy.h"
#include "run/preload/map.h"

#define EVICT_AFTER 32768u /* maps: a process may have 65530 in all, and wants some itself */
#define TOUCHED 16u /* pages made present for the kernel, too, with the one that is wanted */
#define COPY_MAX (1u << 20) /* longer private maps show the segment's pages, if these lie well */
#define COPY_STEP (256u) /* pages copied under the inode's lock at a time */
#define RUN_GOOD 16u /* pages a run, on average: then they lie well */

bool map_is_error(long at)
{
	return at < 0 && at > -4096;
}

/* rt_sigprocmask looks at the set before it finds that there is no such way to change it. */
bool map_readable(uintptr_t addr)
{
	return sys_call6(SYS_rt_sigprocmask, -1, (long)(addr & ~7UL), 0, 8, 0, 0) != -EFAULT;
}

/* ---- absent --------------------------------------------------------------------------------------- */

/* Two pages from the segment's last one on: the second is beyond its end. */
static long absent_source(void)
{
	struct segment *seg = segment_here();
	long at;

	if (map_table.absent)
		return 0;
	at = sys_call6(SYS_mremap, (long)((char *)seg->hdr + segment_file_bytes(seg) - PAGE_BYTES), 0, 2 * PAGE_BYTES,
		       MREMAP_MAYMOVE, 0, 0);
	if (map_is_error(at))
		return at;
	sys_call3(SYS_munmap, at, PAGE_BYTES, 0);
	map_table.absent = (uintptr_t)at + PAGE_BYTES;
	return 0;
}

/* A second map of what is at `from`. */
static long again(uintptr_t from, uintptr_t addr, size_t len, int prot)
{
	long at = sys_call6(SYS_mremap, (long)from, 0, (long)len, MREMAP_MAYMOVE | MREMAP_FIXED, (long)addr, 0);

	if (map_is_error(at))
		return at;
	return prot == (PROT_READ | PROT_WRITE) ? 0 : sys_call3(SYS_mprotect, (long)addr, (long)len, prot);
}

long map_absent(uintptr_t addr, size_t len, int prot)
{
	long err = absent_source();

	return err ? err : again(map_table.absent, addr, len, prot);
}

void map_evict(void)
{
	uint32_t i;

	map_table.placed = 0;
	for (i = 0; i < load_relaxed(&map_table.count); i++) {
		const struct map_region *r = &map_table.region[i];

		if (r->kind == MAP_KIND_SHARED)
			map_absent(r->start, r->end - r->start, r->prot);
	}
}

/* ---- shared ------------------------------------------------------------------------------------------ */

struct placing {
	const struct map_region *r;
	int seg_fd; /* private ones */
	unsigned runs; /* left */
	uintptr_t first; /* the page that is wanted; others may be there; 0: none is */
	long err;
};

static uintptr_t address_of(const struct map_region *r, uint64_t index)
{
	return r->start + ((index - r->index) << PAGE_SHIFT);
}

/* A fault less for each, should the kernel know how. */
static void touch(const struct map_region *r, uintptr_t at, size_t len)
{
	sys_call3(SYS_madvise, (long)at, (long)len, r->prot & PROT_WRITE ? ADVICE_POPULATE_WRITE : ADVICE_POPULATE_READ);
}

static int place_shared(void *ctx, uint64_t index, char *page, uint64_t pages)
{
	struct placing *p = ctx;
	uintptr_t at = address_of(p->r, index);

	if (!p->runs--)
		return 1;
	/* Most likely it is there as a whole: made again it would lose what the kernel knows of it. */
	if (p->first && at > p->first && map_readable(at) && (pages == 1 || map_readable(at + ((pages - 1) << PAGE_SHIFT))))
		return 0;
	map_table.placed++;
	p->err = again((uintptr_t)page, at, pages << PAGE_SHIFT, p->r->prot);
	if (at == p->first && !p->err)
		touch(p->r, at, min_of(pages, (uint64_t)TOUCHED) << PAGE_SHIFT);
	return p->err != 0;
}

long map_present(const struct map_region *r, uintptr_t addr, uintptr_t end, unsigned runs, unsigned flags)
{
	struct placing p = {.r = r, .runs = runs, .first = flags & MAP_MAKE ? addr : 0};
	struct who w;
	long err = who_init(&w, task_here());

	if (map_table.placed >= EVICT_AFTER)
		map_evict();
	if (!err)
		err = ramfs_map_pages(&w, map_inode(r), map_index(r, addr), map_index(r, min_of(end, r->end)), flags,
				      place_shared, &p);
	return err > 0 ? p.err : err;
}

/* ---- private ------------------------------------------------------------------------------------------ */

struct mapped_sum {
	uint64_t pages, runs;
};

static int count_run(void *ctx, uint64_t index, char *page, uint64_t pages)
{
	struct mapped_sum *t = ctx;

	(void)index, (void)page;
	t->pages += pages;
	t->runs++;
	return 0;
}

static int copy_run(void *ctx, uint64_t index, char *page, uint64_t pages)
{
	copy_bytes((void *)address_of(ctx, index), page, pages << PAGE_SHIFT);
	return 0;
}

/* The file's pages into memory that is there and writable. */
static long copy_pages(const struct map_region *r, uintptr_t addr, uintptr_t end)
{
	struct who w;
	long err = who_init(&w, task_here());

	while (!err && addr < end) {
		uintptr_t next = min_of(end, addr + COPY_STEP * PAGE_BYTES);

		err = ramfs_map_pages(&w, map_inode(r), map_index(r, addr), map_index(r, next), 0, copy_run,
				      (void *)(uintptr_t)r);
		addr = next;
	}
	return err == -ENXIO ? 0 : err; /* shorter by now */
}

/* Where the file ends in the region. */
static uintptr_t region_data_end(const struct map_region *r)
{
	uint64_t size = load_acquire(&map_inode(r)->size); /* pairs with the writer's store */
	uint64_t pages = (size >> PAGE_SHIFT) + !!(size & PAGE_MASK);
	uint64_t n = (r->end - r->start) >> PAGE_SHIFT;

	return r->start + (pages > r->index ? min_of(n, pages - r->index) << PAGE_SHIFT : 0);
}

/* Memory for a copy, in place of what was there. */
static long copy_memory(uintptr_t addr, uintptr_t end)
{
	long at;

	if (addr == end)
		return 0;
	at = sys_call6(SYS_mmap, (long)addr, (long)(end - addr), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (map_is_error(at))
		return at;
	if (end - addr <= COPY_MAX)
		sys_call3(SYS_madvise, (long)addr, (long)(end - addr), ADVICE_POPULATE_WRITE);
	return 0;
}

static long protect(const struct map_region *r, uintptr_t addr, uintptr_t end)
{
	if (addr == end || r->prot == (PROT_READ | PROT_WRITE))
		return 0;
	return sys_call3(SYS_mprotect, (long)addr, (long)(end - addr), r->prot);
}

static long fill_copy(struct map_region *r, uintptr_t end)
{
	long err = copy_memory(r->start, end);

	r->kind = MAP_KIND_COPY;
	if (!err)
		err = copy_pages(r, r->start, end);
	return err ? err : protect(r, r->start, end);
}

static int place_private(void *ctx, uint64_t index, char *page, uint64_t pages)
{
	struct placing *p = ctx;
	long at = sys_call6(SYS_mmap, (long)address_of(p->r, index), (long)(pages << PAGE_SHIFT), p->r->prot,
			    MAP_PRIVATE | MAP_FIXED, p->seg_fd, page - (char *)segment_here()->hdr);

	p->err = map_is_error(at) ? at : 0;
	return p->err != 0;
}

/* Holes are empty memory. */
static long fill_pages(struct map_region *r, uintptr_t end)
{
	struct placing p = {.r = r, .seg_fd = segment_open_file(segment_here())};
	struct who w;
	long err = who_init(&w, task_here());

	if (p.seg_fd < 0)
		return p.seg_fd;
	if (!err)
		err = copy_memory(r->start, end);
	if (!err)
		err = protect(r, r->start, end);
	if (!err)
		err = ramfs_map_pages(&w, map_inode(r), r->index, map_index(r, end), 0, place_private, &p);
	sys_call3(SYS_close, p.seg_fd, 0, 0);
	return err > 0 ? p.err : err;
}

static bool lies_well(const struct map_region *r, uintptr_t end)
{
	struct mapped_sum t = {0, 0};
	struct who w;

	if (end - r->start <= COPY_MAX || r->prot & PROT_EXEC || who_init(&w, task_here()))
		return false;
	return !ramfs_map_pages(&w, map_inode(r), r->index, map_index(r, end), 0, count_run, &t) &&
	       t.pages >= t.runs * RUN_GOOD;
}

long map_fill_private(struct map_region *r)
{
	uintptr_t end = region_data_end(r);
	long err = -1;

	if (lies_well(r, end))
		err = fill_pages(r, end);
	if (err)
		err = fill_copy(r, end);
	return err || end == r->end ? err : map_absent(end, r->end - end, r->prot);
}

long map_copy_again(const struct map_region *r, uintptr_t addr, uintptr_t end)
{
	long err = 0;

	end = min_of(end, region_data_end(r));
	if (addr >= end)
		return 0;
	err = copy_memory(addr, end);
	if (!err)
		err = copy_pages(r, addr, end);
	return err ? err : protect(r, addr, end);
}

static int copy_one(void *ctx, uint64_t index, char *page, uint64_t pages)
{
	(void)index, (void)pages;
	copy_page(ctx, page);
	return 1;
}

/* Made elsewhere and moved there, so that no thread sees it half made. */
long map_copy_page(const struct map_region *r, uintptr_t addr, unsigned flags)
{
	uint64_t index = map_index(r, addr);
	struct who w;
	long err = who_init(&w, task_here());
	long at = sys_call6(SYS_mmap, 0, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map_is_error(at))
		return at;
	if (!err)
		err = ramfs_map_pages(&w, map_inode(r), index, index + 1, flags & MAP_TRY, copy_one, (void *)at);
	if (err < 0) {
		sys_call3(SYS_munmap, at, PAGE_BYTES, 0);
		return err;
	}
	if (r->prot != (PROT_READ | PROT_WRITE))
		sys_call3(SYS_mprotect, at, PAGE_BYTES, r->prot);
	at = sys_call6(SYS_mremap, at, PAGE_BYTES, PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (long)addr, 0);
	return map_is_error(at) ? at : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * map.c - mmap and munmap.
 *
 * MAP_SHARED hands out the segment's own pages: stores, read(), write() and other processes' maps are one.  Maps that are only
 * read get what is there at once; writable ones at the first touch, some pages around it together, so that the
 * first store sets the file's times as on tmpfs.
 * MAP_PRIVATE of up to 1 MiB, of a file in pieces, or executable, is a copy; others show the segment's pages, which the kernel
 * copies when they are written to.
 * Limits: /proc/self/maps names the segment.  A child that runs in its parent's memory can make private maps only, and they stay as they
 * were when made.
 */
#include "run/preload/map.h"

#define MAP_NOREPLACE 0x100000u
#define PLACE_FLAGS (MAP_FIXED | MAP_NOREPLACE | MAP_32BIT)
/* What MAP_SHARED_VALIDATE lets through: LEGACY_MAP_MASK of Linux, less what was answered before. */
#define KNOWN_FLAGS                                                                                    \
	(MAP_SHARED_VALIDATE | PLACE_FLAGS | MAP_ANONYMOUS | MAP_DENYWRITE | MAP_EXECUTABLE | MAP_GROWSDOWN | \
	 MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK | MAP_STACK)
#define FIRST_RUNS 4096u /* present from the start; more of them when they are touched */

struct map_call {
	uintptr_t addr;
	size_t len;
	int prot;
	unsigned flags;
	int fd;
	uint64_t index;
};

/* ---- what is asked for ---------------------------------------------------------------------------- */

static int call_take(struct map_call *c, const struct run_regs *r)
{
	if (r->r9 & PAGE_MASK || !r->si)
		return -EINVAL;
	*c = (struct map_call){
		.addr = r->di,
		.len = ALIGN_UP(r->si, PAGE_BYTES),
		.prot = (int)r->dx & (PROT_READ | PROT_WRITE | PROT_EXEC),
		.flags = (unsigned)r->r10,
		.fd = (int)r->r8,
		.index = r->r9 >> PAGE_SHIFT,
	};
	if (!c->len || c->len > USER_TOP)
		return -ENOMEM;
	return c->index > ((uint64_t)MAX_FILE_BYTES - c->len) >> PAGE_SHIFT ? -EOVERFLOW : 0;
}

static int call_check(const struct map_call *c, const struct api_map *how)
{
	unsigned type = c->flags & MAP_TYPE;

	if (c->flags & MAP_HUGETLB)
		return -EINVAL;
	if (type != MAP_SHARED && type != MAP_PRIVATE && type != MAP_SHARED_VALIDATE)
		return -EINVAL;
	if (type == MAP_SHARED_VALIDATE && c->flags & ~(unsigned)KNOWN_FLAGS)
		return -EOPNOTSUPP;
	if (type != MAP_PRIVATE && c->prot & PROT_WRITE && !how->writable)
		return -EACCES;
	if (!how->readable)
		return -EACCES;
	return type != MAP_PRIVATE && c->flags & MAP_GROWSDOWN ? -EINVAL : 0;
}

/* ---- making it -------------------------------------------------------------------------------------- */

/* The kernel finds the place, and takes away what is there for MAP_FIXED. */
static long place_find(const struct map_call *c)
{
	return sys_call6(SYS_mmap, (long)c->addr, (long)c->len, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (c->flags & PLACE_FLAGS), -1, 0);
}

static long fill_shared(const struct map_region *r, const struct map_call *c)
{
	long err = map_absent(r->start, c->len, c->prot);

	if (!err && (!(c->prot & PROT_WRITE) || c->flags & (MAP_POPULATE | MAP_LOCKED)))
		err = map_present(r, r->start, r->end, FIRST_RUNS, 0);
	return err == -ENXIO ? 0 : err;
}

/* A new region of file `file`, whose user it is. */
static long region_make(const struct map_call *c, const struct api_map *how, uint32_t file)
{
	struct map_region r = {.index = c->index, .file = file, .prot = (uint8_t)c->prot};
	bool private = (c->flags & MAP_TYPE) == MAP_PRIVATE;
	long err, at = place_find(c);

	if (map_is_error(at)) {
		map_file_put(file);
		return at;
	}
	r.start = (uintptr_t)at;
	r.end = r.start + c->len;
	r.kind = private ? MAP_KIND_PRIVATE : MAP_KIND_SHARED;
	r.may_write = how->writable;
	map_forget(r.start, r.end);
	err = private ? map_fill_private(&r) : fill_shared(&r, c);
	if (!err) {
		map_insert(&r);
		return at;
	}
	sys_call3(SYS_munmap, at, (long)c->len, 0);
	map_file_put(file);
	return err;
}

static long region_new(const struct map_call *c)
{
	struct api_map how;
	long err = map_room(3);
	int file;

	if (err)
		return err;
	file = map_file_get(c->fd, &how);
	if (file < 0)
		return file;
	err = call_check(c, &how);
	if (!err)
		return region_make(c, &how, (uint32_t)file);
	map_file_put((uint32_t)file);
	return err;
}

/* A copy that nobody keeps books on. */
static long borrowed_map(const struct map_call *c)
{
	size_t done = 0;
	long n = 1, at;

	if ((c->flags & MAP_TYPE) != MAP_PRIVATE)
		return -ENODEV;
	at = sys_call6(SYS_mmap, (long)c->addr, (long)c->len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (c->flags & PLACE_FLAGS), -1, 0);
	while (!map_is_error(at) && done < c->len && n > 0) {
		n = SERVED(shelf_pread(task_here(), c->fd, (char *)at + done, c->len - done,
				       (off_t)((c->index << PAGE_SHIFT) + done)));
		done += n > 0 ? (size_t)n : 0;
	}
	if (!map_is_error(at) && n < 0) {
		sys_call3(SYS_munmap, at, (long)c->len, 0);
		return n == -EBADF ? -EACCES : n; /* not open for reading */
	}
	if (!map_is_error(at) && c->prot != (PROT_READ | PROT_WRITE))
		sys_call3(SYS_mprotect, at, (long)c->len, c->prot);
	return at;
}

/* ---- mmap, munmap ------------------------------------------------------------------------------------- */

/* The kernel's map may take the place of some of ours. */
static long map_over(struct run_regs *r)
{
	uint64_t a[6];
	long at;

	regs_args(r, a);
	map_lock();
	at = map_room(1);
	if (!at)
		at = host_call(SYS_mmap, a);
	if (!map_is_error(at))
		map_forget((uintptr_t)at, (uintptr_t)at + ALIGN_UP(r->si, PAGE_BYTES));
	map_unlock();
	return at;
}

static long serve_mmap(struct run_regs *r)
{
	int fd = (int)r->r8;
	struct map_call c;
	long at;

	if (!attached())
		return run_pass(r);
	if (r->r10 & MAP_ANONYMOUS || !number_is_ours(fd)) {
		if (!(r->r10 & MAP_ANONYMOUS) && number_parked(fd))
			return -EBADF;
		return r->r10 & MAP_FIXED && map_any() ? map_over(r) : run_pass(r);
	}
	at = call_take(&c, r);
	if (at)
		return at;
	if (proc_here()->borrowed)
		return borrowed_map(&c);
	map_lock();
	at = region_new(&c);
	map_unlock();
	return at;
}

static long serve_munmap(struct run_regs *r)
{
	uintptr_t start = r->di, end = start + ALIGN_UP(r->si, PAGE_BYTES);
	long err;

	if (!map_any())
		return run_pass(r);
	map_lock();
	err = map_overlaps(start, end) ? map_room(1) : 0;
	if (!err)
		err = sys_call3(SYS_munmap, (long)r->di, (long)r->si, 0);
	if (!err && start < end)
		map_forget(start, end);
	map_unlock();
	return err;
}

AT_START void serve_map_init(void)
{
	serve_table[SYS_mmap] = serve_mmap;
	serve_table[SYS_munmap] = serve_munmap;
	serve_map_change_init();
	serve_map_fault_init();
}

/* SPDX-License-Identifier: MIT */
/*
 * map_change.c - mprotect, mremap, madvise, mlock and their kin, where they meet maps of ours.
 *
 * What works on pages that are mapped works on ours: mincore, msync, munlock are the kernel's.  The rest keeps the table in
 * step, or must not reach the kernel: MADV_REMOVE would punch a hole into the segment.
 */
#include <sys/inotify.h>

#include "run/preload/map.h"

#define MREMAP_DONTUNMAP_ 4u
#define HERE_RUNS 4096u /* present at once after a move */

static uintptr_t end_of(const struct run_regs *r)
{
	return r->di + ALIGN_UP(r->si, PAGE_BYTES);
}

/* ---- mprotect ------------------------------------------------------------------------------------ */

/* May all that is ours in [start, end) be protected so? */
static bool protect_allowed(uintptr_t start, uintptr_t end, int prot)
{
	uint32_t i = map_first(start);

	for (; i < load_relaxed(&map_table.count) && map_table.region[i].start < end; i++) {
		const struct map_region *m = &map_table.region[i];

		if (m->kind == MAP_KIND_SHARED && prot & PROT_WRITE && !m->may_write)
			return false;
	}
	return true;
}

static void protect_note(uintptr_t start, uintptr_t end, int prot)
{
	uint32_t i;

	map_split(start);
	map_split(end);
	for (i = map_first(start); i < load_relaxed(&map_table.count) && map_table.region[i].start < end; i++)
		map_table.region[i].prot = (uint8_t)(prot & (PROT_READ | PROT_WRITE | PROT_EXEC));
}

static long protect(const struct run_regs *r, uintptr_t start, uintptr_t end)
{
	uint64_t a[6];
	long err = map_room(2);

	regs_args(r, a);
	if (err)
		return err;
	if (!protect_allowed(start, end, (int)r->dx))
		return -EACCES;
	err = host_call((long)r->nr, a);
	if (!err && start < end)
		protect_note(start, end, (int)r->dx);
	return err;
}

static long serve_mprotect(struct run_regs *r)
{
	long err;

	if (!map_any())
		return run_pass(r);
	map_lock();
	if (map_overlaps(r->di, end_of(r))) {
		err = protect(r, r->di, end_of(r));
	} else {
		map_unlock();
		return run_pass(r);
	}
	map_unlock();
	return err;
}

/* ---- mremap ---------------------------------------------------------------------------------------- */

struct move {
	uintptr_t old, new; /* new: where it is to go, or a hint */
	size_t old_len, new_len;
	unsigned flags;
};

/* [from, from + len) may be many maps for the kernel, which moves one at a time. */
static long move_pages(uintptr_t from, uintptr_t to, size_t len)
{
	long at = sys_call6(SYS_mremap, (long)from, (long)len, (long)len, MREMAP_MAYMOVE | MREMAP_FIXED, (long)to, 0);
	size_t half = ALIGN_UP(len / 2, PAGE_BYTES);

	if (!map_is_error(at))
		return 0;
	if (at != -EFAULT || len <= PAGE_BYTES)
		return at;
	at = move_pages(from, to, half);
	return at ? at : move_pages(from + half, to + half, len - half);
}

/* A place for it: the kernel's choice, or what MREMAP_FIXED says. */
static long move_place(const struct move *m)
{
	unsigned fixed = m->flags & MREMAP_FIXED ? MAP_FIXED : 0;

	return sys_call6(SYS_mmap, fixed ? (long)m->new : 0, (long)m->new_len, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

/* `keep`: the old map stays, too. */
static long move_region(const struct move *m, const struct map_region *old, bool keep)
{
	struct map_region r = *old;
	size_t moved = min_of(m->old_len, m->new_len);
	long err, at = move_place(m);

	if (map_is_error(at))
		return at;
	r.start = (uintptr_t)at;
	r.end = r.start + m->new_len;
	r.index = map_index(old, m->old);
	map_table.file[r.file].users++; /* before the old one goes */
	map_forget(r.start, r.end);
	err = map_absent(r.start, m->new_len, r.prot);
	if (!err && r.kind == MAP_KIND_SHARED)
		map_present(&r, r.start, r.end, r.prot & PROT_WRITE ? 0 : HERE_RUNS, 0);
	else if (!err && moved)
		err = move_pages(m->old, r.start, moved);
	if (!keep && m->old_len) {
		sys_call3(SYS_munmap, (long)m->old, (long)m->old_len, 0);
		map_forget(m->old, m->old + m->old_len);
	}
	map_insert(&r);
	return err ? err : at;
}

/* In place, if nothing is behind it.  -ENOMEM: there is. */
static long grow_here(const struct move *m, struct map_region *r)
{
	uintptr_t end = m->old + m->old_len;
	size_t more = m->new_len - m->old_len;
	long at;

	if (r->end != end)
		return -ENOMEM;
	at = sys_call6(SYS_mmap, (long)end, (long)more, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | 0x100000 /* MAP_FIXED_NOREPLACE */, -1, 0);
	if (map_is_error(at))
		return -ENOMEM;
	r->end = end + more;
	map_absent(end, more, r->prot);
	return (long)m->old;
}

static long shrink(const struct move *m)
{
	uintptr_t at = m->old + m->new_len;
	long err = sys_call3(SYS_munmap, (long)at, (long)(m->old_len - m->new_len), 0);

	if (!err)
		map_forget(at, m->old + m->old_len);
	return err ? err : (long)m->old;
}

static int move_check(const struct move *m)
{
	if (m->flags & ~(unsigned)(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP_))
		return -EINVAL;
	if (m->flags & (MREMAP_FIXED | MREMAP_DONTUNMAP_) && !(m->flags & MREMAP_MAYMOVE))
		return -EINVAL;
	if (m->flags & MREMAP_DONTUNMAP_ && m->old_len != m->new_len)
		return -EINVAL;
	if (m->old & PAGE_MASK || !m->new_len || (m->flags & MREMAP_FIXED && m->new & PAGE_MASK))
		return -EINVAL;
	if (m->flags & MREMAP_FIXED && m->new < m->old + m->old_len && m->old < m->new + m->new_len)
		return -EINVAL;
	return 0;
}

/* Table locked; the old range is ours. */
static long move(const struct move *m)
{
	struct map_region *r, was;
	long at = move_check(m);

	if (!at)
		at = map_room(4);
	if (at)
		return at;
	r = map_find(m->old);
	if (!r || m->old + m->old_len > r->end)
		return -EFAULT;
	was = *r;
	if (!m->old_len || m->flags & MREMAP_DONTUNMAP_)
		return was.kind == MAP_KIND_SHARED && m->flags & MREMAP_MAYMOVE ? move_region(m, &was, true) : -EINVAL;
	if (m->flags & MREMAP_FIXED)
		return move_region(m, &was, false);
	if (m->new_len <= m->old_len)
		return m->new_len == m->old_len ? (long)m->old : shrink(m);
	at = grow_here(m, r);
	return at == -ENOMEM && m->flags & MREMAP_MAYMOVE ? move_region(m, &was, false) : at;
}

/* Of the kernel's, perhaps onto one of ours. */
static long move_host(const struct run_regs *r, const struct move *m)
{
	uint64_t a[6];
	long at = map_room(1);

	regs_args(r, a);
	if (!at)
		at = host_call(SYS_mremap, a);
	if (!map_is_error(at) && m->flags & MREMAP_FIXED)
		map_forget((uintptr_t)at, (uintptr_t)at + m->new_len);
	return at;
}

static long serve_mremap(struct run_regs *r)
{
	struct move m = {
		.old = r->di,
		.new = r->r8,
		.old_len = ALIGN_UP(r->si, PAGE_BYTES),
		.new_len = ALIGN_UP(r->dx, PAGE_BYTES),
		.flags = (unsigned)r->r10,
	};
	long at;

	if (!map_any())
		return run_pass(r);
	map_lock();
	at = map_overlaps(m.old, m.old + max_of(m.old_len, (size_t)1)) ? move(&m) : move_host(r, &m);
	map_unlock();
	return at;
}

/* ---- madvise ------------------------------------------------------------------------------------------ */

/* MADV_REMOVE: a hole in the file. */
static long punch(uintptr_t start, uintptr_t end)
{
	const struct map_region *m = map_find(start);
	struct who w;
	long err = who_init(&w, task_here());

	if (err)
		return err;
	if (!m || m->end < end || m->kind != MAP_KIND_SHARED || !m->may_write)
		return m && m->end >= end ? -EACCES : -EINVAL;
	err = ramfs_fallocate(&w, map_inode(m), 3 /* FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE */,
			      map_index(m, start) << PAGE_SHIFT, end - start);
	if (!err)
		notify_inode(w.self, map_inode(m), IN_MODIFY);
	return err;
}

/* What a copy shows after MADV_DONTNEED is the file. */
static void copies_again(uintptr_t start, uintptr_t end)
{
	uint32_t i = map_first(start);

	for (; i < load_relaxed(&map_table.count) && map_table.region[i].start < end; i++) {
		const struct map_region *m = &map_table.region[i];

		if (m->kind == MAP_KIND_COPY)
			map_copy_again(m, max_of(start, m->start), min_of(end, m->end));
	}
}

static long advise(const struct run_regs *r, uintptr_t start, uintptr_t end)
{
	long err;

	switch ((int)r->dx) {
	case MADV_REMOVE:
		return r->di & PAGE_MASK ? -EINVAL : punch(start, end);
	case MADV_FREE:
	case MADV_WIPEONFORK:
		return -EINVAL; /* not for maps of files */
	case MADV_DONTNEED:
		err = sys_call3(SYS_madvise, (long)r->di, (long)r->si, (long)r->dx);
		if (!err)
			copies_again(start, end);
		return err;
	default:
		return sys_call3(SYS_madvise, (long)r->di, (long)r->si, (long)r->dx);
	}
}

static long serve_madvise(struct run_regs *r)
{
	uintptr_t start = r->di, end = end_of(r);
	long err;

	if (!map_any())
		return run_pass(r);
	if ((int)r->dx == ADVICE_POPULATE_READ || (int)r->dx == ADVICE_POPULATE_WRITE)
		map_populate(start, end, (int)r->dx == ADVICE_POPULATE_WRITE);
	map_lock();
	err = map_overlaps(start, end) ? advise(r, start, end) : sys_call3(SYS_madvise, (long)r->di, (long)r->si, (long)r->dx);
	map_unlock();
	return err;
}

/* ---- the rest -------------------------------------------------------------------------------------------- */

/* The kernel locks what is there. */
static long serve_mlock(struct run_regs *r)
{
	if (map_any())
		map_populate(r->di, r->di + r->si, false);
	return run_pass(r);
}

static long serve_remap_file_pages(struct run_regs *r)
{
	bool ours;

	if (!map_any())
		return run_pass(r);
	map_lock();
	ours = map_overlaps(r->di, end_of(r));
	map_unlock();
	return ours ? -EINVAL : run_pass(r);
}

AT_START void serve_map_change_init(void)
{
	serve_table[SYS_mprotect] = serve_mprotect;
	serve_table[SYS_pkey_mprotect] = serve_mprotect;
	serve_table[SYS_mremap] = serve_mremap;
	serve_table[SYS_madvise] = serve_madvise;
	serve_table[SYS_mlock] = serve_mlock;
	serve_table[SYS_mlock2] = serve_mlock;
	serve_table[SYS_remap_file_pages] = serve_remap_file_pages;
}

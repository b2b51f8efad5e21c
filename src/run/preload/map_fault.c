/* SPDX-License-Identifier: MIT */
/*
 * map_fault.c - a page that is not there is touched: by the program, by a call of the shelf, by the kernel; and pages that have
 * left their file.
 *
 * The program: map_fault(), in the signal's handler, makes the page present, and the access is made again.
 * The shelf, copying from or to the page: the same if the locks are to be had and nothing is half changed; else the call
 * fails with EFAULT or ends early, leaves a note, and map_after() makes the page present and the call again, or its rest.
 * The kernel says EFAULT: map_after() likewise, for calls that move data.
 *
 * A process finds at the end of its next call that pages have left a file it maps, one that shrinks it itself at once.  Until then
 * it sees the old page, which nobody else gets (ramfs/map.c).
 */
#include <sys/socket.h>

#include "run/preload/map.h"

#define AROUND 512u /* pages looked at from a fault on */
#define AROUND_RUNS 8u
#define AGAIN_MOST 100000u
#define IOV_MOST 1024u

/* ---- one page ---------------------------------------------------------------------------------- */

/* Table locked. */
static long resolve_locked(uintptr_t addr, unsigned flags)
{
	const struct map_region *r = map_find(addr);
	uintptr_t page = addr & ~(uintptr_t)PAGE_MASK;
	long err;

	if (!r)
		return -EFAULT;
	if (r->kind != MAP_KIND_SHARED) /* another thread may have been here, and stored to it */
		return map_readable(addr) ? 0 : map_copy_page(r, page, flags);
	err = map_present(r, page, page + AROUND * PAGE_BYTES, AROUND_RUNS, flags | MAP_MAKE);
	if (err == -ENOMEM) {
		map_evict();
		err = map_present(r, page, page + PAGE_BYTES, 1, flags | MAP_MAKE);
	}
	return err;
}

bool map_resolve(uintptr_t addr, bool write)
{
	long err;

	map_lock();
	err = resolve_locked(addr, write ? MAP_WROTE : 0);
	map_unlock();
	return !err;
}

/* In the middle of a shelf call. */
static bool resolve_inside(uintptr_t addr, bool write)
{
	long err = -EAGAIN;

	if (map_trylock()) {
		err = resolve_locked(addr, MAP_TRY | (write ? MAP_WROTE : 0));
		map_unlock();
	}
	if (err == -EAGAIN) {
		run_thread.map_missed = addr;
		run_thread.map_missed_write = write;
	}
	return !err;
}

bool map_fault(uintptr_t addr, long code, int sig, const siginfo_t *info)
{
	bool write = code & 2;

	if (sig != SIGBUS || info->si_code != BUS_ADRERR || !map_any())
		return false;
	return run_thread.in_call ? resolve_inside(addr, write) : map_resolve(addr, write);
}

void map_populate(uintptr_t start, uintptr_t end, bool write)
{
	uintptr_t at = start & ~(uintptr_t)PAGE_MASK;

	map_lock();
	while (at < end) {
		uint32_t i = map_first(at);

		if (i >= load_relaxed(&map_table.count) || map_table.region[i].start >= end)
			break;
		at = max_of(at, map_table.region[i].start);
		if (!map_readable(at))
			resolve_locked(at, write ? MAP_WROTE : 0);
		at += PAGE_BYTES;
	}
	map_unlock();
}

/* ---- calls that met one ----------------------------------------------------------------------------- */

static bool missed_resolved(void)
{
	uintptr_t addr = run_thread.map_missed;

	run_thread.map_missed = 0;
	return addr && map_resolve(addr, run_thread.map_missed_write);
}

/* A transfer from or to one buffer, of which `n` bytes are done.  False: nothing is left, or it is not such a call. */
static bool regs_advance(struct run_regs *r, long n)
{
	if (n <= 0 || (uint64_t)n >= r->dx)
		return false;
	switch (r->nr) {
	case SYS_pread64:
	case SYS_pwrite64:
		r->r10 += (uint64_t)n;
		break;
	case SYS_read:
	case SYS_write:
		break;
	default:
		return false; /* several buffers: it may end early */
	}
	r->si += (uint64_t)n;
	r->dx -= (uint64_t)n;
	return true;
}

/* The shelf's call left a note. */
static long serve_again(struct run_regs *r, long n)
{
	struct run_regs rest = *r;
	long done = 0;

	for (unsigned k = 0; k < AGAIN_MOST && run_thread.map_missed; k++) {
		if (n != -EFAULT && !regs_advance(&rest, n))
			break;
		done += max_of(n, 0L);
		if (!missed_resolved())
			return done ? done : n;
		n = serve_table[(uint32_t)rest.nr](&rest);
	}
	run_thread.map_missed = 0;
	return done ? done + max_of(n, 0L) : n;
}

/* ---- the kernel's calls -------------------------------------------------------------------------------- */

static void populate_buffer(uint64_t at, uint64_t len, bool write)
{
	map_populate(at, at + min_of(len, (uint64_t)RW_COUNT_MAX), write);
}

static void populate_iov(const struct iovec *iov, uint64_t n, bool write)
{
	struct iovec one;

	for (uint64_t i = 0; i < min_of(n, (uint64_t)IOV_MOST); i++)
		if (!copy_from_user(&one, &iov[i], sizeof(one)))
			populate_buffer((uintptr_t)one.iov_base, one.iov_len, write);
}

static void populate_msg(const struct msghdr *user, bool write)
{
	struct msghdr m;

	if (!copy_from_user(&m, user, sizeof(m)))
		populate_iov(m.msg_iov, m.msg_iovlen, write);
}

/* What memory a call of the kernel's moves data from or to. */
enum moves { MOVES_NONE, MOVES_BUFFER, MOVES_IOV, MOVES_MSG, MOVES_FIRST };
struct mover {
	uint8_t moves; /* enum moves */
	bool writes; /* to that memory */
};

static struct mover mover_of(uint64_t nr)
{
	switch (nr) {
	case SYS_read:
	case SYS_pread64:
	case SYS_recvfrom:
		return (struct mover){MOVES_BUFFER, true};
	case SYS_write:
	case SYS_pwrite64:
	case SYS_sendto:
		return (struct mover){MOVES_BUFFER, false};
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
		return (struct mover){MOVES_IOV, true};
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
		return (struct mover){MOVES_IOV, false};
	case SYS_recvmsg:
		return (struct mover){MOVES_MSG, true};
	case SYS_sendmsg:
		return (struct mover){MOVES_MSG, false};
	case SYS_getrandom:
		return (struct mover){MOVES_FIRST, true};
	default:
		return (struct mover){MOVES_NONE, false};
	}
}

/* False: there is nothing to make present. */
static bool populate_for(const struct run_regs *r)
{
	struct mover m = mover_of(r->nr);

	if (m.moves == MOVES_BUFFER)
		populate_buffer(r->si, r->dx, m.writes);
	else if (m.moves == MOVES_IOV)
		populate_iov((const struct iovec *)r->si, r->dx, m.writes);
	else if (m.moves == MOVES_MSG)
		populate_msg((const struct msghdr *)r->si, m.writes);
	else if (m.moves == MOVES_FIRST)
		populate_buffer(r->di, r->si, m.writes);
	return m.moves != MOVES_NONE;
}

/* Instead of passing it, so that we are there when it ends. */
static long host_data_call(struct run_regs *r)
{
	uint64_t a[6];
	long n;

	r->pass = 0;
	regs_args(r, a);
	n = host_call((long)r->nr, a);
	if (n == -EFAULT && populate_for(r))
		n = host_call((long)r->nr, a);
	return n;
}

/* ---- pages that left their file ---------------------------------------------------------------------------- */

static void look_again(const struct map_region *r)
{
	uint64_t size = load_acquire(&map_inode(r)->size); /* pairs with the writer's store */
	uint64_t pages = (size >> PAGE_SHIFT) + !!(size & PAGE_MASK);
	uintptr_t end = r->start;

	if (r->kind != MAP_KIND_SHARED && pages > r->index)
		end = r->start + (min_of(pages - r->index, (r->end - r->start) >> PAGE_SHIFT) << PAGE_SHIFT);
	if (end < r->end)
		map_absent(end, r->end - end, r->prot);
}

/* Table locked. */
static void settle_file(uint32_t file, uint32_t drops)
{
	uint32_t i;

	for (i = 0; i < load_relaxed(&map_table.count); i++)
		if (map_table.region[i].file == file)
			look_again(&map_table.region[i]);
	map_table.file[file].drops = drops;
	if (!proc_here()->borrowed)
		api_map_settle(task_here(), map_table.file[file].fd, drops);
}

static void settle(uint32_t all)
{
	uint32_t i;

	map_lock();
	for (i = 0; i < map_table.file_count; i++) {
		const struct map_file *f = &map_table.file[i];
		uint32_t drops = f->users ? ramfs_map_drops(f->inode) : 0;

		if (f->users && drops != f->drops)
			settle_file(i, drops);
	}
	store_relaxed(&map_table.drops, all); /* another thread that looks meanwhile waits for the lock */
	map_unlock();
}

/* ---- behind every call --------------------------------------------------------------------------------------- */

long map_after(struct run_regs *r, long n)
{
	uint32_t drops;

	if (!attached() || run_thread.map_forking)
		return n;
	if (r->pass && mover_of(r->nr).moves != MOVES_NONE)
		n = host_data_call(r);
	else if (n == -EFAULT && !run_thread.map_missed && populate_for(r))
		n = serve_table[(uint32_t)r->nr](r); /* it had asked the kernel, perhaps */
	if (run_thread.map_missed)
		n = serve_again(r, n);
	drops = load_acquire(&segment_here()->hdr->map_drops); /* pairs with data_kept_pages */
	if (unlikely(drops != load_relaxed(&map_table.drops))) /* own, or another thread's that has looked */
		settle(drops);
	return n;
}

static long serve_pass(struct run_regs *r)
{
	return run_pass(r);
}

AT_START void serve_map_fault_init(void)
{
	static const uint16_t data[] = {SYS_sendmsg, SYS_recvmsg, SYS_getrandom};

	for (size_t i = 0; i < ARRAY_SIZE(data); i++)
		if (!serve_table[data[i]])
			serve_table[data[i]] = serve_pass;
}

/* SPDX-License-Identifier: MIT */
/* map_table.c - which maps of shelf files this process has: map.h. */
#include <string.h>

#include "run/preload/map.h"

#define ROOM_FIRST 128u


/* ---- the lock ------------------------------------------------------------------------------------ */

bool map_trylock(void)
{
	uint32_t none = 0;

	call_enter();
	if (cas_acq_rel(&map_table.lock, &none, 1u)) /* pairs with map_unlock */
		return true;
	call_leave();
	return false;
}

void map_lock(void)
{
	while (!map_trylock())
		sys_call3(SYS_sched_yield, 0, 0, 0);
}

void map_unlock(void)
{
	store_release(&map_table.lock, 0u); /* pairs with map_trylock */
	call_leave();
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static long grow(void *from, size_t from_bytes, size_t bytes)
{
	if (!from)
		return sys_call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return sys_call6(SYS_mremap, (long)from, (long)from_bytes, (long)bytes, MREMAP_MAYMOVE, 0, 0);
}

/* Of `size` each. */
static int grow_to(void **at, uint32_t *room, uint32_t want, size_t size)
{
	uint32_t more = max_of(*room * 2, ROOM_FIRST);
	long to;

	if (want <= *room)
		return 0;
	while (more < want)
		more *= 2;
	to = grow(*at, *room * size, more * size);
	if (map_is_error(to))
		return -ENOMEM;
	*at = (void *)to;
	*room = more;
	return 0;
}

int map_room(uint32_t n)
{
	struct map_table *t = &map_table;
	int err = grow_to((void **)&t->region, &t->room, load_relaxed(&t->count) + n, sizeof(*t->region));

	return err ? err : grow_to((void **)&t->file, &t->file_room, t->file_count + 1, sizeof(*t->file));
}

/* ---- files ------------------------------------------------------------------------------------------ */

static uint32_t file_find(const void *open)
{
	uint32_t i;

	for (i = 0; i < map_table.file_count; i++)
		if (map_table.file[i].users && map_table.file[i].open == open)
			break;
	return i;
}

static uint32_t file_free(void)
{
	uint32_t i;

	for (i = 0; i < map_table.file_count; i++)
		if (!map_table.file[i].users)
			break;
	return i;
}

int map_file_get(int fd, struct api_map *how)
{
	const void *open = NULL;
	int held = api_map_hold(task_here(), fd, HIDDEN_NUMBERS, &open);
	int kept = held < 0 ? held : api_map_open(task_here(), held, HIDDEN_NUMBERS, how); /* of the same, whatever becomes of `fd` */
	uint32_t at;

	if (kept < 0) {
		if (held >= 0)
			api_map_close(task_here(), held);
		return kept;
	}
	at = file_find(open);
	if (at < map_table.file_count) {
		api_map_close(task_here(), kept);
		api_map_close(task_here(), held);
		map_table.file[at].users++;
		return (int)at;
	}
	at = file_free();
	if (at == map_table.file_count)
		map_table.file_count++;
	map_table.file[at] = (struct map_file){how->inode, open, kept, held, 1, ramfs_map_drops(how->inode)};
	return (int)at;
}

/* A child in our memory has numbers of its own: what it gives up here stays open until we end. */
void map_file_put(uint32_t file)
{
	struct map_file *f = &map_table.file[file];

	if (--f->users || proc_here()->borrowed)
		return;
	api_map_close(task_here(), f->fd);
	api_map_close(task_here(), f->held);
}

/* ---- regions ------------------------------------------------------------------------------------------ */

uint32_t map_first(uintptr_t addr)
{
	uint32_t low = 0, high = load_relaxed(&map_table.count);

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (map_table.region[mid].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

struct map_region *map_find(uintptr_t addr)
{
	uint32_t i = map_first(addr);

	return i < load_relaxed(&map_table.count) && map_table.region[i].start <= addr ? &map_table.region[i] : NULL;
}

bool map_overlaps(uintptr_t start, uintptr_t end)
{
	uint32_t i = map_first(start);

	return i < load_relaxed(&map_table.count) && map_table.region[i].start < end;
}

/* Room at `i`. */
static void insert_at(uint32_t i, const struct map_region *r)
{
	uint32_t n = load_relaxed(&map_table.count);

	memmove(&map_table.region[i + 1], &map_table.region[i], (n - i) * sizeof(*r));
	map_table.region[i] = *r;
	store_relaxed(&map_table.count, n + 1); /* a hint for those without the lock */
}

void map_insert(const struct map_region *r)
{
	insert_at(map_first(r->start), r);
}

static void remove_at(uint32_t i)
{
	uint32_t n = load_relaxed(&map_table.count);
	uint32_t file = map_table.region[i].file;

	memmove(&map_table.region[i], &map_table.region[i + 1], (n - i - 1) * sizeof(map_table.region[0]));
	store_relaxed(&map_table.count, n - 1); /* as in insert_at */
	map_file_put(file);
}

void map_split(uintptr_t addr)
{
	struct map_region *r = map_find(addr), upper;

	if (!r || r->start == addr)
		return;
	upper = *r;
	upper.index = map_index(r, addr);
	upper.start = addr;
	r->end = addr;
	map_table.file[r->file].users++;
	map_insert(&upper);
}

void map_forget(uintptr_t start, uintptr_t end)
{
	uint32_t i;

	map_split(start);
	map_split(end);
	i = map_first(start);
	while (i < load_relaxed(&map_table.count) && map_table.region[i].start < end)
		remove_at(i);
}

/* ---- fork ------------------------------------------------------------------------------------------------ */

/* Another thread may be changing the table, or the numbers that it goes with. */
void map_fork_begin(bool shares_memory)
{
	if (shares_memory || !attached() || load_relaxed(&runtime.threads) == 1) /* only we could change it */
		return;
	map_lock();
	run_thread.map_forking = true;
}

void map_fork_end(void)
{
	if (!run_thread.map_forking)
		return;
	run_thread.map_forking = false;
	map_unlock();
}

/* A signal that was kept back during the call is the parent's. */
void map_after_fork(void)
{
	struct run_thread *me = &run_thread;

	if (me->map_forking && me->pending)
		sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&me->mask, 0, 8, 0, 0);
	if (me->map_forking)
		me->pending = 0;
	me->map_forking = false;
	store_release(&map_table.lock, 0u); /* our thread had it, or nobody */
}

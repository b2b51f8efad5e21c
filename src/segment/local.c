/* SPDX-License-Identifier: MIT */
/*
 * local.c - this process's handles: one for each segment it has attached.
 *
 * Data: the list of struct seg_local, in memory mapped for it.
 * Protection: local_lock(), a spin lock of this process, held while attaching
 * and detaching only.  A handle's memory is not reused after detach, so a thread
 * whose thread-local list still names it finds `attached` false.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/syscall.h"
#include "segment/segment_priv.h"

#define LOCAL_ARENA (64UL << 10)

static struct seg_local *locals;
static atomic_u32 locals_lock;
static char *arena;
static size_t arena_left;

void local_lock(void)
{
	uint32_t none = 0;

	while (!cas_acq_rel(&locals_lock, &none, 1)) { /* pairs with local_unlock */
		none = 0;
		sys_call3(SYS_sched_yield, 0, 0, 0);
	}
}

void local_unlock(void)
{
	store_release(&locals_lock, 0); /* pairs with local_lock */
}

void local_after_fork(void)
{
	store_relaxed(&locals_lock, 0); /* one thread only */
}

/* Where the segments' files are. */
const char *local_dir(void)
{
	const char *dir = secure_getenv("SHELF_SHM_DIR");

	return dir && *dir && strlen(dir) < SEG_DIR_MAX ? dir : "/dev/shm";
}

int local_path(char *buf, size_t size, const char *dir, const char *name)
{
	int n = snprintf(buf, size, "%s/shelf.%s", dir, name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static void *local_memory(size_t bytes)
{
	void *p;
	long at;

	if (arena_left < bytes) {
		at = sys_call6(SYS_mmap, 0, LOCAL_ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at < 0 && at > -4096)
			return NULL;
		arena = (char *)at;
		arena_left = LOCAL_ARENA;
	}
	p = arena;
	arena += bytes;
	arena_left -= bytes;
	return p;
}

/* local_lock held. */
struct seg_local *local_new(const char *name)
{
	struct seg_local *sl = local_memory(ALIGN_UP(sizeof(*sl), (size_t)CACHE_LINE));

	if (!sl)
		return NULL;
	strncpy(sl->pub.name, name, sizeof(sl->pub.name) - 1);
	strncpy(sl->dir, local_dir(), sizeof(sl->dir) - 1);
	return sl;
}

/* Stocks are bounded by 1/128 of the segment, so that a small one does not drown in them. */
void local_bind(struct seg_local *sl, struct seg_header *h)
{
	unsigned id;

	sl->pub.hdr = h;
	sl->pub.size = h->size;
	sl->alloc = (struct alloc_state *)h->alloc_state;
	sl->infos = (struct chunk_info *)((char *)h + h->infos_at);
	sl->frames = (struct frame *)((char *)h + h->frames_at);
	sl->chunks = (char *)h + h->chunks_at;
	sl->pages = h->chunk_count * SEG_CHUNK_PAGES;
	sl->stock = (unsigned)max_of(min_of(sl->pages / 128, (uint64_t)SLOT_PAGES), (uint64_t)4);
	if (!sl->pub.read_only)
		sl->touched = touch_map(sl->pages);
	for (id = 0; id < CACHE_IDS; id++)
		sl->magazine[id] = magazine_limit(sl, (enum cache_id)id);
}

struct seg_local *local_find(uint64_t dev, uint64_t ino)
{
	struct seg_local *sl;

	for (sl = locals; sl; sl = sl->next)
		if (sl->pub.file_dev == dev && sl->pub.file_ino == ino)
			return sl;
	return NULL;
}

void local_add(struct seg_local *sl)
{
	sl->next = locals;
	sl->refs = 1;
	sl->attached = true;
	locals = sl;
}

void local_remove(struct seg_local *sl)
{
	struct seg_local **p = &locals;

	while (*p && *p != sl)
		p = &(*p)->next;
	if (*p)
		*p = sl->next;
	sl->attached = false;
}

/* SPDX-License-Identifier: MIT */
/*
 * marks.c - marking and sweeping: marks.h.
 *
 * Data: one word for each frame, mapped for the time of a check; private to the process.
 * Reads frames as the allocator does; a page beyond what is committed is never touched.
 * Progress: marking is wait-free, sweeping takes the allocator's locks page by page.
 */
#include <sys/mman.h>

#include "base/syscall.h"
#include "segment/marks.h"
#include "segment/segment_priv.h"

int marks_begin(struct slot *self, struct seg_marks *m)
{
	long at;

	m->self = self;
	m->bytes = slot_local(self)->pages * sizeof(m->word[0]);
	at = sys_call6(SYS_mmap, 0, (long)m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	m->word = at < 0 && at > -4096 ? NULL : (uint64_t *)at;
	return m->word ? 0 : -ENOMEM;
}

void marks_end(struct seg_marks *m)
{
	if (m->word)
		sys_call3(SYS_munmap, (long)m->word, (long)m->bytes, 0);
	m->word = NULL;
}

/* Its frame, if the page has memory. */
static bool marks_frame(struct seg_local *sl, const void *p, uint32_t *frame)
{
	uint32_t i, chunk;

	if (!frame_has(sl, p))
		return false;
	i = frame_index(sl, p);
	chunk = i / (uint32_t)SEG_CHUNK_PAGES;
	*frame = i;
	return chunk < load_acquire(&sl->alloc->chunks_made) && /* pairs with grow_pick */
	       i % SEG_CHUNK_PAGES < load_acquire(&sl->infos[chunk].committed); /* pairs with grow_publish */
}

/* What is in use and begins there: its room, its frame and its bit.  0: nothing does. */
static size_t marks_find(struct seg_marks *m, const void *obj, uint32_t *frame, uint64_t *bit)
{
	struct seg_local *sl = slot_local(m->self);
	uint32_t offset = (uintptr_t)obj & PAGE_MASK, size;
	uint64_t word;
	unsigned cls;

	if (!marks_frame(sl, obj, frame))
		return 0;
	word = load_acquire(&sl->frames[*frame].word); /* pairs with the stores of whoever had the page */
	*bit = 1;
	if (frame_kind(word) > PAGE_CACHED && frame_kind(word) != PAGE_SLAB)
		return offset || frame_order(word) > PAGE_MAX_ORDER ? 0 : PAGE_BYTES << frame_order(word);
	cls = word >> 16 & 0xff;
	if (frame_kind(word) != PAGE_SLAB || cls < 1 || cls > CACHE_IDS)
		return 0;
	size = slab_sizes[cls - 1];
	*bit = UINT64_C(1) << (offset / size & 63);
	if (offset % size || load_acquire(&sl->frames[*frame].map) & *bit) /* acquire: as above */
		return 0;
	return size;
}

size_t marks_room(struct seg_marks *m, const void *obj)
{
	uint32_t frame;
	uint64_t bit;

	return marks_find(m, obj, &frame, &bit);
}

static enum mark marks_set(struct seg_marks *m, uint32_t frame, uint64_t bit)
{
	bool again = m->word[frame] & bit;

	m->word[frame] |= bit;
	return again ? MARK_AGAIN : MARK_NEW;
}

enum mark marks_add(struct seg_marks *m, const void *obj, size_t least)
{
	uint32_t frame;
	uint64_t bit;
	size_t room = marks_find(m, obj, &frame, &bit);

	return room && room >= least ? marks_set(m, frame, bit) : MARK_BAD;
}

enum mark marks_add_exact(struct seg_marks *m, const void *obj, size_t bytes)
{
	return marks_room(m, obj) == mem_room(bytes) ? marks_add(m, obj, bytes) : MARK_BAD;
}

bool marks_has(struct seg_marks *m, const void *obj)
{
	uint32_t frame;
	uint64_t bit;

	return marks_find(m, obj, &frame, &bit) && m->word[frame] & bit;
}

void marks_del(struct seg_marks *m, const void *obj)
{
	uint32_t frame;
	uint64_t bit;

	if (marks_find(m, obj, &frame, &bit))
		m->word[frame] &= ~bit;
}

bool marks_around(struct seg_marks *m, const void *p, size_t bytes)
{
	const char *page = (const char *)((uintptr_t)p & ~(uintptr_t)PAGE_MASK);
	size_t offset = (uintptr_t)p & PAGE_MASK, size = 0;
	enum cache_id id;

	if (offset % sizeof(void *))
		return false;
	if (slab_class_at(slot_local(m->self), p, &id))
		size = slab_sizes[id];
	if (!size && offset)
		return false;
	return marks_add(m, size ? page + offset / size * size : p, size ? offset % size + bytes : bytes) == MARK_NEW;
}

enum mark marks_add_page(struct seg_marks *m, const void *page)
{
	struct seg_local *sl = slot_local(m->self);
	uint32_t frame;
	uint64_t word;

	if ((uintptr_t)page & PAGE_MASK || !marks_frame(sl, page, &frame))
		return MARK_BAD;
	word = load_acquire(&sl->frames[frame].word); /* as in marks_find */
	return frame_kind(word) == PAGE_DATA && !frame_order(word) ? marks_set(m, frame, 1) : MARK_BAD;
}

/* ---- sweeping ------------------------------------------------------------------------------ */

void marks_flush(struct slot *self)
{
	unsigned id;

	magazines_flush(self);
	for (id = 0; id < CACHE_IDS; id++)
		slab_release_empties(self, (enum cache_id)id, 0);
	stock_drain(self, load_relaxed(&self->reserved)); /* [o] */
}

static bool in_own_stock(struct slot *self, const void *page)
{
	uint32_t k;

	for (k = 0; k < load_relaxed(&self->page_count); k++) /* [o] */
		if (self->pages[k] == page)
			return true;
	return false;
}

LOCK_NO_ANALYSIS static void sweep_run(struct seg_marks *m, uint32_t i, unsigned order, bool free, struct marks_left *out)
{
	struct seg_local *sl = slot_local(m->self);

	out->pages += UINT64_C(1) << order;
	if (!free)
		return;
	lock_acquire(&sl->alloc->lock, &m->self->locker, LOCK_LEAF);
	buddy_give_locked(sl, i, order);
	lock_release(&sl->alloc->lock, &m->self->locker, LOCK_LEAF);
}

static void sweep_slab(struct seg_marks *m, uint32_t i, enum cache_id id, bool free, struct marks_left *out)
{
	struct seg_local *sl = slot_local(m->self);
	uint64_t left = slab_full_map(id) & ~load_relaxed(&sl->frames[i].map) & ~m->word[i]; /* nobody else is there */

	out->objects += bits_count(left);
	if (left && free)
		slab_give_back(m->self, id, i, left);
}

/* One run of frames; how many. */
static uint32_t sweep_one(struct seg_marks *m, uint32_t i, uint32_t room, bool free, struct marks_left *out)
{
	struct seg_local *sl = slot_local(m->self);
	uint64_t word = load_relaxed(&sl->frames[i].word); /* nobody else is there */
	unsigned cls = word >> 16 & 0xff, order = frame_order(word);

	if (order > PAGE_MAX_ORDER || 1u << order > room)
		return 1; /* segment_check() says so */
	switch (frame_kind(word)) {
	case PAGE_FREE:
		break;
	case PAGE_CACHED:
		if (!order && !in_own_stock(m->self, frame_page(sl, i)))
			sweep_run(m, i, order, free, out);
		break;
	case PAGE_SLAB:
		if (cls >= 1 && cls <= CACHE_IDS)
			sweep_slab(m, i, (enum cache_id)(cls - 1), free, out);
		break;
	default:
		if (!(m->word[i] & 1))
			sweep_run(m, i, order, free, out);
	}
	return 1u << order;
}

void marks_sweep(struct seg_marks *m, bool free, struct marks_left *out)
{
	struct seg_local *sl = slot_local(m->self);
	uint32_t c, n, committed;

	*out = (struct marks_left){0, 0};
	for (c = 0; c < load_acquire(&sl->alloc->chunks_made); c++) { /* pairs with grow_pick */
		committed = load_acquire(&sl->infos[c].committed); /* pairs with grow_publish */
		for (n = 0; n < committed;)
			n += sweep_one(m, c * (uint32_t)SEG_CHUNK_PAGES + n, committed - n, free, out);
	}
	if (free)
		marks_flush(m->self);
}

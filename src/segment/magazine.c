/* SPDX-License-Identifier: MIT */
/*
 * magazine.c - cache_alloc, cache_free, mem_alloc, mem_free.
 *
 * Data: slot.mag, a small stack of free objects of each size, touched by its owner alone
 * (after its death by whoever recovers the slot).
 * Fast path: own slot; nothing that others write.  Wait-free.
 * Slow path: a batch from or to the slabs under the class's lock.
 * Limits: 24 objects a size, fewer of the large ones and in small segments.
 */
#include "segment/segment_priv.h"

#define MAGAZINE_BYTES 12288u /* of one size in one thread */

unsigned magazine_limit(const struct seg_local *sl, enum cache_id id)
{
	unsigned n = min_of(MAGAZINE_BYTES / slab_sizes[id], (unsigned)SLOT_OBJECTS);

	return max_of(n * sl->stock / SLOT_PAGES, 2u);
}

static bool magazine_refill(struct slot *self, enum cache_id id)
{
	struct seg_local *sl = slot_local(self);
	bool scarce = load_relaxed(&sl->alloc->pressure); /* a hint */

	return slab_take(self, id, scarce ? 1 : (sl->magazine[id] + 1) / 2);
}

void *cache_alloc(struct slot *self, enum cache_id id)
{
	struct magazine *m = &self->mag[id];
	uint32_t n = load_relaxed(&m->count); /* [o] */

	if (unlikely(!n)) {
		if (!magazine_refill(self, id))
			return NULL;
		n = load_relaxed(&m->count); /* [o] */
	}
	store_release(&m->count, n - 1); /* read after our death */
	return m->obj[n - 1];
}

void cache_free(struct slot *self, enum cache_id id, void *obj)
{
	struct seg_local *sl = slot_local(self);
	struct magazine *m = &self->mag[id];
	uint32_t n = load_relaxed(&m->count); /* [o] */
	unsigned limit = sl->magazine[id];

	if (unlikely(n >= limit)) {
		slab_give(self, id, m, limit / 2);
		n = load_relaxed(&m->count); /* [o] */
	}
	m->obj[n] = obj;
	store_release(&m->count, n + 1); /* read after our death */
	if (unlikely(load_relaxed(&sl->alloc->pressure))) /* a hint */
		slab_give(self, id, m, 0);
}

void magazines_flush(struct slot *self)
{
	unsigned id;

	for (id = 0; id < CACHE_IDS; id++)
		if (load_relaxed(&self->mag[id].count)) /* [o] */
			slab_give(self, (enum cache_id)id, &self->mag[id], 0);
}

/* ---- after a death ----------------------------------------------------------------------- */

/* Take `obj` out of a dead thread's magazine if it is there. */
void magazine_remove(struct slot *s, enum cache_id id, const void *obj)
{
	struct magazine *m = &s->mag[id];
	uint32_t n = load_relaxed(&m->count); /* its owner is dead */
	uint32_t k;

	for (k = 0; k < n; k++) {
		if (m->obj[k] != obj)
			continue;
		m->obj[k] = m->obj[n - 1];
		store_release(&m->count, n - 1); /* read after our death */
		return;
	}
}

void magazine_takeover(struct slot *self, struct slot *gone)
{
	unsigned id;

	for (id = 0; id < CACHE_IDS; id++)
		slab_give(self, (enum cache_id)id, &gone->mag[id], 0);
}

/* ---- by size -------------------------------------------------------------------------------- */

/* CACHE_IDS: larger than any object. */
static unsigned mem_class(size_t bytes)
{
	unsigned id = 0;

	while (id < CACHE_IDS && slab_sizes[id] < bytes)
		id++;
	return id;
}

static unsigned mem_order(size_t bytes)
{
	return bits_order((bytes + PAGE_MASK) >> PAGE_SHIFT);
}

void *mem_alloc(struct slot *self, size_t bytes)
{
	unsigned id = mem_class(bytes);

	if (id < CACHE_IDS)
		return cache_alloc(self, (enum cache_id)id);
	return page_alloc(self, mem_order(bytes), PAGE_TABLE, 0);
}

void mem_free(struct slot *self, void *p, size_t bytes)
{
	unsigned id = mem_class(bytes);

	if (id < CACHE_IDS)
		cache_free(self, (enum cache_id)id, p);
	else
		page_free(self, p, mem_order(bytes));
}

/* SPDX-License-Identifier: MIT */
/*
 * magazine.c - cache_alloc (its fast half is in slot.h), cache_free, mem_alloc, mem_free.
 *
 * Data: slot.mag, a small stack of free objects of each size, touched by its owner alone
 * (after its death by whoever recovers the slot).
 * Fast path: own slot; nothing that others write.  Wait-free.
 * Slow path: a batch from or to the slabs under the class's lock.
 * Of files, dentries and inodes a thread keeps two batches of the epoch's beyond that, as many as one step of it may
 * free: what is freed is what the next opens and creates take.  In a steady state the slabs are left alone, and no
 * object goes from one thread's processor to another's.
 * Limits: 24 objects a size, fewer of the large ones and in small segments; beyond, a batch of two sizes.
 */
#include "segment/hand.h"
#include "segment/segment_priv.h"

#define MORE_SPARE 256u /* kept beyond two batches */
#define MORE_MAX (2 * SLOT_BATCH_MAX + MORE_SPARE)
#define MAGAZINE_BYTES 12288u /* of one size in one thread */

unsigned magazine_limit(const struct seg_local *sl, enum cache_id id)
{
	unsigned n = min_of(MAGAZINE_BYTES / slab_sizes[id], (unsigned)SLOT_OBJECTS);

	return max_of(n * sl->stock / SLOT_PAGES, 2u);
}

static unsigned more_limit(const struct slot *self, const struct seg_local *sl, enum cache_id id)
{
	if (id != CACHE_128 && id != CACHE_256)
		return 0;
	return min_of(2 * self->batch + MORE_SPARE, MORE_MAX * sl->stock / SLOT_PAGES);
}

unsigned slot_batch(struct segment *seg)
{
	unsigned n = min_of(SLOT_BATCH_ALL / max_of(slot_limit(seg), 1u), SLOT_BATCH_MAX);

	return max_of(n * seg_local(seg)->stock / SLOT_PAGES, SLOT_BATCH_MIN);
}

/* ---- the objects beyond ------------------------------------------------------------------ */

static void more_push(struct magazine *m, void *obj)
{
	*object_link(obj) = m->more;
	fence_compiler(); /* the link before the object can be found by it, after our death */
	kill_point();
	m->more = obj;
	store_relaxed(&m->more_count, load_relaxed(&m->more_count) + 1); /* [o] a death in between: see slot.h */
}

/* Up to `want` into the magazine; how many.  In it first: a death in between leaves one in both, see more_repair(). */
static unsigned more_pop(struct magazine *m, unsigned want)
{
	uint32_t n = load_relaxed(&m->count), moved = 0; /* [o] */
	void *obj;

	for (; moved < want && n < SLOT_OBJECTS && (obj = m->more); moved++) {
		m->obj[n] = obj;
		store_release(&m->count, ++n); /* read after our death */
		m->more = *object_link(obj);
	}
	store_relaxed(&m->more_count, m->more ? load_relaxed(&m->more_count) - moved : 0); /* [o] */
	return moved;
}

static void more_repair(struct magazine *m)
{
	uint32_t n = load_relaxed(&m->count); /* its owner is dead */

	if (n && m->more == m->obj[n - 1])
		m->more = *object_link(m->more);
}

/* ---- alloc, free --------------------------------------------------------------------------- */

static void magazine_empty(struct slot *self, enum cache_id id, struct magazine *m)
{
	do
		if (load_relaxed(&m->count)) /* [o] */
			slab_give(self, id, m, 0);
	while (more_pop(m, SLOT_OBJECTS));
}

static bool magazine_refill(struct slot *self, enum cache_id id)
{
	struct seg_local *sl = slot_local(self);
	bool scarce;

	if (more_pop(&self->mag[id], (sl->magazine[id] + 1) / 2))
		return true;
	scarce = load_relaxed(&sl->alloc->pressure); /* a hint */
	return slab_take(self, id, scarce ? 1 : (sl->magazine[id] + 1) / 2);
}

void *cache_alloc_slow(struct slot *self, enum cache_id id)
{
	return magazine_refill(self, id) ? cache_alloc(self, id) : NULL;
}

void *cache_alloc_noted(struct slot *self, enum cache_id id, int *k)
{
	struct magazine *m = &self->mag[id];
	uint32_t n;

	if (fail_point(FAIL_ALLOC) || (unlikely(!load_relaxed(&m->count)) && !magazine_refill(self, id))) /* [o] */
		return NULL;
	n = load_relaxed(&m->count); /* [o] */
	*k = ledger_add(self, m->obj[n - 1], LEDGER_MEM);
	store_release(&m->count, n - 1); /* read after our death */
	return m->obj[n - 1];
}

static inline_always void cache_put(struct slot *self, enum cache_id id, void *obj)
{
	struct seg_local *sl = slot_local(self);
	struct magazine *m = &self->mag[id];
	uint32_t n = load_relaxed(&m->count); /* [o] */
	unsigned limit = sl->magazine[id];

	/* Again if need be: what waits in slab_give() may free objects into the magazine. */
	while (unlikely(n >= limit)) {
		if (load_relaxed(&m->more_count) < more_limit(self, sl, id)) { /* [o] */
			more_push(m, obj);
			return;
		}
		slab_give(self, id, m, limit / 2);
		n = load_relaxed(&m->count); /* [o] */
	}
	m->obj[n] = obj;
	store_release(&m->count, n + 1); /* read after our death */
}

/* Not while an epoch's objects are freed: what was just freed is to be found in the magazine (bags_free_last). */
static inline_always void cache_relieve(struct slot *self, enum cache_id id)
{
	if (unlikely(load_relaxed(&slot_local(self)->alloc->pressure)) && !self->reclaiming) /* a hint */
		magazine_empty(self, id, &self->mag[id]);
}

void magazine_make_room(struct slot *self, const void *obj)
{
	struct seg_local *sl = slot_local(self);
	enum cache_id id;
	struct magazine *m;

	if (!slab_class_at(sl, obj, &id))
		return;
	m = &self->mag[id];
	while (unlikely(load_relaxed(&m->count) >= sl->magazine[id]) && /* [o] */
	       load_relaxed(&m->more_count) >= more_limit(self, sl, id))
		slab_give(self, id, m, sl->magazine[id] / 2);
}

void cache_free(struct slot *self, enum cache_id id, void *obj)
{
	cache_put(self, id, obj);
	cache_relieve(self, id);
}

/* Off the ledger while it still is in the magazine: a death finds it there. */
void cache_free_noted(struct slot *self, enum cache_id id, void *obj, int k)
{
	cache_put(self, id, obj);
	hand_forget(self, k);
	cache_relieve(self, id);
}

void magazines_flush(struct slot *self)
{
	unsigned id;

	for (id = 0; id < CACHE_IDS; id++)
		magazine_empty(self, (enum cache_id)id, &self->mag[id]);
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

/* The class of the slab that `p` lies in; false: in none. */
bool slab_class_at(struct seg_local *sl, const void *p, enum cache_id *id)
{
	uint64_t word;
	unsigned cls;

	if (!frame_has(sl, p))
		return false;
	word = load_relaxed(&sl->frames[frame_index(sl, p)].word); /* stays so while the object is out */
	cls = word >> 16 & 0xff;
	if (frame_kind(word) != PAGE_SLAB || cls < 1 || cls > CACHE_IDS)
		return false;
	*id = (enum cache_id)(cls - 1);
	return true;
}

static bool magazine_has(const struct magazine *m, const void *obj)
{
	uint32_t k, n = load_relaxed(&((struct magazine *)(uintptr_t)m)->count); /* its owner is dead */
	const void *more = m->more;

	for (k = 0; k < n; k++)
		if (m->obj[k] == obj)
			return true;
	for (k = 0; more && k <= MORE_MAX; k++, more = *object_link(more))
		if (more == obj)
			return true;
	return false;
}

bool object_in_hand(struct segment *seg, struct slot *gone, const void *p)
{
	struct seg_local *sl = seg_local(seg);
	uint32_t offset = (uintptr_t)p & PAGE_MASK, size;
	enum cache_id id;

	if (!slab_class_at(sl, p, &id))
		return false;
	size = slab_sizes[id];
	return !(load_relaxed(&sl->frames[frame_index(sl, p)].map) >> (offset / size & 63) & 1) && /* stays so, too */
	       !magazine_has(&gone->mag[id], (const char *)p - offset % size);
}

/* Of the dead one's hand, into its magazine. */
void magazine_put_back(struct slot *self, struct slot *gone, enum cache_id id, void *obj)
{
	struct magazine *m = &gone->mag[id];
	uint32_t n;

	if (load_relaxed(&m->count) == SLOT_OBJECTS) /* its owner is dead */
		slab_give(self, id, m, SLOT_OBJECTS / 2);
	n = load_relaxed(&m->count);
	m->obj[n] = obj;
	store_release(&m->count, n + 1); /* read after our death */
}

void magazine_takeover(struct slot *self, struct slot *gone)
{
	unsigned id;

	for (id = 0; id < CACHE_IDS; id++)
		more_repair(&gone->mag[id]);
	hand_take_back(self, gone);
	for (id = 0; id < CACHE_IDS; id++)
		magazine_empty(self, (enum cache_id)id, &gone->mag[id]);
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

size_t mem_room(size_t bytes)
{
	unsigned id = mem_class(bytes);

	if (id < CACHE_IDS)
		return slab_sizes[id];
	return bytes <= PAGE_BYTES << PAGE_MAX_ORDER ? PAGE_BYTES << mem_order(bytes) : 0;
}

void *mem_alloc(struct slot *self, size_t bytes)
{
	unsigned id = mem_class(bytes);

	if (id < CACHE_IDS)
		return cache_alloc(self, (enum cache_id)id);
	return page_alloc(self, mem_order(bytes), PAGE_TABLE, 0);
}

void *mem_alloc_noted(struct slot *self, size_t bytes, int *k)
{
	unsigned id = mem_class(bytes);

	if (id < CACHE_IDS)
		return cache_alloc_noted(self, (enum cache_id)id, k);
	return page_alloc_noted(self, mem_order(bytes), PAGE_TABLE, 0, k);
}

void mem_free_noted(struct slot *self, void *p, size_t bytes, int k)
{
	unsigned id = mem_class(bytes);

	if (id < CACHE_IDS) {
		cache_free_noted(self, (enum cache_id)id, p, k);
		return;
	}
	page_free_noted(self, p, mem_order(bytes), k);
}

void mem_free(struct slot *self, void *p, size_t bytes)
{
	unsigned id = mem_class(bytes);

	if (id < CACHE_IDS)
		cache_free(self, (enum cache_id)id, p);
	else
		page_free(self, p, mem_order(bytes));
}

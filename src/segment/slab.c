/* SPDX-License-Identifier: MIT */
/*
 * slab.c - objects of eight sizes, cut from single pages; the shared half of the
 * object caches (the threads' half is magazine.c).
 *
 * Data: frame.map of a slab's page (bit n: object n is free) is the truth; the
 * list of slabs with a free object is derived.
 * Protection: slab_class.lock of the size.  Fast path: none here, batches only.
 * Death: objects between a map and a magazine are named in slot.move, written before
 * the map changes and cleared after the magazine did, all under the class's
 * lock.  Recovery puts them back into the slab.  slab_rebuild_locked() makes the list anew.
 * Wholly free slabs: one a class is kept, the rest go back to pages.
 * Look at it: segment_check().  Limits: an object lies in one page.
 */
#include "segment/segment_priv.h"

#define SLAB_KEEP_EMPTY 1u

const uint16_t slab_sizes[CACHE_IDS] = {64, 128, 192, 256, 384, 576, 1024, 2048};

unsigned slab_objects(enum cache_id id)
{
	return (unsigned)(PAGE_BYTES / slab_sizes[id]);
}

uint64_t slab_full_map(enum cache_id id)
{
	unsigned n = slab_objects(id);

	return n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

static struct slab_class *slab_class_of(struct seg_local *sl, enum cache_id id)
{
	return &sl->alloc->classes[id];
}

/* ---- the map of one slab, class lock held -------------------------------------------------- */

static void slab_move_begin(struct slot *self, uint32_t i, uint64_t mask)
{
	store_release(&self->move.mask, mask); /* these two are read after our death */
	store_release(&self->move.frame, (uint64_t)i + 1);
}

static void slab_move_end(struct slot *self)
{
	store_release(&self->move.frame, 0); /* read after our death */
}

static void slab_map_take(struct seg_local *sl, enum cache_id id, uint32_t i, uint64_t mask)
{
	struct slab_class *c = slab_class_of(sl, id);
	uint64_t map = load_relaxed(&sl->frames[i].map); /* [C] */

	if (map == slab_full_map(id))
		c->empties--;
	tracked_store(&sl->frames[i].map, map & ~mask);
	if (map == mask)
		run_remove(sl, &c->partial, i);
}

static void slab_map_give(struct seg_local *sl, enum cache_id id, uint32_t i, uint64_t mask)
{
	struct slab_class *c = slab_class_of(sl, id);
	uint64_t map = load_relaxed(&sl->frames[i].map); /* [C] */

	tracked_store(&sl->frames[i].map, map | mask);
	if ((map | mask) == slab_full_map(id)) {
		if (map)
			run_remove(sl, &c->partial, i);
		run_push_tail(sl, &c->partial, i);
		c->empties++;
	} else if (!map) {
		run_push(sl, &c->partial, i);
	}
}

/* ---- slabs come and go --------------------------------------------------------------------- */

/* A page of the own stock becomes a slab.  The class's lock and the stock are held. */
static void slab_add_inside(struct slot *self, enum cache_id id)
{
	struct seg_local *sl = slot_local(self);
	struct slab_class *c = slab_class_of(sl, id);
	uint32_t i = frame_index(sl, stock_pop_inside(self));

	store_relaxed(&sl->frames[i].map, slab_full_map(id)); /* [C]; means nothing until the word says slab */
	tracked_store(&sl->frames[i].word, frame_slab_word(id));
	run_push_tail(sl, &c->partial, i);
	c->empties++;
	c->slabs++;
}

/* The class's lock is held, and a slab is on the list; or false, not held: no page is to be had. */
LOCK_NO_ANALYSIS static bool slab_lock_some(struct slot *self, enum cache_id id)
{
	struct slab_class *c = slab_class_of(slot_local(self), id);

	do {
		stock_enter_locked(self, &c->lock);
		if (!c->partial.head && load_relaxed(&self->page_count) > load_relaxed(&self->reserved)) /* [o] */
			slab_add_inside(self, id);
		stock_leave(self);
		if (c->partial.head)
			return true;
		lock_release(&c->lock, &self->locker, LOCK_LEAF);
	} while (stock_fill(self));
	return false;
}

/* The last slab of the list, if it is wholly free, becomes a page of the own stock. */
static bool slab_drop_inside(struct slot *self, enum cache_id id, unsigned keep)
{
	struct seg_local *sl = slot_local(self);
	struct slab_class *c = slab_class_of(sl, id);
	uint32_t i = c->partial.tail;

	if (c->empties <= keep || !i-- || load_relaxed(&sl->frames[i].map) != slab_full_map(id)) /* [C] */
		return false;
	if (unlikely(load_relaxed(&self->page_count) >= SLOT_PAGES)) /* [o]; pages came while we waited: the next one's turn */
		return false;
	run_remove(sl, &c->partial, i);
	c->empties--;
	c->slabs--;
	stock_push_inside(self, frame_page(sl, i));
	return true;
}

/* Pages that went to the own stock (or through it). */
uint64_t slab_release_empties(struct slot *self, enum cache_id id, unsigned keep)
{
	struct seg_local *sl = slot_local(self);
	struct slab_class *c = slab_class_of(sl, id);
	bool dropped;
	uint64_t n = 0;

	do {
		if (load_relaxed(&self->page_count) >= SLOT_PAGES - 1) /* [o] */
			stock_drain(self, max_of(sl->stock / 2, load_relaxed(&self->reserved)));
		stock_enter_locked(self, &c->lock);
		dropped = slab_drop_inside(self, id, keep);
		stock_leave(self);
		lock_release(&c->lock, &self->locker, LOCK_LEAF);
		n += dropped;
	} while (dropped);
	return n;
}

/* ---- batches ------------------------------------------------------------------------------ */

static uint64_t slab_lowest_bits(uint64_t map, unsigned n)
{
	uint64_t mask = 0;

	for (; map && n; n--, map &= map - 1)
		mask |= map & -map;
	return mask;
}

static void slab_fill_magazine(struct seg_local *sl, enum cache_id id, struct magazine *m, uint32_t i, uint64_t mask)
{
	char *page = frame_page(sl, i);
	uint32_t n = load_relaxed(&m->count); /* [o] */

	/* Highest first, so that the lowest address is handed out first. */
	while (mask) {
		unsigned k = bits_last_one(mask);

		mask ^= UINT64_C(1) << k;
		m->obj[n++] = page + (size_t)k * slab_sizes[id];
	}
	store_release(&m->count, n); /* read after our death */
}

/*
 * Up to `want` objects in the own magazine; how many are there.  It was empty when the caller looked, but what
 * waits on the way here (memory reclaimed, a dead thread recovered) may have freed objects into it.
 */
LOCK_NO_ANALYSIS unsigned slab_take(struct slot *self, enum cache_id id, unsigned want)
{
	struct seg_local *sl = slot_local(self);
	struct slab_class *c = slab_class_of(sl, id);
	atomic_u32 *count = &self->mag[id].count;

	if (!slab_lock_some(self, id))
		return load_relaxed(count); /* [o] */
	while (load_relaxed(count) < want && c->partial.head) { /* [o] */
		uint32_t i = c->partial.head - 1;
		uint64_t mask = slab_lowest_bits(load_relaxed(&sl->frames[i].map), want - load_relaxed(count)); /* [C] */

		slab_move_begin(self, i, mask);
		slab_map_take(sl, id, i, mask);
		slab_fill_magazine(sl, id, &self->mag[id], i, mask);
		slab_move_end(self);
	}
	lock_release(&c->lock, &self->locker, LOCK_LEAF);
	return load_relaxed(count); /* [o] */
}

/* offset / size by multiplication: exact, as 4095 * 2048 < 1 << 24. */
#define SLAB_INVERSE_SHIFT 24
#define SLAB_INVERSE(size) ((1u << SLAB_INVERSE_SHIFT) / (size) + 1)
static const uint32_t slab_inverse[CACHE_IDS] = {SLAB_INVERSE(64),  SLAB_INVERSE(128), SLAB_INVERSE(192),
						 SLAB_INVERSE(256), SLAB_INVERSE(384), SLAB_INVERSE(576),
						 SLAB_INVERSE(1024), SLAB_INVERSE(2048)};

/* Frame and bit of an object; false when it cannot be one of this class. */
static inline bool slab_locate(struct seg_local *sl, enum cache_id id, const void *obj, uint32_t *i, uint64_t *bit)
{
	uint32_t offset = (uintptr_t)obj & PAGE_MASK;
	uint32_t k = (uint32_t)((uint64_t)offset * slab_inverse[id] >> SLAB_INVERSE_SHIFT);

	if (!frame_has(sl, obj) || k * slab_sizes[id] != offset)
		return false;
	*i = frame_index(sl, obj);
	*bit = UINT64_C(1) << k;
	return load_relaxed(&sl->frames[*i].word) == frame_slab_word(id) && /* stays so while an object is out */
	       !(load_relaxed(&sl->frames[*i].map) & *bit); /* [C] */
}

/* How many of the `n` topmost objects of `m` lie in one slab; its frame and their bits.  0: the topmost is none in use. */
static unsigned slab_gather(struct seg_local *sl, enum cache_id id, const struct magazine *m, uint32_t count, unsigned n,
			    uint32_t *frame, uint64_t *mask)
{
	uint64_t bits = 0, bit;
	uint32_t i, first = 0;
	unsigned k;

	for (k = 0; k < n && slab_locate(sl, id, m->obj[count - 1 - k], &i, &bit); k++) {
		if (k && (i != first || bits & bit))
			break;
		first = i;
		bits |= bit;
	}
	*frame = first;
	*mask = bits;
	return k;
}

/* Objects of `m` go back until `keep` are left.  `m` is the own magazine, or a dead thread's. */
void slab_give(struct slot *self, enum cache_id id, struct magazine *m, unsigned keep)
{
	struct seg_local *sl = slot_local(self);
	struct slab_class *c = slab_class_of(sl, id);
	bool own = m == &self->mag[id];
	uint64_t mask;
	uint32_t n, i;
	unsigned k;

	lock_acquire(&c->lock, &self->locker, LOCK_LEAF);
	for (n = load_relaxed(&m->count); n > keep; n -= k) { /* [o] */
		k = slab_gather(sl, id, m, n, n - keep, &i, &mask);
		if (unlikely(!k)) {
			k = 1;
			store_release(&m->count, n - k); /* read after our death */
			if (own)
				segment_poison(self->seg, "an object was freed that is not in use");
			continue;
		}
		slab_move_begin(self, i, mask);
		kill_point();
		store_release(&m->count, n - k); /* read after our death */
		kill_point();
		slab_map_give(sl, id, i, mask);
		slab_move_end(self);
	}
	n = c->empties; /* [C] */
	lock_release(&c->lock, &self->locker, LOCK_LEAF);
	if (n > SLAB_KEEP_EMPTY)
		slab_release_empties(self, id, SLAB_KEEP_EMPTY);
}

void slab_give_back(struct slot *self, enum cache_id id, uint32_t i, uint64_t mask)
{
	struct seg_local *sl = slot_local(self);
	struct slab_class *c = slab_class_of(sl, id);

	lock_acquire(&c->lock, &self->locker, LOCK_LEAF);
	slab_map_give(sl, id, i, mask);
	lock_release(&c->lock, &self->locker, LOCK_LEAF);
}

/* ---- after a death ----------------------------------------------------------------------- */

/* False: `dead` was moving nothing of that class.  The class's lock is held, in these three. */
static bool slab_move_of(struct seg_local *sl, enum cache_id id, struct slot *dead, uint32_t *i, uint64_t *mask)
{
	uint64_t at = load_acquire(&dead->move.frame); /* pairs with slab_move_begin, through the death */

	*mask = load_relaxed(&dead->move.mask); /* ordered by the line above */
	*i = (uint32_t)at - 1;
	return at && load_relaxed(&sl->frames[*i].word) == frame_slab_word(id); /* [C] */
}

/* What `dead` was moving is not in the magazine of `of`, who is dead too: itself, or one whom it was recovering. */
void slab_move_forget_locked(struct seg_local *sl, enum cache_id id, struct slot *dead, struct slot *of)
{
	uint64_t mask;
	uint32_t i;
	unsigned k;

	if (!slab_move_of(sl, id, dead, &i, &mask))
		return;
	for (k = 0; k < slab_objects(id); k++)
		if (mask >> k & 1)
			magazine_remove(of, id, (char *)frame_page(sl, i) + (size_t)k * slab_sizes[id]);
}

/* It goes back to its slab, when it is in no magazine.  May be repeated, as nobody takes it out before the lock is released. */
void slab_move_undo_locked(struct seg_local *sl, enum cache_id id, struct slot *dead)
{
	uint64_t mask;
	uint32_t i;

	if (!slab_move_of(sl, id, dead, &i, &mask))
		return;
	slab_move_forget_locked(sl, id, dead, dead);
	kill_point();
	tracked_store(&sl->frames[i].map, load_relaxed(&sl->frames[i].map) | mask); /* [C] */
	slab_move_end(dead);
}

static void slab_rebuild_one(struct seg_local *sl, enum cache_id id, uint32_t i)
{
	struct slab_class *c = slab_class_of(sl, id);
	uint64_t map = load_relaxed(&sl->frames[i].map); /* [C] */

	c->slabs++;
	if (map == slab_full_map(id)) {
		c->empties++;
		run_push_tail(sl, &c->partial, i);
	} else if (map) {
		run_push(sl, &c->partial, i);
	}
}

/*
 * Looks at every frame without alloc.lock: a page becomes or stops being a
 * slab of this class only under the class's lock, which we hold.
 */
void slab_rebuild_locked(struct seg_local *sl, enum cache_id id)
{
	struct slab_class *c = slab_class_of(sl, id);
	uint32_t chunks = load_acquire(&sl->alloc->chunks_made); /* pairs with grow_pick */
	uint32_t k, n;

	c->partial = (struct run_list){0, 0};
	c->empties = 0;
	c->slabs = 0;
	for (k = 0; k < chunks; k++)
		for (n = 0; n < load_acquire(&sl->infos[k].committed); n++) /* pairs with grow_publish */
			if (load_relaxed(&sl->frames[k * SEG_CHUNK_PAGES + n].word) == frame_slab_word(id)) /* [C] */
				slab_rebuild_one(sl, id, k * (uint32_t)SEG_CHUNK_PAGES + n);
}

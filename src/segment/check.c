/* SPDX-License-Identifier: MIT */
/*
 * check.c - does the allocator's state add up?
 *
 * Walks the frames of every chunk (the truth), then the lists, stocks and
 * counters (derived), and compares.  Exact only while nobody allocates.
 */
#include <stdio.h>
#include <string.h>

#include "segment/segment_priv.h"

static void check_fail(struct segment_counts *out, const char *what, uint64_t at)
{
	if (!out->errors++)
		snprintf(out->first_error, sizeof(out->first_error), "%s (%llu)", what, (unsigned long long)at);
}

static void check_slab(struct seg_local *sl, uint32_t i, struct segment_counts *out)
{
	unsigned cls = load_relaxed(&sl->frames[i].word) >> 16 & 0xff;
	unsigned n;

	if (cls < 1 || cls > CACHE_IDS) {
		check_fail(out, "slab of no class", i);
		return;
	}
	n = slab_objects((enum cache_id)(cls - 1));
	if (n < 64 && load_relaxed(&sl->frames[i].map) >> n)
		check_fail(out, "slab with too many free objects", i);
	out->objects[cls - 1] += n - bits_count(load_relaxed(&sl->frames[i].map));
}

static unsigned check_run(struct seg_local *sl, uint32_t i, uint32_t room, struct segment_counts *out)
{
	uint64_t word = load_relaxed(&sl->frames[i].word);
	unsigned order = frame_order(word);
	uint64_t n = UINT64_C(1) << order;

	if (order > PAGE_MAX_ORDER || n > room || i & (n - 1) || frame_kind(word) >= PAGE_KINDS) {
		check_fail(out, "frame word makes no sense", i);
		return 1;
	}
	out->kind[frame_kind(word)] += n;
	if (frame_kind(word) == PAGE_SLAB)
		check_slab(sl, i, out);
	return (unsigned)n;
}

static void check_frames(struct seg_local *sl, struct segment_counts *out)
{
	uint32_t c, n;

	for (c = 0; c < load_acquire(&sl->alloc->chunks_made); c++) { /* pairs with grow_pick */
		uint32_t committed = load_acquire(&sl->infos[c].committed); /* pairs with grow_publish */

		out->committed += committed;
		for (n = 0; n < committed;)
			n += check_run(sl, c * (uint32_t)SEG_CHUNK_PAGES + n, committed - n, out);
	}
	out->free = out->kind[PAGE_FREE];
	out->cached = out->kind[PAGE_CACHED];
	out->used = out->committed - out->free - out->cached;
}

static void check_runs(struct seg_local *sl, struct segment_counts *out)
{
	uint64_t listed = 0;
	uint32_t i, k, prev;

	for (k = 0; k <= PAGE_MAX_ORDER; k++) {
		for (i = sl->alloc->runs[k].head, prev = 0; i; prev = i, i = sl->frames[i - 1].next) {
			if (load_relaxed(&sl->frames[i - 1].word) != frame_word(PAGE_FREE, k, 0))
				check_fail(out, "listed run is not free", i - 1);
			if (sl->frames[i - 1].prev != prev)
				check_fail(out, "list of runs is torn", i - 1);
			listed += UINT64_C(1) << k;
		}
		if (sl->alloc->runs[k].tail != prev)
			check_fail(out, "tail of a list of runs is wrong", k);
	}
	if (listed != out->free)
		check_fail(out, "free runs are missing from the lists, or twice there", listed);
	if (load_relaxed(&sl->alloc->free_pages) != out->free)
		check_fail(out, "count of free pages is wrong", load_relaxed(&sl->alloc->free_pages));
	if (load_relaxed(&sl->alloc->committed) != out->committed)
		check_fail(out, "count of committed pages is wrong", load_relaxed(&sl->alloc->committed));
}

static void check_stocks(struct seg_local *sl, struct segment_counts *out)
{
	uint64_t in_stock = 0;
	uint32_t id = 0, k;
	struct slot *s;

	while ((s = slot_each(&sl->pub, &id))) {
		for (k = 0; k < min_of(load_relaxed(&s->page_count), (uint32_t)SLOT_PAGES); k++, in_stock++)
			if (!frame_has(sl, s->pages[k]) || load_relaxed(&sl->frames[frame_index(sl, s->pages[k])].word) !=
			    frame_word(PAGE_CACHED, 0, id))
				check_fail(out, "page in stock is not marked so", id);
		for (k = 0; k < CACHE_IDS; k++)
			out->magazine[k] += load_relaxed(&s->mag[k].count) + load_relaxed(&s->mag[k].more_count);
	}
	if (in_stock != out->cached)
		check_fail(out, "pages marked as in stock are in none", in_stock);
}

static void check_class(struct seg_local *sl, enum cache_id id, struct segment_counts *out)
{
	struct slab_class *c = &sl->alloc->classes[id];
	uint64_t listed = 0, partial = 0;
	uint32_t i, k, n;

	for (i = c->partial.head; i; i = sl->frames[i - 1].next, listed++)
		if (load_relaxed(&sl->frames[i - 1].word) != frame_slab_word(id) ||
		    !load_relaxed(&sl->frames[i - 1].map))
			check_fail(out, "listed slab has nothing free", i - 1);
	for (k = 0; k < load_relaxed(&sl->alloc->chunks_made); k++)
		for (n = 0; n < load_relaxed(&sl->infos[k].committed); n++) {
			struct frame *f = &sl->frames[k * SEG_CHUNK_PAGES + n];

			partial += load_relaxed(&f->word) == frame_slab_word(id) && load_relaxed(&f->map);
		}
	if (listed != partial)
		check_fail(out, "slabs with free objects are missing from the list", listed);
	if (out->magazine[id] > out->objects[id])
		check_fail(out, "more objects in magazines than are out", id);
}

int segment_check(struct slot *self, struct segment_counts *out)
{
	struct seg_local *sl = slot_local(self);
	unsigned id;

	memset(out, 0, sizeof(*out));
	lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	check_frames(sl, out);
	check_runs(sl, out);
	check_stocks(sl, out);
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	for (id = 0; id < CACHE_IDS; id++) {
		lock_acquire(&sl->alloc->classes[id].lock, &self->locker, LOCK_LEAF);
		check_class(sl, (enum cache_id)id, out);
		lock_release(&sl->alloc->classes[id].lock, &self->locker, LOCK_LEAF);
	}
	return out->errors ? -EIO : 0;
}

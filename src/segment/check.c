/* SPDX-License-Identifier: MIT */
/*
 * check.c - does the allocator's state add up?
 *
 * Walks the frames of every chunk (the truth), then the lists, stocks and
 * counters (derived), and compares.  Exact only while nobody allocates.
 * Nothing here is trusted but how much of everything there is (segment_bounds): indices are looked at before they are
 * followed, and no list is longer than there are frames.
 */
#include <stdio.h>
#include <string.h>

#include "segment/judge.h"
#include "segment/segment_priv.h"

static void check_fail(struct segment_counts *out, const char *what, uint64_t at)
{
	if (!out->errors++) {
		snprintf(out->first_error, sizeof(out->first_error), "%s", what);
		out->error_at = at;
	}
}

/* In what can be made anew from the frames. */
static void list_fail(struct segment_counts *out, const char *what, uint64_t at)
{
	if (!out->list_errors++) {
		snprintf(out->first_list_error, sizeof(out->first_list_error), "%s", what);
		out->list_error_at = at;
	}
}

/* Frame `next` - 1 of a list, if it has memory. */
static struct frame *listed_frame(struct seg_local *sl, uint32_t next)
{
	uint32_t i = next - 1, chunk = i / (uint32_t)SEG_CHUNK_PAGES;

	if (chunk >= load_acquire(&sl->alloc->chunks_made) || /* pairs with grow_pick */
	    i % SEG_CHUNK_PAGES >= load_acquire(&sl->infos[chunk].committed)) /* pairs with grow_publish */
		return NULL;
	return &sl->frames[i];
}

static void check_slab(struct seg_local *sl, uint32_t i, struct segment_counts *out)
{
	uint64_t word = load_relaxed(&sl->frames[i].word);
	unsigned cls = word >> 16 & 0xff;

	if (cls < 1 || cls > CACHE_IDS || word != frame_slab_word((enum cache_id)(cls - 1))) {
		check_fail(out, "slab of no class", i);
		return;
	}
	if (load_relaxed(&sl->frames[i].map) & ~slab_full_map((enum cache_id)(cls - 1)))
		check_fail(out, "slab with too many free objects", i);
	out->objects[cls - 1] += slab_objects((enum cache_id)(cls - 1)) - bits_count(load_relaxed(&sl->frames[i].map));
}

static unsigned check_run(struct seg_local *sl, uint32_t i, uint32_t room, struct segment_counts *out)
{
	uint64_t word = load_relaxed(&sl->frames[i].word);
	unsigned order = frame_order(word);
	uint64_t n;

	if (order > PAGE_MAX_ORDER || (n = UINT64_C(1) << order) > room || i & (n - 1) || frame_kind(word) >= PAGE_KINDS ||
	    (frame_kind(word) != PAGE_SLAB && word != frame_word(frame_kind(word), order, frame_owner(word)))) {
		check_fail(out, "frame word makes no sense", i);
		return 1;
	}
	out->kind[frame_kind(word)] += n;
	if (frame_kind(word) == PAGE_SLAB)
		check_slab(sl, i, out);
	else if (frame_kind(word) == PAGE_FREE && frame_owner(word))
		check_fail(out, "free page that is somebody's", i);
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

/* Pages in runs of that order; false: it cannot be followed. */
static bool check_run_list(struct seg_local *sl, unsigned order, uint64_t *listed, struct segment_counts *out)
{
	uint32_t i, prev = 0;
	struct frame *f;

	for (i = sl->alloc->runs[order].head; i; prev = i, i = f->next) {
		f = listed_frame(sl, i);
		if (!f || load_relaxed(&f->word) != frame_word(PAGE_FREE, order, 0)) {
			list_fail(out, "listed run is not free", i - 1);
			return false;
		}
		*listed += UINT64_C(1) << order;
		if (f->prev != prev || *listed > out->committed) {
			list_fail(out, "list of runs is torn", i - 1);
			return false;
		}
	}
	if (sl->alloc->runs[order].tail != prev)
		list_fail(out, "tail of a list of runs is wrong", order);
	return true;
}

static void check_runs(struct seg_local *sl, struct segment_counts *out)
{
	uint64_t listed = 0, before = 0;
	unsigned k;

	for (k = 0; k <= PAGE_MAX_ORDER; k++) {
		before = listed;
		if (!check_run_list(sl, k, &listed, out))
			return;
	}
	if ((listed - before) >> PAGE_MAX_ORDER != sl->alloc->whole)
		list_fail(out, "count of free chunks is wrong", sl->alloc->whole);
	if (listed != out->free)
		list_fail(out, "free runs are missing from the lists, or twice there", listed);
	if (load_relaxed(&sl->alloc->free_pages) != out->free)
		list_fail(out, "count of free pages is wrong", load_relaxed(&sl->alloc->free_pages));
	if (load_relaxed(&sl->alloc->committed) != out->committed)
		list_fail(out, "count of committed pages is wrong", load_relaxed(&sl->alloc->committed));
	for (k = 0; k < sl->alloc->first_partial; k++)
		if (k >= load_relaxed(&sl->alloc->chunks_made) || load_relaxed(&sl->infos[k].committed) != SEG_CHUNK_PAGES) {
			list_fail(out, "memory that could be had is passed over", k);
			break;
		}
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

static bool check_slab_list(struct seg_local *sl, enum cache_id id, uint64_t *listed, struct segment_counts *out)
{
	struct slab_class *c = &sl->alloc->classes[id];
	uint32_t i, prev = 0;
	struct frame *f;

	for (i = c->partial.head; i; prev = i, i = f->next) {
		f = listed_frame(sl, i);
		if (!f || load_relaxed(&f->word) != frame_slab_word(id) || !load_relaxed(&f->map)) {
			list_fail(out, "listed slab has nothing free", i - 1);
			return false;
		}
		if (f->prev != prev || ++*listed > out->committed) {
			list_fail(out, "list of slabs is torn", i - 1);
			return false;
		}
	}
	if (c->partial.tail != prev)
		list_fail(out, "tail of a list of slabs is wrong", id);
	return true;
}

static void check_class(struct seg_local *sl, enum cache_id id, struct segment_counts *out)
{
	struct slab_class *c = &sl->alloc->classes[id];
	uint64_t listed = 0, partial = 0, slabs = 0, empties = 0;
	uint32_t k, n;

	if (!check_slab_list(sl, id, &listed, out))
		return;
	for (k = 0; k < load_relaxed(&sl->alloc->chunks_made); k++)
		for (n = 0; n < load_relaxed(&sl->infos[k].committed); n++) {
			struct frame *f = &sl->frames[k * SEG_CHUNK_PAGES + n];
			bool is = load_relaxed(&f->word) == frame_slab_word(id);

			slabs += is;
			partial += is && load_relaxed(&f->map);
			empties += is && load_relaxed(&f->map) == slab_full_map(id);
		}
	if (listed != partial)
		list_fail(out, "slabs with free objects are missing from the list", listed);
	if (c->slabs != slabs || c->empties != empties)
		list_fail(out, "count of slabs is wrong", c->slabs);
}

static void check_magazines(struct segment_counts *out)
{
	unsigned id;

	for (id = 0; id < CACHE_IDS; id++)
		if (out->magazine[id] > out->objects[id])
			check_fail(out, "more objects in magazines than are out", id);
}

void segment_look(struct slot *self, struct segment_counts *out)
{
	struct seg_local *sl = slot_local(self);
	unsigned id;

	memset(out, 0, sizeof(*out));
	check_frames(sl, out);
	check_runs(sl, out);
	for (id = 0; id < CACHE_IDS; id++)
		check_class(sl, (enum cache_id)id, out);
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
	check_magazines(out);
	if (!out->errors && out->list_errors)
		check_fail(out, out->first_list_error, out->list_error_at);
	return out->errors ? -EIO : 0;
}

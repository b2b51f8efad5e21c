/* SPDX-License-Identifier: MIT */
/*
 * publish.c - fresh pages go into a file.
 *
 * Data: struct fresh on the caller's stack; INTENT_EXTEND in the thread's slot.
 * Protection: inode.lock; publishing is inside inode.seq.
 * A page is complete before it goes in: no reader, and no survivor of the
 * writer's death, sees one half-made.
 *
 * INTENT_EXTEND's arguments, for whoever recovers it:
 *	0	inode | EXTEND_WHOLE when the others are set | how many runs are listed from 4 on
 *	1, 2	size before and after
 *	3	first page << EXTEND_COUNT_BITS | pages
 *	4..12	page address | order of a fresh run
 * A page is in the ledger until it is listed; or it is listed before it is taken, as far as the thread's stock foretells.
 * Listed, taken by the dead thread and in the file: it stays there, unless it lies behind an end
 * that was never moved.  Listed, taken and not in the file: free again.
 */
#include "ramfs/data_priv.h"
#include "segment/hand.h"
#include "segment/owned.h"

#define EXTEND_WHOLE 32u
#define EXTEND_RUNS 31u
#define EXTEND_LIST 4u
#define EXTEND_COUNT_BITS 12
_Static_assert(EXTEND_LIST + DATA_FRESH <= INTENT_ARGS, "a piece's fresh pages fit into the intent");

/* From the ledger to the list, before the page is anywhere. */
static bool fresh_take(struct slot *self, struct fresh_run *r, unsigned k, const void *foretold)
{
	int noted;

	r->page = page_room(self, r->order, PAGE_FOR_DATA) ? page_alloc_noted(self, r->order, PAGE_DATA, 0, &noted) : NULL;
	if (!r->page)
		return false;
	if (unlikely(r->page != foretold))
		intent_set(self, EXTEND_LIST + k, (uintptr_t)r->page | r->order);
	hand_forget(self, noted);
	if (r->order)
		page_split(self, r->page, r->order);
	return true;
}

static bool fresh_take_all(struct slot *self, struct fresh *f, const uint64_t *arg)
{
	unsigned i;

	for (i = 0; i < f->count; i++)
		if (!fresh_take(self, &f->run[i], i, (void *)(uintptr_t)arg[EXTEND_LIST + i])) {
			f->count = i;
			return false;
		}
	return true;
}

bool fresh_begin(struct slot *self, struct inode *inode, struct fresh *f, uint64_t first, uint64_t end,
		 uint64_t size, uint64_t new_size)
{
	uint64_t arg[INTENT_ARGS];
	unsigned i;

	if (!f->count && size == new_size) {
		data_repair_begin(self, inode);
		return true;
	}
	arg[0] = (uintptr_t)inode | EXTEND_WHOLE | f->count;
	arg[1] = size;
	arg[2] = new_size;
	arg[3] = first << EXTEND_COUNT_BITS | (end - first);
	for (i = 0; i < f->count; i++)
		arg[EXTEND_LIST + i] = f->run[i].order ? 0 : (uintptr_t)page_peek(self, i);
	intent_begin(self, INTENT_EXTEND, EXTEND_LIST + f->count, arg);
	return fresh_take_all(self, f, arg);
}

uint64_t fresh_publish(struct slot *self, struct inode *inode, const struct fresh_run *r, uint64_t pages,
		       uint64_t bits)
{
	struct file_part *file = &inode->file;
	uint64_t k;

	if (!r->index) /* before the page: without one the flag means nothing */
		tracked_store(&file->data_flags, bits ? DATA_ZERO_UNWRITTEN : 0);
	for (k = 0; k < pages; k++) {
		uint64_t entry = (uintptr_t)(r->page + k * PAGE_BYTES) | (r->index + k ? bits : 0);

		if (radix_store(self, &file->pages, r->index + k, entry, NULL))
			break;
	}
	seq_store(&file->page_count, load_relaxed(&file->page_count) + k); /* lock held */
	return k;
}

void fresh_end(struct slot *self, const struct fresh *f, uint64_t end)
{
	unsigned i;
	uint64_t k;

	for (i = 0; i < f->count; i++) {
		const struct fresh_run *r = &f->run[i];

		/* From the last to the first, which tells recovery that the run was split. */
		for (k = UINT64_C(1) << r->order; k-- > 0 && r->index + k >= end;)
			page_free(self, r->page + k * PAGE_BYTES, 0);
	}
	intent_end(self);
}

/* ---- after a death --------------------------------------------------------------------------- */

struct extend {
	struct inode *inode;
	struct intent *dead;
	uint64_t size, new_size, first, end;
	unsigned runs;
};

/* A page of the dead thread's hand (never one that it wrote before: those are not in its stock). */
static bool extend_is_fresh(struct slot *self, const struct extend *x, const char *page)
{
	uint32_t id = slot_id(intent_slot(x->dead));
	unsigned i;

	for (i = 0; i < x->runs; i++) {
		uint64_t arg = load_acquire(&x->dead->arg[EXTEND_LIST + i]); /* pairs with intent_begin, intent_set */

		if (arg && (uintptr_t)page - (arg & ~PAGE_MASK) < PAGE_BYTES << (arg & PAGE_MASK))
			return page_owned(self->seg, page, PAGE_DATA, id);
	}
	return false;
}

/* The size was not moved: behind it fresh pages come out again, others lose what was written to them. */
static void extend_undo_tail(struct slot *self, const struct extend *x)
{
	uint64_t i = max_of(x->first, data_pages_of(x->size));

	for (; i < x->end; i++) {
		char *page = data_page_epoch(x->inode, i); /* lock held by the dead */

		if (!page)
			continue;
		if (extend_is_fresh(self, x, page))
			radix_erase(self, &x->inode->file.pages, i); /* extend_free_rest() frees it */
		else
			zero_page(page);
	}
}

static bool extend_in_file(const struct extend *x, const char *page)
{
	uint64_t i;

	for (i = x->first; i < x->end; i++)
		if (data_page_epoch(x->inode, i) == page)
			return true;
	return false;
}

/* The pages of one run, in the dead thread's hand or, once split, in the file. */
static void extend_free_run(struct slot *self, const struct extend *x, char *first, unsigned order)
{
	uint32_t id = slot_id(intent_slot(x->dead));
	uint64_t k;

	if (order && page_run_owned(self->seg, first, PAGE_DATA, order, id)) {
		page_free(self, first, order);
		return;
	}
	/* Its first page is the last to be split off, and the last to be freed; before and after, the rest means nothing. */
	if (!page_owned(self->seg, first, PAGE_DATA, id))
		return;
	for (k = UINT64_C(1) << order; k-- > 0;) {
		char *page = first + k * PAGE_BYTES;

		if (page_owned(self->seg, page, PAGE_DATA, id) && !extend_in_file(x, page))
			page_free(self, page, 0);
	}
}

static void extend_free_rest(struct slot *self, const struct extend *x)
{
	unsigned i;

	for (i = 0; i < x->runs; i++) {
		uint64_t arg = load_acquire(&x->dead->arg[EXTEND_LIST + i]); /* pairs with intent_begin, intent_set */

		if (arg)
			extend_free_run(self, x, (char *)(uintptr_t)(arg & ~PAGE_MASK), arg & PAGE_MASK);
	}
}

void extend_recover(struct slot *self, struct intent *dead)
{
	uint64_t what = load_acquire(&dead->arg[0]); /* these loads pair with intent_begin */
	uint64_t where = load_acquire(&dead->arg[3]);
	struct extend x = {.inode = (struct inode *)(uintptr_t)(what & ~DATA_ENTRY_BITS), .dead = dead};

	if (what & EXTEND_WHOLE) {
		x.runs = (unsigned)(what & EXTEND_RUNS);
		x.size = load_acquire(&dead->arg[1]);
		x.new_size = load_acquire(&dead->arg[2]);
		x.first = where >> EXTEND_COUNT_BITS;
		x.end = x.first + (where & ((1u << EXTEND_COUNT_BITS) - 1));
		if (x.size != x.new_size && data_size(x.inode) == x.size)
			extend_undo_tail(self, &x);
		extend_free_rest(self, &x);
		data_recount_locked(x.inode);
	}
	seq_repair(&x.inode->seq);
}

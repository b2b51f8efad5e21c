/* SPDX-License-Identifier: MIT */
/*
 * publish.c - fresh pages go into a file.
 *
 * Data: struct fresh on the caller's stack; INTENT_EXTEND in the thread's slot.
 * Protection: inode.lock; publishing is inside inode.seq.
 * A page is complete before it goes in: no reader, and no survivor of the
 * writer's death, sees one half-made.
 *
 * INTENT_EXTEND's arguments, when the writer died before intent_end():
 *	0	inode
 *	1	how many runs are listed from 5 on, | EXTEND_WHOLE when 2..4 are set
 *	2, 3	size before and after
 *	4	first page << EXTEND_COUNT_BITS | pages
 *	5..13	page address | order of a fresh run
 * A listed page that is in the file stays there, unless it lies behind an end that was
 * never moved; any other is free again.
 */
#include "ramfs/data_priv.h"

#define EXTEND_WHOLE 0x100u
#define EXTEND_LIST 5u
#define EXTEND_COUNT_BITS 12
_Static_assert(EXTEND_LIST + DATA_FRESH <= INTENT_ARGS, "a piece's fresh pages fit into the intent");

bool fresh_alloc(struct slot *self, struct fresh *f, uint64_t index, unsigned order)
{
	char *page = page_alloc(self, order, PAGE_DATA, 0);

	if (!page)
		return false;
	f->run[f->count++] = (struct fresh_run){page, index, order};
	return true;
}

void fresh_begin(struct slot *self, struct inode *inode, const struct fresh *f, uint64_t first, uint64_t end,
		 uint64_t size, uint64_t new_size)
{
	uint64_t arg[INTENT_ARGS] = {(uintptr_t)inode, f->count};
	unsigned i;

	if (likely(!f->count && size == new_size)) { /* bytes in place */
		intent_begin(self, INTENT_EXTEND, 2, arg);
		return;
	}
	arg[1] |= EXTEND_WHOLE;
	arg[2] = size;
	arg[3] = new_size;
	arg[4] = first << EXTEND_COUNT_BITS | (end - first);
	for (i = 0; i < f->count; i++)
		arg[EXTEND_LIST + i] = (uintptr_t)f->run[i].page | f->run[i].order;
	intent_begin(self, INTENT_EXTEND, EXTEND_LIST + f->count, arg);
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

	intent_end(self); /* first: a page freed twice would be worse than one lost at this very moment */
	for (i = 0; i < f->count; i++) {
		const struct fresh_run *r = &f->run[i];

		for (k = 0; k < 1UL << r->order; k++)
			if (unlikely(r->index + k >= end))
				page_free(self, r->page + k * PAGE_BYTES, 0);
	}
}

struct counting {
	uint64_t pages;
};

static void erase_one(struct slot *self, void *ctx, uint64_t index, uint64_t entry)
{
	struct counting *c = ctx;

	(void)index;
	c->pages++;
	page_free(self, data_page(entry), 0);
}

uint64_t data_erase_range(struct slot *self, struct radix *pages, uint64_t from, uint64_t end)
{
	struct counting c = {0};

	radix_erase_range(self, pages, from, end, erase_one, &c);
	return c.pages;
}

uint64_t data_count_pages(struct radix *pages, uint64_t from, uint64_t end)
{
	uint64_t n = 0;

	for (; radix_next_epoch(pages, &from, end); from++)
		n++;
	return n;
}

/* ---- after a death --------------------------------------------------------------------------- */

struct extend {
	struct inode *inode;
	uint64_t size, new_size, first, end;
	unsigned runs;
};

static bool extend_listed(struct intent *dead, const struct extend *x, const char *page)
{
	unsigned i;

	for (i = 0; i < x->runs; i++) {
		uint64_t arg = load_acquire(&dead->arg[EXTEND_LIST + i]); /* pairs with intent_begin */
		uint64_t at = arg & ~PAGE_MASK;

		if ((uintptr_t)page - at < PAGE_BYTES << (arg & PAGE_MASK))
			return true;
	}
	return false;
}

/* The size was not moved: behind it listed pages come out again, others lose what was written to them. */
static void extend_undo_tail(struct slot *self, struct intent *dead, const struct extend *x)
{
	uint64_t i = max_of(x->first, data_pages_of(x->size));

	for (; i < x->end; i++) {
		char *page = data_page_epoch(x->inode, i);

		if (!page)
			continue;
		if (extend_listed(dead, x, page))
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

static void extend_free_rest(struct slot *self, struct intent *dead, const struct extend *x)
{
	unsigned i;
	uint64_t k;

	for (i = 0; i < x->runs; i++) {
		uint64_t arg = load_acquire(&dead->arg[EXTEND_LIST + i]); /* pairs with intent_begin */

		/* Not twice, should this recovery die and be repeated. */
		tracked_store(&dead->arg[EXTEND_LIST + i], 0);
		for (k = 0; arg && k < 1UL << (arg & PAGE_MASK); k++) {
			char *page = (char *)(uintptr_t)(arg & ~PAGE_MASK) + k * PAGE_BYTES;

			if (!extend_in_file(x, page))
				page_free(self, page, 0);
		}
	}
}

void extend_recover(struct slot *self, struct intent *dead)
{
	struct extend x = {.inode = (struct inode *)(uintptr_t)load_acquire(&dead->arg[0])};
	uint64_t what = load_acquire(&dead->arg[1]); /* these loads pair with intent_begin */
	uint64_t where = load_acquire(&dead->arg[4]);

	if (what & EXTEND_WHOLE) {
		x.runs = (unsigned)(what & 0xff);
		x.size = load_acquire(&dead->arg[2]);
		x.new_size = load_acquire(&dead->arg[3]);
		x.first = where >> EXTEND_COUNT_BITS;
		x.end = x.first + (where & ((1u << EXTEND_COUNT_BITS) - 1));
		if (x.size != x.new_size && data_size(x.inode) == x.size)
			extend_undo_tail(self, dead, &x);
		extend_free_rest(self, dead, &x);
		seq_store(&x.inode->file.page_count, data_count_pages(&x.inode->file.pages, 0, DATA_INDEX_END));
	}
	seq_repair(&x.inode->seq);
}

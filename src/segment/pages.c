/* SPDX-License-Identifier: MIT */
/*
 * pages.c - page_alloc, page_free, page_reserve.
 *
 * Order 0 goes through the thread's stock (stock.c), larger runs straight to the
 * buddy lists.  Fast path: own slot and the page's own frame.
 * Progress: the fast path waits only for a thief (steal.c); else blocking on alloc.lock.
 * Failure changes nothing: NULL after everything that can be had was tried (pages_scarce).
 * A freed run that is not in use, or of another order, poisons the segment.
 */
#include "base/copy.h"
#include "segment/hand.h"
#include "segment/segment_priv.h"

static void *page_ready(void *page, unsigned order, unsigned flags)
{
	if (!(flags & PAGE_ZERO))
		return page;
	if (order == 0)
		zero_page(page);
	else
		zero_bytes(page, PAGE_BYTES << order);
	return page;
}

/* The reserved ones too.  NULL: the stock is empty. */
static inline_always void *page_alloc_stock(struct slot *self, enum page_kind kind, int *k)
{
	struct seg_local *sl = slot_local(self);
	void *page = NULL;
	uint32_t reserved;

	stock_enter(self);
	reserved = load_relaxed(&self->reserved); /* [o] */
	if (likely(load_relaxed(&self->page_count))) {
		page = stock_pop_inside(self);
		if (k)
			*k = ledger_add(self, page, LEDGER_PAGE);
		tracked_store(&sl->frames[frame_index(sl, page)].word, frame_word(kind, 0, self->locker.id));
		if (unlikely(reserved))
			store_relaxed(&self->reserved, reserved - 1); /* [o] */
	}
	stock_leave(self);
	return page;
}

static unsigned page_batch(struct slot *self)
{
	struct seg_local *sl = slot_local(self);

	return load_relaxed(&self->reserved) + (load_relaxed(&sl->alloc->pressure) ? 1 : sl->stock / 2); /* hints */
}

/* At least one page beyond the reserve in stock. */
bool stock_fill(struct slot *self)
{
	do {
		if (stock_refill(self, min_of(page_batch(self), (unsigned)SLOT_PAGES)))
			return true;
	} while (grow_for(self, 0) || pages_scarce(self, 0));
	return false;
}

static inline_always void *page_alloc_one(struct slot *self, enum page_kind kind, unsigned flags, int *k)
{
	void *page = page_alloc_stock(self, kind, k);

	while (unlikely(!page)) {
		if (!stock_fill(self))
			return NULL;
		page = page_alloc_stock(self, kind, k);
	}
	return page_ready(page, 0, flags);
}

static void *page_alloc_run_try(struct slot *self, unsigned order, enum page_kind kind, int *k)
{
	struct seg_local *sl = slot_local(self);
	struct page_note note = {self, k};
	uint32_t i;

	lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	i = buddy_take_locked(sl, order, frame_word(kind, order, self->locker.id), k ? &note : NULL);
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	return i == FRAME_NONE ? NULL : frame_page(sl, i);
}

static inline_always void *page_alloc_as(struct slot *self, unsigned order, enum page_kind kind, unsigned flags, int *k)
{
	void *page;

	if (!load_relaxed(&self->reserved) && fail_point(FAIL_ALLOC)) /* [o] */
		return NULL;
	if (likely(order == 0))
		return page_alloc_one(self, kind, flags, k);
	if (order > PAGE_MAX_ORDER)
		return NULL;
	do {
		page = page_alloc_run_try(self, order, kind, k);
		if (page) {
			touch_run(slot_local(self), frame_index(slot_local(self), page), 1u << order);
			return page_ready(page, order, flags);
		}
	} while (grow_for(self, order) || pages_scarce(self, order));
	return NULL;
}

void *page_alloc(struct slot *self, unsigned order, enum page_kind kind, unsigned flags)
{
	return page_alloc_as(self, order, kind, flags, NULL);
}

void *page_alloc_noted(struct slot *self, unsigned order, enum page_kind kind, unsigned flags, int *k)
{
	return page_alloc_as(self, order, kind, flags, k);
}

/* ---- what a full segment keeps back ---------------------------------------------------------- */

#define KEPT_SHARE 64
#define KEPT_MOST 256u

/* Estimates, all of them; pages in other threads' stocks are not ours to count. */
static uint64_t pages_left(struct slot *self)
{
	struct seg_local *sl = slot_local(self);

	return sl->pages - load_relaxed(&sl->alloc->committed) + load_relaxed(&sl->alloc->free_pages) +
	       load_relaxed(&self->page_count);
}

static uint64_t pages_kept(const struct seg_local *sl)
{
	return min_of(sl->pages / KEPT_SHARE, (uint64_t)KEPT_MOST);
}

bool page_room(struct slot *self, unsigned order, enum page_use use)
{
	uint64_t kept = pages_kept(slot_local(self));
	uint64_t need = (use == PAGE_FOR_DATA ? kept : kept / 2) + (1u << order);

	if (likely(pages_left(self) >= need))
		return true;
	pages_scarce(self, order);
	return pages_left(self) >= need;
}

/* ---- freeing ------------------------------------------------------------------------------ */

static bool page_in_use(struct seg_local *sl, const void *page, unsigned order)
{
	uint64_t word;

	if (unlikely(!page_is_inside(&sl->pub, page) || (uintptr_t)page & PAGE_MASK))
		return false;
	word = load_relaxed(&sl->frames[frame_index(sl, page)].word); /* the caller's page */
	return frame_kind(word) > PAGE_CACHED && frame_order(word) == order;
}

static void page_free_run(struct slot *self, void *page, unsigned order, int k)
{
	struct seg_local *sl = slot_local(self);

	lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	buddy_give_locked(sl, frame_index(sl, page), order);
	hand_forget(self, k);
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	trim_policy(self);
}

/* How many pages a stock keeps at most; a reserve counts on top. */
static unsigned page_stock_limit(struct slot *self)
{
	struct seg_local *sl = slot_local(self);
	unsigned limit = likely(!load_relaxed(&sl->alloc->pressure)) ? sl->stock : 1; /* a hint */

	return min_of(limit + load_relaxed(&self->reserved), (unsigned)SLOT_PAGES); /* [o] */
}

/* Off the ledger before it can be got again: what waits in stock_drain() may do that, in this thread. */
static inline_always void page_free_one(struct slot *self, void *page, int k)
{
	unsigned limit = page_stock_limit(self);

	if (unlikely(load_relaxed(&self->page_count) >= limit)) { /* [o]; a thief only makes it smaller */
		unsigned reserved = load_relaxed(&self->reserved); /* [o] */

		stock_drain(self, limit > reserved + 1 ? reserved + (limit - reserved) / 2 :
							  min_of(reserved, limit - 1));
		trim_policy(self);
	}
	/* Room there was; what waits in trim_policy() and stock_enter() may have used it up. */
	for (stock_enter(self); unlikely(load_relaxed(&self->page_count) >= SLOT_PAGES); stock_enter(self)) { /* [o] */
		stock_leave(self);
		stock_drain(self, max_of(limit / 2, load_relaxed(&self->reserved))); /* [o]; below SLOT_PAGES both */
	}
	stock_push_inside(self, page);
	stock_leave(self);
	hand_forget(self, k);
	if (unlikely(load_relaxed(&slot_local(self)->alloc->pressure))) /* a hint */
		stock_drain(self, load_relaxed(&self->reserved)); /* [o] */
}

static inline_always void page_free_from(struct slot *self, void *page, unsigned order, int k)
{
	if (unlikely(!page_in_use(slot_local(self), page, order))) {
		segment_poison(self->seg, "a page was freed that is not in use");
		return;
	}
	if (likely(order == 0))
		page_free_one(self, page, k);
	else
		page_free_run(self, page, order, k);
}

void page_free(struct slot *self, void *page, unsigned order)
{
	page_free_from(self, page, order, -1);
}

void page_free_noted(struct slot *self, void *page, unsigned order, int k)
{
	page_free_from(self, page, order, k);
}

/* ---- reserve, bounds ------------------------------------------------------------------------ */

/* Raise the promise to what is in stock, at most n. */
static bool page_reserve_try(struct slot *self, unsigned n)
{
	bool enough;

	stock_enter(self);
	enough = load_relaxed(&self->page_count) >= n; /* [o] */
	store_relaxed(&self->reserved, min_of(n, load_relaxed(&self->page_count))); /* [o]; thieves leave these */
	stock_leave(self);
	return enough;
}

int page_reserve(struct slot *self, unsigned n)
{
	uint32_t before = load_relaxed(&self->reserved); /* [o] */

	if (n > PAGE_RESERVE_MAX)
		return -ENOSPC;
	while (!page_reserve_try(self, n)) {
		stock_refill(self, n);
		if (page_reserve_try(self, n))
			break;
		if (!grow_for(self, 0) && !pages_scarce(self, 0)) {
			page_reserve_try(self, min_of(before, n));
			return -ENOSPC;
		}
	}
	return 0;
}

bool page_is_inside(const struct segment *seg, const void *p)
{
	return frame_has(seg_local(seg), p);
}

void segment_space(struct segment *seg, struct segment_space *out)
{
	struct seg_local *sl = seg_local(seg);
	uint64_t committed = load_relaxed(&sl->alloc->committed); /* estimates, all of them */
	uint64_t spare = load_relaxed(&sl->alloc->free_pages);
	uint32_t id, n = slot_limit(seg);

	for (id = 1; id <= n; id++)
		spare += load_relaxed(&slot_by_id(seg, id)->page_count);
	out->total_pages = sl->pages;
	out->committed_pages = committed;
	out->free_pages = sl->pages - committed + min_of(spare, committed);
	out->kept_pages = min_of(pages_kept(sl), out->free_pages);
}

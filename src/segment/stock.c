/* SPDX-License-Identifier: MIT */
/*
 * stock.c - a thread's own pages: slot.pages, refilled and drained in batches.
 *
 * Protection: the owner inside stock_enter()..stock_leave(), which costs it two plain
 * stores and two loads of its own slot; or whoever holds slot.steal and has seen busy == 0
 * behind a membarrier (steal.c).  A page in stock is CACHED with the owner's id in its frame.
 * Fast path writes the own slot and the frame of the page, nothing that others write.
 * Death: `busy` names the run that is between the lists and the stock.  Its
 * frame tells where it belongs: FREE in the lists, CACHED by the dead one in the stock.
 * stock_takeover() gives back what is CACHED by the dead owner.
 * Order: alloc.lock first, then enter; never wait for `steal` under alloc.lock.
 */
#include "segment/segment_priv.h"

#define STOCK_RUN_ORDER 4u /* the largest run that a refill breaks into pages */


/* A thief is at our stock, or was and died: wait until it is done.  Not inside. */
static void stock_wait(struct slot *self)
{
	lock_acquire(&self->steal, &self->locker, LOCK_STEAL);
	lock_release(&self->steal, &self->locker, LOCK_STEAL);
}

void stock_enter_slow(struct slot *self)
{
	if (lock_held_by(&self->steal, &self->locker)) /* a thief itself: nobody else is at its stock */
		return;
	stock_leave(self);
	stock_wait(self);
	stock_enter(self);
}

/* For callers that hold a lock the thief may want: false instead of waiting. */
static bool stock_enter_try(struct slot *self)
{
	store_relaxed(&self->busy, 1); /* ordered by the fence, as in stock_enter */
	if (load_relaxed(&slot_local(self)->alloc->need_fence))
		fence_full(); /* as in stock_enter */
	else
		fence_compiler();
	if (likely(!load_acquire(&self->steal.word)) /* pairs with lock_release by the thief */
	    || lock_held_by(&self->steal, &self->locker))
		return true;
	stock_leave(self);
	return false;
}

LOCK_NO_ANALYSIS void stock_enter_locked(struct slot *self, struct lock *l)
{
	for (;;) {
		lock_acquire(l, &self->locker, LOCK_LEAF);
		if (likely(stock_enter_try(self)))
			return;
		lock_release(l, &self->locker, LOCK_LEAF);
		stock_wait(self);
	}
}

static void stock_note(struct slot *self, const void *page, unsigned order)
{
	store_release(&self->busy, (uint64_t)(uintptr_t)page | order << 1 | 1); /* read after our death */
}

/* ---- in and out ------------------------------------------------------------------------- */

static void stock_push(struct slot *self, void *page)
{
	uint32_t n = load_relaxed(&self->page_count); /* [o] */

	self->pages[n] = page;
	store_release(&self->page_count, n + 1); /* read after our death */
}

/* Inside, page_count > 0.  The page stays CACHED and noted in busy until the caller labels it. */
void *stock_pop_inside(struct slot *self)
{
	uint32_t n = load_relaxed(&self->page_count); /* [o] */
	void *page = self->pages[n - 1];

	stock_note(self, page, 0);
	store_release(&self->page_count, n - 1); /* read after our death */
	return page;
}

/* Inside, and there is room. */
void stock_push_inside(struct slot *self, void *page)
{
	struct seg_local *sl = slot_local(self);

	stock_note(self, page, 0);
	tracked_store(&sl->frames[frame_index(sl, page)].word, frame_cached(self)); /* read after our death */
	stock_push(self, page);
}

/* ---- refill and drain ---------------------------------------------------------------------- */

/* One run off the lists into the stock; the words of its later pages first, so that its first word hands all over. */
static bool stock_refill_run(struct slot *self, uint32_t room)
{
	struct seg_local *sl = slot_local(self);
	bool found;
	unsigned order = buddy_best_locked(sl, min_of(STOCK_RUN_ORDER, bits_last_one(room)), &found);
	uint32_t first, k;

	if (!found)
		return false;
	first = buddy_take_locked(sl, order, frame_word(PAGE_CACHED, order, 0), NULL);
	stock_note(self, frame_page(sl, first), order);
	for (k = (1u << order) - 1; k > 0; k--)
		store_relaxed(&sl->frames[first + k].word, frame_cached(self)); /* inside the run still */
	tracked_store(&sl->frames[first].word, frame_cached(self));
	for (k = 1u << order; k > 0; k--)
		stock_push(self, frame_page(sl, first + k - 1));
	return true;
}

/* The pages above the first `had`.  Not inside: should a thief take one of them, it is mapped for nothing. */
static void stock_touch(struct slot *self, uint32_t had)
{
	struct seg_local *sl = slot_local(self);
	uint32_t k, n = min_of(load_relaxed(&self->page_count), (uint32_t)SLOT_PAGES); /* a guess, see above */

	for (k = had; k < n; k++)
		touch_run(sl, frame_index(sl, self->pages[k]), 1);
}

/* Up to `want` pages in stock.  False: none could be had. */
bool stock_refill(struct slot *self, unsigned want)
{
	struct lock *lock = &slot_local(self)->alloc->lock;
	uint32_t had;
	bool any;

	stock_enter_locked(self, lock);
	had = load_relaxed(&self->page_count); /* [o] */
	while (load_relaxed(&self->page_count) < want) /* [o] */
		if (!stock_refill_run(self, want - load_relaxed(&self->page_count)))
			break;
	any = load_relaxed(&self->page_count) > load_relaxed(&self->reserved); /* [o] */
	stock_leave(self);
	lock_release(lock, &self->locker, LOCK_LEAF);
	stock_touch(self, had);
	return any;
}

static void pressure_off(struct seg_local *sl)
{
	uint64_t enough = max_of(sl->pages / 64, (uint64_t)sl->stock);

	if (unlikely(load_relaxed(&sl->alloc->pressure)) && load_relaxed(&sl->alloc->free_pages) > enough) /* a hint */
		store_relaxed(&sl->alloc->pressure, 0);
}

/* Down to `keep` pages. */
void stock_drain(struct slot *self, unsigned keep)
{
	struct seg_local *sl = slot_local(self);

	stock_enter_locked(self, &sl->alloc->lock);
	while (load_relaxed(&self->page_count) > keep) /* [o] */
		buddy_give_locked(sl, frame_index(sl, stock_pop_inside(self)), 0);
	pressure_off(sl);
	stock_leave(self);
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
}

/* ---- after a death ----------------------------------------------------------------------- */

static bool stock_has(struct slot *s, const void *page)
{
	uint32_t n = load_relaxed(&s->page_count); /* its owner is dead or kept out */
	uint32_t k;

	for (k = 0; k < n; k++)
		if (s->pages[k] == page)
			return true;
	return false;
}

/* `dead` emptied another's stock and died between taking the page out and labelling it as its own. */
static bool stock_stolen_locked(struct seg_local *sl, struct slot *dead, const void *page, uint32_t owner)
{
	struct slot *victim = slot_by_id(&sl->pub, owner);

	return victim && lock_held_by(&victim->steal, &dead->locker) && !stock_has(victim, page);
}

/* The run noted in busy goes where it belongs.  alloc.lock is held and the lists are whole. */
void stock_recover_locked(struct seg_local *sl, struct slot *dead)
{
	uint64_t busy = load_acquire(&dead->busy); /* pairs with stock_note, through the death */
	char *page = (char *)(uintptr_t)(busy & ~(uint64_t)PAGE_MASK);
	uint32_t k, n = 1u << (busy >> 1 & 0x1f);

	/* A run that was not handed over yet is in the lists; the words inside it mean nothing. */
	if (page && n > 1 && load_relaxed(&sl->frames[frame_index(sl, page)].word) != frame_cached(dead)) /* [P] */
		page = NULL;
	/* The first one last: should we die, its word is what tells the next one that there is something to do. */
	for (k = n; page && k-- > 0;) {
		uint32_t i = frame_index(sl, page) + k;
		const void *at = page + (size_t)k * PAGE_BYTES;
		uint64_t word = load_relaxed(&sl->frames[i].word); /* [P], or its owner is dead */

		if (frame_kind(word) != PAGE_CACHED || frame_order(word))
			continue;
		if (frame_owner(word) == dead->locker.id ? !stock_has(dead, at) :
							   stock_stolen_locked(sl, dead, at, frame_owner(word)))
			buddy_give_locked(sl, i, 0);
	}
	store_release(&dead->busy, 0); /* the next one to recover this slot finds nothing on its way */
}

/* Everything in the stock of a dead slot that is CACHED by it goes back. */
void stock_takeover(struct slot *self, struct slot *gone)
{
	struct seg_local *sl = slot_local(self);
	uint32_t n, k;

	lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	n = min_of(load_relaxed(&gone->page_count), (uint32_t)SLOT_PAGES); /* its owner is dead */
	for (k = 0; k < n; k++) {
		uint32_t i = frame_index(sl, gone->pages[k]);

		if (load_relaxed(&sl->frames[i].word) == frame_cached(gone)) /* its owner is dead */
			buddy_give_locked(sl, i, 0);
	}
	store_release(&gone->page_count, 0); /* read by whoever claims the slot */
	store_relaxed(&gone->reserved, 0); /* the same */
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
}

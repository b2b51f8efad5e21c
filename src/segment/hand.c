/* SPDX-License-Identifier: MIT */
/*
 * hand.c - memory in a thread's hands: hand.h.
 *
 * Data: slot.ledger, slot.hand; written by the owner, after its death by whoever holds the slot's recovery.
 * Death: hand_settle() decides by the word in memory whose the entries under way are.  Then LEDGER_PAGE means: a page
 * whose frame says that the dead thread took it; LEDGER_MEM: an object that is neither free in its slab nor in the dead
 * one's magazines.  It is put into those (or among the free pages) by one store, after which it no longer answers to that;
 * so a recoverer may die at any place, too.
 */
#include "segment/hand.h"
#include "segment/segment_priv.h"

/* A page or run in use that the dead one took, and nobody since. */
static bool frame_is_of(uint64_t word, const struct slot *gone)
{
	return frame_kind(word) > PAGE_CACHED && frame_kind(word) != PAGE_SLAB && frame_owner(word) == slot_id(gone);
}

/*
 * True: it is a page or a run, not an object.  Then its frame names us from now on: somebody else may have taken it from
 * the allocator.
 */
static bool take_page(struct slot *self, const void *p)
{
	struct seg_local *sl = slot_local(self);
	atomic_u64 *word = &sl->frames[frame_index(sl, p)].word;
	uint64_t now = load_relaxed(word); /* the caller's page */

	if ((uintptr_t)p & PAGE_MASK || frame_kind(now) == PAGE_SLAB)
		return false;
	tracked_store(word, frame_word(frame_kind(now), frame_order(now), self->locker.id));
	return true;
}

bool mem_make_room(struct slot *self, const void *obj)
{
	if (take_page(self, obj))
		return true;
	magazine_make_room(self, obj);
	return false;
}

bool mem_in_hand(struct segment *seg, struct slot *gone, const void *obj, bool page)
{
	struct seg_local *sl = seg_local(seg);

	if (!page)
		return object_in_hand(seg, gone, obj);
	return frame_has(sl, obj) && frame_is_of(load_relaxed(&sl->frames[frame_index(sl, obj)].word), gone); /* its owner is dead */
}

void hand_free_from(struct slot *self, void **where, void *next, void *p, size_t bytes)
{
	enum ledger_kind kind = take_page(self, p) ? LEDGER_PAGE : LEDGER_MEM;
	int k = hand_begin_got(self, where, (uint64_t)(uintptr_t)next, 0, p, kind);

	*where = next;
	fence_compiler();
	kill_point();
	hand_end(self, 0);
	mem_free_noted(self, p, bytes, k);
}

int hand_find(struct slot *s, const void *obj, enum ledger_kind kind)
{
	uint64_t entry = (uint64_t)(uintptr_t)obj | kind;
	int k;

	for (k = 0; k < SLOT_LEDGER; k++)
		if (load_acquire(&s->ledger[k]) == entry) /* own, or its owner is dead */
			return k;
	return -1;
}

void hand_begin_got2(struct slot *self, const volatile void *where, uint64_t word, uint64_t a, uint64_t b, int k[2])
{
	k[0] = ledger_free(self);
	for (k[1] = k[0] + 1; k[0] >= 0 && k[1] < (int)SLOT_LEDGER && load_relaxed(&self->ledger[k[1]]); k[1]++) /* [o] */
		;
	if (k[0] < 0 || k[1] == (int)SLOT_LEDGER)
		k[0] = k[1] = -1;
	hand_begin(self, where, word, 0, hand_bit(k[0]) | hand_bit(k[1]));
	if (k[0] < 0)
		return;
	store_release(&self->ledger[k[0]], a); /* read after our death, both */
	store_release(&self->ledger[k[1]], b);
	fence_compiler(); /* as in hand_begin */
}

int hand_take_over(struct slot *self, struct slot *gone, int k)
{
	uint64_t entry = load_acquire(&gone->ledger[k]); /* pairs with ledger_add, through the death */
	int own = hand_begin_got(self, &gone->ledger[k], 0, 0, (void *)(uintptr_t)(entry & ~UINT64_C(7)), entry & 7);

	tracked_store(&gone->ledger[k], 0);
	hand_end(self, 0);
	return own;
}

void hand_settle(struct slot *dead)
{
	/* All pair with hand_begin, through the death. */
	uint64_t where = load_acquire(&dead->hand.where), word = load_acquire(&dead->hand.word), now;
	uint64_t entries = load_acquire(&dead->hand.entries);

	if (!where)
		return;
	if (where & HAND_TALLY) {
		tally_settle_dead(dead);
		return;
	}
	if (where & HAND_WORD32)
		now = load_acquire((atomic_u32 *)(uintptr_t)(where - HAND_WORD32));
	else
		now = load_acquire((atomic_u64 *)(uintptr_t)where);
	hand_end(dead, (uint32_t)(now == word ? entries : entries >> 32));
}

/* A page or a run that the dead one had taken. */
static void take_back_pages(struct slot *self, struct slot *gone, const void *p)
{
	struct seg_local *sl = slot_local(self);
	uint32_t i = frame_index(sl, p);
	uint64_t word;

	lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	word = load_relaxed(&sl->frames[i].word); /* its owner is dead */
	if (frame_is_of(word, gone))
		buddy_give_locked(sl, i, frame_order(word));
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
}

static void take_back_object(struct slot *self, struct slot *gone, void *p)
{
	enum cache_id id;

	if (object_in_hand(self->seg, gone, p) && slab_class_at(slot_local(self), p, &id))
		magazine_put_back(self, gone, id, p);
}

void hand_take_back(struct slot *self, struct slot *gone)
{
	unsigned k;

	for (k = 0; k < SLOT_LEDGER; k++) {
		uint64_t entry = load_acquire(&gone->ledger[k]); /* pairs with ledger_add, through the death */

		void *p = (void *)(uintptr_t)(entry & ~UINT64_C(7));

		if ((entry & 7) == LEDGER_MEM)
			take_back_object(self, gone, p);
		else if ((entry & 7) == LEDGER_PAGE && frame_has(slot_local(self), p))
			take_back_pages(self, gone, p);
		else
			continue;
		store_release(&gone->ledger[k], 0); /* for whoever goes on after us */
	}
}

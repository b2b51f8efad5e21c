/* SPDX-License-Identifier: MIT */
/*
 * tally.h - a count of references that many change, and of which a death at any instruction leaves no doubt.
 *
 * Data: the count, in zones as in base/refcount.h; above it who changed it last: their slot and the number of that change.
 * Who changes it says so in the own slot first (slot.hand: where, which change, which entry of the ledger comes or goes with
 * it), changes the word by a CAS that leaves the change's number there, brings its slot in order, and then stores the
 * number beside the count: settled.
 * Who finds the last change not settled marks it in that thread's slot as done before it puts its own number over it.
 * So of a thread that died a change was done if the word has its number, or it is marked; else it was not (hand_settle).
 *
 * Death, between any two stores.  Another's change is never waited for.
 *	nothing in slot.hand yet	not begun
 *	before the CAS			the number is nowhere: not done: the entry that was to come goes
 *	after it			the number is in the word, or somebody has marked it: done: the entry that was to go goes
 *	slot.hand cleared		done, and the ledger says so; who comes next looks into the slot in vain
 * The last reference stays in the ledger while the count is dead: there a recoverer goes on.
 *
 * Shared writes: the count's line, by the CAS and one store.  Another's slot is read only where its change is not settled
 * yet: by threads that meet within the few instructions of it.
 * Progress: lock-free.
 * Limits: of a change's number the word has 16 bits.  A thread that stands still between its look at the word and its CAS while
 * another makes exactly 65,536 changes, or twice as many, the last of them to this count and the same number of references, and
 * dies in that one, would hide it.
 * The caller is in a section all the while: what is stored last may come when the reference is gone already.
 */
#ifndef SHELF_SEGMENT_TALLY_H
#define SHELF_SEGMENT_TALLY_H

#include "base/refcount.h"
#include "segment/hand.h"

struct tally {
	atomic_u64 word; /* tally_tag() << 32, and the count */
	atomic_u32 settled; /* the tag of a change that its slot knows to be done */
};

#define TALLY_DEAD (REF_DEAD + (UINT32_MAX - REF_DEAD) / 2)

static inline uint32_t tally_of_word(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t tally_read(const struct tally *t)
{
	return tally_of_word(load_relaxed(&((struct tally *)(uintptr_t)t)->word)); /* a snapshot for statistics and hints */
}

/* Nobody else changes it. */
static inline void tally_init(struct tally *t, uint32_t n)
{
	store_relaxed(&t->settled, 0); /* published with its object, both */
	store_relaxed(&t->word, n);
}

/* No slot has number 0, so no change has tag 0. */
static inline uint32_t tally_tag(uint32_t slot, uint64_t number)
{
	return slot << 16 | (uint32_t)(number & 0xffff);
}

/* The last change that the word tells of is not settled: before it is written over. */
void tally_help(struct slot *self, struct tally *t, uint64_t seen);

/* `old` is what the word is; entry `k` (-1: none) of the ledger comes with the change, or goes.  Its tag. */
static inline_always uint32_t tally_announce(struct slot *self, struct tally *t, uint64_t old, int k, uint32_t came)
{
	uint64_t n = (load_relaxed(&self->hand.change) >> HAND_NUMBER) + 1; /* [o] */
	uint32_t tag = tally_tag(slot_id(self), n), settled = load_relaxed(&t->settled); /* ours, or not ours: nobody else stores that tag */

	while (unlikely(tag == (uint32_t)(old >> 32) || tag == settled))
		tag = tally_tag(slot_id(self), ++n);
	store_release(&self->hand.change, n << HAND_NUMBER | came | (k < 0 ? HAND_NO_ENTRY : (uint32_t)k)); /* pairs with tally_help, and through our death */
	store_release(&self->hand.where, (uint64_t)(uintptr_t)t | HAND_TALLY); /* the same */
	fence_compiler();
	return tag;
}

static inline_always bool tally_try(struct slot *self, struct tally *t, uint64_t *old, uint32_t tag, uint32_t n)
{
	if (unlikely((uint32_t)(*old >> 32) != load_acquire(&t->settled))) /* pairs with tally_settle */
		tally_help(self, t, *old);
	return tracked_cas(&t->word, old, (uint64_t)tag << 32 | n);
}

static inline_always void tally_settle(struct slot *self, struct tally *t, uint32_t tag)
{
	store_release(&self->hand.where, 0); /* read after our death */
	store_release(&t->settled, tag); /* what our slot says, to whoever writes over it: pairs with tally_try */
}

/* One reference more, which is entry *k of the ledger (-1: no room).  False: the last is gone. */
static inline_always bool tally_get(struct slot *self, struct tally *t, uint64_t entry, int *k)
{
	uint64_t old = load_acquire(&t->word); /* pairs with the CAS of others: what their slots say */
	uint32_t tag;

	*k = -1;
	if (unlikely(tally_of_word(old) >= REF_DEAD))
		return false;
	*k = likely(!load_relaxed(&self->ledger[0])) ? 0 : ledger_free(self); /* [o] */
	tag = tally_announce(self, t, old, *k, HAND_COMES);
	if (likely(*k >= 0))
		store_release(&self->ledger[*k], entry); /* read after our death */
	fence_compiler();
	while (unlikely(!tally_try(self, t, &old, tag, tally_of_word(old) + (tally_of_word(old) < REF_SATURATED)))) {
		if (tally_of_word(old) < REF_DEAD)
			continue;
		hand_forget(self, *k);
		store_release(&self->hand.where, 0); /* read after our death */
		return false;
	}
	tally_settle(self, t, tag);
	return true;
}

/* One less, if it is the only one: then it was the last, and its entry of the ledger stays.  No section is needed. */
static inline_always bool tally_put_only(struct slot *self, struct tally *t)
{
	uint64_t old = load_acquire(&t->word); /* as in tally_get */

	return tally_of_word(old) == 1 && tally_try(self, t, &old, 0, TALLY_DEAD);
}

/* One less, which entry `k` of the ledger is.  True: it was the last; then the entry stays. */
static inline_always bool tally_put(struct slot *self, struct tally *t, int k)
{
	uint64_t old = load_acquire(&t->word); /* as in tally_get */
	uint32_t tag, n;

	if (tally_of_word(old) == 1 && likely(tally_try(self, t, &old, 0, TALLY_DEAD)))
		return true;
	tag = tally_announce(self, t, old, k, 0);
	do {
		n = tally_of_word(old);
		if (unlikely(n == 1) && tally_try(self, t, &old, 0, TALLY_DEAD)) {
			store_release(&self->hand.where, 0); /* read after our death */
			return true;
		}
	} while (unlikely(n == 1 || !tally_try(self, t, &old, tag, n - (n < REF_SATURATED))));
	hand_forget(self, k);
	tally_settle(self, t, tag);
	return false;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * tally.c - the rare parts of a count that survives deaths: tally.h.
 *
 * Data: slot.hand.change of another thread, in which a bit is set.
 * Progress: wait-free.
 */
#include "segment/segment_priv.h"
#include "segment/tally.h"

/*
 * Marked only if the slot is still at that change, which its number tells but for 16 of its bits, and the word still has those: a
 * thread never uses a tag that the word has.
 */
void tally_help(struct slot *self, struct tally *t, uint64_t seen)
{
	struct slot *s = slot_by_id(self->seg, (uint32_t)(seen >> 48));
	uint64_t change;

	if (!s || s == self)
		return;
	change = load_acquire(&s->hand.change); /* pairs with tally_announce, both */
	if (tally_tag(slot_id(s), change >> HAND_NUMBER) != (uint32_t)(seen >> 32) || change & HAND_DONE ||
	    load_acquire(&s->hand.where) != ((uint64_t)(uintptr_t)t | HAND_TALLY))
		return;
	if (load_acquire(&t->word) >> 32 == seen >> 32) /* as in tally_get */
		(void)tracked_cas(&s->hand.change, &change, change | HAND_DONE); /* else it went on by itself */
}

/* The word first: who writes over a number that is not settled marks it before. */
static bool tally_done(struct slot *dead, uint64_t *change)
{
	struct tally *t = (struct tally *)(uintptr_t)(load_acquire(&dead->hand.where) & ~(uint64_t)HAND_TALLY); /* through the death */
	uint64_t word = load_acquire(&t->word); /* pairs with the CAS in tally_try, and what it comes after */

	*change = load_acquire(&dead->hand.change); /* pairs with tally_help */
	return *change & HAND_DONE || word >> 32 == tally_tag(slot_id(dead), *change >> HAND_NUMBER);
}

void tally_settle_dead(struct slot *dead)
{
	uint64_t change;
	bool done = tally_done(dead, &change);
	int k = (int)(change & HAND_NO_ENTRY);

	if (k != HAND_NO_ENTRY && done != !!(change & HAND_COMES))
		hand_forget(dead, k);
	store_release(&dead->hand.where, 0); /* for whoever goes on after us */
}

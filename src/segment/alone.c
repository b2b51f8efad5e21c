/* SPDX-License-Identifier: MIT */
/*
 * alone.c - nobody but one thread has a slot, for as long as it says so.
 *
 * Data: alloc_state.gate: the slot id of whoever wants to be alone, 0 otherwise.
 * Two flags: the gate's holder shuts it and then looks at every slot; a claimer takes its slot and then looks at
 * the gate, gives the slot back if it is shut, and waits.  One of them sees the other.
 * Death: a gate whose holder is dead is opened by whoever finds it shut.
 * Cost: claiming a slot loads one word.  Progress: claimers wait for the holder.
 */
#include "segment/marks.h"
#include "segment/segment_priv.h"

#define GATE_PATIENCE_NS 10000000

bool gate_shut(struct segment *seg)
{
	struct seg_local *sl = seg_local(seg);
	uint32_t id = load_acquire(&sl->alloc->gate); /* pairs with segment_alone_begin, both ways */

	if (!id)
		return false;
	if (slot_alive(seg, id))
		return true;
	if (!seg->read_only)
		cas_acq_rel(&sl->alloc->gate, &id, 0u); /* its holder is dead: nobody is alone */
	return false;
}

void gate_wait(struct segment *seg)
{
	struct seg_local *sl = seg_local(seg);
	uint32_t id;

	while (gate_shut(seg) && (id = load_relaxed(&sl->alloc->gate))) /* only compared by the kernel */
		futex_wait(&sl->alloc->gate, id, GATE_PATIENCE_NS);
}

/* Dead or departed threads do not count; those that are coming do. */
static bool slot_counts(struct segment *seg, struct slot *s, uint32_t id)
{
	uint32_t by;

	if (slot_state_of(s) != SLOT_CLAIMING)
		return slot_alive(seg, id);
	by = slot_unsettled_claimer(seg, s);
	if (slot_unclaim_dead(seg, s))
		return false;
	/* A dead sweeper's: whoever is alone takes both over.  Unless a thread that is coming has its number. */
	return !by || slot_alive(seg, by) || slot_tid_exists(load_relaxed(&slot_by_id(seg, by)->tid)); /* ordered by the state */
}

bool segment_alone_begin(struct slot *self)
{
	struct seg_local *sl = slot_local(self);
	struct slots_hidden hidden;
	uint32_t none = 0, id = 0;
	struct slot *s;

	slots_look_hidden(self, &hidden);
	if (hidden.alive)
		return false;
	gate_shut(self->seg); /* opens a dead one's */
	/* A full fence: pairs with the claimer's CAS.  One that is ours already was shut by damage: this thread is not alone yet. */
	if (!cas_acq_rel(&sl->alloc->gate, &none, slot_id(self)) && none != slot_id(self))
		return false;
	while ((s = slot_each(self->seg, &id))) {
		if (s == self || !slot_counts(self->seg, s, id))
			continue;
		segment_alone_end(self);
		return false;
	}
	return true;
}

void segment_alone_end(struct slot *self)
{
	struct seg_local *sl = slot_local(self);

	store_release(&sl->alloc->gate, 0u); /* what was repaired; pairs with gate_shut */
	futex_wake(&sl->alloc->gate, INT32_MAX);
}

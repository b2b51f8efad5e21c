/* SPDX-License-Identifier: MIT */
/*
 * bags.c - retired objects on their way to being freed.
 *
 * A slot has one open bag, which epoch_retire fills, and two sealed ones.  Sealing reads the global epoch
 * *after* the unlinking of everything in the bag (one fence for the whole bag)
 * and marks the bag with it.  Only marks e and e - 1 can be waiting, so two
 * sealed bags do: one for odd epochs, one for even.
 *
 * A thread may be killed between any two stores here.  The open bag is moved in
 * two steps: its last object points to the sealed ones (1), the sealed head
 * takes its head (2), the open head is cleared (3).  bags_repair() tells
 * from the pointers how far it came.  An object is noted (slot.freeing) and taken out of its bag before it is
 * freed; bags_free_last() puts it back if it is not free yet.
 *
 * Bags never move between slots, as no two slots can be changed in one store.  A thread that is gone
 * leaves its bags where they are: the slot's next owner inherits them, and until
 * there is one bags_sweep() frees from them in place.  A sweeper that dies leaves the slot claimed by its tid: the
 * next thread to claim it makes the bags whole.
 */
#include "base/assert.h"
#include "epoch/epoch_priv.h"
#include "segment/hand.h"

/* Process-local: code lies at different addresses in different processes. */
static _Atomic(retire_fn *) retire_fns[RETIRE_TYPES], retire_parts[RETIRE_TYPES];
static atomic_u32 with_parts; /* bit n: type n has */
_Static_assert(RETIRE_TYPES <= 32, "a bit for each");

void retire_register(enum retire_type type, retire_fn *fn)
{
	shelf_assert(type > RETIRE_NONE && type < RETIRE_TYPES);
	store_release(&retire_fns[type], fn); /* pairs with the load in retired_free */
}

void retire_register_parts(enum retire_type type, retire_fn *parts)
{
	shelf_assert(type > RETIRE_NONE && type < RETIRE_TYPES);
	store_release(&retire_parts[type], parts); /* pairs with the load in retired_free_parts */
	or_acq_rel(&with_parts, 1u << type);
}

void bag_put(struct bag *bag, struct retired *r)
{
	r->next = bag->head;
	if (!bag->head) {
		bag->tail = r;
		bag->count = 0;
	}
	bag->count++; /* a death after it leaves one too many until the bag is freed; one too few would be waited for by nobody */
	fence_compiler(); /* a bag with a head is whole; see bags_repair */
	bag->head = r;
}

static void retired_free(struct slot *self, struct retired *r)
{
	retire_fn *fn = r->type < RETIRE_TYPES ? load_acquire(&retire_fns[r->type]) : NULL;

	if (likely(fn))
		fn(self, r);
	else
		add_relaxed(&epoch_root_of(self)->lost, 1u); /* statistics */
}

#define FREEING_PAGE 1u /* in slot.freeing: it is no object of a slab, and may be one when we are dead */

static void retired_free_parts(struct slot *self, struct retired *r)
{
	if (unlikely(r->type < RETIRE_TYPES && load_relaxed(&with_parts) >> r->type & 1)) /* set at attach */
		load_acquire(&retire_parts[r->type])(self, r); /* pairs with retire_register_parts */
}

/* Before it leaves its bag: how slot.freeing notes it. */
static inline struct retired *retired_note(struct slot *self, struct retired *r)
{
	if (likely((uintptr_t)r & PAGE_MASK))
		return r;
	return mem_make_room(self, r) ? (struct retired *)((uintptr_t)r | FREEING_PAGE) : r;
}

static uint64_t bag_free(struct slot *self, struct bag *bag)
{
	struct epoch_root *root = epoch_root_of(self);
	uint64_t waited = bag->count;
	struct retired *r;
	uint64_t n = 0;

	self->reclaiming++;
	while ((r = bag->head)) {
		retired_free_parts(self, r);
		self->freeing = retired_note(self, r);
		fence_compiler(); /* noted before it is out, */
		bag->head = r->next;
		fence_compiler(); /* and out before it is freed */
		kill_point();
		retired_free(self, r);
		fence_compiler();
		self->freeing = NULL; /* at once: it is in our magazine still, where bags_free_last() looks for it */
		n++;
	}
	self->reclaiming--;
	bag->count = 0;
	sub_relaxed(&root->waiting, waited); /* statistics and a rough limit */
	add_relaxed(&root->freed, n);
	return n;
}

/* The sealed bag for the epoch of now, rid of what is left from two epochs ago. */
static struct bag *bags_sealed_now(struct slot *self, struct slot *owner, uint64_t *epoch)
{
	for (;;) {
		struct bag *bag;

		fence_full(); /* unlinking before the load below: race C in advance.c */
		*epoch = load_acquire(&epoch_root_of(self)->global); /* pairs with the CAS of epoch_advance_try */
		bag = &owner->bags[BAG_SEALED(*epoch)];
		if (!bag->head || bag->epoch == *epoch)
			return bag;
		/* Marked at least two epochs ago.  What its objects retire in turn comes
		 * into the open bag, so the epoch is read again. */
		bag_free(self, bag);
	}
}

void bags_seal(struct slot *self, struct slot *owner)
{
	struct bag *open = &owner->bags[BAG_OPEN];
	struct bag *sealed;
	uint64_t epoch;

	if (!open->head)
		return;
	sealed = bags_sealed_now(self, owner, &epoch);
	add_relaxed(&epoch_root_of(self)->waiting, open->count); /* statistics and a rough limit */
	sealed->count = open->count + (sealed->head ? sealed->count : 0);
	sealed->epoch = epoch;
	open->tail->next = sealed->head; /* (1) */
	fence_compiler();
	sealed->head = open->head; /* (2) */
	fence_compiler();
	open->head = NULL; /* (3) */
	open->count = 0;
}

void bags_repair(struct slot *owner)
{
	struct bag *open = &owner->bags[BAG_OPEN];

	if (!open->head)
		return;
	if (open->head == owner->bags[1].head || open->head == owner->bags[2].head)
		open->head = NULL; /* died between (2) and (3) */
	else
		open->tail->next = NULL; /* between (1) and (2), or not in a seal at all */
}

static bool bags_begin_with(const struct slot *owner, const struct retired *r)
{
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(owner->bags); i++)
		if (owner->bags[i].head == r)
			return true;
	return false;
}

/* Is it still in its bag?  That may be one of a slot that `gone` had claimed to sweep it: nobody else claims it yet. */
static bool bags_keep(struct slot *self, struct slot *gone, const struct retired *r)
{
	uint32_t held = load_relaxed(&gone->tid) << 8 | SLOT_CLAIMING, id = 0; /* its owner is dead */
	struct slot *s;

	if (bags_begin_with(gone, r))
		return true;
	while ((s = slot_each(self->seg, &id)))
		if (load_acquire(&s->state) == held && bags_begin_with(s, r)) /* pairs with slot_hold_idle */
			return true;
	return false;
}

/*
 * After the owner's death: the one that it was freeing goes into its bag again.  Functions that free may be run again
 * if their object is not free yet: what hangs on it they take off before it is free (hand_free_from).
 */
void bags_free_last(struct slot *self, struct slot *gone)
{
	bool page = (uintptr_t)gone->freeing & FREEING_PAGE;
	struct retired *r = (struct retired *)((uintptr_t)gone->freeing & ~(uintptr_t)FREEING_PAGE);

	if (!r)
		return;
	if (!bags_keep(self, gone, r) && mem_in_hand(self->seg, gone, r, page) && r->type != RETIRE_USER && r->type != RETIRE_PAGES)
		bag_put(&gone->bags[BAG_OPEN], r);
	fence_compiler(); /* in the bag first: should we die, it is found there */
	gone->freeing = NULL;
}

/* After the owner's death: what it had taken out of structures.  Should we die in between, it is the first of the bag. */
void bags_put_noted(struct slot *gone)
{
	unsigned k, turn;

	/* First what is in a bag already, while it still is the first one there. */
	for (turn = 0; turn < 2; turn++)
		for (k = 0; k < SLOT_LEDGER; k++) {
			uint64_t entry = load_acquire(&gone->ledger[k]); /* pairs with retire_note, through the death */
			struct retired *r = (struct retired *)(uintptr_t)(entry & ~UINT64_C(7));

			if ((entry & 7) != LEDGER_RETIRED || (!turn && !bags_begin_with(gone, r)))
				continue;
			if (turn)
				bag_put(&gone->bags[BAG_OPEN], r);
			store_release(&gone->ledger[k], 0); /* for whoever goes on after us */
		}
}

/* Between (1) and (2) nothing need be done: the next seal stores the tail's link again.  Writes the slot only. */
void bags_claimed(struct slot *owner)
{
	struct bag *open = &owner->bags[BAG_OPEN];

	if (open->head && (open->head == owner->bags[1].head || open->head == owner->bags[2].head))
		open->head = NULL; /* died between (2) and (3) */
}

uint64_t bags_free(struct slot *self, struct slot *owner, uint64_t now)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 1; i < ARRAY_SIZE(owner->bags); i++) {
		struct bag *bag = &owner->bags[i];

		if (bag->head && (now == EPOCH_QUIET || bag->epoch + 2 <= now))
			n += bag_free(self, bag);
	}
	return n;
}

/* An unused slot becomes ours for a moment.  Should we die, the next one to claim it calls bags_claimed(). */
static bool slot_hold_idle(struct slot *self, struct slot *slot)
{
	uint32_t idle = SLOT_IDLE;

	if (load_relaxed(&slot->state) != idle || !slot_layers_known(slot)) /* a hint; the CAS decides */
		return false;
	/* acquire: what the slot's last owner or recoverer left; pairs with its store of SLOT_IDLE */
	return cas_acq_rel(&slot->state, &idle, load_relaxed(&self->tid) << 8 | SLOT_CLAIMING); /* own slot */
}

static void slot_unhold_idle(struct slot *slot)
{
	store_release(&slot->state, SLOT_IDLE); /* the bags as they are; pairs with the next claim's CAS */
}

uint64_t bags_sweep(struct slot *self, uint64_t *left)
{
	uint64_t freed = 0;
	uint32_t id = 0;
	struct slot *slot;

	*left = 0;
	while ((slot = slot_each(self->seg, &id))) {
		if (!slot_hold_idle(self, slot))
			continue;
		bags_seal(self, slot);
		/* Not EPOCH_QUIET: sealed after the last scan began.  Pairs with the CAS of epoch_advance_try. */
		freed += bags_free(self, slot, load_acquire(&epoch_root_of(self)->global));
		*left += bags_count(slot);
		slot_unhold_idle(slot);
	}
	return freed;
}

uint64_t bags_count(const struct slot *owner)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(owner->bags); i++)
		n += owner->bags[i].head ? owner->bags[i].count : 0;
	return n;
}

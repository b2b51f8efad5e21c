/* SPDX-License-Identifier: MIT */
/* epoch_priv.h - between the files of src/epoch and their tests. */
#ifndef SHELF_EPOCH_EPOCH_PRIV_H
#define SHELF_EPOCH_EPOCH_PRIV_H

#include "epoch/epoch.h"

/* ---- bags.c */

/* bags[0] is open; bags[1 + (e & 1)] is sealed with epoch e. */
#define BAG_OPEN 0
#define BAG_SEALED(e) (1 + ((e)&1))

void bag_put(struct bag *bag, struct retired *r);
/* Close the open bag: its objects were unlinked before the global epoch was read. */
void bags_seal(struct slot *self, struct slot *owner);
/* Free the sealed objects of `owner` that are ripe at `now`; all of them with now == EPOCH_QUIET. */
uint64_t bags_free(struct slot *self, struct slot *owner, uint64_t now);
#define EPOCH_QUIET UINT64_MAX
uint64_t bags_count(const struct slot *owner);
/* After the owner's death: undo a seal that was under way. */
void bags_repair(struct slot *owner);
/* And put back what it was just freeing. */
void bags_free_last(struct slot *self, struct slot *gone);
void bags_put_noted(struct slot *gone); /* and what its ledger has as LEDGER_RETIRED */
/* The slot has a new owner.  Whoever held it to sweep it may have died in a seal. */
void bags_claimed(struct slot *owner);
/* Seal and free from the bags of threads that are gone; *left: what still waits there.  Objects freed. */
uint64_t bags_sweep(struct slot *self, uint64_t *left);

/* ---- advance.c */

enum epoch_scan { EPOCH_BLOCKED, EPOCH_BUSY, EPOCH_NOBODY };

/*
 * Order every thread's entry before, or behind, what follows; false: this process cannot (membarrier is
 * missing and entries of others may not fence yet).
 */
bool epoch_fence_all(struct slot *self);
/* One try.  EPOCH_NOBODY: nobody was inside a section at some moment after the call began. */
enum epoch_scan epoch_advance_try(struct slot *self);

/*
 * Outside of sections.  From here on this thread is in nobody's way who wants to leave the present epoch; and a try to do that,
 * which interrupts nobody.  EPOCH_BLOCKED: somebody else may be in the way.
 */
enum epoch_scan epoch_pass(struct slot *self);
/* Is this thread in the middle of nothing?  Then it may take over another's slot. */
static inline bool epoch_unbound(const struct slot *self)
{
	struct slot *s = (struct slot *)(uintptr_t)self;

	return !epoch_inside(self) && !load_relaxed(&s->locker.n_held) && !load_relaxed(&s->intent.op); /* own fields */
}
/* What slot.asleep is once every entry fences; before that it is ASLEEP_SOON, of one who is about to see to it. */
#define ASLEEP 1u
#define ASLEEP_SOON(id) ((id) << 1)

/* ---- attach.c */

bool epoch_membarrier(void);
/* From now on every entry fences; returns when that holds. */
void epoch_use_fence(struct epoch_root *root);

/* ---- epoch.c */

void epoch_register_types(void);

/* ---- gone.c */

void epoch_register_hooks(void);

/* ---- radix.c */

void radix_free_node(struct slot *self, struct retired *r);

#endif

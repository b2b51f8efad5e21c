/* SPDX-License-Identifier: MIT */
/*
 * count.c - after a death between the two stores of a count: count.h.
 *
 * Data: slot.inodes, slot.files; the caller holds the slot's recovery.
 * Death: one store, which also takes the mark away.
 */
#include "segment/count.h"

static bool entry_is(struct slot *dead, unsigned mark, enum ledger_kind kind)
{
	unsigned k = (mark & COUNT_ENTRY) - 1;

	return k < SLOT_LEDGER && (load_acquire(&dead->ledger[k]) & 7) == kind; /* pairs with its stores, through the death */
}

/* An entry that counts is of that kind; what is being freed is in nobody's hands any more once it is free. */
static bool mark_done(struct slot *self, struct slot *dead, unsigned mark, enum ledger_kind kind)
{
	if (mark & COUNT_FREED)
		return !dead->freeing || !object_in_hand(self->seg, dead, dead->freeing);
	return entry_is(dead, mark, kind) == !(mark & COUNT_DOWN);
}

static void settle_one(struct slot *self, struct slot *dead, atomic_i64 *c, enum ledger_kind kind)
{
	unsigned mark = count_mark(c);

	if (!mark)
		return;
	if (mark_done(self, dead, mark, kind))
		count_done(c);
	else
		count_undo(c);
}

void count_settle(struct slot *self, struct slot *dead)
{
	settle_one(self, dead, &dead->inodes, LEDGER_INODE);
	settle_one(self, dead, &dead->files, LEDGER_FILE);
}

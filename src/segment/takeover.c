/* SPDX-License-Identifier: MIT */
/*
 * takeover.c - what a dead thread left is finished, undone and given back.
 *
 * Protection: slot.recovery of the dead slot, taken with lock_try so that it fits below any lock; the
 * lock layer names its holder, so a recoverer that dies is recovered itself.
 * Order in slot_recover_for(): the allocator's locks that the dead one holds are adopted, what they
 * protect is made whole; then what it was handing over (hand.h) and counting (count.h); then the intent; then whom it was recovering itself; then all its locks are released.
 * That may run under any locks of the recoverer, so it takes no locks but the dead one's and leaf locks, and drops no
 * reference: those go to the dead thread's ledger.  What must drop or wait is a late intent: it waits, as the ledger
 * does, for slot_takeover(), whose caller holds nothing.
 * Each step may be repeated, since its recoverer may die too.
 * Progress: blocking, bounded by the work of one intent.
 */
#include "segment/count.h"
#include "segment/hand.h"
#include "segment/intent_ops.h"
#include "segment/segment_priv.h"

#define GONE_HOOKS 8u
#define RECOVERY_WAIT_NS 1000000

static atomic_ptr(intent_recover_fn) intent_table[INTENT_OPS]; /* [1] */
static uint32_t intent_late; /* [1] bit n: op n is late */
static uint32_t intent_known; /* [1] bit n: op n is registered */
_Static_assert(INTENT_OPS <= 32, "a bit for each");
static slot_gone_fn *gone_hooks[GONE_HOOKS]; /* [1] */
static unsigned gone_count;

void intent_register(uint32_t op, intent_recover_fn *fn)
{
	shelf_assert(op < INTENT_OPS);
	store_relaxed(&intent_table[op], fn); /* before the process has a slot */
	intent_known |= 1u << op;
}

void intent_register_late(uint32_t op, intent_recover_fn *fn)
{
	intent_register(op, fn);
	intent_late |= 1u << op;
}

void slot_note_layers(struct slot *self)
{
	store_relaxed(&self->layers, intent_known); /* published by the state, or read after our death */
}

void slots_note_layers(struct segment *seg)
{
	uint32_t id = 0, pid = slot_getpid();
	struct slot *s;

	while ((s = slot_each(seg, &id)))
		if (slot_state_of(s) == SLOT_LIVE && load_relaxed(&s->pid) == pid && /* ordered by the state */
		    load_relaxed(&s->start_time) == slot_start_time())
			slot_note_layers(s);
}

bool slot_layers_known(struct slot *s)
{
	return !(load_relaxed(&s->layers) & ~intent_known); /* ordered by the state, or by the death */
}

void slot_register_gone(slot_gone_fn *fn)
{
	unsigned k;

	for (k = 0; k < gone_count; k++)
		if (gone_hooks[k] == fn)
			return;
	if (gone_count == GONE_HOOKS)
		shelf_panic("too many slot_register_gone", __FILE__, __LINE__);
	gone_hooks[gone_count++] = fn;
}

void slot_gone_run(struct slot *self, struct slot *gone)
{
	unsigned k;

	/* Upper layers first: what they let go they note for the lower ones, in the ledger of `gone`. */
	for (k = gone_count; k-- > 0;)
		gone_hooks[k](self, gone);
}

/*
 * Its owner may leave in order while we ask, and another thread move in: so the answer counts only if the slot names
 * the same thread after it.  Then nobody but a recoverer changes the slot any more.
 */
static bool slot_is_dead(struct slot *s)
{
	uint32_t state = load_acquire(&s->state); /* pairs with slot_occupy */
	uint32_t pid = load_relaxed(&s->pid), tid = load_relaxed(&s->tid); /* ordered by the state, here and below */
	uint64_t start_time = load_relaxed(&s->start_time);

	if (state != SLOT_LIVE || slot_thread_exists(pid, tid, start_time))
		return false;
	return load_acquire(&s->state) == SLOT_LIVE && load_relaxed(&s->pid) == pid && load_relaxed(&s->tid) == tid &&
	       load_relaxed(&s->start_time) == start_time;
}

/* ---- one recoverer at a time ---------------------------------------------------------------- */

static void slot_recover_for(struct slot *self, struct slot *dead, struct lock *l);

/* False: we are recovering it already, further up the stack. */
LOCK_NO_ANALYSIS static bool recovery_begin(struct slot *self, struct slot *dead)
{
	while (!lock_try(&dead->recovery, &self->locker, LOCK_RECOVERY)) {
		uint32_t word = load_relaxed(&dead->recovery.word); /* only compared */
		struct slot *other = slot_by_id(self->seg, word & ~LOCK_WAITERS);

		if (lock_held_by(&dead->recovery, &self->locker))
			return false;
		if (other && slot_is_dead(other))
			slot_recover_for(self, other, &dead->recovery);
		else if (word)
			futex_wait(&dead->recovery.word, word, RECOVERY_WAIT_NS);
	}
	return true;
}

LOCK_NO_ANALYSIS static void recovery_end(struct slot *self, struct slot *dead)
{
	lock_release(&dead->recovery, &self->locker, LOCK_RECOVERY);
}

/* The slot whose recovery is what `dead` held as its i-th lock, or NULL. */
static struct slot *recovered_by(struct segment *seg, struct slot *dead, uint32_t i)
{
	struct lock *l = load_relaxed(&dead->locker.held_lock[i]); /* its owner is dead */
	uint64_t at = (uintptr_t)l - (uintptr_t)seg->hdr - seg->hdr->slots_at;
	struct slot *s;

	if (!l || at % PAGE_BYTES != offsetof(struct slot, recovery))
		return NULL;
	s = at / PAGE_BYTES < UINT32_MAX ? slot_by_id(seg, (uint32_t)(at / PAGE_BYTES) + 1) : NULL;
	return s && lock_held_by(&s->recovery, &dead->locker) ? s : NULL;
}

/* ---- the allocator -------------------------------------------------------------------------- */

LOCK_NO_ANALYSIS static void recover_grow(struct slot *self, struct slot *dead)
{
	struct alloc_state *a = slot_local(self)->alloc;
	uint64_t sum = 0;
	uint32_t c;

	if (!lock_held_by(&a->grow, &dead->locker))
		return;
	lock_adopt(&a->grow, &dead->locker, &self->locker, LOCK_LEAF);
	for (c = 0; c < load_relaxed(&a->chunks_made); c++) /* [G] */
		sum += load_relaxed(&slot_local(self)->infos[c].committed); /* [G] */
	store_relaxed(&a->committed, sum); /* [G] */
	a->first_partial = 0;
	lock_release(&a->grow, &self->locker, LOCK_LEAF);
}

/* Also when the dead one did not have the lock: a page may have been on its way without it. */
LOCK_NO_ANALYSIS static void recover_pages(struct slot *self, struct slot *dead)
{
	struct seg_local *sl = slot_local(self);
	bool torn = lock_held_by(&sl->alloc->lock, &dead->locker);

	lock_adopt(&sl->alloc->lock, &dead->locker, &self->locker, LOCK_LEAF);
	if (torn)
		buddy_rebuild_locked(sl);
	stock_recover_locked(sl, dead);
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
}

/*
 * What `dead` was moving goes back, and what those were moving whom it was recovering, one by another: it may have had the lock
 * from one of them.
 */
static void undo_moves(struct slot *self, struct slot *dead, enum cache_id id, unsigned depth)
{
	struct seg_local *sl = slot_local(self);
	uint32_t i;

	for (i = 0; depth && i <= LOCK_HELD_MAX; i++) {
		struct slot *s = recovered_by(self->seg, dead, i);

		if (!s || !slot_is_dead(s))
			continue;
		slab_move_forget_locked(sl, id, dead, s);
		undo_moves(self, s, id, depth - 1);
	}
	slab_move_undo_locked(sl, id, dead);
}

LOCK_NO_ANALYSIS static void recover_class(struct slot *self, struct slot *dead, enum cache_id id)
{
	struct seg_local *sl = slot_local(self);
	struct lock *l = &sl->alloc->classes[id].lock;

	if (!lock_held_by(l, &dead->locker))
		return;
	lock_adopt(l, &dead->locker, &self->locker, LOCK_LEAF);
	kill_point();
	undo_moves(self, dead, id, LOCK_HELD_MAX);
	slab_rebuild_locked(sl, id);
	lock_release(l, &self->locker, LOCK_LEAF);
}

static void recover_allocator(struct slot *self, struct slot *dead)
{
	unsigned id;

	for (id = 0; id < CACHE_IDS; id++)
		recover_class(self, dead, (enum cache_id)id);
	recover_pages(self, dead);
	recover_grow(self, dead);
}

/* ---- the slot --------------------------------------------------------------------------------- */

static void recover_intent(struct slot *self, struct slot *dead, bool late)
{
	uint32_t op = load_acquire(&dead->intent.op); /* pairs with intent_begin, through the death */
	intent_recover_fn *fn = op < INTENT_OPS ? load_relaxed(&intent_table[op]) : NULL;

	if (op == INTENT_NONE || (!late && op < INTENT_OPS && intent_late >> op & 1))
		return;
	if (fn)
		fn(self, &dead->intent);
	else
		segment_poison(self->seg, "a dead thread's intent is of an unknown kind");
	intent_end(dead);
}

static void recover_held(struct slot *self, struct slot *dead);

/*
 * `dead` died while it recovered others.  Locks that it had adopted from them go back, or they would be given away
 * with what they protect half repaired; then those others are recovered again.
 */
LOCK_NO_ANALYSIS static void recover_recovered(struct slot *self, struct slot *dead)
{
	uint32_t i;

	for (i = 0; i <= LOCK_HELD_MAX; i++) {
		struct slot *s = recovered_by(self->seg, dead, i);

		if (!s)
			continue;
		lock_hand_back(&dead->locker, &s->locker);
		lock_adopt(&s->recovery, &dead->locker, &self->locker, LOCK_RECOVERY);
		if (slot_is_dead(s))
			recover_held(self, s);
		recovery_end(self, s);
	}
}

/* `dead` is dead and we hold its recovery. */
static void recover_held(struct slot *self, struct slot *dead)
{
	recover_allocator(self, dead);
	hand_settle(dead);
	count_settle(self, dead);
	recover_intent(self, dead, false);
	recover_recovered(self, dead);
	lock_release_dead(&dead->locker);
}

/*
 * `dead` did things that this process knows nothing of.  What it does know is repaired, and the lock that it waits for
 * (one of the layers that both have, so no business of an intent that only the dead one had) changes hands.
 */
static void recover_known(struct slot *self, struct slot *dead, struct lock *l)
{
	uint32_t op = load_acquire(&dead->intent.op); /* as in recover_intent */

	recover_allocator(self, dead);
	hand_settle(dead);
	count_settle(self, dead);
	if (op < INTENT_OPS && intent_known >> op & 1)
		recover_intent(self, dead, false);
	lock_release_one(&dead->locker, l);
}

static void slot_recover_for(struct slot *self, struct slot *dead, struct lock *l)
{
	if (!recovery_begin(self, dead))
		return;
	/* Somebody may have been faster, and the slot may have a new owner. */
	if (slot_is_dead(dead) && slot_layers_known(dead))
		recover_held(self, dead);
	else if (slot_is_dead(dead))
		recover_known(self, dead, l);
	recovery_end(self, dead);
}

static void takeover_rest(struct slot *self, struct slot *dead)
{
	recover_intent(self, dead, true);
	slot_gone_run(self, dead);
	magazine_takeover(self, dead);
	stock_takeover(self, dead);
	store_release(&dead->move.frame, 0); /* its class's lock is free: whatever it names is in other hands, or lost */
	store_release(&dead->epoch, 0); /* pairs with the reclaimer's scan */
	store_release(&dead->state, SLOT_IDLE); /* pairs with slot_claim_try */
}

static bool takeover_dead(struct slot *self, struct slot *dead)
{
	bool done;

	if (dead == self || !slot_layers_known(dead) || !recovery_begin(self, dead))
		return false;
	done = slot_is_dead(dead);
	if (done) {
		recover_held(self, dead);
		takeover_rest(self, dead);
	}
	recovery_end(self, dead);
	return done;
}

bool slot_takeover(struct slot *self, uint32_t id)
{
	struct slot *dead = slot_by_id(self->seg, id);
	uint32_t by = dead ? slot_unsettled_claimer(self->seg, dead) : 0;

	if (by)
		slot_takeover(self, by);
	if (dead)
		slot_unclaim_dead(self->seg, dead); /* bags that an earlier owner left in it are to be seen again */
	return dead && slot_is_dead(dead) && takeover_dead(self, dead);
}

unsigned slot_reap(struct slot *self)
{
	unsigned freed = 0;
	uint32_t id = 0;

	while (slot_each(self->seg, &id))
		freed += slot_takeover(self, id);
	return freed;
}

void slot_reap_process(struct slot *self, uint32_t pid)
{
	uint32_t id, n = slot_limit(self->seg);

	for (id = 1; id <= n; id++)
		if (load_relaxed(&slot_by_id(self->seg, id)->pid) == pid) /* a hint: slot_takeover() asks again */
			slot_takeover(self, id);
}

unsigned slot_reap_quick(struct slot *self)
{
	uint32_t id, n = slot_limit(self->seg);
	unsigned freed = 0;

	for (id = 1; id <= n; id++) {
		struct slot *s = slot_by_id(self->seg, id);

		if (slot_state_of(s) == SLOT_LIVE &&
		    !slot_number_in_use(load_relaxed(&s->pid), load_relaxed(&s->tid), /* ordered by the state */
					load_relaxed(&s->start_time)))
			freed += slot_takeover(self, id);
	}
	return freed;
}

/* ---- what the locks ask ----------------------------------------------------------------------- */

static struct slot *locker_slot(struct locker *l)
{
	return container_of(l, struct slot, locker);
}

static bool hook_owner_dead(struct locker *self, uint32_t id)
{
	struct slot *s = slot_by_id(locker_slot(self)->seg, id);

	return s && slot_is_dead(s);
}

/* Called in the middle of lock_acquire(l): the note it made of `l` must survive the locks taken here. */
static void hook_recover(struct locker *self, uint32_t id, struct lock *l)
{
	struct slot *me = locker_slot(self);
	struct slot *dead = slot_by_id(me->seg, id);
	uint32_t n = load_relaxed(&self->n_held); /* [o] */
	uint8_t cls = self->held_class[n];

	if (dead)
		slot_recover_for(me, dead, l);
	self->held_class[n] = cls;
	store_relaxed(&self->held_lock[n], l); /* [o] */
}

const struct lock_hooks slot_lock_hooks = {hook_owner_dead, hook_recover};

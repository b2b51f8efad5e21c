/* SPDX-License-Identifier: MIT */
/*
 * advance.c - moving the global epoch on.
 *
 * Data: epoch_root.global, .blocked.  Protection: atomics; any thread may try at
 * any time, several at once.  Progress: lock-free; a try fails while a reader
 * is inside a section that it entered in an older epoch.
 *
 *	reader			retirer				advancer
 *	r = global		unlink x			e = global
 *	slot = r		fence				membarrier
 *	(fence)			mark = global			every slot is 0 or e?
 *	p = link		...				global: e -> e + 1
 *	use *p			global >= mark + 2: free x
 *	slot = 0
 *
 * Why mark + 2 is enough.  Suppose the reader got x and is still inside.  Two advances
 * came after the mark was read: A1 from mark, and A2 from mark + 1.  A2 began by
 * reading mark + 1, which A1 wrote, so A2 began after the mark was read;
 * A1 may have begun long before and proves nothing, hence one advance is not enough.
 *
 * (A) The reader's store waits in its store buffer while it loads the link, so the
 *	scan reads 0.  The reader loaded the link before x was unlinked, that is (race C)
 *	before the mark was read, that is before A2's membarrier began.
 *	That membarrier makes the reader's CPU pass a full fence, after its load and
 *	hence after its store: A2's scan sees the store.  With need_fence the reader's
 *	own fence, the retirer's and A2's do the same (store buffering with fences on both sides).
 * (B) The reader took r long ago and stores it late.  If A2's scan misses
 *	the store, then by A the reader loads the link after the unlinking and does not get x.
 *	If A2's scan sees it, r <= mark, as the load of r precedes the load of the
 *	link; r is not mark + 1, so A2 fails.  A late store only holds others back.
 * (C) The unlinking waits in the retirer's store buffer while it reads the mark.  Then a
 *	reader could still get x after A2's scan.  So the retirer fences between the
 *	two: once for a whole bag, when the bag is sealed.
 * (D) The reader exits and enters again between two looks of the scan: the
 *	scan reads some later value of the slot.  The reader's uses of x are behind the release
 *	store of its exit, and its next entry is a release too, so the acquire load of the scan orders
 *	them before the CAS on global, and the free behind it.
 * (E) A thread claims a slot beyond the limit that the scan used.  The limit is read
 *	after membarrier; it is raised by an atomic read-modify-write before the first entry, which
 *	therefore is behind the fence: case B, store missed.
 * (F) Nobody at all inside: by A and B a scan that finds each slot at 0 proves
 *	for all objects sealed before its membarrier that no reader has them.
 *	They are freed at once, without waiting for an epoch.  A section of
 *	the retirer's own counts as somebody.
 *
 * (G) No other slot is claimed: nobody has to pass a fence but the retirer, who does, and the system call is
 *	saved.  Who claims a slot fences behind that and before its first section (slot_occupy); if our look at the
 *	slot's state came first, its loads come behind our fence, hence behind the unlinking.
 *
 * (H) A thread passes: outside of sections it reads the global epoch, fences, and stores what it read in
 *	slot.passed.  If A2, leaving e = mark + 1, finds e there, that thread has not got x: the sections before the
 *	pass are over (the store is a release, A2's load an acquire: as race D), and those behind it load the link behind the
 *	reading of e, which A1 wrote after the mark was read, so behind the unlinking (the retirer's fence of C
 *	and the pass's are the two fences of the case).  That holds whatever slot.epoch says, and needs
 *	no fence of any later entry.  It says nothing of objects marked e: who has passed counts as somebody (race F).
 *	Who claims a slot clears it before SLOT_LIVE; if our look at the state came before that, the new owner is in race G.
 * (I) A thread sleeps: its slot.asleep is ASLEEP, and then its entries fence as with need_fence, the first one of
 *	them waking it: store slot.epoch, exchange asleep for 0, fence.  An advancer that fences,
 *	finds ASLEEP and then slot.epoch 0 or e is in case A with need_fence: should a later section have
 *	entered unfenced, the exchange was after our look at asleep, hence its fence behind ours.
 *	ASLEEP may be stored only when no entry that read 0 is in a store buffer any more: who wants it stores its own
 *	ASLEEP_SOON, then calls membarrier, then turns what it still finds of its own into ASLEEP.  Who enters in between
 *	takes that away.  A death in between leaves a mark that the next one who wants it replaces, or, with the dead one's
 *	number, finds and turns into ASLEEP: that one has called membarrier behind it as well.  A slot that changes hands
 *	keeps the mark, and its next owner's first entry wakes.
 *
 * The models of this: model/epoch.pml, model/epoch_pass.pml, model/epoch_relacy.cpp and model/epoch_pass_relacy.cpp.
 */
#include "base/clock.h"
#include "epoch/epoch_priv.h"

/* epoch_root.blocked: milliseconds << 24 | low bits of the epoch that cannot be left. */
#define BLOCKED_EPOCH_BITS 24
#define BLOCKED_EPOCH(e) ((e) & ((UINT64_C(1) << BLOCKED_EPOCH_BITS) - 1))
#define NS_PER_MS 1000000

/* Behind a full fence: who claims it later does not count. */
static bool nobodys(struct slot *s)
{
	uint32_t state = load_acquire(&s->state); /* pairs with the release of IDLE, and slot_occupy: race G */

	return state == SLOT_IDLE || state == SLOT_NONE;
}

/* Behind a full fence: is ours the only slot that anybody has? */
static bool alone(struct slot *self)
{
	uint32_t id = 0;
	struct slot *s;

	while ((s = slot_each(self->seg, &id)))
		if (s != self && !nobodys(s))
			return false;
	return true;
}

/* Who is in no section is to fence from the next one on: race I.  A slot whose claimer died, too.  Before the membarrier, */
static void sleep_begin(struct slot *self)
{
	uint32_t id = 0;
	struct slot *s;

	while ((s = slot_each(self->seg, &id))) {
		uint32_t asleep = load_relaxed(&s->asleep); /* the CAS decides */

		if (s != self && asleep != ASLEEP && !load_relaxed(&s->epoch) && !nobodys(s)) /* hints */
			cas_acq_rel(&s->asleep, &asleep, ASLEEP_SOON(slot_id(self)));
	}
}

/* and behind it. */
static void sleep_end(struct slot *self)
{
	uint32_t id = 0;
	struct slot *s;

	while ((s = slot_each(self->seg, &id))) {
		uint32_t soon = ASLEEP_SOON(slot_id(self));

		if (load_relaxed(&s->asleep) == soon) /* the CAS decides */
			cas_acq_rel(&s->asleep, &soon, ASLEEP);
	}
}

static bool interrupt_all(struct slot *self)
{
	sleep_begin(self);
	if (!epoch_membarrier())
		return false;
	sleep_end(self);
	return true;
}

bool epoch_fence_all(struct slot *self)
{
	struct epoch_root *root = epoch_root_of(self);
	uint32_t fence = load_acquire(&root->need_fence); /* pairs with epoch_use_fence */

	fence_full(); /* pairs with the fence in epoch_enter: race A; and with slot_occupy's: race G */
	if (alone(self) || (fence != EPOCH_FENCE_DONE && self->seg->membarrier && interrupt_all(self))) {
		/* Entries that did not see SET have drained now; later ones see it and fence. */
		if (fence == EPOCH_FENCE_SET)
			cas_acq_rel(&root->need_fence, &fence, (uint32_t)EPOCH_FENCE_DONE);
		return true;
	}
	return fence == EPOCH_FENCE_DONE;
}

/* Everybody's slot against epoch e; *blocker is the first one in an older epoch. */
static enum epoch_scan epoch_scan(struct slot *self, uint64_t e, uint32_t *blocker)
{
	enum epoch_scan result = EPOCH_NOBODY;
	uint32_t id = 0;
	struct slot *slot;

	/* The limit is read behind the fence: race E. */
	while ((slot = slot_each(self->seg, &id))) {
		uint64_t word = load_acquire(&slot->epoch); /* pairs with epoch_exit: race D */

		if (!word)
			continue;
		result = EPOCH_BUSY;
		if (word >> 1 != e) {
			*blocker = id;
			return EPOCH_BLOCKED;
		}
	}
	return result;
}

/* For how long advancing from e has failed; notes the beginning.  Racing notes differ by nothing that matters. */
static int64_t epoch_blocked_for(struct epoch_root *root, uint64_t e)
{
	uint64_t now = (uint64_t)(clock_now_monotonic() / NS_PER_MS);
	uint64_t noted = load_relaxed(&root->blocked); /* a value on its own */

	if (!noted || BLOCKED_EPOCH(noted) != BLOCKED_EPOCH(e)) {
		store_relaxed(&root->blocked, now << BLOCKED_EPOCH_BITS | BLOCKED_EPOCH(e));
		return 0;
	}
	return (int64_t)(now - (noted >> BLOCKED_EPOCH_BITS)) * NS_PER_MS;
}

/* A dead reader's slot is taken over, by a thread that is in the middle of nothing. */
static void epoch_blocked(struct slot *self, uint64_t e, uint32_t blocker)
{
	if (epoch_blocked_for(epoch_root_of(self), e) < EPOCH_STALL_NS)
		return;
	if (epoch_unbound(self) && !slot_alive(self->seg, blocker))
		slot_takeover(self, blocker);
}

/* Nobody is in the way.  release: the exits that were seen; pairs with the loads of global before freeing. */
static void epoch_leave(struct epoch_root *root, uint64_t e)
{
	if (cas_acq_rel(&root->global, &e, e + 1))
		add_relaxed(&root->advances, 1u); /* statistics */
}

enum epoch_scan epoch_advance_try(struct slot *self)
{
	struct epoch_root *root = epoch_root_of(self);
	uint64_t e = load_acquire(&root->global); /* pairs with epoch_leave: A2 begins behind A1 */
	enum epoch_scan result;
	uint32_t blocker = 0;

	if (!epoch_fence_all(self))
		return EPOCH_BLOCKED;
	result = epoch_scan(self, e, &blocker);
	if (result == EPOCH_BLOCKED) {
		epoch_blocked(self, e, blocker);
		return result;
	}
	epoch_leave(root, e);
	return result;
}

/* Is `s` in the way of leaving e, as far as can be told without interrupting it?  Behind a full fence. */
static enum epoch_scan passed(struct slot *s, uint64_t e, bool all_fence)
{
	uint64_t word;

	if (nobodys(s)) /* first: race G */
		return EPOCH_NOBODY;
	if (load_acquire(&s->passed) == e) /* pairs with epoch_pass: race H */
		return EPOCH_BUSY;
	if (!all_fence && load_acquire(&s->asleep) != ASLEEP) /* before slot.epoch: race I */
		return EPOCH_BLOCKED;
	word = load_acquire(&s->epoch); /* pairs with epoch_exit: race D */
	if (!word)
		return EPOCH_NOBODY;
	return word >> 1 == e ? EPOCH_BUSY : EPOCH_BLOCKED;
}

static enum epoch_scan passed_all(struct slot *self, uint64_t e, bool all_fence)
{
	enum epoch_scan one, result = EPOCH_NOBODY;
	uint32_t id = 0;
	struct slot *s;

	while ((s = slot_each(self->seg, &id))) { /* the limit is read behind the fence: race E */
		one = s == self ? EPOCH_NOBODY : passed(s, e, all_fence);
		if (one == EPOCH_BLOCKED)
			return one;
		if (one == EPOCH_BUSY)
			result = one;
	}
	return result;
}

enum epoch_scan epoch_pass(struct slot *self)
{
	struct epoch_root *root = epoch_root_of(self);
	bool all_fence = load_acquire(&root->need_fence) == EPOCH_FENCE_DONE; /* pairs with epoch_use_fence */
	uint64_t e = load_acquire(&root->global); /* pairs with epoch_leave: A2 begins behind A1 */
	enum epoch_scan result;

	shelf_assert(!epoch_inside(self));
	fence_full(); /* of the pass: race H; and of the advance: races A, G, I */
	store_release(&self->passed, e); /* reads of the sections before it; pairs with passed() */
	result = passed_all(self, e, all_fence);
	if (result != EPOCH_BLOCKED)
		epoch_leave(root, e);
	return result;
}

bool epoch_stalled(struct segment *seg, uint32_t *slot_id, int64_t *age_ns)
{
	struct epoch_root *root = seg->hdr->epoch;
	uint64_t e = load_acquire(&root->global); /* pairs with epoch_advance_try */
	uint64_t noted = load_relaxed(&root->blocked); /* a value on its own */
	struct slot *slot;
	uint32_t id = 0;

	if (!noted || BLOCKED_EPOCH(noted) != BLOCKED_EPOCH(e))
		return false;
	*age_ns = clock_now_monotonic() - (int64_t)(noted >> BLOCKED_EPOCH_BITS) * NS_PER_MS;
	if (*age_ns < EPOCH_STALL_NS)
		return false;
	while ((slot = slot_each(seg, &id))) {
		uint64_t word = load_relaxed(&slot->epoch); /* only named, not relied on */

		if (word && word >> 1 != e) {
			*slot_id = id;
			return true;
		}
	}
	return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * epoch.c - retiring, and the reclaiming that retirers do.
 *
 * A retire is a push onto the own open bag.  Every EPOCH_PASS of them (more where there are many slots to look at)
 * the thread passes, the bag is sealed, an advance that interrupts nobody is tried, and what is ripe is freed:
 * then a thread has few objects on the way, and its caches hold them.  That try fails while anybody awake is not
 * retiring as well.  If the epoch has not moved for a batch, the next try interrupts every processor
 * (membarrier: 20 us and more where that is virtual) and puts those to sleep who are in no section: they do not hinder it again.
 */
#include "base/clock.h"
#include "base/syscall.h"
#include "epoch/epoch_priv.h"
#include "epoch/radix.h"
#include "segment/count.h"
#include "segment/hand.h"

#include <time.h>

#define SWEEP_EVERY 64u /* advances between two looks at the bags of departed threads */
#define BATCH_MAX 4096u
#define PASS_PER_SLOT 8u
#define SLEEP_FIRST_NS 20000L
#define SLEEP_MAX_NS 1000000L

static void free_mem(struct slot *self, struct retired *r)
{
	mem_free(self, r, r->aux);
}

static void free_pages(struct slot *self, struct retired *r)
{
	page_free(self, r, r->aux);
}

void epoch_register_types(void)
{
	retire_register(RETIRE_NODE, radix_free_node);
	retire_register(RETIRE_MEM, free_mem);
	retire_register(RETIRE_PAGES, free_pages);
}

/* The epoch as this thread saw it last.  The open bag has no mark of its own; its room is for this. */
static uint64_t epoch_look(struct slot *self)
{
	/* pairs with the CAS of epoch_advance_try */
	return self->bags[BAG_OPEN].epoch = load_acquire(&epoch_root_of(self)->global);
}

/* One try to advance, which interrupts others only if it must, then free what that made ripe. */
static uint64_t epoch_step(struct slot *self)
{
	enum epoch_scan result = EPOCH_BLOCKED;
	bool nobody;
	uint64_t now;

	bags_seal(self, self);
	/* A hand-over to fences that has been left in the middle is finished first; relaxed: looked at again. */
	if (!epoch_inside(self) && load_relaxed(&epoch_root_of(self)->need_fence) != EPOCH_FENCE_SET)
		result = epoch_pass(self);
	if (result == EPOCH_BLOCKED)
		result = epoch_advance_try(self);
	nobody = result == EPOCH_NOBODY;
	now = epoch_look(self);
	return bags_free(self, self, nobody ? EPOCH_QUIET : now); /* race F: all was sealed before */
}

static void epoch_sleep(int64_t ns)
{
	struct timespec ts = {0, ns};

	sys_call3(SYS_nanosleep, (long)&ts, 0, 0);
}

static bool epoch_crowded(struct epoch_root *root)
{
	return load_relaxed(&root->waiting) > EPOCH_WAITING_HIGH; /* a rough limit */
}

/* If too much waits: slow down, but not where others would wait for us. */
static void epoch_pressure(struct slot *self)
{
	struct epoch_root *root = epoch_root_of(self);
	int64_t slept = 0, nap = SLEEP_FIRST_NS;

	if (epoch_inside(self) || load_relaxed(&self->locker.n_held)) /* own field */
		return;
	while (epoch_crowded(root) && slept < EPOCH_PRESSURE_NS) {
		epoch_sleep(nap);
		slept += nap;
		nap = min_of(2 * nap, SLEEP_MAX_NS);
		epoch_step(self);
	}
}

/* The whole batch waits for somebody. */
static void epoch_stuck(struct slot *self)
{
	self->owes = !epoch_unbound(self);
	epoch_pressure(self);
}

void epoch_catch_up_slow(struct slot *self)
{
	if (!epoch_unbound(self) || self->reclaiming)
		return;
	self->owes = 0;
	epoch_step(self);
	epoch_pressure(self);
}

/* Seals, and tries to advance as far as what was retired since the last advance is worth.  *stuck: to no avail. */
static enum epoch_scan epoch_try(struct slot *self, bool *stuck)
{
	uint64_t last = self->bags[BAG_OPEN].epoch;
	enum epoch_scan result;

	bags_seal(self, self);
	result = epoch_pass(self);
	if (result == EPOCH_BLOCKED && load_relaxed(&epoch_root_of(self)->global) == last && /* a hint */
	    self->retired_unmoved >= self->batch) {
		self->retired_unmoved = 0;
		result = epoch_advance_try(self);
		*stuck = result == EPOCH_BLOCKED;
	}
	return result;
}

/* True: the whole batch waits. */
static bool epoch_step_of_batch(struct slot *self)
{
	uint64_t last = self->bags[BAG_OPEN].epoch;
	bool stuck = false, nobody = epoch_try(self, &stuck) == EPOCH_NOBODY;
	uint64_t now = epoch_look(self);

	if (now != last)
		self->retired_unmoved = 0;
	bags_free(self, self, nobody ? EPOCH_QUIET : now); /* race F: all was sealed before */
	return stuck;
}

static void epoch_batch(struct slot *self)
{
	struct epoch_root *root = epoch_root_of(self);
	uint32_t limit = slot_limit(self->seg);
	uint64_t left;
	bool stuck;

	self->batch = max_of(slot_batch(self->seg), min_of(limit, BATCH_MAX));
	self->pass = min_of(max_of(EPOCH_PASS, limit * PASS_PER_SLOT), self->batch);
	if (self->reclaiming || self->retired_since < self->pass)
		return;
	self->retired_unmoved += self->retired_since;
	self->retired_since = 0;
	stuck = epoch_step_of_batch(self);
	if (load_relaxed(&root->advances) % SWEEP_EVERY == 0) /* about so often */
		bags_sweep(self, &left);
	if (unlikely(stuck))
		epoch_stuck(self);
}

/* The rest of an entry, behind its store: what the advancer does not do for us.  Race I in advance.c. */
void epoch_enter_fenced(struct slot *self)
{
	if (load_relaxed(&self->asleep)) /* the exchange decides */
		xchg_acq_rel(&self->asleep, 0u); /* a full fence as well, but not by its name */
	fence_full(); /* pairs with the fences in epoch_fence_all and epoch_pass */
}

/* The outermost section ends, and a retire inside it made a batch due. */
void epoch_exit_work(struct slot *self)
{
	self->nest = 0;
	store_release(&self->epoch, 0); /* as in epoch_exit */
	epoch_batch(self);
}

static inline_always void retire_count(struct slot *self)
{
	if (likely(++self->retired_since < self->pass))
		return;
	if (epoch_inside(self))
		self->nest |= EPOCH_WORK;
	else
		epoch_batch(self);
}

void epoch_retire(struct slot *self, struct retired *r, enum retire_type type, uint32_t aux)
{
	r->type = type;
	r->aux = aux;
	bag_put(&self->bags[BAG_OPEN], r);
	retire_count(self);
}

void epoch_retire_step(struct slot *self, struct retired *r, enum retire_type type, uint32_t aux, atomic_u32 *step,
		       uint32_t value)
{
	r->type = type;
	r->aux = aux;
	bag_put(&self->bags[BAG_OPEN], r);
	tracked_store(step, value); /* read after our death */
	retire_count(self);
}

int retire_note(struct slot *owner, struct retired *r, enum retire_type type, uint32_t aux)
{
	r->type = type;
	r->aux = aux;
	return ledger_add(owner, r, LEDGER_RETIRED);
}

int retire_begin(struct slot *self, const volatile void *where, uint64_t word, uint32_t given, struct retired *r,
		 enum retire_type type, uint32_t aux)
{
	r->type = type;
	r->aux = aux;
	return hand_begin_got(self, where, word, given, r, LEDGER_RETIRED);
}

void epoch_retire_swapped(struct slot *self, struct retired *r, int k, uint64_t entry, atomic_i64 *count)
{
	bag_put(&self->bags[BAG_OPEN], r);
	if (count)
		count_down(count, k);
	if (likely(k >= 0))
		store_release(&self->ledger[k], entry); /* read after our death */
	if (count)
		count_done(count);
	retire_count(self);
}

bool epoch_retired_last(struct slot *gone, const struct retired *r)
{
	return gone->bags[BAG_OPEN].head == r;
}

/* Off the ledger while it is the first of its bag: that is how bags_put_noted() knows. */
void epoch_retire_noted(struct slot *self, struct retired *r, int k)
{
	bag_put(&self->bags[BAG_OPEN], r);
	hand_forget(self, k);
	retire_count(self);
}

/* Three tries: one to finish the advance under way, two for what was sealed just now. */
static uint64_t epoch_reclaim_all(struct slot *self, uint64_t *left)
{
	uint64_t freed = 0, swept;
	unsigned i;

	self->retired_since = 0;
	swept = bags_sweep(self, left); /* seals what departed threads left open */
	for (i = 0; i < 3; i++)
		freed += epoch_step(self);
	if (*left)
		freed += bags_sweep(self, left);
	*left += bags_count(self);
	return freed + swept;
}

uint64_t epoch_reclaim(struct slot *self)
{
	uint64_t left;

	return self->reclaiming ? 0 : epoch_reclaim_all(self, &left);
}

int epoch_barrier(struct slot *self, int64_t timeout_ns)
{
	int64_t until = clock_now_monotonic() + timeout_ns;
	int64_t nap = SLEEP_FIRST_NS;
	uint64_t left;

	shelf_assert(!epoch_inside(self) && !self->reclaiming);
	for (;;) {
		epoch_reclaim_all(self, &left);
		if (!left)
			return 0;
		if (clock_now_monotonic() >= until)
			return -ETIMEDOUT;
		epoch_sleep(nap);
		nap = min_of(2 * nap, SLEEP_MAX_NS);
	}
}

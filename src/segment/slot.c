/* SPDX-License-Identifier: MIT */
/*
 * slot.c - a thread's slot: found, claimed, given back.
 *
 * Data: slot.state and who's who in each slot, alloc_state.slots_made.
 * Protection: state by CAS: IDLE -> CLAIMING|tid -> LIVE -> IDLE.  A claimer that dies leaves its tid in
 * the state, so the next one can undo it.  A dead LIVE slot is takeover.c's business.
 * Fast path: two thread-local loads.  Progress: claiming is lock-free, except
 * when all slots are taken: then one claimer at a time, under flock, clears away the dead.
 * Look at it: slot_each(), state, pid, tid.
 * Limits: a thread's list of segments has room for SLOT_LIST; beyond it finding the slot is a scan.  A slot whose
 * claimer died while claiming is out of use for as long as another thread has that one's number.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "base/syscall.h"
#include "segment/count.h"
#include "segment/hand.h"
#include "segment/segment_priv.h"

#define SLOT_LIST 8u

__thread struct slot_tls slot_tls __attribute__((tls_model("initial-exec")));
static __thread struct slot_tls slot_list[SLOT_LIST] __attribute__((tls_model("initial-exec")));

static pthread_key_t slot_key; /* [1] its destructor gives the thread's slots back */

/* ---- numbers and addresses -------------------------------------------------------------- */

static struct slot *slot_at(struct segment *seg, uint32_t id)
{
	return (struct slot *)((char *)seg->hdr + seg->hdr->slots_at + (uint64_t)(id - 1) * PAGE_BYTES);
}

struct slot *slot_by_id(struct segment *seg, uint32_t id)
{
	if (id == 0 || (id > slot_limit(seg) && id <= seg->hdr->max_slots) ||
	    id > seg->hdr->max_slots + SEG_SLOTS_SPARE)
		return NULL;
	return slot_at(seg, id);
}

uint32_t slot_limit(const struct segment *seg)
{
	return load_acquire(&seg_local(seg)->alloc->slots_made); /* pairs with slot_extend */
}

/* slot_each() comes by it. */
static bool slot_known(struct segment *seg, uint32_t id)
{
	uint32_t max = seg->hdr->max_slots;

	return id <= max ? id <= slot_limit(seg) : id <= max + load_acquire(&seg_local(seg)->alloc->spares_made); /* pairs as below */
}

struct slot *slot_each(struct segment *seg, uint32_t *id)
{
	uint32_t max = seg->hdr->max_slots;

	++*id;
	if (*id > slot_limit(seg) && *id <= max)
		*id = max + 1;
	if (*id > max + load_acquire(&seg_local(seg)->alloc->spares_made)) /* pairs with slot_claim_crowded */
		return NULL;
	return slot_at(seg, *id);
}

static bool slot_holder_alive(struct slot *s)
{
	/* A slot that is being claimed counts as alive: nobody depends on it yet. */
	if (slot_state_of(s) == SLOT_IDLE || slot_state_of(s) == SLOT_NONE)
		return false;
	return slot_state_of(s) == SLOT_CLAIMING ||
	       slot_thread_exists(load_relaxed(&s->pid), load_relaxed(&s->tid), /* ordered by the state */
				  load_relaxed(&s->start_time));
}

bool slot_alive(struct segment *seg, uint32_t id)
{
	struct slot *s = slot_by_id(seg, id);

	return s && slot_holder_alive(s);
}

/*
 * The next id, up to `last`, whose page in the file holds something; 0: none, or the file cannot be looked at.  A page that
 * nobody ever wrote is not touched: that would give it memory.
 */
static uint32_t slot_next_written(struct segment *seg, int fd, uint32_t id, uint32_t last)
{
	long base = (long)seg->hdr->slots_at, at;

	if (id >= last)
		return 0;
	at = sys_call3(SYS_lseek, fd, base + (long)id * (long)PAGE_BYTES, SEEK_DATA);
	return at >= 0 && at < base + (long)last * (long)PAGE_BYTES ? (uint32_t)((at - base) / (long)PAGE_BYTES) + 1 : 0;
}

static void slot_look_hidden(struct slot *self, uint32_t id, struct slots_hidden *out)
{
	struct segment *seg = self->seg;
	struct slot *s = slot_at(seg, id);

	/* The state first: whoever claimed the slot had seen that it is there. */
	if (s == self || slot_state_of(s) == SLOT_NONE || slot_known(seg, id))
		return;
	out->alive |= slot_state_of(s) == SLOT_CLAIMING ? slot_tid_exists(load_relaxed(&s->state) >> 8) : slot_holder_alive(s); /* a look */
	if (id <= seg->hdr->max_slots)
		out->last = max_of(out->last, id);
	else
		out->spare = true;
}

void slots_look_hidden(struct slot *self, struct slots_hidden *out)
{
	struct segment *seg = self->seg;
	uint32_t id = slot_limit(seg), last = seg->hdr->max_slots + SEG_SLOTS_SPARE;
	int fd = segment_open_file(seg);

	*out = (struct slots_hidden){.last = 0};
	while (fd >= 0 && (id = slot_next_written(seg, fd, id, last)))
		slot_look_hidden(self, id, out);
	if (fd >= 0)
		sys_call3(SYS_close, fd, 0, 0);
	if (!slot_known(seg, slot_id(self)))
		out->last = max_of(out->last, slot_id(self)); /* never a spare one: they are given back at once */
}

void slots_make_known(struct segment *seg, const struct slots_hidden *hidden)
{
	struct alloc_state *a = seg_local(seg)->alloc;
	uint32_t made = load_relaxed(&a->slots_made); /* the CAS decides */

	while (made < hidden->last && !cas_acq_rel(&a->slots_made, &made, hidden->last)) /* release, both: pairs with slot_each */
		;
	if (hidden->spare)
		store_release(&a->spares_made, SEG_SLOTS_SPARE);
}

/*
 * ---- a reader's process may write its own slot, and nothing else --------------------------------
 * Its threads change protections one at a time.
 */
static void slot_reader_lock(struct segment *seg)
{
	if (seg->read_only)
		local_lock();
}

static void slot_reader_unlock(struct segment *seg)
{
	if (seg->read_only)
		local_unlock();
}

static void slot_protect(struct segment *seg, void *page, int prot)
{
	if (seg->read_only)
		sys_call3(SYS_mprotect, (long)page, PAGE_BYTES, prot);
}

/* ---- claiming --------------------------------------------------------------------------- */

static bool slot_bags_full(const struct slot *s)
{
	unsigned k;

	for (k = 0; k < ARRAY_SIZE(s->bags); k++)
		if (s->bags[k].head)
			return true;
	return false;
}

uint32_t slot_unsettled_claimer(struct segment *seg, struct slot *s)
{
	uint32_t state = load_acquire(&s->state), id = 0; /* pairs with slot_hold_idle */
	struct slot *by;

	if ((state & 0xff) != SLOT_CLAIMING)
		return 0;
	while ((by = slot_each(seg, &id)))
		if (slot_state_of(by) == SLOT_LIVE && load_relaxed(&by->tid) == state >> 8) /* ordered by the state */
			return id;
	return 0;
}

static bool slot_claim_try(struct segment *seg, struct slot *s)
{
	uint32_t state = load_relaxed(&s->state); /* the CAS decides */
	uint32_t mine = SLOT_CLAIMING | slot_gettid() << 8;
	bool ok;

	if ((state & 0xff) == SLOT_CLAIMING) {
		/* What a sweeper has in its own ledger of this slot's bags must be settled before they change again. */
		if (slot_tid_exists(state >> 8) || slot_unsettled_claimer(seg, s))
			return false;
	} else if (state != SLOT_IDLE && state != SLOT_NONE) {
		return false;
	}
	slot_protect(seg, s, PROT_READ | PROT_WRITE);
	ok = cas_acq_rel(&s->state, &state, mine); /* acquire: pairs with the release of IDLE */
	if (ok && slot_bags_full(s) && !slot_layers_known(s)) {
		store_release(&s->state, SLOT_IDLE); /* they hold what this process could not free; pairs with the CAS */
		ok = false;
	}
	if (!ok)
		slot_protect(seg, s, PROT_READ);
	return ok;
}

/* A claimer, or a sweeper of bags, died with the slot claimed: it is idle again.  False: nobody did. */
bool slot_unclaim_dead(struct segment *seg, struct slot *s)
{
	if (slot_state_of(s) != SLOT_CLAIMING || !slot_claim_try(seg, s))
		return false;
	grow_slot_claimed(s);
	store_release(&s->state, SLOT_IDLE); /* pairs with the next claim's CAS */
	return true;
}

/* One more slot with memory.  False: the limit is reached, or memory is. */
static bool slot_extend(struct segment *seg, uint32_t made)
{
	struct seg_local *sl = seg_local(seg);
	struct slot *s = slot_at(seg, made + 1);

	if (made >= seg->hdr->max_slots)
		return false;
	slot_protect(seg, s, PROT_READ | PROT_WRITE);
	if (commit_range(sl, (uint64_t)((char *)s - (char *)seg->hdr), PAGE_BYTES)) {
		slot_protect(seg, s, PROT_READ);
		return false;
	}
	slot_protect(seg, s, PROT_READ);
	slot_protect(seg, seg->hdr, PROT_READ | PROT_WRITE);
	cas_acq_rel(&sl->alloc->slots_made, &made, made + 1); /* release: the page is there; pairs with slot_limit */
	slot_protect(seg, seg->hdr, PROT_READ);
	return true;
}

static struct slot *slot_claim_any(struct segment *seg)
{
	uint32_t id, made;

	do {
		made = slot_limit(seg);
		for (id = 1; id <= made; id++)
			if (slot_claim_try(seg, slot_at(seg, id)))
				return slot_at(seg, id);
	} while (slot_extend(seg, made));
	return NULL;
}

static struct slot *slot_claim_idle(struct segment *seg)
{
	struct slot *s;

	for (;;) {
		gate_wait(seg);
		slot_reader_lock(seg);
		s = slot_claim_any(seg);
		if (s && unlikely(gate_shut(seg)))
			store_release(&s->state, SLOT_IDLE); /* as we found it, or as its dead claimer did */
		else
			break;
		slot_protect(seg, s, PROT_READ);
		slot_reader_unlock(seg);
	}
	slot_reader_unlock(seg);
	return s;
}

void slot_forget(struct slot *s)
{
	unsigned k;

	store_relaxed(&s->intent.op, 0); /* the caller's, all of this */
	store_relaxed(&s->hand.where, 0);
	store_relaxed(&s->busy, 0);
	store_relaxed(&s->move.frame, 0);
	store_relaxed(&s->page_count, 0);
	store_relaxed(&s->reserved, 0);
	store_relaxed(&s->passed, 0);
	count_set(&s->inodes, count_read(&s->inodes)); /* without a mark */
	count_set(&s->files, count_read(&s->files));
	s->nest = 0;
	s->reclaiming = 0;
	s->owes = 0;
	s->freeing = NULL;
	for (k = 0; k < SLOT_LEDGER; k++)
		store_relaxed(&s->ledger[k], 0);
	for (k = 0; k < CACHE_IDS; k++) {
		store_relaxed(&s->mag[k].count, 0);
		store_relaxed(&s->mag[k].more_count, 0);
		s->mag[k].more = NULL;
	}
}

/* A claimed slot becomes the calling thread's.  But for its bags nothing is in it, whatever it says. */
static void slot_occupy(struct segment *seg, struct slot *s)
{
	uint32_t id = (uint32_t)(((uintptr_t)s - (uintptr_t)seg->hdr - seg->hdr->slots_at) / PAGE_BYTES) + 1;

	store_relaxed(&s->pid, slot_getpid()); /* published by the state */
	store_relaxed(&s->tid, slot_gettid());
	store_relaxed(&s->start_time, slot_start_time());
	s->seg = seg;
	slot_forget(s);
	grow_slot_claimed(s);
	if (!slot_bags_full(s) || slot_layers_known(s))
		slot_note_layers(s);
	locker_init(&s->locker, id, &slot_lock_hooks);
	store_release(&s->state, SLOT_LIVE); /* pairs with slot_state_of */
	fence_full(); /* before the first section: whoever saw the slot free looks at nothing of it (epoch/advance.c, race G) */
}

/* ---- a crowd ---------------------------------------------------------------------------------- */

/* A spare slot that no dead claimer left behind; claimed, since somebody may be sweeping its bags. */
static struct slot *slot_spare(struct segment *seg)
{
	uint32_t k;

	for (k = 1; k <= SEG_SLOTS_SPARE; k++)
		if (slot_claim_try(seg, slot_at(seg, seg->hdr->max_slots + k)))
			return slot_at(seg, seg->hdr->max_slots + k);
	return NULL;
}

/* Under flock.  Dead claimers' spare slots are cleared away as well. */
static void slot_reap_as(struct slot *spare)
{
	uint32_t k, max = spare->seg->hdr->max_slots;

	slot_reap(spare);
	for (k = 1; k <= SEG_SLOTS_SPARE; k++)
		slot_takeover(spare, max + k);
	magazines_flush(spare);
	stock_drain(spare, 0);
	store_release(&spare->state, SLOT_IDLE); /* pairs with slot_claim_try */
}

/*
 * All slots are taken.  Clearing away the dead needs a slot, so there are a few more than max_slots,
 * for whoever holds the file's flock, which the kernel drops when its holder dies.
 */
static struct slot *slot_claim_crowded(struct segment *seg)
{
	struct seg_local *sl = seg_local(seg);
	uint64_t spares = (uint64_t)((char *)slot_at(seg, seg->hdr->max_slots + 1) - (char *)seg->hdr);
	struct slot *spare, *got = NULL;
	int fd = seg->read_only ? -1 : commit_open(sl);

	if (fd < 0)
		return NULL;
	if (sys_call3(SYS_flock, fd, LOCK_EX, 0) == 0 && commit_range(sl, spares, SEG_SLOTS_SPARE * PAGE_BYTES) == 0) {
		store_release(&sl->alloc->spares_made, SEG_SLOTS_SPARE); /* they have memory; pairs with slot_each */
		spare = slot_spare(seg);
		if (spare) {
			slot_occupy(seg, spare);
			if (unlikely(gate_shut(seg)))
				store_release(&spare->state, SLOT_IDLE); /* pairs with slot_claim_try */
			else
				slot_reap_as(spare);
		}
		got = slot_claim_idle(seg);
	}
	sys_call3(SYS_close, fd, 0, 0);
	return got;
}

/* ---- this thread's list ------------------------------------------------------------------- */

static struct slot *slot_list_find(struct segment *seg)
{
	unsigned k;

	for (k = 0; k < SLOT_LIST; k++)
		if (slot_list[k].seg == seg)
			return slot_list[k].slot;
	return NULL;
}

/* More segments than the list holds: look for ourselves. */
static struct slot *slot_scan_own(struct segment *seg)
{
	uint32_t id, n = slot_limit(seg), tid = slot_gettid(), pid = slot_getpid();

	for (id = 1; id <= n; id++) {
		struct slot *s = slot_at(seg, id);

		if (slot_state_of(s) == SLOT_LIVE && load_relaxed(&s->tid) == tid && /* ordered by the state */
		    load_relaxed(&s->pid) == pid && load_relaxed(&s->start_time) == slot_start_time())
			return s;
	}
	return NULL;
}

/* False: no room. */
static bool slot_list_add(struct segment *seg, struct slot *s)
{
	unsigned k;

	for (k = 0; k < SLOT_LIST; k++) {
		if (slot_list[k].seg && seg_local(slot_list[k].seg)->attached)
			continue;
		slot_list[k].seg = seg;
		slot_list[k].slot = s;
		return true;
	}
	return false;
}

static bool slot_list_full(void)
{
	unsigned k;

	for (k = 0; k < SLOT_LIST; k++)
		if (!slot_list[k].seg || !seg_local(slot_list[k].seg)->attached)
			return false;
	return true;
}

struct slot *slot_self_slow(struct segment *seg)
{
	struct slot *s = slot_list_find(seg);

	if (!s && slot_list_full())
		s = slot_scan_own(seg);
	if (!s) {
		s = slot_claim_idle(seg);
		if (!s)
			s = slot_claim_crowded(seg);
		if (!s)
			return NULL;
		slot_occupy(seg, s);
		slot_list_add(seg, s);
		pthread_setspecific(slot_key, slot_list);
	}
	slot_tls.seg = seg;
	slot_tls.slot = s;
	return s;
}

struct slot *slot_self(struct segment *seg)
{
	return slot_self_fast(seg);
}

/* ---- giving back -------------------------------------------------------------------------- */

static void slot_list_forget(struct slot *s)
{
	unsigned k;

	for (k = 0; k < SLOT_LIST; k++)
		if (slot_list[k].slot == s)
			slot_list[k] = (struct slot_tls){NULL, NULL};
	if (slot_tls.slot == s)
		slot_tls = (struct slot_tls){NULL, NULL};
}

/* What is left is of a call that was left by a jump, or handed on: the slot's next owner must not owe it. */
static void ledger_clear(struct slot *self)
{
	unsigned k;

	store_release(&self->hand.where, 0); /* read after the next owner's death, as all */
	for (k = 0; k < SLOT_LEDGER; k++)
		store_release(&self->ledger[k], 0);
}

void slot_release(struct slot *self)
{
	struct segment *seg = self->seg;

	if (!seg->read_only && !seg->hands_off && !segment_poisoned(seg)) {
		hand_settle(self); /* a call that was left by a jump */
		count_settle(self, self);
		slot_gone_run(self, self);
		magazines_flush(self);
		store_relaxed(&self->reserved, 0); /* [o] */
		stock_drain(self, 0);
	}
	ledger_clear(self);
	slot_list_forget(self);
	slot_reader_lock(seg);
	store_release(&self->epoch, 0); /* pairs with the reclaimer's scan */
	store_release(&self->state, SLOT_IDLE); /* all that is left in the slot; pairs with slot_claim_try */
	slot_protect(seg, self, PROT_READ);
	slot_reader_unlock(seg);
}

static void slot_thread_exit(void *list)
{
	unsigned k;

	(void)list;
	for (k = 0; k < SLOT_LIST; k++)
		if (slot_list[k].seg && seg_local(slot_list[k].seg)->attached)
			slot_release(slot_list[k].slot);
}

/* The slots of this process's other threads too: nobody uses the segment any more. */
void slots_detach(struct segment *seg)
{
	uint32_t id, n = slot_limit(seg), pid = slot_getpid();

	for (id = 1; id <= n; id++) {
		struct slot *s = slot_at(seg, id);

		if (slot_state_of(s) == SLOT_LIVE && load_relaxed(&s->pid) == pid && /* ordered by the state */
		    load_relaxed(&s->start_time) == slot_start_time())
			slot_release(s);
	}
}

/* At attach: a slot with our pid and start time was our image's before exec, which nobody is any more. */
void slots_disown(struct segment *seg)
{
	uint32_t id, n = slot_limit(seg), pid = slot_getpid();

	for (id = 1; id <= n; id++) {
		struct slot *s = slot_at(seg, id);

		if (slot_state_of(s) == SLOT_LIVE && load_relaxed(&s->pid) == pid && /* ordered by the state */
		    load_relaxed(&s->start_time) == slot_start_time())
			store_release(&s->start_time, 0); /* pairs with slot_number_in_use's readers */
	}
}

void slot_tls_disown(void)
{
	unsigned k;

	for (k = 0; k < SLOT_LIST; k++)
		if (slot_list[k].slot)
			store_release(&slot_list[k].slot->start_time, 0); /* as slots_disown */
	slot_tls = (struct slot_tls){NULL, NULL};
	for (k = 0; k < SLOT_LIST; k++)
		slot_list[k] = (struct slot_tls){NULL, NULL};
}

void slot_after_fork(void)
{
	unsigned k;

	slot_tls = (struct slot_tls){NULL, NULL};
	for (k = 0; k < SLOT_LIST; k++)
		slot_list[k] = (struct slot_tls){NULL, NULL};
	identity_after_fork();
	local_after_fork();
}

static void slot_setup_once(void)
{
	pthread_key_create(&slot_key, slot_thread_exit);
	pthread_atfork(NULL, NULL, slot_after_fork);
}

/* Once in a process, at its first attach. */
void slots_setup(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, slot_setup_once);
}

/* SPDX-License-Identifier: MIT */
/* judge.c - the allocator and the slots, looked at without trust: judge.h. */
#include "segment/judge.h"
#include "segment/segment_priv.h"

const char *segment_bounds(const struct segment *seg)
{
	const struct seg_local *sl = seg_local(seg);
	struct alloc_state *a = sl->alloc;
	uint32_t chunks = load_acquire(&a->chunks_made), infos = load_acquire(&a->infos_made), c; /* pair with grow_pick, grow_need_info */

	if (load_acquire(&a->slots_made) > seg->hdr->max_slots) /* pairs with slot_extend */
		return "more slots than there are";
	if (load_acquire(&a->spares_made) > SEG_SLOTS_SPARE) /* pairs with slot_claim_crowded */
		return "more spare slots than there are";
	if (chunks > seg->hdr->chunk_count || chunks > infos || infos > ALIGN_UP(seg->hdr->chunk_count, INFOS_A_PAGE))
		return "more memory than there is";
	for (c = 0; c < chunks; c++)
		if (load_acquire(&sl->infos[c].committed) > SEG_CHUNK_PAGES) /* pairs with grow_publish */
			return "a chunk has more memory than a chunk";
	return NULL;
}

/* True: mend it now. */
static bool judge_fault(struct judge *j, bool mends, const char *what, uint64_t number)
{
	j->fault(j->ctx, mends, what, number);
	return mends && j->repair;
}

static bool id_is_dead(struct slot *self, uint32_t id)
{
	struct slot *s = slot_by_id(self->seg, id);

	return s && s != self && slot_state_of(s) == SLOT_LIVE && !slot_alive(self->seg, id);
}

/* Nobody else is there, so it is free, or a dead thread's, whose recovery frees it.  False: neither. */
bool judge_lock(struct judge *j, struct lock *l, uint64_t number)
{
	uint32_t word = load_relaxed(&l->word); /* nobody else is there, here and below */

	if (!word || id_is_dead(j->self, word & ~LOCK_WAITERS))
		return true;
	if (judge_fault(j, true, "a lock is nobody's", number))
		store_relaxed(&l->word, 0);
	return false;
}

/* ---- the allocator --------------------------------------------------------------------------- */

static void lists_rebuild(struct slot *self)
{
	struct seg_local *sl = slot_local(self);
	uint64_t sum = 0;
	uint32_t c;
	unsigned id;

	for (c = 0; c < load_relaxed(&sl->alloc->chunks_made); c++) /* nobody else is there */
		sum += load_relaxed(&sl->infos[c].committed);
	store_relaxed(&sl->alloc->committed, sum);
	sl->alloc->first_partial = 0;
	lock_acquire(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	buddy_rebuild_locked(sl);
	lock_release(&sl->alloc->lock, &self->locker, LOCK_LEAF);
	for (id = 0; id < CACHE_IDS; id++) {
		lock_acquire(&sl->alloc->classes[id].lock, &self->locker, LOCK_LEAF);
		slab_rebuild_locked(sl, (enum cache_id)id);
		lock_release(&sl->alloc->classes[id].lock, &self->locker, LOCK_LEAF);
	}
}

/* Free of their dead holders, whose recovery would make the lists anew. */
static bool locks_free(struct judge *j)
{
	struct alloc_state *a = slot_local(j->self)->alloc;
	bool free;
	unsigned id;

	judge_lock(j, &a->grow, 0);
	judge_lock(j, &a->lock, 0);
	free = !load_relaxed(&a->grow.word) && !load_relaxed(&a->lock.word); /* nobody else is there, here and below */
	for (id = 0; id < CACHE_IDS; id++) {
		judge_lock(j, &a->classes[id].lock, id);
		free &= !load_relaxed(&a->classes[id].lock.word);
	}
	return free;
}

int judge_allocator(struct judge *j)
{
	struct alloc_state *a = slot_local(j->self)->alloc;
	bool free = locks_free(j);
	struct segment_counts counts;

	segment_look(j->self, &counts);
	if (counts.errors) {
		judge_fault(j, false, counts.first_error, counts.error_at);
		return -EIO;
	}
	if (free && counts.list_errors && judge_fault(j, true, counts.first_list_error, counts.list_error_at))
		lists_rebuild(j->self);
	if (load_relaxed(&a->pressure) > 1 || load_relaxed(&a->need_fence) > 1) /* nobody else is there */
		if (judge_fault(j, true, "a flag of the allocator is none", load_relaxed(&a->pressure))) {
			store_relaxed(&a->pressure, 0);
			store_relaxed(&a->need_fence, 1); /* right, if slow */
		}
	return 0;
}

/* ---- what a thread keeps ------------------------------------------------------------------------ */

static bool stock_possible(struct judge *j, struct slot *s)
{
	struct seg_local *sl = slot_local(j->self);
	uint32_t k, n, count = load_relaxed(&s->page_count); /* the own slot, or nobody's: so in all that follows */

	if (count > SLOT_PAGES || load_relaxed(&s->reserved) > PAGE_RESERVE_MAX)
		return false;
	for (k = 0; k < count; k++) {
		if ((uintptr_t)s->pages[k] & PAGE_MASK || !frame_has(sl, s->pages[k]) ||
		    load_relaxed(&sl->frames[frame_index(sl, s->pages[k])].word) != frame_cached(s))
			return false;
		for (n = 0; n < k; n++)
			if (s->pages[n] == s->pages[k])
				return false;
	}
	return true;
}

static bool object_possible(struct judge *j, enum cache_id id, const void *obj)
{
	return obj && marks_room(&j->marks, obj) == slab_sizes[id] && marks_add(&j->marks, obj, slab_sizes[id]) == MARK_NEW;
}

static bool magazine_possible(struct judge *j, enum cache_id id, const struct magazine *m)
{
	uint32_t k, count = load_relaxed(&((struct magazine *)(uintptr_t)m)->count);
	const void *more;

	if (count > SLOT_OBJECTS)
		return false;
	for (k = 0; k < count; k++)
		if (!object_possible(j, id, m->obj[k]))
			return false;
	for (more = m->more; more; more = *object_link(more))
		if (!object_possible(j, id, more))
			return false;
	return true;
}

/*
 * No object twice, so the walk ends.  What the tail of the open one points to means nothing: the next seal stores it; and
 * only there is a tail kept.
 */
static bool bag_possible(struct judge *j, const struct bag *bag, bool open)
{
	const struct retired *r;

	for (r = bag->head; r; r = r->next) {
		if (!marks_around(&j->marks, r, sizeof(*r)))
			return false;
		if (open && r == bag->tail)
			return true;
	}
	return !open || !bag->head;
}

static void judge_bags(struct judge *j, struct slot *s, uint32_t id)
{
	unsigned k;

	for (k = 0; k < ARRAY_SIZE(s->bags); k++)
		if (!bag_possible(j, &s->bags[k], !k) && judge_fault(j, true, "what a thread was to free cannot be followed, slot", id))
			s->bags[k] = (struct bag){.head = NULL};
}

/* Nothing is under way in it. */
static bool keeps_no_work(struct slot *s)
{
	uint64_t any = load_relaxed(&s->intent.op) | load_relaxed(&s->hand.where) | load_relaxed(&s->busy);
	unsigned k;

	any |= load_relaxed(&s->move.frame) | s->reclaiming | (uintptr_t)s->freeing;
	for (k = 0; k < SLOT_LEDGER; k++)
		any |= load_relaxed(&s->ledger[k]);
	return !any;
}

/* Forgotten in any case: it would be given back when the check is over.  Whose it is finds who repairs. */
static void judge_own(struct judge *j)
{
	struct slot *self = j->self;
	bool possible = keeps_no_work(self) && stock_possible(j, self);
	unsigned id;

	for (id = 0; id < CACHE_IDS; id++)
		possible &= magazine_possible(j, (enum cache_id)id, &self->mag[id]);
	if (!possible) {
		judge_fault(j, true, "what a thread has is not marked so, slot", slot_id(self));
		slot_forget(self);
	}
	judge_bags(j, self, slot_id(self));
}

/* ---- slots ------------------------------------------------------------------------------------------ */

static bool keeps_nothing(struct slot *s)
{
	uint64_t any = load_relaxed(&s->epoch) | load_relaxed(&s->page_count) | load_relaxed(&s->recovery.word) |
		       load_relaxed(&s->steal.word);
	unsigned k;

	for (k = 0; k < CACHE_IDS; k++)
		any |= load_relaxed(&s->mag[k].count) | (uintptr_t)s->mag[k].more;
	return !any && keeps_no_work(s) && load_relaxed(&s->reserved) <= PAGE_RESERVE_MAX;
}

static void slot_clear(struct slot *s)
{
	unsigned k;

	slot_forget(s);
	store_relaxed(&s->recovery.word, 0); /* nobody's */
	store_relaxed(&s->steal.word, 0);
	store_relaxed(&s->epoch, 0);
	for (k = 0; k < ARRAY_SIZE(s->bags); k++)
		s->bags[k] = (struct bag){.head = NULL};
	store_release(&s->state, SLOT_IDLE); /* pairs with slot_claim_try */
}

/* Its private range of inode numbers (empty if it begins behind its end: inode_number()), and how many retired objects make a batch. */
static void judge_numbers(struct judge *j, struct slot *s, uint32_t id)
{
	uint64_t end = load_relaxed(&j->self->seg->hdr->next_ino); /* nobody else is there */

	if ((s->ino_next > end || s->ino_end > end) && judge_fault(j, true, "numbers of inodes that were not given out, slot", id))
		s->ino_next = s->ino_end = 0;
	if ((s->batch > SLOT_BATCH_ALL || s->pass > SLOT_BATCH_ALL) && judge_fault(j, true, "a batch that is none, slot", id))
		s->batch = s->pass = 0;
}

static void judge_idle(struct judge *j, struct slot *s, uint32_t id)
{
	if (!keeps_nothing(s) && judge_fault(j, true, "something is left in a slot that is nobody's, slot", id))
		slot_clear(s);
	judge_bags(j, s, id);
	judge_numbers(j, s, id);
}

/* Whoever frees memory waits for those that it knows of. */
static void judge_hidden(struct judge *j)
{
	struct slots_hidden hidden;
	struct slot *s;
	uint32_t id = 0;

	slots_look_hidden(j->self, &hidden);
	if ((!hidden.last && !hidden.spare) || !judge_fault(j, true, "fewer slots than are somebody's, last", hidden.last))
		return;
	slots_make_known(j->self->seg, &hidden);
	while ((s = slot_each(j->self->seg, &id)))
		slot_unclaim_dead(j->self->seg, s);
}

void judge_slots(struct judge *j)
{
	struct slot *s;
	uint32_t id = 0;

	judge_hidden(j);
	judge_own(j);
	while ((s = slot_each(j->self->seg, &id))) {
		enum slot_state state = slot_state_of(s);

		if (s == j->self || state == SLOT_CLAIMING)
			continue;
		if (state == SLOT_IDLE || state == SLOT_NONE)
			judge_idle(j, s, id);
		else if (state != SLOT_LIVE && judge_fault(j, true, "neither anybody's nor nobody's, slot", id))
			slot_clear(s);
		else if (load_relaxed(&s->steal.word) | load_relaxed(&s->recovery.word)) { /* nobody else is there */
			judge_lock(j, &s->steal, id);
			judge_lock(j, &s->recovery, id);
		}
	}
}

static bool bags_hold_something(const struct slot *s)
{
	return s->bags[0].head || s->bags[1].head || s->bags[2].head;
}

bool slots_unsettled(struct slot *self)
{
	struct slot *s;
	uint32_t id = 0;

	while ((s = slot_each(self->seg, &id))) {
		enum slot_state state = slot_state_of(s);

		if (bags_hold_something(s) || (s != self && state != SLOT_IDLE && state != SLOT_NONE))
			return true;
	}
	return false;
}

void slots_forget_dead(struct slot *self)
{
	struct slot *s;
	uint32_t id = 0;

	while ((s = slot_each(self->seg, &id)))
		if (s != self)
			slot_clear(s);
	for (id = 0; id < ARRAY_SIZE(self->bags); id++)
		self->bags[id] = (struct bag){.head = NULL};
}

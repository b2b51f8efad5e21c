/* SPDX-License-Identifier: MIT */
/*
 * flock_plan.c - how a request changes an owner's ranges: first decided in full,
 * then carried out, and carried out again when the first who tried has died.
 */
#include "vfs/flock_priv.h"

/* ---- deciding --------------------------------------------------------------------------- */

static void plan_add(struct lock_plan *p, const struct plan_piece *piece)
{
	p->piece[p->count++] = *piece;
	p->low = min_of(p->low, piece->start);
	p->high = max_of(p->high, piece->end);
}

static void plan_keep(struct lock_plan *p, const struct range *r, uint64_t start, uint64_t end)
{
	struct plan_piece piece = {start, end, r->start_time, r->pid, range_type(r)};

	plan_add(p, &piece);
}

/* One of the owner's ranges meets the request: it is swallowed, or its ends stay. */
static void plan_meet(struct lock_plan *p, const struct lock_request *rq, const struct range *r, struct plan_piece *mine)
{
	p->removed++;
	p->low = min_of(p->low, r->start);
	p->high = max_of(p->high, r->end);
	if (range_type(r) == rq->type) {
		mine->start = min_of(mine->start, r->start);
		mine->end = max_of(mine->end, r->end);
		return;
	}
	if (r->start < rq->start)
		plan_keep(p, r, r->start, rq->start - 1);
	if (r->end > rq->end)
		plan_keep(p, r, rq->end + 1, r->end);
}

/* Field by field: a struct literal would clear the pieces too. */
static void plan_start(struct lock_plan *p, const struct lock_request *rq)
{
	p->owner = rq->owner;
	p->kind = rq->kind;
	p->low = rq->start;
	p->high = rq->end;
	p->removed = 0;
	p->count = 0;
}

void plan_make_locked(struct flocks *fs, const struct lock_request *rq, struct lock_plan *p)
{
	struct plan_piece mine = {rq->start, rq->end, rq->start_time, rq->pid, rq->type};
	uint64_t from = rq->start ? rq->start - 1 : 0; /* a neighbour counts when it is of the same type */
	struct range *r = range_of_owner_locked(fs, kind_space(rq->kind), rq->owner, from);

	plan_start(p, rq);
	for (; r && r->start <= rq->end + 1; r = range_next_of_owner(r))
		if (range_type(r) == rq->type || ranges_overlap(r->start, r->end, rq->start, rq->end))
			plan_meet(p, rq, r, &mine);
	if (rq->type != F_UNLCK)
		plan_add(p, &mine);
}

/* ---- carrying out ---------------------------------------------------------------------------- */

static void plan_remove(struct flocks *fs, const struct lock_plan *p)
{
	struct range *r = range_of_owner_locked(fs, kind_space(p->kind), p->owner, p->low);

	while (r && r->start <= p->high) {
		struct range *next = range_next_of_owner(r);

		if (r->start >= p->low)
			range_remove_locked(fs, r);
		r = next;
	}
}

static void plan_insert(struct flocks *fs, const struct lock_plan *p)
{
	uint32_t i;

	for (i = 0; i < p->count; i++) {
		const struct plan_piece *piece = &p->piece[i];
		struct range *r = range_take_free_locked(fs);

		r->owner = p->owner;
		r->kind = p->kind;
		r->start = piece->start;
		r->end = piece->end;
		r->start_time = piece->start_time;
		r->pid = piece->pid;
		r->alive_ms = 0;
		tracked_store(&r->type, piece->type); /* release: held from here on, for whoever rebuilds */
		range_insert_locked(fs, r);
	}
}

static void plan_end(struct flocks *fs)
{
	unsigned i;

	for (i = 0; i < LOCK_SPACES; i++)
		store_relaxed(&fs->held[i], fs->count[i]); /* see flock_close_posix: never a count from in between */
	tracked_store(&fs->dirty, 0u); /* release: the changes are whole */
}

static void plan_run(struct flocks *fs)
{
	tracked_store(&fs->dirty, 1u); /* release: the plan is whole */
	fence_compiler(); /* no change before it */
	plan_remove(fs, &fs->plan);
	kill_point();
	plan_insert(fs, &fs->plan);
	plan_end(fs);
}

int flocks_change_locked(struct slot *self, struct flocks *fs, const struct lock_request *rq)
{
	uint32_t need;

	plan_make_locked(fs, rq, &fs->plan);
	if (rq->type == F_UNLCK && !fs->plan.removed)
		return 0;
	need = fs->plan.count > fs->plan.removed ? fs->plan.count - fs->plan.removed : 0;
	if (unlikely(fs->free_count < need)) {
		if (range_reserve_locked(self, fs, need))
			return -ENOLCK;
		plan_make_locked(fs, rq, &fs->plan); /* again: a death in between must not carry it out */
	}
	plan_run(fs);
	if (rq->type == F_UNLCK)
		range_trim_locked(self, fs);
	return 0;
}

/* ---- after a death --------------------------------------------------------------------------------- */

static void flocks_clear(struct flocks *fs)
{
	unsigned i;

	for (i = 0; i < LOCK_SPACES; i++) {
		fs->trees[i] = (struct lock_trees){{NULL}, {NULL}, {NULL}};
		fs->count[i] = 0;
	}
	fs->free = NULL;
	fs->free_count = 0;
}

static bool plan_covers(const struct lock_plan *p, const struct range *r)
{
	return r->owner == p->owner && r->kind == p->kind && r->start >= p->low && r->start <= p->high;
}

/* The list is the truth; what the plan covers is as the plan says. */
static void flocks_redo_locked(struct flocks *fs)
{
	struct range *r;

	flocks_clear(fs);
	for (r = fs->all; r; r = r->all) {
		if (range_type(r) != F_UNLCK && !plan_covers(&fs->plan, r)) {
			range_insert_locked(fs, r);
			continue;
		}
		store_release(&r->type, F_UNLCK); /* as in range_set_free */
		r->by_owner.parent = (struct rb_node *)fs->free;
		fs->free = r;
		fs->free_count++;
	}
	plan_insert(fs, &fs->plan);
	plan_end(fs);
}

LOCK_NO_ANALYSIS void flocks_lock(struct slot *self, struct flocks *fs)
{
	lock_acquire(&fs->lock, &self->locker, LOCK_FLOCKS);
	if (unlikely(load_acquire(&fs->dirty))) /* pairs with plan_run of the dead holder */
		flocks_redo_locked(fs);
}

/* The plan was carried out, or never will be. */
void flocks_rebuild_locked(struct flocks *fs)
{
	fs->plan = (struct lock_plan){.owner = NULL, .low = 1};
	flocks_redo_locked(fs);
}

LOCK_NO_ANALYSIS void flocks_unlock(struct slot *self, struct flocks *fs)
{
	lock_release(&fs->lock, &self->locker, LOCK_FLOCKS);
}

/* ---- checks --------------------------------------------------------------------------------------------- */

static bool owner_tree_sane(struct flocks *fs, enum lock_space space, uint32_t *count)
{
	struct rb_node *n;
	struct range *last = NULL;

	for (n = rb_first(&fs->trees[space].by_owner); n; n = rb_next(n)) {
		struct range *r = container_of(n, struct range, by_owner);

		++*count;
		if (r->start > r->end || range_type(r) == F_UNLCK)
			return false;
		if (last && last->owner == r->owner &&
		    (last->end >= r->start || (last->end + 1 == r->start && range_type(last) == range_type(r))))
			return false;
		last = r;
	}
	return true;
}

static bool start_tree_sane(struct rb_root *root, uint8_t type, uint32_t *count)
{
	struct rb_node *n;
	uint64_t last_end = 0;
	bool first = true;

	for (n = rb_first(root); n; n = rb_next(n)) {
		struct range *r = container_of(n, struct range, by_start);

		++*count;
		if (range_type(r) != type || r->key != r->start || r->max_end < r->end)
			return false;
		if (!first && type == F_WRLCK && r->start <= last_end)
			return false;
		first = false;
		last_end = r->end;
	}
	return true;
}

static bool list_sane(struct flocks *fs, uint32_t held)
{
	uint32_t live = 0, spare = 0;
	struct range *r;

	for (r = fs->all; r; r = r->all) {
		if (range_type(r) == F_UNLCK)
			spare++;
		else
			live++;
	}
	return live == held && spare == fs->free_count;
}

bool flocks_sane_locked(struct flocks *fs)
{
	uint32_t held = 0;
	unsigned i;

	for (i = 0; i < LOCK_SPACES; i++) {
		uint32_t by_owner = 0, by_start = 0;

		if (!owner_tree_sane(fs, (enum lock_space)i, &by_owner) ||
		    !start_tree_sane(&fs->trees[i].readers, F_RDLCK, &by_start) ||
		    !start_tree_sane(&fs->trees[i].writers, F_WRLCK, &by_start))
			return false;
		if (by_owner != by_start || by_owner != fs->count[i] || by_owner != load_relaxed(&fs->held[i]))
			return false;
		held += by_owner;
	}
	return list_sane(fs, held) && !load_relaxed(&fs->dirty);
}

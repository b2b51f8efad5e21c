/* SPDX-License-Identifier: MIT */
/* flock_range.c - the ranges of one inode and the trees they stand in.  See flock_priv.h. */
#include "segment/hand.h"
#include "vfs/flock_priv.h"

#define FREE_KEPT 32u

uint8_t range_type(const struct range *r)
{
	return load_relaxed(&((struct range *)(uintptr_t)r)->type); /* lock held */
}

static struct range *of_owner_node(const struct rb_node *n)
{
	return n ? container_of((struct rb_node *)(uintptr_t)n, struct range, by_owner) : NULL;
}

static struct range *of_start_node(const struct rb_node *n)
{
	return n ? container_of((struct rb_node *)(uintptr_t)n, struct range, by_start) : NULL;
}

static void range_update(struct rb_node *n)
{
	struct range *r = of_start_node(n);
	unsigned side;

	r->max_end = r->end;
	for (side = 0; side < 2; side++)
		if (n->child[side])
			r->max_end = max_of(r->max_end, of_start_node(n->child[side])->max_end);
}

/* ---- by owner --------------------------------------------------------------------------- */

static bool owner_key_before(const void *owner, uint64_t start, const struct range *r)
{
	return owner != r->owner ? (uintptr_t)owner < (uintptr_t)r->owner : start < r->start;
}

/* An owner's ranges are disjoint: in order of start is in order of end. */
struct range *range_of_owner_locked(struct flocks *fs, enum lock_space space, const void *owner, uint64_t from)
{
	struct rb_node *n = fs->trees[space].by_owner.top;
	struct range *best = NULL;

	while (n) {
		struct range *r = of_owner_node(n);
		bool reaches = r->owner == owner ? r->end >= from : (uintptr_t)r->owner > (uintptr_t)owner;

		fs->visits++;
		if (reaches)
			best = r;
		n = n->child[!reaches];
	}
	return best && best->owner == owner ? best : NULL;
}

struct range *range_next_of_owner(const struct range *r)
{
	struct range *next = of_owner_node(rb_next(&r->by_owner));

	return next && next->owner == r->owner ? next : NULL;
}

static void range_insert_by_owner(struct flocks *fs, struct rb_root *root, struct range *r)
{
	struct rb_node *parent = NULL, *n = root->top;
	unsigned side = 0;

	while (n) {
		fs->visits++;
		parent = n;
		side = !owner_key_before(r->owner, r->start, of_owner_node(n));
		n = n->child[side];
	}
	rb_insert(root, parent, side, &r->by_owner, NULL);
}

/* ---- by start ------------------------------------------------------------------------------ */

/* Writers never overlap, so their tree needs no summary. */
static rb_update_fn *range_summary(const struct range *r)
{
	return range_type(r) == F_WRLCK ? NULL : range_update;
}

static struct rb_root *range_root(struct flocks *fs, const struct range *r)
{
	struct lock_trees *t = &fs->trees[kind_space(r->kind)];

	return range_type(r) == F_WRLCK ? &t->writers : &t->readers;
}

static void range_insert_by_start(struct flocks *fs, struct rb_root *root, struct range *r)
{
	struct rb_node *parent = NULL, *n = root->top;
	unsigned side = 0;

	while (n) {
		fs->visits++;
		parent = n;
		side = r->start >= of_start_node(n)->key;
		n = n->child[side];
	}
	rb_insert(root, parent, side, &r->by_start, range_summary(r));
}

/* The range with the lowest start that overlaps [start, end]. */
static struct range *range_first_overlap(struct flocks *fs, struct rb_node *n, uint64_t start, uint64_t end)
{
	while (n) {
		struct range *r = of_start_node(n), *left = of_start_node(n->child[0]);

		fs->visits++;
		if (left && left->max_end >= start) {
			n = n->child[0]; /* whoever reaches `start` from there starts before all at the right */
			continue;
		}
		if (r->key > end)
			return NULL;
		if (r->end >= start)
			return r;
		n = n->child[1];
	}
	return NULL;
}

/* The next one behind r, in order of start. */
static struct range *range_next_overlap(struct flocks *fs, struct range *r, uint64_t start, uint64_t end)
{
	struct rb_node *n = &r->by_start;

	for (;;) {
		struct range *right = of_start_node(n->child[1]);
		struct range *found;

		fs->visits++;
		if (right && right->max_end >= start) {
			found = range_first_overlap(fs, &right->by_start, start, end);
			if (found)
				return found;
		}
		while (n->parent && n->parent->child[1] == n)
			n = n->parent;
		n = n->parent;
		found = of_start_node(n);
		if (!found || found->start > end)
			return NULL;
		if (found->end >= start)
			return found;
	}
}

/* Both skip the owner's own: those the request replaces anyway. */
static struct range *reader_of_another(struct flocks *fs, struct rb_root *root, const struct lock_request *rq)
{
	struct range *r = range_first_overlap(fs, root->top, rq->start, rq->end);

	while (r && r->owner == rq->owner)
		r = range_next_overlap(fs, r, rq->start, rq->end);
	return r;
}

/* Disjoint: in order of start is in order of end. */
static struct range *writer_of_another(struct flocks *fs, struct rb_root *root, const struct lock_request *rq)
{
	struct rb_node *n = root->top;
	struct range *r = NULL;

	while (n) {
		bool reaches = of_start_node(n)->max_end >= rq->start; /* a writer's is its end */

		fs->visits++;
		if (reaches)
			r = of_start_node(n);
		n = n->child[!reaches];
	}
	while (r && r->start <= rq->end && r->owner == rq->owner)
		r = of_start_node(rb_next(&r->by_start));
	return r && r->start <= rq->end ? r : NULL;
}

struct range *range_conflict_locked(struct flocks *fs, const struct lock_request *rq)
{
	struct lock_trees *t = &fs->trees[kind_space(rq->kind)];
	struct range *writer, *reader;

	if (rq->type == F_UNLCK)
		return NULL;
	writer = writer_of_another(fs, &t->writers, rq);
	reader = rq->type == F_WRLCK ? reader_of_another(fs, &t->readers, rq) : NULL;
	if (writer && reader)
		return writer->start < reader->start ? writer : reader;
	return writer ? writer : reader;
}

/* ---- both, and the stock of free ones -------------------------------------------------------- */

void range_insert_locked(struct flocks *fs, struct range *r)
{
	enum lock_space space = kind_space(r->kind);

	r->key = r->start;
	r->max_end = r->end;
	range_insert_by_owner(fs, &fs->trees[space].by_owner, r);
	range_insert_by_start(fs, range_root(fs, r), r);
	fs->count[space]++;
}

static void range_set_free(struct flocks *fs, struct range *r)
{
	store_release(&r->type, F_UNLCK); /* for whoever rebuilds after our death */
	r->by_owner.parent = (struct rb_node *)fs->free;
	fs->free = r;
	fs->free_count++;
}

void range_remove_locked(struct flocks *fs, struct range *r)
{
	enum lock_space space = kind_space(r->kind);

	rb_erase(&fs->trees[space].by_owner, &r->by_owner, NULL);
	rb_erase(range_root(fs, r), &r->by_start, range_summary(r));
	fs->count[space]--;
	range_set_free(fs, r);
}

struct range *range_take_free_locked(struct flocks *fs)
{
	struct range *r = fs->free;

	shelf_assert(r != NULL);
	fs->free = (struct range *)r->by_owner.parent;
	fs->free_count--;
	return r;
}

/* An empty plan makes a death in the middle a plain rebuild. */
static void plan_empty(struct flocks *fs)
{
	fs->plan.count = 0;
	fs->plan.low = 1; /* covers nothing */
	fs->plan.high = 0;
	tracked_store(&fs->dirty, 1u);
}

int range_reserve_locked(struct slot *self, struct flocks *fs, uint32_t n)
{
	int k, err = 0;

	if (fs->free_count >= n)
		return 0;
	plan_empty(fs);
	while (!err && fs->free_count < n) {
		struct range *r = mem_alloc_noted(self, sizeof(*r), &k);

		err = r ? 0 : -ENOLCK;
		if (err)
			break;
		store_relaxed(&r->type, F_UNLCK); /* published by the next stores, under the lock */
		r->all = fs->all;
		hand_begin(self, &fs->all, (uintptr_t)r, hand_bit(k), 0);
		fs->all = r;
		fence_compiler(); /* a death leaves it on the list or in the ledger */
		hand_end(self, hand_bit(k));
		range_set_free(fs, r);
	}
	tracked_store(&fs->dirty, 0u);
	return err;
}

void range_drop_all(struct slot *self, struct flocks *fs)
{
	while (fs->all)
		hand_free_from(self, (void **)&fs->all, fs->all->all, fs->all, sizeof(*fs->all));
}

/* Nothing is held: all but a few go back. */
void range_trim_locked(struct slot *self, struct flocks *fs)
{
	if (fs->free_count <= FREE_KEPT || fs->count[SPACE_POSIX] || fs->count[SPACE_BSD])
		return;
	plan_empty(fs);
	fs->free = NULL;
	fs->free_count = 0;
	range_drop_all(self, fs);
	tracked_store(&fs->dirty, 0u);
}

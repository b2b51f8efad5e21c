/* SPDX-License-Identifier: MIT */
/* inotify_check.c - every object that instances and watches have, for the check of a segment. */
#include "special/inotify_priv.h"

static bool check_queue_of(struct inotify_check *c, struct inotify *inst)
{
	struct watch_event *e = load_relaxed(&inst->head); /* locked, as all here */
	uint32_t n = 0;

	for (; e; e = load_relaxed(&e->next), n++)
		if (e != inst->overflow && !c->mark(c->ctx, e, sizeof(*e)))
			return false;
	return n == inst->count;
}

static bool check_instance(struct inotify_check *c, struct inotify *inst)
{
	return c->mark(c->ctx, inst, sizeof(*inst)) && c->mark(c->ctx, inst->overflow, sizeof(*inst->overflow)) &&
	       check_queue_of(c, inst);
}

static void check_watches(struct inotify_root *root, struct inotify_check *c)
{
	struct watch_table *t = root->table;

	c->damaged |= !c->mark(c->ctx, t, sizeof(*t));
	for (unsigned i = 0; !c->damaged && i < WATCH_BUCKETS; i++)
		for (struct watch *w = load_relaxed(&t->by_wd[i]); w && !c->damaged; w = load_relaxed(&w->by_wd))
			c->damaged = !c->mark(c->ctx, w, sizeof(*w)) || watch_by_key(root, w->inst, w->key) != w;
}

/* When all is marked: what is freed from here on is not nobody's. */
static void check_orphans(struct slot *self, struct inotify_root *root, struct inotify_check *c)
{
	struct inotify *inst, *next;

	for (inst = load_relaxed(&root->instances); inst; inst = next) {
		next = load_relaxed(&inst->next);
		if (c->known(c->ctx, inst->file))
			continue;
		c->orphans++;
		if (c->repair)
			inotify_end(self, root, inst);
	}
}

void inotify_settle(struct slot *self)
{
	if (segment_root(self->seg, SEG_ROOT_SPECIAL))
		inotify_unlock(self, inotify_lock(self));
}

void inotify_check_each(struct slot *self, struct inotify_check *c)
{
	struct inotify_root *root = inotify_lock(self);
	struct inotify *inst;

	c->damaged = !c->mark(c->ctx, root, sizeof(*root));
	for (inst = load_relaxed(&root->instances); inst && !c->damaged; inst = load_relaxed(&inst->next))
		c->damaged = !check_instance(c, inst);
	if (!c->damaged)
		check_watches(root, c);
	if (!c->damaged && c->alone)
		check_orphans(self, root, c);
	inotify_unlock(self, root);
}

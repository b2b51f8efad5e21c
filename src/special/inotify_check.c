/* SPDX-License-Identifier: MIT */
/*
 * inotify_check.c - every object that instances and watches have, for the check of a segment.
 *
 * Nothing is followed before it was marked.  Primary are the list of instances, their queues and the chains by wd; what is
 * derived from these (inotify_priv.h) is made anew where it is wrong.
 */
#include "base/hash.h"
#include "special/inotify_priv.h"

/* Relaxed in all of this file: locked, or nobody else is there. */

static bool event_marked(struct inotify_check *c, const struct watch_event *e)
{
	return c->room(c->ctx, e) >= sizeof(*e) && e->len <= NAME_LIMIT && c->mark(c->ctx, e, event_size(e));
}

static bool queue_followed(struct inotify_check *c, struct inotify *inst)
{
	struct watch_event *e = load_relaxed(&inst->head), *last = NULL;
	uint64_t bytes = 0;
	uint32_t n = 0, full = 0;

	for (; e; last = e, e = load_relaxed(&e->next), n++) {
		if (e == inst->overflow ? full++ : !event_marked(c, e))
			return false;
		bytes += event_bytes(e->len);
	}
	c->derived |= n != inst->count || bytes != inst->bytes || (last && last != inst->tail) ||
		      full != (inst->overflow->cookie != 0);
	return true;
}

static bool instance_followed(struct inotify_check *c, struct inotify *inst)
{
	return c->mark_instance(c->ctx, inst, sizeof(*inst)) && event_marked(c, inst->overflow) && queue_followed(c, inst) &&
	       memchr(inst->token, 0, sizeof(inst->token)) && load_relaxed(&inst->last_wd) <= INT32_MAX;
}

/* ---- watches ----------------------------------------------------------------------------------- */

static bool watch_followed(struct inotify_check *c, struct watch *w, unsigned bucket)
{
	if (!c->mark_watch(c->ctx, w, sizeof(*w)) || !c->known_instance(c->ctx, w->inst) || w->wd <= 0 ||
	    hash_u64(w->inst->id, (uint32_t)w->wd) % WATCH_BUCKETS != bucket)
		return false;
	if (!w->inode)
		return w->key & KEY_HOST;
	return c->watched(c->ctx, w->inode, WATCHED | load_relaxed(&w->mask)) && w->key == w->inode->ino;
}

/* How many; false: they cannot be followed. */
static bool by_wd_followed(struct inotify_check *c, struct watch_table *t, uint32_t *n)
{
	for (unsigned i = 0; i < WATCH_BUCKETS; i++)
		for (struct watch *w = load_relaxed(&t->by_wd[i]); w; w = load_relaxed(&w->by_wd), ++*n)
			if (!watch_followed(c, w, i))
				return false;
	return true;
}

/* The same watches, each in its chain: none twice, for then a chain would not end. */
static bool by_key_agrees(struct inotify_check *c, struct watch_table *t, uint32_t n)
{
	for (unsigned i = 0; i < WATCH_BUCKETS; i++)
		for (struct watch *w = load_relaxed(&t->by_key[i]); w; w = load_relaxed(&w->by_key))
			if (!n-- || !c->known_watch(c->ctx, w) || hash_u64(0, w->key) % WATCH_BUCKETS != i)
				return false;
	return !n;
}

static void check_watches(struct slot *self, struct inotify_root *root, struct inotify_check *c)
{
	struct watch_table *t = root->table;
	uint32_t n = 0;

	c->damaged |= !c->mark(c->ctx, t, sizeof(*t)) || !by_wd_followed(c, t, &n);
	if (!c->damaged)
		c->derived |= !by_key_agrees(c, t, n) || load_relaxed(&self->seg->hdr->watchers) != n;
}

/* ---- instances ---------------------------------------------------------------------------------- */

void inotify_check_orphans(struct slot *self, struct inotify_check *c)
{
	struct inotify_root *root = segment_root(self->seg, SEG_ROOT_SPECIAL);
	struct inotify *inst, *next;

	for (inst = load_relaxed(&root->instances); inst; inst = next) {
		next = load_relaxed(&inst->next);
		if (c->known_file(c->ctx, inst->file) && inotify_of(inst->file) == inst)
			continue;
		c->orphans++;
		if (c->repair)
			inotify_end(self, root, inst);
	}
}

static void check_locked(struct slot *self, struct inotify_root *root, struct inotify_check *c)
{
	struct inotify *inst = load_relaxed(&root->instances);

	for (; inst && instance_followed(c, inst); inst = load_relaxed(&inst->next))
		;
	c->damaged |= inst != NULL;
	if (!c->damaged)
		check_watches(self, root, c);
	c->derived |= c->alone && (load_relaxed(&root->dirty) || load_relaxed(&root->ended));
	if (c->damaged)
		return;
	if (c->derived && c->repair) {
		store_relaxed(&root->ended, 0);
		inotify_repair(self, root);
	}
}

bool inotify_check_file(bool (*known)(void *ctx, const void *inst), void *ctx, const struct fd_file *head)
{
	const struct file *f = container_of((struct fd_file *)(uintptr_t)head, struct file, head);

	return known(ctx, inotify_of(f)) && inotify_of(f)->file == f;
}

struct lock *inotify_check_lock(struct slot *self)
{
	struct inotify_root *root = segment_root(self->seg, SEG_ROOT_SPECIAL);

	return root ? &root->lock : NULL;
}

size_t inotify_root_bytes(void)
{
	return sizeof(struct inotify_root);
}

void inotify_settle(struct slot *self)
{
	if (segment_root(self->seg, SEG_ROOT_SPECIAL))
		inotify_unlock(self, inotify_lock(self));
}

bool inotify_unsettled(struct slot *self)
{
	struct inotify_root *root = segment_root(self->seg, SEG_ROOT_SPECIAL);

	return root && (load_relaxed(&root->dirty) || load_relaxed(&root->ended));
}

LOCK_NO_ANALYSIS void inotify_check_each(struct slot *self, struct inotify_check *c)
{
	struct inotify_root *root = c->alone ? segment_root(self->seg, SEG_ROOT_SPECIAL) : inotify_lock(self);

	check_locked(self, root, c);
	if (!c->alone)
		inotify_unlock(self, root);
}

/* SPDX-License-Identifier: MIT */
/*
 * inotify_watch.c - watches: found by their number and by what they watch; and what is repaired after a death.
 *
 * Data: struct inotify_root, the table, struct watch; inode.watches and the header's `watchers`, which others read
 * without the lock.  inotify_priv.h says what protects what.
 */
#include "base/hash.h"
#include "segment/hand.h"
#include "special/inotify_priv.h"

static atomic_ptr(struct watch) * wd_chain(struct inotify_root *root, const struct inotify *inst, int wd)
{
	return &root->table->by_wd[hash_u64(inst->id, (uint32_t)wd) % WATCH_BUCKETS];
}

static atomic_ptr(struct watch) * key_chain(struct inotify_root *root, uint64_t key)
{
	return &root->table->by_key[hash_u64(0, key) % WATCH_BUCKETS];
}

/* Relaxed in all of this file: under the lock. */

/* ---- the lock, and what its last holder left ------------------------------------------------------ */

static void table_rebuild(struct slot *self, struct inotify_root *root)
{
	struct watch_table *t = root->table;
	uint32_t n = 0;

	for (unsigned i = 0; i < WATCH_BUCKETS; i++)
		store_relaxed(&t->by_key[i], NULL);
	for (unsigned i = 0; i < WATCH_BUCKETS; i++)
		for (struct watch *w = load_relaxed(&t->by_wd[i]); w; w = load_relaxed(&w->by_wd), n++) {
			store_relaxed(&w->by_key, load_relaxed(key_chain(root, w->key)));
			store_relaxed(key_chain(root, w->key), w);
		}
	store_relaxed(&self->seg->hdr->watchers, n);
}

void inotify_repair(struct slot *self, struct inotify_root *root)
{
	struct inotify *inst;

	table_rebuild(self, root);
	for (inst = load_relaxed(&root->instances); inst; inst = load_relaxed(&inst->next))
		queue_recount(inst);
	tracked_store(&root->dirty, 0u);
}

/* Instances whose files are gone; whoever comes first ends them. */
static void end_instances(struct slot *self, struct inotify_root *root)
{
	struct inotify *inst, *next;

	for (inst = load_relaxed(&root->instances); inst; inst = next) {
		next = load_relaxed(&inst->next);
		if (load_acquire(&inst->ending)) /* pairs with inotify_release */
			inotify_end(self, root, inst);
	}
}

LOCK_NO_ANALYSIS struct inotify_root *inotify_lock(struct slot *self)
{
	struct inotify_root *root = segment_root(self->seg, SEG_ROOT_SPECIAL);
	uint32_t ended;

	lock_acquire(&root->lock, &self->locker, LOCK_WAITQ);
	if (unlikely(load_relaxed(&root->dirty)))
		inotify_repair(self, root);
	ended = load_acquire(&root->ended); /* pairs with inotify_release */
	while (unlikely(ended)) {
		end_instances(self, root);
		if (tracked_cas(&root->ended, &ended, 0u)) /* else there are more by now */
			break;
	}
	return root;
}

LOCK_NO_ANALYSIS void inotify_unlock(struct slot *self, struct inotify_root *root)
{
	lock_release(&root->lock, &self->locker, LOCK_WAITQ);
}

/* ---- finding ------------------------------------------------------------------------------------------ */

/* A hint, without the lock: too much at most. */
bool watch_wanted(const struct inode *inode, uint32_t mask)
{
	uint64_t has = inode ? load_relaxed(&((struct inode *)(uintptr_t)inode)->watches) : 0; /* as in notify_wanted() */

	return mask & IN_DELETE_SELF ? has != 0 : has & mask & IN_ALL_EVENTS;
}

struct watch *watch_by_wd(struct inotify_root *root, const struct inotify *inst, int wd)
{
	struct watch *w = load_relaxed(wd_chain(root, inst, wd));

	while (w && (w->inst != inst || w->wd != wd))
		w = load_relaxed(&w->by_wd);
	return w;
}

struct watch *watch_by_key(struct inotify_root *root, const struct inotify *inst, uint64_t key)
{
	struct watch *w = load_relaxed(key_chain(root, key));

	while (w && (w->inst != inst || w->key != key))
		w = load_relaxed(&w->by_key);
	return w;
}

/* ---- coming and going ----------------------------------------------------------------------------------- */

/* The kernel counts on, and begins anew at the end. */
static int wd_next(struct inotify_root *root, struct inotify *inst)
{
	uint32_t wd = load_relaxed(&inst->last_wd);

	do
		wd = wd == INT32_MAX ? 1 : wd + 1;
	while (watch_by_wd(root, inst, (int)wd));
	store_relaxed(&inst->last_wd, wd);
	return (int)wd;
}

static void inode_hint(struct inotify_root *root, struct inode *inode)
{
	uint64_t wants = 0;

	if (!inode)
		return;
	for (struct watch *w = load_relaxed(key_chain(root, inode->ino)); w; w = load_relaxed(&w->by_key))
		if (w->inode == inode)
			wants |= WATCHED | load_relaxed(&w->mask);
	tracked_store(&inode->watches, wants);
}

static void watchers_add(struct slot *self, uint32_t by)
{
	store_relaxed(&self->seg->hdr->watchers, load_relaxed(&self->seg->hdr->watchers) + by);
}

struct watch *watch_new(struct slot *self, struct inotify_root *root, struct inotify *inst, struct inode *inode, uint64_t key,
			uint32_t mask)
{
	int k;
	struct watch *w = mem_alloc_noted(self, sizeof(*w), &k);
	atomic_ptr(struct watch) * by_wd, *by_key = key_chain(root, key);

	if (!w)
		return NULL;
	*w = (struct watch){.inst = inst, .inode = inode, .key = key, .wd = wd_next(root, inst)};
	by_wd = wd_chain(root, inst, w->wd);
	store_relaxed(&w->mask, mask);
	store_relaxed(&w->by_wd, load_relaxed(by_wd));
	store_relaxed(&w->by_key, load_relaxed(by_key));
	tracked_store(&root->dirty, 1u);
	if (inode) /* first: see inotify_priv.h */
		tracked_store(&inode->watches, load_relaxed(&inode->watches) | WATCHED | mask);
	watchers_add(self, 1);
	hand_begin(self, by_wd, (uintptr_t)w, hand_bit(k), 0);
	tracked_store(by_wd, w); /* this one decides */
	hand_end(self, hand_bit(k));
	tracked_store(by_key, w);
	tracked_store(&root->dirty, 0u);
	return w;
}

/* It is the caller's from then on: its entry in the ledger. */
static int unlink_wd(struct slot *self, struct inotify_root *root, struct watch *w)
{
	atomic_ptr(struct watch) *at = wd_chain(root, w->inst, w->wd);
	int k = -1;

	while (load_relaxed(at) && load_relaxed(at) != w)
		at = &load_relaxed(at)->by_wd;
	if (load_relaxed(at)) {
		k = hand_begin_got(self, at, (uintptr_t)load_relaxed(&w->by_wd), 0, w, LEDGER_MEM);
		tracked_store(at, load_relaxed(&w->by_wd));
		hand_end(self, 0);
	}
	return k;
}

static void unlink_key(struct inotify_root *root, struct watch *w)
{
	atomic_ptr(struct watch) *at = key_chain(root, w->key);

	while (load_relaxed(at) && load_relaxed(at) != w)
		at = &load_relaxed(at)->by_key;
	if (load_relaxed(at))
		tracked_store(at, load_relaxed(&w->by_key));
}

/* Dirty. */
static void watch_unlink(struct slot *self, struct inotify_root *root, struct watch *w)
{
	int k = unlink_wd(self, root, w);

	unlink_key(root, w);
	inode_hint(root, w->inode);
	watchers_add(self, (uint32_t)-1);
	mem_free_noted(self, w, sizeof(*w), k);
}

void watch_remove(struct slot *self, struct inotify_root *root, struct watch *w)
{
	if (w->inode) /* the kernel says so of its own */
		queue_tell(self, root, w, IN_IGNORED, 0, NULL);
	tracked_store(&root->dirty, 1u);
	watch_unlink(self, root, w);
	tracked_store(&root->dirty, 0u);
}

/* ---- what happens to an inode ------------------------------------------------------------------------------ */

static bool watch_hears(struct watch *w, uint32_t mask)
{
	uint32_t wants = load_relaxed(&w->mask);

	return wants & mask & IN_ALL_EVENTS && !(wants & mask & IN_EXCL_UNLINK);
}

void watch_tell(struct slot *self, struct inotify_root *root, struct inode *inode, uint32_t mask, uint32_t cookie,
		const char *name)
{
	struct watch *w = load_relaxed(key_chain(root, inode->ino)), *next;

	for (; w; w = next) {
		next = load_relaxed(&w->by_key);
		if (w->inode != inode || !watch_hears(w, mask))
			continue;
		queue_tell(self, root, w, mask & (IN_ALL_EVENTS | IN_ISDIR), cookie, name);
		if (load_relaxed(&w->mask) & IN_ONESHOT)
			watch_remove(self, root, w);
	}
}

void watch_end_inode(struct slot *self, struct inotify_root *root, struct inode *inode)
{
	struct watch *w = load_relaxed(key_chain(root, inode->ino)), *next;

	for (; w; w = next) {
		next = load_relaxed(&w->by_key);
		if (w->inode == inode)
			watch_remove(self, root, w);
	}
	store_relaxed(&inode->watches, 0); /* also where a death had left it too high */
}

/* ---- the end of an instance ----------------------------------------------------------------------------------- */

static void end_watches(struct slot *self, struct inotify_root *root, struct inotify *inst)
{
	struct watch_table *t = root->table;
	struct watch *w, *next;

	for (unsigned i = 0; i < WATCH_BUCKETS; i++)
		for (w = load_relaxed(&t->by_wd[i]); w; w = next) {
			next = load_relaxed(&w->by_wd);
			if (w->inst == inst)
				watch_unlink(self, root, w);
		}
}

void inotify_end(struct slot *self, struct inotify_root *root, struct inotify *inst)
{
	atomic_ptr(struct inotify) *at = &root->instances;

	tracked_store(&root->dirty, 1u);
	end_watches(self, root, inst);
	queue_free(self, inst);
	while (load_relaxed(at) && load_relaxed(at) != inst)
		at = &load_relaxed(at)->next;
	if (inst->overflow)
		hand_free_from(self, (void **)&inst->overflow, NULL, inst->overflow, event_size(inst->overflow));
	if (load_relaxed(at)) /* the last: until then whoever comes next ends it */
		hand_free_from(self, (void **)(void *)at, load_relaxed(&inst->next), inst, sizeof(*inst));
	tracked_store(&root->dirty, 0u);
}

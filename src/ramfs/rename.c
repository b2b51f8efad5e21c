/* SPDX-License-Identifier: MIT */
/*
 * rename.c - rename, exchange, whiteout.
 *
 * Locks: rename_lock.c.  Order of checks: Linux's, including which error wins.
 * Shared writes: the directories and the inodes involved; rename_lock only where a directory
 * changes its parent, where a lock had to be waited for, or where others wait for it.
 * A looker finds an existing target's name at every moment: its dentry stays, and one store
 * changes what it stands for.
 */
#include <linux/fs.h>

#include "ramfs/rename_priv.h"

#define RENAME_FLAGS (RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT)

static bool is_dir(const struct inode *inode)
{
	return inode_type(inode) == S_IFDIR;
}

static int rename_walk_epoch(struct renaming *r, struct inode *from_start, const char *from, struct inode *to_start,
			     const char *to)
{
	int err = walk_parent_epoch(r->w, from_start, from, &r->from);

	if (!err)
		err = walk_parent_epoch(r->w, to_start, to, &r->to);
	if (err)
		return err;
	if (r->from.last_kind != LAST_NAME)
		return -EBUSY;
	if (r->to.last_kind != LAST_NAME)
		return r->flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	return 0;
}

static struct dentry *rename_find(const struct walk *k)
{
	return dentry_find_epoch(k->parent, k->last_hash, k->last, k->last_len);
}

static bool names_directory(const struct walk *k)
{
	struct dentry *d = rename_find(k);
	struct inode *inode = d ? load_acquire(&d->inode) : NULL; /* pairs with its publication */

	return inode && is_dir(inode);
}

/* Before any lock: will a directory change its parent?  If the answer changes, rename_check says retry. */
static bool rename_wants_big(struct renaming *r)
{
	return r->from.parent != r->to.parent && (names_directory(&r->from) || names_directory(&r->to));
}

/* Memory for what the new name or the old one will need. */
static int rename_prepare_epoch(struct renaming *r)
{
	struct birth b = {.mode = S_IFCHR};
	struct slot *self = r->w->self;

	if (r->to.last_len <= NAME_LIMIT && !(r->flags & RENAME_EXCHANGE) && !rename_find(&r->to)) {
		r->made = dentry_new(self, r->to.last, r->to.last_len, r->to.last_hash, &r->noted);
		if (!r->made)
			return -ENOSPC;
	}
	if (r->flags & RENAME_WHITEOUT)
		return birth_new_epoch(r->w, r->from.parent, &b, &r->whiteout);
	return 0;
}

/* ---- checks under the locks of both directories ------------------------------------------------- */

static int rename_check_names(struct renaming *r)
{
	r->d1 = rename_find(&r->from);
	r->d2 = rename_find(&r->to);
	/* Relaxed: locks held. */
	r->source = r->d1 ? load_relaxed(&r->d1->inode) : NULL;
	r->target = r->d2 ? load_relaxed(&r->d2->inode) : NULL;
	if (r->from.last_len > NAME_LIMIT)
		return walk_name_too_long(r->from.parent);
	if (!r->source)
		return -ENOENT;
	if (r->to.last_len > NAME_LIMIT)
		return walk_name_too_long(r->to.parent);
	if ((r->flags & RENAME_NOREPLACE) && r->target)
		return -EEXIST;
	if (r->flags & RENAME_EXCHANGE) {
		if (!r->target)
			return -ENOENT;
		if (r->to.trailing_slash && !is_dir(r->target))
			return -ENOTDIR;
	}
	if (is_dir(r->source))
		return 0;
	if (r->from.trailing_slash || (!(r->flags & RENAME_EXCHANGE) && r->to.trailing_slash))
		return -ENOTDIR;
	return 0;
}

/* Without rename_lock this is exact only where it is not needed: no directory is involved. */
static int rename_check_shape(struct renaming *r)
{
	struct inode *a = r->from.parent, *b = r->to.parent;

	if (a == b)
		return 0;
	if (!r->big && (is_dir(r->source) || (r->target && is_dir(r->target))))
		return RENAME_RETRY;
	if (!r->big)
		return 0;
	if (rename_step_towards(a, b) == r->source)
		return -EINVAL;
	if (r->target && rename_step_towards(b, a) == r->target)
		return r->flags & RENAME_EXCHANGE ? -EINVAL : -ENOTEMPTY;
	return 0;
}

static int rename_check_may(struct renaming *r)
{
	bool exchange = r->flags & RENAME_EXCHANGE;
	int err = may_delete_epoch(r->w, r->from.parent, r->source, is_dir(r->source));

	if (err)
		return err;
	if (r->target)
		err = may_delete_epoch(r->w, r->to.parent, r->target, is_dir(exchange ? r->target : r->source));
	else
		err = may_create_epoch(r->w, r->to.parent);
	if (err || r->from.parent == r->to.parent)
		return err;
	/* Their ".." changes. */
	if (is_dir(r->source))
		err = inode_permission_epoch(r->w, r->source, MAY_WRITE);
	if (!err && exchange && is_dir(r->target))
		err = inode_permission_epoch(r->w, r->target, MAY_WRITE);
	return err;
}

/* 0, RENAME_RETRY, an error; *same: both names stand for one inode, nothing to do. */
static int rename_check(struct renaming *r, bool *same)
{
	int err = rename_check_names(r);

	*same = false;
	if (!err)
		err = rename_check_shape(r);
	if (err)
		return err;
	*same = r->source == r->target;
	return *same ? 0 : rename_check_may(r);
}

/* ---- the record --------------------------------------------------------------------------------- */

/* What the two directories gain and lose. */
struct balance {
	int64_t size[2], nlink[2];
};

static void balance_rename(struct renaming *r, struct balance *out)
{
	out->size[0] = r->whiteout ? 0 : -DIR_ENTRY_SIZE;
	out->size[1] = r->target ? 0 : DIR_ENTRY_SIZE;
	out->nlink[0] = is_dir(r->source) ? -1 : 0;
	out->nlink[1] = (is_dir(r->source) ? 1 : 0) - (r->target && is_dir(r->target) ? 1 : 0);
}

static void balance_exchange(struct renaming *r, struct balance *out)
{
	int64_t to_b = (is_dir(r->source) ? 1 : 0) - (is_dir(r->target) ? 1 : 0);

	out->size[0] = out->size[1] = 0;
	out->nlink[0] = -to_b;
	out->nlink[1] = to_b;
}

static void record_dirs(struct renaming *r, uint64_t *args)
{
	struct inode *a = r->from.parent, *b = r->to.parent;
	struct balance by;
	unsigned k;

	if (r->flags & RENAME_EXCHANGE)
		balance_exchange(r, &by);
	else
		balance_rename(r, &by);
	for (k = 0; a == b && k < 2; k++) {
		by.size[k] = k ? by.size[0] : by.size[0] + by.size[1];
		by.nlink[k] = k ? by.nlink[0] : by.nlink[0] + by.nlink[1];
	}
	/* Relaxed: locks held. */
	args[NA_SIZE] = load_relaxed(&a->size) + (uint64_t)by.size[0];
	args[NA_SIZE2] = load_relaxed(&b->size) + (uint64_t)by.size[1];
	args[NA_NLINKS] = (uint32_t)(load_relaxed(&a->nlink) + (uint32_t)by.nlink[0]) |
			  (uint64_t)(uint32_t)(load_relaxed(&b->nlink) + (uint32_t)by.nlink[1]) << 32;
}

/* Which directory becomes somebody's parent, and which is one no longer.  Two that change places: neither. */
static void record_parents(struct renaming *r, uint64_t *args)
{
	bool there = is_dir(r->source), back = (r->flags & RENAME_EXCHANGE) && is_dir(r->target);

	if (r->from.parent == r->to.parent || there == back)
		return;
	args[NA_GAINS] = na_word(there ? r->to.parent : r->from.parent);
	args[NA_LOSES] = na_word(there ? r->from.parent : r->to.parent);
}

static uint32_t victim_nlink(struct renaming *r)
{
	uint32_t n = r->target ? load_relaxed(&r->target->nlink) : 0; /* relaxed: lock held */

	if (!r->target || (r->flags & RENAME_EXCHANGE))
		return n;
	return is_dir(r->target) ? 0 : n - 1;
}

static void rename_record(struct renaming *r)
{
	uint64_t args[NAMES_ARGS] = {0};

	args[NA_DIR] = na_word(r->from.parent);
	args[NA_DIR2] = na_word(r->to.parent);
	args[NA_DENTRY] = na_word(r->d1);
	args[NA_DENTRY2] = na_word(r->d2 ? r->d2 : r->made);
	args[NA_INODE] = na_word(r->source);
	args[NA_VICTIM] = na_word(r->target);
	args[NA_WHITEOUT] = na_word(r->whiteout);
	args[NA_NLINK] = load_relaxed(&r->source->nlink) | (uint64_t)victim_nlink(r) << 32; /* relaxed: lock held */
	args[NA_NOW] = vfs_now();
	record_dirs(r, args);
	record_parents(r, args);
	if (r->whiteout)
		store_relaxed(&r->whiteout->alias, r->d1); /* not published */
	intent_begin(r->w->self, r->flags & RENAME_EXCHANGE ? INTENT_EXCHANGE : INTENT_RENAME, NAMES_ARGS, args);
	if (r->whiteout)
		ledger_del(r->w->self, r->whiteout); /* the record has it now */
}

/* ---- carrying it out -------------------------------------------------------------------------------- */

/* `over`: what the new name stood for. */
static void notify_move(struct slot *self, struct inode *inode, struct inode *a, const char *from, struct inode *b,
			const char *to, struct inode *over)
{
	uint32_t cookie = (uint32_t)inode_number(self); /* any number of its own will do */

	notify(self, inode, a, from, IN_MOVED_FROM | names_isdir(inode), cookie);
	notify(self, inode, b, to, IN_MOVED_TO | names_isdir(inode), cookie);
	if (over)
		notify(self, over, NULL, NULL, IN_ATTRIB | names_isdir(over), 0); /* the count of its links */
	notify(self, inode, NULL, NULL, IN_MOVE_SELF, 0);
}

static void rename_notify(struct renaming *r)
{
	struct slot *self = r->w->self;
	struct inode *a = r->from.parent, *b = r->to.parent;
	const char *from = r->d1->name, *to = (r->d2 ? r->d2 : r->made)->name;

	if (likely(!notify_wanted(self)))
		return;
	notify_move(self, r->source, a, from, b, to, r->flags & RENAME_EXCHANGE ? NULL : r->target);
	if (r->flags & RENAME_EXCHANGE)
		notify_move(self, r->target, b, to, a, from, NULL);
	else if (r->target)
		notify_removed_slow(self, r->target, b, to);
}

/* All locks held, in a section, which it leaves. */
static int rename_locked(struct renaming *r, struct names_owed *owed)
{
	struct slot *self = r->w->self;
	int err = 0;

	rename_record(r);
	if (!r->d2) {
		intent_step(self, NS_NEW_DENTRY);
		dentry_noted(self, &r->noted);
		err = dentry_reserve_locked(self, r->to.parent, r->made);
	}
	if (err) {
		if (r->whiteout)
			birth_return(self, r->whiteout);
		dentry_return(self, r->made, &r->noted);
		intent_end(self);
		epoch_exit(self);
		return err;
	}
	names_count(self, NS_COUNTED | (r->d2 ? 0 : NS_NEW_DENTRY)); /* locked and not dead */
	names_commit(&self->intent);
	names_finish(self, &self->intent);
	epoch_exit(self);
	rename_notify(r);
	names_end(self, &self->intent, owed);
	if (!r->d2)
		r->made = NULL;
	r->whiteout = NULL;
	return 0;
}

static bool target_not_empty(struct renaming *r)
{
	return !(r->flags & RENAME_EXCHANGE) && r->target && is_dir(r->target) && dir_entries(r->target);
}

/* The directories are locked, in a section; leaves all.  0, RENAME_RETRY, an error. */
static int rename_entries(struct renaming *r, struct names_owed *owed)
{
	bool same;
	int err = rename_check(r, &same);

	/* The new name went away after we had seen it, and memory for another was not got. */
	if (!err && !same && !r->target && !r->made)
		err = RENAME_RETRY;
	if (err || same) {
		epoch_exit(r->w->self);
		rename_unlock_dirs(r);
		return err;
	}
	rename_lock_inodes(r);
	if (target_not_empty(r)) {
		epoch_exit(r->w->self);
		err = -ENOTEMPTY;
	} else {
		err = rename_locked(r, owed);
	}
	rename_unlock_inodes(r);
	rename_unlock_dirs(r);
	return err;
}

/* Memory that turned out not to be needed. */
static void rename_unprepare(struct renaming *r)
{
	if (r->made)
		dentry_free(r->w->self, r->made, r->noted);
	if (r->whiteout)
		birth_undo(r->w->self, r->whiteout);
	r->made = NULL;
	r->whiteout = NULL;
}

static int rename_lock(struct renaming *r)
{
	int err = rename_lock_dirs(r, rename_wants_big(r));

	/* The old name is looked up before it shows that the target's directory is removed. */
	return err == -ENOENT && r->from.last_len > NAME_LIMIT ? walk_name_too_long(r->from.parent) : err;
}

int ramfs_rename(struct who *w, struct inode *from_start, const char *from, struct inode *to_start, const char *to,
		 unsigned flags)
{
	struct names_owed owed = {{NULL, NULL}};
	struct renaming r; /* walks and what is found under the locks are filled in later */
	int err;

	if (flags & ~(unsigned)RENAME_FLAGS)
		return -EINVAL;
	if ((flags & RENAME_EXCHANGE) && (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)))
		return -EINVAL;
	r.w = w;
	r.flags = flags;
	r.made = NULL;
	r.whiteout = NULL;
	r.big = false;
	do {
		epoch_enter(w->self);
		err = rename_walk_epoch(&r, from_start, from, to_start, to);
		if (!err)
			err = rename_prepare_epoch(&r);
		if (!err)
			err = rename_lock(&r);
		if (err)
			epoch_exit(w->self);
		else
			err = rename_entries(&r, &owed); /* leaves the section */
		rename_unprepare(&r);
	} while (err == RENAME_RETRY);
	if (!err)
		names_pay(w->self, &owed);
	return err;
}

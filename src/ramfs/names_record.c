/* SPDX-License-Identifier: MIT */
/*
 * names_record.c - carrying out the record of a change of names, by the thread that wrote it or by
 * whoever recovers that.
 *
 * Protection: the locks of every directory and inode that the record names are held, by the thread or in
 * the name of the dead one.  Readers are lock-free: name_seq covers what must be seen at once,
 * inode.seq covers what stat shows.
 * Death: every step stores a final value or may be repeated; what may happen once only (retiring,
 * dropping) is in the thread's ledger before the record says that it is done (segment/hand.h).
 */
#include "ramfs/names_priv.h"
#include "segment/hand.h"

/* ---- before it ---------------------------------------------------------------------------------- */

void names_count(struct slot *self, uint32_t step)
{
	struct inode *gains = na_inode(&self->intent, NA_GAINS);
	int k;

	if (!gains || !inode_get_epoch(self, gains, &k))
		return;
	hand_begin32(self, &self->intent.step, step, hand_bit(k));
	tracked_store(&self->intent.step, step);
	hand_end(self, hand_bit(k));
}

/* ---- the commit ------------------------------------------------------------------------------- */

static void parent_set(struct inode *child, struct inode *parent)
{
	if (child && S_ISDIR(inode_type(child)))
		tracked_store(&child->dir.parent, parent); /* pairs with ".." in walk.c */
}

/* Both names at once, for those who look at name_seq. */
static void commit_names(struct intent *i)
{
	struct inode *a = na_inode(i, NA_DIR), *b = na_inode(i, NA_DIR2);
	struct inode *left = load_relaxed(&i->op) == INTENT_EXCHANGE ? na_inode(i, NA_VICTIM) : na_inode(i, NA_WHITEOUT);

	seq_write_begin(&a->dir.name_seq); /* each pairs with lookup_step */
	if (a != b)
		seq_write_begin(&b->dir.name_seq);
	tracked_store(&na_dentry(i, NA_DENTRY2)->inode, na_inode(i, NA_INODE)); /* decides */
	tracked_store(&na_dentry(i, NA_DENTRY)->inode, left);
	if (a != b) {
		parent_set(na_inode(i, NA_INODE), b);
		if (load_relaxed(&i->op) == INTENT_EXCHANGE)
			parent_set(left, a);
		seq_write_end(&b->dir.name_seq);
	}
	seq_write_end(&a->dir.name_seq);
}

void names_commit(struct intent *i)
{
	struct dentry *d = na_dentry(i, NA_DENTRY);

	switch (load_relaxed(&i->op)) { /* own, or ordered by the owner's death */
	case INTENT_CREATE:
	case INTENT_LINK:
		tracked_store(&d->inode, na_inode(i, NA_INODE)); /* pairs with dentry_find_epoch */
		break;
	case INTENT_UNLINK:
	case INTENT_RMDIR:
		tracked_store(&d->inode, NULL);
		break;
	default:
		commit_names(i);
	}
}

/* Has the deciding store been done? */
static bool names_committed(struct intent *i)
{
	struct dentry *d = na_dentry(i, NA_DENTRY);

	switch (load_relaxed(&i->op)) {
	case INTENT_CREATE:
	case INTENT_LINK:
		return load_relaxed(&d->inode) == na_inode(i, NA_INODE);
	case INTENT_UNLINK:
	case INTENT_RMDIR:
		return !load_relaxed(&d->inode);
	default:
		return load_relaxed(&na_dentry(i, NA_DENTRY2)->inode) == na_inode(i, NA_INODE);
	}
}

/* ---- all the rest ------------------------------------------------------------------------------- */

static void finish_dir(struct inode *dir, uint64_t size, uint32_t nlink, uint64_t now)
{
	seq_write_begin(&dir->seq); /* pairs with attr_read_epoch */
	seq_store(&dir->size, size);
	seq_store(&dir->nlink, nlink);
	seq_store(&dir->mtime, now);
	seq_store(&dir->ctime, now);
	kill_point();
	seq_write_end(&dir->seq);
}

static void finish_inode(struct inode *inode, uint32_t nlink, uint64_t now)
{
	seq_write_begin(&inode->seq); /* pairs with attr_read_epoch */
	seq_store(&inode->nlink, nlink);
	seq_store(&inode->ctime, now);
	kill_point();
	seq_write_end(&inode->seq);
}

/* `gone` no longer names the inode; `now_at` does (NULL: perhaps nothing we know). */
static void finish_alias(struct inode *inode, struct dentry *gone, struct dentry *now_at)
{
	struct dentry *alias = load_relaxed(&inode->alias); /* relaxed: lock held */

	if (alias == gone || !alias)
		tracked_store(&inode->alias, now_at); /* pairs with ramfs_path_epoch */
}

/* An O_TMPFILE: named once, and never again from nothing. */
static void finish_named(struct inode *inode)
{
	uint32_t flags = load_relaxed(&inode->flags); /* lock held */

	if (flags & INODE_TMPFILE)
		tracked_store(&inode->flags, flags & ~(uint32_t)INODE_TMPFILE);
}

static void finish_dirs(struct intent *i)
{
	struct inode *a = na_inode(i, NA_DIR), *b = na_inode(i, NA_DIR2);
	uint64_t nlinks = load_relaxed(&i->arg[NA_NLINKS]), now = load_relaxed(&i->arg[NA_NOW]); /* as na_inode */

	finish_dir(a, load_relaxed(&i->arg[NA_SIZE]), (uint32_t)nlinks, now);
	if (b && b != a)
		finish_dir(b, load_relaxed(&i->arg[NA_SIZE2]), (uint32_t)(nlinks >> 32), now);
}

static void finish_removed(struct inode *inode, struct dentry *d, uint32_t nlink, uint64_t now)
{
	if (S_ISDIR(inode_type(inode)))
		tracked_store(&inode->flags, load_relaxed(&inode->flags) | INODE_DEAD); /* pairs with dir_lock_epoch, by the lock */
	finish_alias(inode, d, NULL);
	finish_inode(inode, nlink, now);
}

static void finish_rename(struct slot *self, struct intent *i)
{
	struct inode *inode = na_inode(i, NA_INODE), *victim = na_inode(i, NA_VICTIM);
	struct dentry *from = na_dentry(i, NA_DENTRY), *to = na_dentry(i, NA_DENTRY2);
	uint64_t nlink = load_relaxed(&i->arg[NA_NLINK]), now = load_relaxed(&i->arg[NA_NOW]); /* as na_inode */

	finish_alias(inode, from, to);
	finish_inode(inode, (uint32_t)nlink, now);
	if (load_relaxed(&i->op) == INTENT_EXCHANGE) {
		finish_alias(victim, to, from);
		finish_inode(victim, (uint32_t)(nlink >> 32), now);
		return;
	}
	if (victim)
		finish_removed(victim, to, (uint32_t)(nlink >> 32), now);
	if (!load_relaxed(&from->inode)) /* relaxed: lock held */
		dentry_detach_locked(self, na_inode(i, NA_DIR), from);
}

void names_finish(struct slot *self, struct intent *i)
{
	struct inode *inode = na_inode(i, NA_INODE);
	struct dentry *d = na_dentry(i, NA_DENTRY);
	uint64_t nlink = load_relaxed(&i->arg[NA_NLINK]), now = load_relaxed(&i->arg[NA_NOW]); /* as na_inode */

	finish_dirs(i);
	switch (load_relaxed(&i->op)) {
	case INTENT_CREATE: /* the inode was born with its values */
		break;
	case INTENT_LINK:
		finish_alias(inode, NULL, d);
		finish_inode(inode, (uint32_t)nlink, now);
		finish_named(inode);
		break;
	case INTENT_UNLINK:
	case INTENT_RMDIR:
		finish_removed(inode, d, (uint32_t)nlink, now);
		dentry_detach_locked(self, na_inode(i, NA_DIR), d);
		break;
	default:
		finish_rename(self, i);
	}
}

/* The name that is no more, if the change has one. */
static struct dentry *names_gone(struct intent *i)
{
	struct dentry *d = na_dentry(i, NA_DENTRY);
	uint32_t op = load_relaxed(&i->op);

	if (op == INTENT_CREATE || op == INTENT_LINK || op == INTENT_EXCHANGE || na_inode(i, NA_WHITEOUT))
		return NULL;
	return d;
}

/* The names' reference of what has none left. */
static struct inode *names_orphan(struct intent *i)
{
	uint64_t nlink = load_relaxed(&i->arg[NA_NLINK]);

	switch (load_relaxed(&i->op)) {
	case INTENT_UNLINK:
	case INTENT_RMDIR:
		return (uint32_t)nlink ? NULL : na_inode(i, NA_INODE);
	case INTENT_RENAME:
		return nlink >> 32 ? NULL : na_inode(i, NA_VICTIM);
	default:
		return NULL;
	}
}

static void names_owe(struct intent *i, struct names_owed *owed)
{
	owed->inode[0] = names_orphan(i);
	owed->inode[1] = na_inode(i, NA_LOSES);
}

/* What is owed is in a ledger by now.  `i` is self's own record, or a dead thread's. */
static void names_close(struct slot *self, struct intent *i)
{
	struct dentry *gone = names_gone(i);
	bool own = i == &self->intent;
	int k = -1;

	kill_point();
	if (gone && (own || !hand_has(intent_slot(i), &gone->retired, LEDGER_RETIRED)))
		k = dentry_retire_note(intent_slot(i), gone);
	store_release(&i->step, NS_DONE); /* read after the owner's death: nothing is left to do */
	if (gone && own)
		dentry_retire_noted(self, gone, k);
	store_release(&i->op, INTENT_NONE); /* pairs with recover_intent */
	kill_point();
}

void names_end(struct slot *self, struct intent *i, struct names_owed *owed)
{
	unsigned k;

	names_owe(i, owed);
	for (k = 0; k < 2; k++)
		if (owed->inode[k])
			ledger_add(self, owed->inode[k], LEDGER_INODE);
	names_close(self, i);
}

void names_pay(struct slot *self, struct names_owed *owed)
{
	unsigned k;

	for (k = 0; k < 2; k++)
		if (owed->inode[k])
			inode_put(self, owed->inode[k]);
}

/* ---- recovery --------------------------------------------------------------------------------------- */

/*
 * References are not dropped here, where the recoverer may hold locks: the dead thread's ledger gets them, unless it had
 * them noted before it died, and whoever takes its slot over drops them.
 */
static void names_inherit(struct slot *self, struct intent *i)
{
	struct names_owed owed;
	unsigned k;

	names_owe(i, &owed);
	for (k = 0; k < 2; k++)
		if (owed.inode[k])
			ledger_inherit(self, intent_slot(i), owed.inode[k], LEDGER_INODE);
}

/* An inode without a name: one reference is left, and that is in the ledger. */
static void undo_inode(struct slot *self, struct intent *i, enum names_arg k)
{
	struct inode *inode = na_inode(i, k);

	if (!inode)
		return;
	birth_forget(inode);
	ledger_inherit(self, intent_slot(i), inode, LEDGER_INODE);
	store_release(&i->arg[k], 0); /* it is in the ledger, should we die as well */
}

static void undo_dentry(struct slot *self, struct inode *dir, struct intent *i, enum names_arg k)
{
	struct dentry *d = na_dentry(i, k);

	if (!d)
		return;
	if (!hand_has(intent_slot(i), d, LEDGER_MEM)) { /* else it is in no directory, and goes from there */
		dentry_detach_locked(self, dir, d);
		if (!hand_has(intent_slot(i), &d->retired, LEDGER_RETIRED))
			dentry_retire_note(intent_slot(i), d);
	}
	store_release(&i->arg[k], 0); /* it is in the ledger, should we die as well */
}

static void names_undo(struct slot *self, struct intent *i)
{
	uint32_t op = load_relaxed(&i->op), step = load_relaxed(&i->step); /* ordered by the owner's death */
	struct inode *a = na_inode(i, NA_DIR), *b = na_inode(i, NA_DIR2);

	if (op == INTENT_CREATE || op == INTENT_LINK)
		undo_dentry(self, a, i, NA_DENTRY);
	else if (step & NS_NEW_DENTRY)
		undo_dentry(self, b, i, NA_DENTRY2);
	if (op == INTENT_CREATE)
		undo_inode(self, i, NA_INODE);
	undo_inode(self, i, NA_WHITEOUT);
	if (b)
		seq_repair(&b->dir.name_seq);
	seq_repair(&a->dir.name_seq);
}

/* What had been counted for the change that is not to be. */
static void names_uncount(struct intent *i)
{
	struct slot *dead = intent_slot(i);
	uint32_t step = load_relaxed(&i->step); /* ordered by the owner's death */

	if (!(step & NS_COUNTED))
		return;
	step &= ~(uint32_t)NS_COUNTED;
	/* With that store, so once, should we die as well: the ledger may have another reference on it for other reasons. */
	hand_begin_got32(dead, &i->step, step, na_inode(i, NA_GAINS), LEDGER_INODE);
	tracked_store(&i->step, step);
	hand_end(dead, 0);
}

/* A recoverer that died itself had taken the change's dentry back: the rest of that may be to do. */
static bool undo_begun(struct intent *i)
{
	uint32_t op = load_relaxed(&i->op); /* ordered by the owner's death */

	if (op == INTENT_CREATE || op == INTENT_LINK)
		return !na_dentry(i, NA_DENTRY);
	return op >= INTENT_RENAME && !na_dentry(i, NA_DENTRY2);
}

static void names_redo(struct slot *self, struct intent *i)
{
	names_commit(i);
	names_finish(self, i);
	names_inherit(self, i);
	names_close(self, i);
}

static void names_recover(struct slot *self, struct intent *i)
{
	if (load_acquire(&i->step) & NS_DONE) /* pairs with names_close, through the death */
		return;
	if (!undo_begun(i) && names_committed(i)) {
		names_redo(self, i);
		return;
	}
	names_undo(self, i);
	names_uncount(i);
}

void names_recovery_attach(void)
{
	intent_register(INTENT_CREATE, names_recover);
	intent_register(INTENT_LINK, names_recover);
	intent_register(INTENT_UNLINK, names_recover);
	intent_register(INTENT_RMDIR, names_recover);
	intent_register(INTENT_RENAME, names_recover);
	intent_register(INTENT_EXCHANGE, names_recover);
}

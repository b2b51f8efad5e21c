/* SPDX-License-Identifier: MIT */
/*
 * notify.c - the hook through which name and data changes reach inotify, and which names hear of what is done to a file.
 *
 * Data: one function pointer per process, set at attach by special/ and never taken away; file.opened.
 * Fast path: notify() and its kin in vfs.h, one load of a word that changes only when watches come and go.
 * Which name: the inode's only one, wherever it has been moved.  Names are kept (struct opened), if somebody watches their
 * directory: that by which a call, or an open file, came to an inode with several names; and with the inode that which was
 * removed last while it was open.
 * Death: while a name is made for keeping, its directory's count may stay one too high; while it is dropped the ledger has it.
 * Limit: moving a file that was opened when it had several names looks like removing it.
 */
#include <string.h>
#include <sys/inotify.h>

#include "base/copy.h"
#include "segment/hand.h"
#include "vfs/vfs_priv.h"

static atomic_ptr(void) notify_hook;

void notify_register(notify_fn *fn)
{
	store_release(&notify_hook, (void *)(uintptr_t)fn); /* pairs with notify_slow: its tables are set up */
}

void notify_slow(struct slot *self, struct inode *inode, struct inode *dir, const char *name, uint32_t mask,
		 uint32_t cookie)
{
	notify_fn *fn = (notify_fn *)(uintptr_t)load_acquire(&notify_hook); /* pairs with notify_register */

	if (fn)
		fn(self, inode, dir, name, mask, cookie);
}

/* ---- which name hears of it ------------------------------------------------------------------ */

/* A name in a directory that somebody watches, kept beyond the section: notify takes locks. */
struct named {
	struct inode *dir; /* counted and in the ledger, or NULL */
	char name[NAME_LIMIT + 1];
};

static void named_find(struct slot *self, struct inode *inode, struct named *out)
{
	struct dentry *d;
	int k;

	out->dir = NULL;
	epoch_enter(self);
	d = load_acquire(&inode->alias); /* pairs with its store under the inode's lock */
	if (d && load_relaxed(&d->parent->watches) && inode_get_epoch(self, d->parent, &k)) { /* relaxed: as in notify() */
		out->dir = d->parent;
		copy_bytes(out->name, d->name, d->len + 1u);
	}
	epoch_exit(self);
}

static void named_put(struct slot *self, struct named *n)
{
	if (!n->dir)
		return;
	inode_put(self, n->dir);
}

static uint32_t with_isdir(const struct inode *inode, uint32_t mask)
{
	return S_ISDIR(inode_type(inode)) ? mask | IN_ISDIR : mask;
}

void notify_inode_slow(struct slot *self, struct inode *inode, uint32_t mask)
{
	struct named at;

	named_find(self, inode, &at);
	notify_slow(self, inode, at.dir, at.name, with_isdir(inode, mask), 0);
	named_put(self, &at);
}

void notify_kept(struct slot *self, struct inode *inode, const struct opened *o, uint32_t mask)
{
	notify_slow(self, inode, o->dir, o->name, with_isdir(inode, mask), 0);
}

/* Does the kept name still stand for it? */
static bool opened_stands(struct slot *self, const struct opened *o, const struct inode *inode)
{
	struct dentry *d;
	bool is;

	epoch_enter(self);
	d = dentry_find_epoch(o->dir, dentry_hash(self, o->name, o->len), o->name, o->len);
	is = d && load_acquire(&d->inode) == inode; /* pairs with its publication */
	epoch_exit(self);
	return is;
}

bool notify_hears_epoch(const struct file *f)
{
	struct file *m = (struct file *)(uintptr_t)f;
	struct inode *inode = f->inode;
	struct dentry *d;

	if (!inode)
		return false;
	if (load_relaxed(&inode->watches) || load_relaxed(&m->opened) || load_relaxed(&inode->was)) /* as in notify() */
		return true;
	d = load_acquire(&inode->alias); /* pairs with its store under the inode's lock */
	return d && load_relaxed(&d->parent->watches);
}

void notify_file_slow(struct slot *self, struct file *f, uint32_t mask)
{
	struct opened *o = load_relaxed(&f->opened); /* [c] */
	struct inode *inode = f->inode;
	struct opened *was;

	if (!inode || load_relaxed(&f->flags) & O_PATH) /* relaxed: a constant flag */
		return;
	was = load_acquire(&inode->was); /* pairs with was_keep; it stays while we keep the inode */
	if (o)
		notify_kept(self, inode, o, opened_stands(self, o, inode) ? mask : mask | IN_EXCL_UNLINK);
	else if (was && !load_relaxed(&inode->alias)) /* relaxed: a moment's value */
		notify_kept(self, inode, was, mask | IN_EXCL_UNLINK);
	else
		notify_inode_slow(self, inode, load_relaxed(&inode->nlink) ? mask : mask | IN_EXCL_UNLINK); /* the same */
}

/* ---- names that are kept ------------------------------------------------------------------------- */

static struct opened *name_keep_epoch(struct slot *self, struct inode *dir, const char *name, size_t len)
{
	int k, k_dir;
	struct opened *o = load_relaxed(&dir->watches) ? mem_alloc_noted(self, sizeof(*o) + len + 1, &k) : NULL; /* as in notify() */

	if (!o)
		return NULL;
	if (!inode_get_epoch(self, dir, &k_dir)) {
		mem_free_noted(self, o, sizeof(*o) + len + 1, k);
		return NULL;
	}
	o->dir = dir;
	o->len = (uint32_t)len;
	copy_bytes(o->name, name, len);
	o->name[len] = '\0';
	return o;
}

struct opened *opened_new_epoch(struct slot *self, const struct walk *k)
{
	struct dentry *d = k->dentry;

	if (!d || S_ISDIR(inode_type(k->inode)))
		return NULL;
	if (load_relaxed(&k->inode->nlink) == 1 && load_relaxed(&k->inode->alias)) /* relaxed: a moment's values */
		return NULL;
	return name_keep_epoch(self, k->parent, d->name, d->len);
}

static void opened_free(struct slot *self, struct opened *o, int k, int k_dir)
{
	struct inode *dir = o->dir;

	mem_free_noted(self, o, sizeof(*o) + o->len + 1, k);
	inode_put_entry(self, dir, k_dir);
}

void opened_put(struct slot *self, struct opened *o)
{
	if (o)
		opened_free(self, o, hand_entry(self, o), hand_find(self, o->dir, LEDGER_INODE));
}

void opened_set(struct slot *self, atomic_ptr(struct opened) * at, struct opened *o)
{
	uint32_t given = hand_bit(hand_entry(self, o)) | hand_bit(hand_find(self, o->dir, LEDGER_INODE));

	hand_begin(self, at, (uintptr_t)o, given, 0);
	tracked_store(at, o); /* release: pairs with notify_file_slow, and is published with what it is kept for */
	hand_end(self, given);
}

void opened_drop(struct slot *self, atomic_ptr(struct opened) * at)
{
	struct opened *o = load_relaxed(at); /* the caller has it alone */
	int k[2];

	if (!o)
		return;
	hand_begin_got2(self, at, 0, hand_entry_of(o, LEDGER_MEM), hand_entry_of(o->dir, LEDGER_INODE), k);
	tracked_store(at, (struct opened *)NULL);
	hand_end(self, 0);
	opened_free(self, o, k[0], k[1]);
}

/* Both locked.  Directories keep none: what is open of a removed one is told to itself only. */
static void was_keep(struct slot *self, struct inode *inode, struct inode *dir, const char *name)
{
	struct opened *o;

	if (load_relaxed(&inode->was) || S_ISDIR(inode_type(inode)) || tally_read(&inode->refs) == 1) /* relaxed: lock held */
		return;
	epoch_enter(self);
	o = name_keep_epoch(self, dir, name, strlen(name));
	epoch_exit(self);
	if (o)
		opened_set(self, &inode->was, o);
}

void notify_removed_slow(struct slot *self, struct inode *inode, struct inode *dir, const char *name)
{
	was_keep(self, inode, dir, name);
	if (!load_relaxed(&inode->nlink) && tally_read(&inode->refs) == 1) /* relaxed: lock held */
		notify_slow(self, inode, NULL, NULL, IN_DELETE_SELF, 0);
}

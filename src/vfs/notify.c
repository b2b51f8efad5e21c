/* SPDX-License-Identifier: MIT */
/*
 * notify.c - the hook through which name and data changes reach inotify, and which names hear of what is done to a file.
 *
 * Data: one function pointer per process, set at attach by special/ and never taken away; file.opened.
 * Fast path: notify() and its kin in vfs.h, one load of a word that changes only when watches come and go.
 * Which name: a file that was opened while somebody watched knows its name (struct opened).  It counts when the inode has
 * another number of names than one; else the inode's only name does, wherever it has been moved.
 * Death: between the count of struct opened's directory and its store the ledger has the reference.
 * Limit: what is done by path to a file with several names is told to the directory of one of them.
 */
#include <string.h>
#include <sys/inotify.h>

#include "base/copy.h"
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

void notify_last_name(struct slot *self, struct inode *inode)
{
	if (notify_wanted(self) && !load_relaxed(&inode->nlink) && ref_read(&inode->refs) == 1) /* relaxed: lock held */
		notify_slow(self, inode, NULL, NULL, IN_DELETE_SELF, 0);
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

	out->dir = NULL;
	epoch_enter(self);
	d = load_acquire(&inode->alias); /* pairs with its store under the inode's lock */
	if (d && load_relaxed(&d->parent->watches) && inode_get_epoch(d->parent)) { /* relaxed: as in notify() */
		out->dir = d->parent;
		ledger_add(self, out->dir, LEDGER_INODE);
		copy_bytes(out->name, d->name, d->len + 1u);
	}
	epoch_exit(self);
}

static void named_put(struct slot *self, struct named *n)
{
	if (!n->dir)
		return;
	ledger_del(self, n->dir);
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

/* Does the name by which it was opened count? */
static bool opened_counts(const struct inode *inode, const struct opened *o, uint32_t nlink)
{
	return o && (S_ISDIR(inode_type(inode)) ? !nlink : nlink != 1);
}

void notify_file_slow(struct slot *self, struct file *f, uint32_t mask)
{
	struct opened *o = load_relaxed(&f->opened); /* [c] */
	struct inode *inode = f->inode;
	uint32_t nlink;

	if (!inode || load_relaxed(&f->flags) & O_PATH) /* relaxed: a constant flag */
		return;
	nlink = load_relaxed(&inode->nlink); /* a moment's value, as all of this */
	if (opened_counts(inode, o, nlink))
		notify_slow(self, inode, o->dir, o->name, with_isdir(inode, nlink ? mask : mask | IN_EXCL_UNLINK), 0);
	else
		notify_inode_slow(self, inode, nlink ? mask : mask | IN_EXCL_UNLINK);
}

/* ---- what a file remembers ----------------------------------------------------------------------- */

/* Without memory for it the name is not kept. */
static void opened_keep(struct slot *self, struct file *f, const struct named *at)
{
	size_t len = strlen(at->name);
	struct opened *o = mem_alloc(self, sizeof(*o) + len + 1);

	if (!o)
		return;
	o->dir = at->dir;
	o->len = (uint32_t)len;
	copy_bytes(o->name, at->name, len + 1);
	epoch_enter(self);
	(void)inode_get_epoch(o->dir); /* the caller's reference keeps it */
	epoch_exit(self);
	tracked_store(&f->opened, o); /* published with the file */
}

void notify_open_slow(struct slot *self, struct file *f)
{
	struct named at;

	if (load_relaxed(&f->flags) & O_PATH) /* not published yet */
		return;
	named_find(self, f->inode, &at);
	if (at.dir)
		opened_keep(self, f, &at);
	notify_slow(self, f->inode, at.dir, at.name, with_isdir(f->inode, IN_OPEN), 0);
	named_put(self, &at);
}

void file_forget_name(struct slot *self, struct file *f)
{
	struct opened *o = load_relaxed(&f->opened); /* the last reference is ours */
	struct inode *dir = o->dir;

	ledger_add(self, dir, LEDGER_INODE);
	tracked_store(&f->opened, (struct opened *)NULL);
	mem_free(self, o, sizeof(*o) + o->len + 1);
	ledger_del(self, dir);
	inode_put(self, dir);
}

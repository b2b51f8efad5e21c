/* SPDX-License-Identifier: MIT */
/* check_tree.c - directories from the root down, each under its lock. */
#include <string.h>

#include "api/check_priv.h"
#include "vfs/lookup.h"

/* A tree is searched by the same walk, whatever hangs in it. */
struct radix_walk {
	struct check *c;
	check_entry_fn *fn;
	void *ctx;
};

static bool radix_below(struct radix_walk *w, uint64_t word, unsigned h, uint64_t index)
{
	struct radix_node *node = radix_node_of(word);
	bool ok = true;
	unsigned i;

	if (marks_add(&w->c->marks, node, sizeof(*node)) != MARK_NEW)
		return false;
	for (i = 0; i < RADIX_SLOTS; i++) {
		uint64_t below = load_acquire(&node->slot[i]); /* pairs with radix_publish */
		uint64_t at = index << RADIX_BITS | i;

		if (!below)
			continue;
		if (h == 1)
			w->fn(w->c, w->ctx, at, below);
		else
			ok &= radix_below(w, below, h - 1, at);
	}
	return ok;
}

bool check_radix(struct check *c, struct radix *r, check_entry_fn *fn, void *ctx)
{
	struct radix_walk w = {c, fn, ctx};
	uint64_t root = load_acquire(&r->root); /* pairs with radix_publish */
	unsigned h = radix_height(root);

	if (!root)
		return true;
	if (h > RADIX_HEIGHT_MAX)
		return false;
	if (h)
		return radix_below(&w, root, h, 0);
	fn(c, ctx, 0, root);
	return true;
}

/* ---- one directory ------------------------------------------------------------------------------- */

struct dir_check {
	struct inode *dir;
	struct dir_table *table;
	uint64_t entries, subdirs;
};

static unsigned long long ino_of(const struct inode *inode)
{
	return inode->ino;
}

static bool name_plausible(const struct dentry *d)
{
	return d->len && d->len <= NAME_LIMIT && !d->name[d->len] && !memchr(d->name, '/', d->len) &&
	       strlen(d->name) == d->len;
}

/* On the chain that its hash leads to?  No entry is followed that is not one in use. */
static bool on_its_chain(struct check *c, const struct dir_check *dc, const struct dentry *d)
{
	struct dir_table *t = dc->table;
	uint64_t most = dir_entries(dc->dir) + 2;
	struct dentry *x;

	if (!t)
		return false;
	x = load_acquire(&t->bucket[table_place(t, d->hash)]); /* pairs with chain_insert, as below */
	for (; x && most--; x = load_acquire(&x->next[t->which])) {
		if (x == d)
			return true;
		if (marks_room(&c->marks, x) < sizeof(*x))
			return false;
	}
	return false;
}

static bool entry_sane(struct check *c, const struct dir_check *dc, struct dentry *d, uint64_t place)
{
	unsigned long long ino = ino_of(dc->dir);

	if (marks_add(&c->marks, d, sizeof(*d) + 1) != MARK_NEW || marks_room(&c->marks, d) < sizeof(*d) + d->len + 1u ||
	    !name_plausible(d)) {
		check_fault(c, false, "directory %llu: a damaged name", ino);
		return false;
	}
	if (d->parent != dc->dir)
		check_fault(c, false, "directory %llu: entry %.64s says it belongs elsewhere", ino, d->name);
	if (d->cookie != place + DIR_FIRST_COOKIE)
		check_fault(c, false, "directory %llu: entry %.64s stands at a wrong place", ino, d->name);
	if (d->hash != dentry_hash(c->self, d->name, d->len) || !on_its_chain(c, dc, d))
		check_fault(c, false, "directory %llu: %.64s is listed but cannot be found", ino, d->name);
	return true;
}

/* What it names: one name more; a subdirectory is to be visited. */
static void entry_target(struct check *c, struct dir_check *dc, struct dentry *d, struct inode *inode)
{
	struct seen *s = check_inode(c, inode);

	if (!s) {
		check_fault(c, false, "directory %llu: %.64s leads to no inode", ino_of(dc->dir), d->name);
		return;
	}
	s->names++;
	s->refs += s->names == 1; /* all names together have one */
	if (inode_type(inode) != S_IFDIR)
		return;
	dc->subdirs++;
	if (load_acquire(&inode->dir.parent) != dc->dir) /* pairs with rename's store; the lock keeps it */
		check_fault(c, false, "directory %llu: %.64s has another parent", ino_of(dc->dir), d->name);
	if (s->names > 1)
		check_fault(c, false, "directory %llu has %u names", ino_of(inode), s->names);
	else
		check_queue(c, inode);
}

static void check_entry(struct check *c, void *ctx, uint64_t place, uint64_t word)
{
	struct dir_check *dc = ctx;
	struct dentry *d = (struct dentry *)(uintptr_t)word;
	struct inode *inode;

	if (!entry_sane(c, dc, d, place))
		return;
	inode = load_relaxed(&d->inode); /* locked */
	if (!inode) {
		if (c->alone)
			check_fault(c, false, "directory %llu: %.64s names nothing", ino_of(dc->dir), d->name);
		return; /* on its way in or out */
	}
	dc->entries++;
	entry_target(c, dc, d, inode);
}

static void dir_totals(struct check *c, struct dir_check *dc)
{
	struct inode *dir = dc->dir;
	uint32_t nlink = load_relaxed(&dir->nlink), links = (uint32_t)dc->subdirs + 2; /* relaxed, all: under the lock */
	uint64_t size = load_relaxed(&dir->size), bytes = DIR_EMPTY_SIZE + dc->entries * DIR_ENTRY_SIZE;

	if (nlink != links) {
		check_fault(c, c->repair, "directory %llu has %u links, should have %u", ino_of(dir), nlink, links);
		if (c->repair)
			store_relaxed(&dir->nlink, links);
	}
	if (size != bytes) {
		check_fault(c, c->repair, "directory %llu says %llu bytes for %llu entries", ino_of(dir),
			    (unsigned long long)size, (unsigned long long)dc->entries);
		if (c->repair)
			store_relaxed(&dir->size, bytes);
	}
}

static struct dir_table *dir_table_marked(struct check *c, struct inode *dir)
{
	struct dir_table *t = load_acquire(&dir->dir.table); /* pairs with table_publish */
	size_t room;

	if (!t)
		return NULL;
	if (marks_add(&c->marks, t, sizeof(*t)) == MARK_NEW) {
		room = marks_room(&c->marks, t);
		if (t->buckets && t->which < 2 && sizeof(*t) + t->buckets * sizeof(void *) <= room)
			return t;
	}
	check_fault(c, false, "directory %llu: its hash is damaged", ino_of(dir));
	return NULL;
}

static void check_dir_locked(struct check *c, struct inode *dir)
{
	struct dir_check dc = {.dir = dir, .table = dir_table_marked(c, dir)};

	if (!check_radix(c, &dir->dir.index, check_entry, &dc))
		check_fault(c, false, "directory %llu: its index is damaged", ino_of(dir));
	if (!(load_relaxed(&dir->flags) & INODE_DEAD)) /* under the lock */
		dir_totals(c, &dc);
}

LOCK_NO_ANALYSIS static void visit(struct check *c, struct inode *dir)
{
	lock_acquire(&dir->lock, &c->self->locker, LOCK_DIR);
	check_dir_locked(c, dir);
	lock_release(&dir->lock, &c->self->locker, LOCK_DIR);
	check_holds(c, dir == vfs_root_of(c->self)->root ? NULL : load_acquire(&dir->dir.parent), "a directory's parent"); /* pairs with parent_set */
	if (!c->alone)
		inode_put(c->self, dir);
	check_progress(c);
}

void check_tree(struct check *c)
{
	struct inode *root = vfs_root_of(c->self)->root;
	struct seen *s = check_inode(c, root);

	if (!s) {
		check_fault(c, false, "the root is no inode");
		return;
	}
	s->names = 1;
	s->refs++;
	check_queue(c, root);
	check_removed(c);
}

void check_removed(struct check *c)
{
	while (c->head < c->tail)
		visit(c, c->queue[c->head++]);
}

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

/* Too many: a writer died.  Too few: the node would be freed while it is in use. */
static void radix_used(struct check *c, struct radix_node *node, unsigned used)
{
	if (c->alone && (node->used < used || node->used > RADIX_SLOTS) &&
	    check_fault(c, true, "a node of an index has %u entries and says %u", used, node->used))
		node->used = used;
}

static bool radix_below(struct radix_walk *w, uint64_t word, unsigned h, uint64_t index)
{
	struct radix_node *node = radix_node_of(word);
	bool ok = true;
	unsigned i, used = 0;

	if (marks_add_exact(&w->c->marks, node, sizeof(*node)) != MARK_NEW)
		return false;
	for (i = 0; i < RADIX_SLOTS; i++) {
		uint64_t below = load_acquire(&node->slot[i]); /* pairs with radix_publish */
		uint64_t at = index << RADIX_BITS | i;

		if (!below)
			continue;
		used++;
		if (at << RADIX_BITS * (h - 1) >> RADIX_BITS * (h - 1) != at)
			ok = false; /* beyond 64 bits */
		else if (h == 1)
			w->fn(w->c, w->ctx, at, below);
		else
			ok &= radix_below(w, below, h - 1, at);
	}
	radix_used(w->c, node, used);
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

#define CHAIN_MOST (UINT64_C(1) << 20) /* entries on one chain: the largest table has one for each of 2^36 */

struct dir_check {
	struct inode *dir;
	struct dir_table *table;
	uint64_t entries, subdirs, reserved; /* reserved: without an inode */
	uint64_t end; /* one past the last place */
};

static bool name_plausible(const struct dentry *d)
{
	unsigned k;

	if (!d->len || d->len > NAME_LIMIT || memchr(d->name, '/', d->len) || memchr(d->name, 0, d->len))
		return false;
	for (k = d->len; k < ALIGN_UP(d->len + 1u, 8u); k++)
		if (d->name[k])
			return false;
	return true;
}

static bool dentry_plausible(struct check *c, const struct dentry *d)
{
	size_t room = marks_room(&c->marks, d);

	return room == 128 ? d->len <= DENTRY_SHORT_NAME && name_plausible(d) :
			     room == 384 && d->len > DENTRY_SHORT_NAME && name_plausible(d);
}

/* Is that very name there before it on its chain? */
static bool name_is_double(const struct dentry *d, const struct dentry *x)
{
	return x->hash == d->hash && x->len == d->len && load_relaxed(&((struct dentry *)(uintptr_t)x)->inode) &&
	       !memcmp(x->name, d->name, d->len);
}

/* On the chain that its hash leads to?  No entry is followed that is not one in use. */
static bool on_its_chain(struct check *c, const struct dir_check *dc, const struct dentry *d)
{
	struct dir_table *t = dc->table;
	uint64_t most = CHAIN_MOST;
	struct dentry *x;

	if (!t)
		return false;
	x = load_acquire(&t->bucket[table_place(t, d->hash)]); /* pairs with chain_insert, as below */
	for (; x && most--; x = load_acquire(&x->next[t->which])) {
		if (x == d)
			return true;
		if (!dentry_plausible(c, x) || name_is_double(d, x))
			return false;
	}
	return false;
}

static bool entry_sane(struct check *c, const struct dir_check *dc, struct dentry *d, uint64_t place)
{
	unsigned long long ino = ino_of(dc->dir);

	if (!dentry_plausible(c, d) || marks_add(&c->marks, d, sizeof(*d)) != MARK_NEW) {
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
	s->dentry = d;
	s->alias |= load_acquire(&inode->alias) == d; /* pairs with the stores of those who name it */
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
	dc->end = place + 1;
	inode = load_relaxed(&d->inode); /* locked */
	if (!inode) {
		if (c->alone && c->settled)
			check_fault(c, false, "directory %llu: %.64s names nothing", ino_of(dc->dir), d->name);
		dc->reserved++;
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

	if (nlink != links && check_fault(c, true, "directory %llu has %u links, should have %u", ino_of(dir), nlink, links))
		store_relaxed(&dir->nlink, links);
	if (size != bytes && check_fault(c, true, "directory %llu says %llu bytes for %llu entries", ino_of(dir),
					 (unsigned long long)size, (unsigned long long)dc->entries))
		store_relaxed(&dir->size, bytes);
}

/* Where the next entry is to stand. */
static void dir_end(struct check *c, struct dir_check *dc)
{
	uint64_t next = load_relaxed(&dc->dir->dir.next_cookie); /* under the lock */

	if (next >= dc->end + DIR_FIRST_COOKIE && next <= INT64_MAX)
		return;
	if (check_fault(c, true, "directory %llu: its next entry would stand among others", ino_of(dc->dir)))
		store_relaxed(&dc->dir->dir.next_cookie, dc->end + DIR_FIRST_COOKIE);
}

/* Nothing on the chains but what the index has, each once: whoever looks for a name comes to an end. */
static void dir_chains(struct check *c, struct dir_check *dc)
{
	struct dir_table *t = dc->table;
	uint64_t n = 0, all = dc->entries + dc->reserved;
	struct dentry *d;
	uint32_t i;

	for (i = 0; t && i < t->buckets; i++)
		for (d = load_acquire(&t->bucket[i]); d; d = load_acquire(&d->next[t->which])) /* pair with chain_insert */
			if (++n > all || !dentry_plausible(c, d) || !marks_has(&c->marks, d) || d->parent != dc->dir ||
			    table_place(t, d->hash) != i) {
				check_fault(c, false, "directory %llu: its hash leads elsewhere", ino_of(dc->dir));
				return;
			}
}

static struct dir_table *dir_table_marked(struct check *c, struct inode *dir)
{
	struct dir_table *t = load_acquire(&dir->dir.table); /* pairs with table_publish */

	if (!t)
		return NULL;
	if (marks_add(&c->marks, t, sizeof(*t)) == MARK_NEW && dentry_table_bytes(t) == marks_room(&c->marks, t) && t->which < 2)
		return t;
	check_fault(c, false, "directory %llu: its hash is damaged", ino_of(dir));
	return NULL;
}

static void check_dir_locked(struct check *c, struct inode *dir)
{
	struct dir_check dc = {.dir = dir, .table = dir_table_marked(c, dir)};

	if (!check_radix(c, &dir->dir.index, check_entry, &dc))
		check_fault(c, false, "directory %llu: its index is damaged", ino_of(dir));
	if (!(load_relaxed(&dir->flags) & INODE_DEAD)) { /* under the lock */
		if (c->alone)
			dir_chains(c, &dc);
		dir_end(c, &dc);
		dir_totals(c, &dc);
	} else if (dc.entries) {
		check_fault(c, false, "directory %llu is removed and has entries", ino_of(dir));
	}
}

static void visit_parent(struct check *c, struct inode *dir)
{
	struct inode *parent = load_acquire(&dir->dir.parent); /* pairs with parent_set */

	if (dir != vfs_root_of(c->self)->root)
		check_holds_dir(c, parent, "a directory's parent");
	else if (parent != dir && check_fault(c, true, "the root has a parent"))
		store_release(&dir->dir.parent, dir);
}

LOCK_NO_ANALYSIS static void visit(struct check *c, struct inode *dir)
{
	check_seq(c, &dir->dir.name_seq, "names of directory", dir->ino);
	if (!c->alone)
		lock_acquire(&dir->lock, &c->self->locker, LOCK_DIR);
	check_dir_locked(c, dir);
	if (!c->alone)
		lock_release(&dir->lock, &c->self->locker, LOCK_DIR);
	visit_parent(c, dir);
	if (!c->alone)
		inode_put(c->self, dir);
	check_progress(c);
}

void check_tree(struct check *c)
{
	struct vfs_root *vfs = vfs_root_of(c->self);
	struct inode *root = vfs->root;
	struct seen *s = check_inode(c, root);

	check_lock(c, &vfs->rename_lock, "renaming", 0);
	check_lock(c, &vfs->flock_graph_lock, "who waits for whom", 0);
	if (!s || inode_type(root) != S_IFDIR) {
		check_fault(c, false, "the root is no directory");
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

/* SPDX-License-Identifier: MIT */
/*
 * check_locks.c - record locks of an inode.
 *
 * The list of ranges is the truth; the trees are made anew from it where they do not follow it.  If the list itself
 * cannot be followed, all locks of the inode are forgotten: they are advisory.
 */
#include "api/check_priv.h"
#include "vfs/flock_priv.h"

#define TREE_DEEP 64u /* no balanced tree is deeper */

static bool range_plausible(const struct range *r)
{
	uint8_t type = range_type(r);

	return type == F_UNLCK || ((type == F_RDLCK || type == F_WRLCK) && r->start <= r->end && r->end <= FLOCK_EOF &&
				   r->kind <= FLOCK_BSD);
}

/* It belongs to a table or a file that is still there. */
static bool range_owned(struct check *c, const struct range *r)
{
	return range_type(r) == F_UNLCK || check_known(c, r->owner, r->kind == FLOCK_POSIX ? SEEN_TABLE : SEEN_FILE);
}

static bool list_followed(struct check *c, struct flocks *fs, bool *owned)
{
	struct range *r;

	*owned = true;
	for (r = fs->all; r; r = r->all) {
		if (!check_first(c, r, SEEN_RANGE, sizeof(*r)) || !range_plausible(r))
			return false;
		if (range_owned(c, r))
			continue;
		*owned = false;
		if (c->repair)
			store_release(&r->type, F_UNLCK); /* as in range_set_free */
	}
	return true;
}

static bool waiters_followed(struct check *c, struct flocks *fs)
{
	struct flock_waiter *w;

	for (w = fs->waiters; w && !c->alone; w = w->next)
		if (marks_add_exact(&c->marks, w, sizeof(*w)) != MARK_NEW)
			return false;
	return !w;
}

/* ---- trees ------------------------------------------------------------------------------------- */

struct tree_walk {
	struct check *c;
	size_t node_at; /* of the node in the range */
	uint32_t left; /* ranges that may be met yet */
};

/* Every node a range of this list, each link answered; *black: black nodes on each way down. */
static bool subtree_followed(struct tree_walk *w, struct rb_node *n, struct rb_node *parent, unsigned deep, unsigned *black)
{
	unsigned k, below[2];
	bool red;

	*black = 0;
	if (!n)
		return true;
	if (deep == TREE_DEEP || !w->left-- || !check_known(w->c, (char *)n - w->node_at, SEEN_RANGE) || n->parent != parent ||
	    *(const uint8_t *)&n->red > 1)
		return false;
	red = n->red;
	if (red && parent && parent->red)
		return false;
	for (k = 0; k < 2; k++)
		if (!subtree_followed(w, n->child[k], n, deep + 1, &below[k]))
			return false;
	*black = below[0] + !red;
	return below[0] == below[1];
}

static bool tree_followed(struct check *c, struct rb_root *root, size_t node_at, uint32_t ranges)
{
	struct tree_walk w = {c, node_at, ranges};
	unsigned black;

	return subtree_followed(&w, root->top, NULL, 0, &black);
}

/* The ranges that are free, linked through a tree's field. */
static bool free_followed(struct check *c, struct flocks *fs, uint32_t ranges)
{
	const struct range *r;
	uint32_t n = 0;

	for (r = fs->free; r; r = (const struct range *)r->by_owner.parent)
		if (n++ == ranges || !check_known(c, r, SEEN_RANGE) || range_type(r) != F_UNLCK)
			return false;
	return n == fs->free_count;
}

static bool trees_followed(struct check *c, struct flocks *fs)
{
	uint32_t ranges = 0;
	struct range *r;
	unsigned k;

	for (r = fs->all; r; r = r->all)
		ranges++;
	for (k = 0; k < LOCK_SPACES; k++)
		if (!tree_followed(c, &fs->trees[k].by_owner, offsetof(struct range, by_owner), ranges) ||
		    !tree_followed(c, &fs->trees[k].readers, offsetof(struct range, by_start), ranges) ||
		    !tree_followed(c, &fs->trees[k].writers, offsetof(struct range, by_start), ranges))
			return false;
	return free_followed(c, fs, ranges) && flocks_sane_locked(fs);
}

/* ---- one inode ----------------------------------------------------------------------------------- */

/* Those that were marked are nobody's now. */
static void forget(struct check *c, struct flocks *fs)
{
	struct range *r;

	for (r = fs->all; check_known(c, r, SEEN_RANGE) && marks_has(&c->marks, r); r = r->all)
		marks_del(&c->marks, r);
	fs->all = NULL;
	fs->waiters = NULL;
	flocks_rebuild_locked(fs);
}

static void check_locked(struct check *c, struct inode *inode, struct flocks *fs)
{
	bool owned, listed = list_followed(c, fs, &owned) && waiters_followed(c, fs);

	if (!listed || !owned) {
		if (!check_fault(c, true, "inode %llu: %s", ino_of(inode), listed ? "a lock belongs to nobody" : "its locks are damaged"))
			return;
		if (!listed)
			forget(c, fs);
	}
	if (listed && trees_followed(c, fs) && owned)
		return;
	if (listed && owned && !check_fault(c, true, "inode %llu: its locks are damaged", ino_of(inode)))
		return;
	flocks_rebuild_locked(fs);
	if (!flocks_sane_locked(fs)) /* ranges that exclude each other */
		forget(c, fs);
}

LOCK_NO_ANALYSIS void check_locks(struct check *c, struct inode *inode)
{
	struct flocks *fs = load_acquire(&inode->flocks); /* pairs with flocks_make */

	if (!fs)
		return;
	if (marks_add_exact(&c->marks, fs, sizeof(*fs)) != MARK_NEW) {
		if (check_fault(c, true, "inode %llu: its locks are damaged", ino_of(inode)))
			store_release(&inode->flocks, NULL);
		return;
	}
	check_lock(c, &fs->lock, "locks of inode", inode->ino);
	if (!c->settled)
		return; /* a plan may be half carried out */
	if (!c->alone)
		flocks_lock(c->self, fs);
	check_locked(c, inode, fs);
	if (!c->alone)
		flocks_unlock(c->self, fs);
}

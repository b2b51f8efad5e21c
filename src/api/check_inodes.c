/* SPDX-License-Identifier: MIT */
/* check_inodes.c - what hangs on each inode, and how often it says that it is named and held. */
#include <string.h>

#include "api/check_priv.h"
#include "segment/owned.h"
#include "vfs/attr_priv.h"
#include "vfs/flock_priv.h"

static unsigned long long ino_of(const struct inode *inode)
{
	return inode->ino;
}

struct seen *check_inode(struct check *c, struct inode *inode)
{
	switch (marks_room(&c->marks, inode) >= sizeof(*inode) ? inode_type(inode) : 0) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		marks_add(&c->marks, inode, sizeof(*inode));
		return check_seen(c, inode, SEEN_INODE);
	default:
		return NULL;
	}
}

void check_holds(struct check *c, struct inode *inode, const char *who)
{
	struct seen *s;

	if (!inode)
		return;
	s = check_inode(c, inode);
	if (!s) {
		check_fault(c, false, "%s leads to no inode", who);
		return;
	}
	s->refs++;
	if (ref_read(&inode->refs) >= REF_DEAD)
		check_fault(c, false, "inode %llu is held by %s but counted as freed", ino_of(inode), who);
}

void check_kept_name(struct check *c, struct opened *o)
{
	if (!o)
		return;
	if (marks_add(&c->marks, o, sizeof(*o)) == MARK_NEW)
		check_holds(c, o->dir, "the name of an open file");
	else
		check_fault(c, false, "the name of an open file is damaged");
}

void check_maps_one(struct check *c, struct inode *inode)
{
	struct seen *s = inode ? check_inode(c, inode) : NULL;

	if (s)
		s->maps++;
}

/* ---- attributes, locks ------------------------------------------------------------------------------- */

static bool chain_marked(struct check *c, xattr_link *link)
{
	struct xattr *x;

	for (; (x = load_acquire(link)); link = &x->next) /* pairs with the store in attr_apply_locked */
		if (marks_add(&c->marks, x, sizeof(*x)) != MARK_NEW || marks_room(&c->marks, x) < x->bytes)
			return false;
	return true;
}

static void check_xattrs(struct check *c, struct inode *inode)
{
	struct xattrs *xs = load_acquire(&inode->xattrs); /* pairs with xattrs_of_locked */
	bool ok;
	unsigned k;

	if (!xs)
		return;
	ok = marks_add(&c->marks, xs, sizeof(*xs)) == MARK_NEW;
	for (k = 0; ok && k < ACL_KINDS; k++)
		ok = chain_marked(c, &xs->acl[k]);
	if (!ok || !chain_marked(c, &xs->list))
		check_fault(c, false, "inode %llu: its attributes are damaged", ino_of(inode));
}

/* A range belongs to a table or a file that is still there. */
static bool range_owned(struct check *c, const struct range *r)
{
	return range_type(r) == F_UNLCK || marks_has(&c->marks, r->owner);
}

static bool ranges_marked(struct check *c, struct inode *inode, struct flocks *fs)
{
	struct range *r;
	struct flock_waiter *w;

	for (r = fs->all; r; r = r->all) {
		if (marks_add(&c->marks, r, sizeof(*r)) != MARK_NEW)
			return false;
		if (c->alone && !range_owned(c, r))
			check_fault(c, false, "inode %llu: a lock belongs to nobody", ino_of(inode));
	}
	for (w = fs->waiters; w; w = w->next)
		if (marks_add(&c->marks, w, sizeof(*w)) != MARK_NEW)
			return false;
	return true;
}

static void check_locks(struct check *c, struct inode *inode)
{
	struct flocks *fs = load_acquire(&inode->flocks); /* pairs with flocks_make */
	bool ok;

	if (!fs)
		return;
	ok = marks_add(&c->marks, fs, sizeof(*fs)) == MARK_NEW;
	if (ok) {
		flocks_lock(c->self, fs);
		ok = ranges_marked(c, inode, fs) && flocks_sane_locked(fs);
		flocks_unlock(c->self, fs);
	}
	if (!ok)
		check_fault(c, false, "inode %llu: its locks are damaged", ino_of(inode));
}

/* ---- data --------------------------------------------------------------------------------------------- */

struct data_check {
	struct inode *inode;
	uint64_t pages;
};

static void check_page(struct check *c, void *ctx, uint64_t index, uint64_t entry)
{
	struct data_check *d = ctx;

	d->pages++;
	if (marks_add_page(&c->marks, (void *)(uintptr_t)(entry & ~(uint64_t)RADIX_LOW)) != MARK_NEW)
		check_fault(c, false, "file %llu: page %llu is another file's or nobody's", ino_of(d->inode),
			    (unsigned long long)index);
}

/* Pages that left it while somebody mapped it. */
static void check_kept(struct check *c, struct inode *inode)
{
	char *page = page_by_number(c->self->seg, load_acquire(&inode->file.kept)); /* pairs with data_keep_page */

	for (; page; page = page_by_number(c->self->seg, load_acquire(page_link(c->self->seg, page)))) {
		if (marks_add_page(&c->marks, page) != MARK_NEW) {
			check_fault(c, false, "file %llu: pages that were mapped cannot be followed", ino_of(inode));
			return;
		}
		c->report->data_pages++;
	}
}

static void check_data(struct check *c, struct inode *inode)
{
	struct data_check d = {.inode = inode};
	uint64_t says;

	if (!check_radix(c, &inode->file.pages, check_page, &d))
		check_fault(c, false, "file %llu: its pages cannot be followed", ino_of(inode));
	c->report->data_pages += d.pages;
	says = load_acquire(&inode->file.page_count); /* pairs with the writer's store */
	if (says == d.pages)
		return;
	check_fault(c, c->repair, "file %llu has %llu pages and says %llu", ino_of(inode), (unsigned long long)d.pages,
		    (unsigned long long)says);
	if (c->repair)
		store_release(&inode->file.page_count, d.pages);
}

static void check_symlink(struct check *c, struct inode *inode)
{
	if (marks_add(&c->marks, inode->target, inode->target_len + 1u) != MARK_NEW ||
	    strnlen(inode->target, inode->target_len + 1u) != inode->target_len)
		check_fault(c, false, "symbolic link %llu is damaged", ino_of(inode));
}

/* ---- the inode ------------------------------------------------------------------------------------------ */

/* A directory's links were judged under its lock. */
static void check_links(struct check *c, struct inode *inode, uint32_t names)
{
	uint32_t nlink = load_acquire(&inode->nlink); /* pairs with the store of link and unlink */

	if (nlink == names || inode_type(inode) == S_IFDIR)
		return;
	check_fault(c, c->repair, "inode %llu has %u links and %u names", ino_of(inode), nlink, names);
	if (c->repair)
		store_release(&inode->nlink, names);
}

/* Too many: somebody died between the count and the descriptor.  Too few: pages would be free while they are mapped. */
static void check_maps(struct check *c, struct inode *inode, uint32_t found)
{
	uint32_t says = load_acquire(&inode->file.maps); /* pairs with ramfs_map_get */

	if (!c->alone || says == found)
		return;
	if (says > found)
		check_left(c, "file %llu is counted as mapped %u times and is mapped %u times", ino_of(inode), says, found);
	else
		check_fault(c, c->repair, "file %llu is counted as mapped %u times and is mapped %u times", ino_of(inode), says,
			    found);
	if (!c->repair)
		return;
	store_relaxed(&inode->file.maps, found + 1); /* nobody else is there */
	ramfs_map_put(c->self, inode); /* and pages that nobody maps any more are free */
}

static void check_one(struct check *c, struct inode *inode, uint32_t maps)
{
	if (inode_type(inode) == S_IFREG)
		check_maps(c, inode, maps);
	check_kept_name(c, load_acquire(&inode->was)); /* pairs with was_keep */
	epoch_enter(c->self);
	if (inode_type(inode) == S_IFREG) {
		check_data(c, inode);
		check_kept(c, inode);
	}
	else if (inode_type(inode) == S_IFLNK)
		check_symlink(c, inode);
	check_xattrs(c, inode);
	epoch_exit(c->self);
	check_locks(c, inode);
	check_progress(c);
}

/* When a removed directory leads to another one all is looked at again. */
static void check_parts(struct check *c)
{
	uint64_t n, before;

	do {
		before = c->seen_count;
		for (n = 0; n <= c->seen_mask; n++) {
			struct seen *s = check_seen_at(c, n);

			if (!s || s->kind != SEEN_INODE || s->done)
				continue;
			s->done = true;
			if (inode_type(s->obj) == S_IFDIR && !s->names && c->alone)
				check_queue(c, s->obj); /* removed, and still open */
			check_one(c, s->obj, s->maps);
		}
		check_removed(c);
	} while (before != c->seen_count);
}

void check_inodes(struct check *c)
{
	uint64_t n;

	check_parts(c);
	for (n = 0; n <= c->seen_mask; n++) {
		const struct seen *s = check_seen_at(c, n);

		if (!s || s->kind != SEEN_INODE)
			continue;
		c->report->inodes++;
		c->report->directories += inode_type(s->obj) == S_IFDIR;
		check_links(c, s->obj, s->names);
		if (c->alone)
			check_count(c, &((struct inode *)s->obj)->refs, s->refs, "inode", ino_of(s->obj));
	}
}

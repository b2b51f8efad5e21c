/* SPDX-License-Identifier: MIT */
/* check_inodes.c - what hangs on each inode, and how often it says that it is named and held. */
#include <string.h>

#include "api/check_priv.h"
#include "ramfs/data_priv.h"
#include "segment/owned.h"
#include "vfs/attr_priv.h"

struct seen *check_inode(struct check *c, struct inode *inode)
{
	switch (marks_room(&c->marks, inode) == mem_room(sizeof(*inode)) ? inode_type(inode) : 0) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		return check_seen(c, inode, SEEN_INODE, marks_add(&c->marks, inode, sizeof(*inode)));
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
	if (inode_gone(inode))
		check_fault(c, false, "inode %llu is held by %s but counted as freed", ino_of(inode), who);
}

void check_holds_dir(struct check *c, struct inode *inode, const char *who)
{
	if (inode && marks_room(&c->marks, inode) == mem_room(sizeof(*inode)) && inode_type(inode) != S_IFDIR)
		check_fault(c, false, "%s is no directory", who);
	else
		check_holds(c, inode, who);
}

void check_kept_name(struct check *c, struct opened *o)
{
	if (!o)
		return;
	if (marks_room(&c->marks, o) > sizeof(*o) && o->len <= NAME_LIMIT &&
	    marks_add_exact(&c->marks, o, sizeof(*o) + o->len + 1) == MARK_NEW && strnlen(o->name, o->len + 1u) == o->len)
		check_holds_dir(c, o->dir, "the name of an open file");
	else
		check_fault(c, false, "the name of an open file is damaged");
}

void check_maps_one(struct check *c, struct inode *inode)
{
	struct seen *s = inode ? check_inode(c, inode) : NULL;

	if (s)
		s->maps++;
}

/* ---- attributes ------------------------------------------------------------------------------- */

/* What its header says lies inside of it. */
static bool xattr_plausible(const struct xattr *x)
{
	return x->name_len <= NAME_LIMIT && x->value_at > x->name_len && !(x->value_at & 7) && x->size <= XATTR_SIZE_MAX &&
	       x->value_at <= ALIGN_UP(NAME_LIMIT + 1, 8) && sizeof(*x) + (uint64_t)x->value_at + x->size <= x->bytes &&
	       strnlen(x->data, x->name_len + 1u) == x->name_len;
}

static bool chain_marked(struct check *c, xattr_link *link)
{
	struct xattr *x;

	for (; (x = load_acquire(link)); link = &x->next) /* pairs with the store in attr_apply_locked */
		if (marks_room(&c->marks, x) < sizeof(*x) || marks_add_exact(&c->marks, x, x->bytes) != MARK_NEW ||
		    !xattr_plausible(x))
			return false;
	return true;
}

static void check_flags(struct check *c, struct inode *inode, struct xattrs *xs)
{
	const uint32_t kept = INODE_DEAD | INODE_TMPFILE | INODE_HAS_XATTR; /* the last asks to look, no more: it may stay too long */
	uint32_t has = load_acquire(&inode->flags), should = has & kept; /* pairs with attr_commit_locked, as below */

	if (xs && load_acquire(&xs->acl[ACL_ACCESS]))
		should |= INODE_HAS_ACL;
	if (xs && load_acquire(&xs->acl[ACL_DEFAULT]))
		should |= INODE_HAS_DEFAULT_ACL;
	if (xs && load_acquire(&xs->list))
		should |= INODE_HAS_XATTR;
	if (has != should && c->alone && c->settled &&
	    check_fault(c, true, "inode %llu: flags %#x, should be %#x", ino_of(inode), has, should))
		store_release(&inode->flags, should);
}

static void check_xattrs(struct check *c, struct inode *inode)
{
	struct xattrs *xs = load_acquire(&inode->xattrs); /* pairs with xattrs_of_locked */
	bool ok = true;
	unsigned k;

	if (xs)
		ok = marks_add_exact(&c->marks, xs, sizeof(*xs)) == MARK_NEW;
	for (k = 0; xs && ok && k < ACL_KINDS; k++)
		ok = chain_marked(c, &xs->acl[k]);
	if (!ok || (xs && !chain_marked(c, &xs->list)))
		check_fault(c, false, "inode %llu: its attributes are damaged", ino_of(inode));
	else
		check_flags(c, inode, xs);
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
	if (index > MAX_FILE_BYTES >> PAGE_SHIFT || entry & (RADIX_LOW & ~DATA_UNWRITTEN))
		check_fault(c, false, "file %llu: a page stands where none can", ino_of(d->inode));
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
	if (says != d.pages && check_fault(c, true, "file %llu has %llu pages and says %llu", ino_of(inode),
					   (unsigned long long)d.pages, (unsigned long long)says))
		store_release(&inode->file.page_count, d.pages);
}

/* What is there only while somebody changes the file. */
static void check_change(struct check *c, struct inode *inode)
{
	if (!c->alone || !c->settled || (!load_relaxed(&inode->file.shadow.root) && /* nobody else is there */
					 !(load_relaxed(&inode->file.data_flags) & ~DATA_ZERO_UNWRITTEN)))
		return;
	if (!check_fault(c, true, "file %llu: a change of nobody's", ino_of(inode)))
		return;
	store_relaxed(&inode->file.shadow.root, 0);
	store_relaxed(&inode->file.data_flags, 0);
}

static void check_size(struct check *c, struct inode *inode, uint64_t least, uint64_t most)
{
	uint64_t size = load_acquire(&inode->size); /* pairs with the writer's store */

	if ((size < least || size > most) && check_fault(c, true, "inode %llu cannot have %llu bytes", ino_of(inode),
							 (unsigned long long)size))
		store_release(&inode->size, least);
}

static void check_symlink(struct check *c, struct inode *inode)
{
	if (inode->target_len >= PATH_LIMIT || marks_add_exact(&c->marks, inode->target, inode->target_len + 1u) != MARK_NEW ||
	    strnlen(inode->target, inode->target_len + 1u) != inode->target_len) {
		check_fault(c, false, "symbolic link %llu is damaged", ino_of(inode));
		return;
	}
	check_size(c, inode, inode->target_len, inode->target_len);
}

/* ---- the inode ------------------------------------------------------------------------------------------ */

/* A directory's links were judged under its lock. */
static void check_links(struct check *c, struct inode *inode, uint32_t names)
{
	uint32_t nlink = load_acquire(&inode->nlink); /* pairs with the store of link and unlink */

	if (nlink != names && inode_type(inode) != S_IFDIR &&
	    check_fault(c, true, "inode %llu has %u links and %u names", ino_of(inode), nlink, names))
		store_release(&inode->nlink, names);
}

/* One of its names, or none: getcwd follows it. */
static void check_alias(struct check *c, const struct seen *s)
{
	struct inode *inode = s->obj;

	if (s->alias || !c->alone || !load_acquire(&inode->alias)) /* pairs with the stores of those who name it */
		return;
	if (check_fault(c, true, "inode %llu: its name is not one of its names", ino_of(inode)))
		store_release(&inode->alias, s->dentry);
}

/* A number that was never given out would be given out once more. */
static void check_number(struct check *c, struct inode *inode)
{
	atomic_u64 *next = &c->self->seg->hdr->next_ino;

	if (!c->alone || (inode->ino && inode->ino < load_relaxed(next))) /* nobody else is there */
		return;
	if (inode->ino >> 62 || !inode->ino)
		check_fault(c, false, "inode %llu: a number that no inode has", ino_of(inode));
	else if (check_fault(c, true, "inode %llu: its number was not given out", ino_of(inode)))
		store_relaxed(next, inode->ino + 1);
}

/* Too many: somebody died between the count and the descriptor.  Too few: pages would be free while they are mapped. */
static void check_maps(struct check *c, struct inode *inode, uint32_t found)
{
	uint32_t says = load_acquire(&inode->file.maps); /* pairs with ramfs_map_get */

	if (!c->alone || !c->settled || says == found)
		return;
	if (says > found)
		check_left(c, "file %llu is counted as mapped %u times and is mapped %u times", ino_of(inode), says, found);
	else
		check_fault(c, true, "file %llu is counted as mapped %u times and is mapped %u times", ino_of(inode), says,
			    found);
	if (!c->repair)
		return;
	store_relaxed(&inode->file.maps, found + 1); /* nobody else is there */
	ramfs_map_put(c->self, inode); /* and pages that nobody maps any more are free */
}

static void check_one(struct check *c, struct inode *inode, uint32_t maps)
{
	check_lock(c, &inode->lock, "inode", inode->ino);
	check_seq(c, &inode->seq, "inode", inode->ino);
	check_number(c, inode);
	if (inode_type(inode) == S_IFREG)
		check_maps(c, inode, maps);
	check_kept_name(c, load_acquire(&inode->was)); /* pairs with was_keep */
	epoch_enter(c->self);
	if (inode_type(inode) == S_IFREG) {
		check_data(c, inode);
		check_change(c, inode);
		check_kept(c, inode);
		check_size(c, inode, 0, MAX_FILE_BYTES);
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
			if (inode_type(s->obj) == S_IFDIR && !s->names && c->alone && s->obj != vfs_root_of(c->self)->root)
				check_queue(c, s->obj); /* removed, and still open */
			check_one(c, s->obj, s->maps);
		}
		check_removed(c);
	} while (before != c->seen_count);
}

/* From a removed directory its parents lead to the root, or who walks up never gets there. */
static bool leads_up(struct check *c, struct inode *dir)
{
	struct inode *root = vfs_root_of(c->self)->root;
	uint64_t most = c->seen_count;

	while (dir != root && most--) {
		const struct seen *s = check_known(c, dir, SEEN_INODE);

		if (!s || inode_type(dir) != S_IFDIR)
			return false;
		if (s->names)
			return true; /* from there on the walk from the root has seen it */
		dir = load_relaxed(&dir->dir.parent); /* nobody else is there */
		if (!dir)
			return true;
	}
	return dir == root;
}

static void check_parents(struct check *c)
{
	uint64_t n;

	for (n = 0; c->alone && n <= c->seen_mask; n++) {
		const struct seen *s = check_seen_at(c, n);

		if (s && s->kind == SEEN_INODE && inode_type(s->obj) == S_IFDIR && !s->names && !leads_up(c, s->obj))
			check_fault(c, false, "directory %llu does not lead to the root", ino_of(s->obj));
	}
}

void check_inodes(struct check *c)
{
	uint64_t n;

	check_parts(c);
	check_parents(c);
	check_watches(c);
	for (n = 0; n <= c->seen_mask; n++) {
		const struct seen *s = check_seen_at(c, n);

		if (!s || s->kind != SEEN_INODE)
			continue;
		c->report->inodes++;
		c->report->directories += inode_type(s->obj) == S_IFDIR;
		check_links(c, s->obj, s->names);
		check_alias(c, s);
		if (c->alone)
			check_tally(c, &((struct inode *)s->obj)->refs, s->refs, "inode", ino_of(s->obj));
	}
}

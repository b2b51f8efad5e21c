/* SPDX-License-Identifier: MIT */
/* at.c - where a path starts: directory descriptors, and the ways to hold what a path names. */
#include <string.h>

#include "api/api.h"

/* The order in which Linux complains: the path as such, then the descriptor. */
static int path_check(const char *path, bool empty_ok)
{
	if (!path)
		return -EFAULT;
	return *path || empty_ok ? 0 : -ENOENT;
}

static int dirfd_bad(const char *path)
{
	return strnlen(path, PATH_LIMIT) == PATH_LIMIT ? -ENAMETOOLONG : -EBADF;
}

/* The inode a relative path starts from. */
static int start_of(struct fd_file *head, const char *path, struct inode **start)
{
	struct file *f = file_of(head);

	if (!file_has_inode(f) || (*path && inode_type(f->inode) != S_IFDIR))
		return strnlen(path, PATH_LIMIT) == PATH_LIMIT ? -ENAMETOOLONG : -ENOTDIR;
	*start = f->inode;
	return 0;
}

/* ---- look ------------------------------------------------------------------------------------ */

static int look_walk_epoch(struct look *l, int dirfd, const char *path, unsigned walk_flags)
{
	struct inode *start = NULL;
	int err;

	if (needs_dirfd(dirfd, path, walk_flags)) {
		err = fd_borrow(l->w.self, l->w.files, dirfd, &l->at);
		if (err) {
			l->at = NULL;
			return dirfd_bad(path);
		}
		err = start_of(l->at, path, &start);
		if (err)
			return err;
	}
	return walk_epoch(&l->w, start, path, walk_flags, &l->walk);
}

int look_begin_as(struct look *l, int dirfd, const char *path, unsigned walk_flags)
{
	int err = path_check(path, walk_flags & WALK_EMPTY_PATH);

	if (unlikely(err))
		return err;
	l->at = NULL;
	scheme_names_enter(l->w.self);
	epoch_enter(l->w.self);
	err = look_walk_epoch(l, dirfd, path, walk_flags);
	if (unlikely(err))
		look_end(l);
	return err;
}

int look_begin(struct look *l, struct shelf_task *t, int dirfd, const char *path, unsigned walk_flags)
{
	int err = who_init(&l->w, t);

	return unlikely(err) ? err : look_begin_as(l, dirfd, path, walk_flags);
}

void look_end(struct look *l)
{
	if (l->at)
		fd_return(l->w.self, l->w.files, l->at);
	epoch_exit(l->w.self);
	scheme_names_exit(l->w.self);
}

/* ---- hold ------------------------------------------------------------------------------------- */

int hold_begin(struct hold *h, struct shelf_task *t, int dirfd, const char *path, unsigned walk_flags)
{
	struct look l;
	bool got;
	int k, err = who_change(&l.w, t);

	if (err)
		return err;
	store_relaxed(&h->name, NULL); /* ours alone */
	do {
		err = look_begin_as(&l, dirfd, path, walk_flags);
		if (err)
			return err;
		got = inode_get_epoch(l.w.self, l.walk.inode, &k); /* false: removed since the walk found it */
		if (got && notify_wanted(l.w.self))
			store_relaxed(&h->name, opened_new_epoch(l.w.self, &l.walk)); /* ours alone */
		look_end(&l);
	} while (!got);
	h->w = l.w;
	h->inode = l.walk.inode;
	return 0;
}

int64_t hold_end(struct hold *h, int64_t result)
{
	opened_put(h->w.self, load_relaxed(&h->name)); /* ours alone */
	inode_put(h->w.self, h->inode);
	return result;
}

int hold_changed(struct hold *h, int err, uint32_t event)
{
	struct opened *o = load_relaxed(&h->name); /* ours alone */

	if (!err && event && o)
		notify_kept(h->w.self, h->inode, o, event);
	else if (!err && event)
		notify_inode(h->w.self, h->inode, event);
	return (int)hold_end(h, err);
}

/* ---- call --------------------------------------------------------------------------------------- */

int call_begin(struct who *w, struct shelf_task *t)
{
	int err = who_change(w, t);

	if (likely(!err))
		scheme_names_enter(w->self);
	return err;
}

int call_end(struct who *w, int result)
{
	scheme_names_exit(w->self);
	return result;
}

int place_get_slow(struct who *w, int dirfd, const char *path, unsigned walk_flags, struct place *out)
{
	int err = path_check(path, walk_flags & WALK_EMPTY_PATH);

	out->at = NULL;
	out->start = NULL;
	if (err)
		return err;
	err = fd_get(w->self, w->files, dirfd, &out->at);
	if (err) {
		out->at = NULL;
		return dirfd_bad(path);
	}
	err = start_of(out->at, path, &out->start);
	if (err)
		place_put(w, out);
	return err;
}

int call_at(struct call *c, struct shelf_task *t, int dirfd, const char *path)
{
	int err = call_begin(&c->w, t);

	if (err)
		return err;
	err = place_get(&c->w, dirfd, path, &c->place);
	return err ? call_end(&c->w, err) : 0;
}

int call_at_end(struct call *c, int result)
{
	place_put(&c->w, &c->place);
	return call_end(&c->w, result);
}

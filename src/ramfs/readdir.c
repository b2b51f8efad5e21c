/* SPDX-License-Identifier: MIT */
/*
 * readdir.c - listing a directory, without locks.
 *
 * Order: by cookie, which an entry keeps as long as it lives.  A position is one more than the last
 * cookie seen, so each entry that is there all the time comes exactly once, whatever else happens.
 * A listing ends where the directory ended when it began (struct file keeps that), so a program that
 * renames or creates while it lists comes to an end.  An entry renamed meanwhile may be seen under either name,
 * both or neither, as in Linux.
 * Shared writes: none.  Progress: wait-free.
 */
#include <stddef.h>

#include "base/copy.h"
#include "base/fault.h"
#include "ramfs/names_priv.h"

struct record { /* struct linux_dirent64 */
	uint64_t ino;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};
#define RECORD_NAME offsetof(struct record, name)
_Static_assert(RECORD_NAME == 19, "the kernel's layout");

struct listing {
	char *at;
	size_t left;
	bool fault; /* what is next cannot be written there */
};

/* False: no room, or a bad address. */
static bool listing_add(struct listing *l, const struct inode *inode, uint64_t next, const char *name, size_t len)
{
	size_t bytes = ALIGN_UP(RECORD_NAME + len + 1, (size_t)8);
	_Alignas(8) char room[ALIGN_UP(RECORD_NAME + NAME_MAX + 1, 8)];
	struct record *r = (struct record *)(void *)room;

	if (bytes > l->left)
		return false;
	r->ino = inode->ino;
	r->next = (int64_t)next;
	r->bytes = (uint16_t)bytes;
	r->type = (uint8_t)(inode_type(inode) >> 12); /* IFTODT */
	copy_bytes(r->name, name, len);
	zero_bytes(r->name + len, bytes - RECORD_NAME - len);
	l->fault = !l->at || copy_to_user(l->at, r, bytes);
	if (unlikely(l->fault))
		return false;
	l->at += bytes;
	l->left -= bytes;
	return true;
}

static bool listing_dots(struct listing *l, struct inode *dir, uint64_t *pos)
{
	if (*pos == 0) {
		if (!listing_add(l, dir, 1, ".", 1))
			return false;
		*pos = 1;
	}
	if (*pos == 1) {
		if (!listing_add(l, load_acquire(&dir->dir.parent), 2, "..", 2)) /* pairs with parent_set */
			return false;
		*pos = 2;
	}
	return true;
}

static bool listing_entries(struct listing *l, struct inode *dir, uint64_t *pos, uint64_t end)
{
	uint64_t place = *pos < DIR_FIRST_COOKIE ? 0 : *pos - DIR_FIRST_COOKIE;
	uint64_t found;

	/* Pairs with dentry_reserve_locked: the entry's constant fields. */
	while ((found = radix_next_epoch(&dir->dir.index, &place, end - DIR_FIRST_COOKIE))) {
		struct dentry *d = (struct dentry *)(uintptr_t)found;
		struct inode *inode = load_acquire(&d->inode); /* pairs with its publication */
		uint64_t next = ++place + DIR_FIRST_COOKIE;

		if (!inode)
			continue;
		if (!listing_add(l, inode, next, d->name, d->len))
			return false;
		*pos = next;
	}
	return true;
}

static ssize_t list_until(struct inode *dir, uint64_t *pos, void *buf, size_t size, uint64_t end)
{
	struct listing l = {.at = buf, .left = size};
	bool all;

	if (inode_type(dir) != S_IFDIR)
		return -ENOTDIR;
	if (load_relaxed(&dir->flags) & INODE_DEAD) /* final; relaxed: before or after */
		return -ENOENT;
	if (*pos > INT64_MAX)
		return -EINVAL;
	all = listing_dots(&l, dir, pos) && listing_entries(&l, dir, pos, end);
	if (!all && l.left == size)
		return l.fault ? -EFAULT : -EINVAL; /* not even one fits */
	return (ssize_t)(size - l.left);
}

static uint64_t dir_end(struct inode *dir)
{
	return inode_type(dir) == S_IFDIR ? load_acquire(&dir->dir.next_cookie) : DIR_FIRST_COOKIE; /* pairs with dentry_reserve_locked */
}

ssize_t ramfs_getdents_epoch(struct who *w, struct inode *dir, uint64_t *pos, void *buf, size_t size)
{
	(void)w;
	return list_until(dir, pos, buf, size, dir_end(dir));
}

ssize_t ramfs_getdents_file_epoch(struct who *w, struct file *f, uint64_t *pos, void *buf, size_t size)
{
	(void)w;
	if (*pos == 0 || !f->private_[0])
		f->private_[0] = dir_end(f->inode);
	return list_until(f->inode, pos, buf, size, f->private_[0]);
}

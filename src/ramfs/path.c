/* SPDX-License-Identifier: MIT */
/*
 * path.c - from an inode to a path: getcwd, /proc/self/fd.
 *
 * Each step reads the inode's alias, a dentry that names it.  The steps are not one instant, so the way up is
 * walked twice: the same dentries both times make it one.  A dentry whose inode moved away is seen as such.
 * Shared writes: none.  Progress: lock-free, bounded; under a storm of renames above it the answer may mix two of them.
 */
#include "base/copy.h"
#include "ramfs/names_priv.h"

#define PATH_TRIES 64u

struct climb {
	char *buf, *at;
	uint64_t trace; /* of all dentries passed: addresses and cookies */
};

static int climb_prepend(struct climb *c, const char *name, size_t len)
{
	if ((size_t)(c->at - c->buf) < len)
		return -ERANGE;
	c->at -= len;
	copy_bytes(c->at, name, len);
	return 0;
}

/* The dentry that names the inode now, or NULL (removed, or moving at this moment). */
static struct dentry *climb_alias(struct inode *inode)
{
	struct dentry *d = load_acquire(&inode->alias); /* pairs with finish_alias */

	return d && load_acquire(&d->inode) == inode ? d : NULL;
}

static int climb_step(struct climb *c, struct inode **inode)
{
	struct dentry *d = climb_alias(*inode);
	int err;

	if (!d)
		return load_acquire(&(*inode)->nlink) ? -EAGAIN : -ENOENT;
	c->trace = c->trace * 31 + (uint64_t)(uintptr_t)d + d->cookie;
	err = climb_prepend(c, d->name, d->len);
	if (!err)
		err = climb_prepend(c, "/", 1);
	*inode = d->parent;
	return err;
}

static int climb_to(struct climb *c, struct inode *inode, struct inode *root, char *end)
{
	int err;

	c->at = end;
	c->trace = 0;
	while (inode != root) {
		if (S_ISDIR(inode_type(inode)) && load_acquire(&inode->dir.parent) == inode) /* the shelf's root */
			return climb_prepend(c, "(unreachable)", 13);
		err = climb_step(c, &inode);
		if (err)
			return err;
	}
	return 0;
}

int ramfs_path_epoch(struct who *w, struct inode *inode, struct inode *root, char *buf, size_t size, char **at)
{
	struct climb c = {.buf = buf};
	char *end = buf + size - 1;
	uint64_t before = 0;
	unsigned n;
	int err = -ENOENT;

	(void)w;
	if (!size)
		return -ERANGE;
	for (n = 0; n < PATH_TRIES; n++) {
		err = climb_to(&c, inode, root, end);
		if (err == -EAGAIN)
			continue;
		if (err || (n && c.trace == before))
			break;
		before = c.trace;
	}
	if (err)
		return err == -EAGAIN ? -ENOENT : err;
	*end = 0;
	if (c.at == end && climb_prepend(&c, "/", 1))
		return -ERANGE;
	*at = c.at;
	return 0;
}

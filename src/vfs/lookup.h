/* SPDX-License-Identifier: MIT */
/*
 * lookup.h - one name in one directory, inlined into the walk.  What protects it: see dentry.c.
 */
#ifndef SHELF_VFS_LOOKUP_H
#define SHELF_VFS_LOOKUP_H

#include "base/hash.h"
#include "vfs/vfs.h"

static inline uint32_t table_place(const struct dir_table *t, uint32_t hash)
{
	return (uint32_t)(((uint64_t)hash * t->buckets) >> 32);
}

/* A dentry's name has zeros behind it up to a multiple of 8, so its last word is the component's tail. */
static inline_always bool dentry_has_name(const struct dentry *d, const struct component *c)
{
	const char *a = d->name, *b = c->name;
	size_t n = c->len;

	for (; n >= 8; n -= 8, a += 8, b += 8)
		if (hash_load8(a) != hash_load8(b))
			return false;
	return !n || hash_load8(a) == c->tail;
}

/* The hash's upper half is the one that dentries keep. */
static inline uint32_t component_hash(const struct component *c)
{
	return (uint32_t)(c->hash >> 32);
}

/* The entry and, in *inode, what it named at that moment. */
static inline_always struct dentry *dentry_find_component(struct inode *dir, const struct component *c,
							  struct inode **inode)
{
	struct dir_table *t = load_acquire(&dir->dir.table); /* pairs with table_publish */
	uint32_t hash = component_hash(c);
	struct dentry *d;
	uint32_t which;

	*inode = NULL;
	if (unlikely(!t))
		return NULL;
	which = t->which;
	/* Pairs with chain_insert: the entry's constant fields. */
	for (d = load_acquire(&t->bucket[table_place(t, hash)]); d; d = load_acquire(&d->next[which])) {
		if (d->hash != hash || d->len != c->len || !dentry_has_name(d, c))
			continue;
		*inode = seq_load(&d->inode); /* pairs with the stores that publish, swap and end it */
		if (likely(*inode))
			return d; /* one without inode has ended, or is to come: another of its name may follow */
	}
	return NULL;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * rbtree.h - intrusive red-black tree with an optional augmentation, as for
 * interval trees.  Changes and walks happen under the owner's lock.
 *
 * The user searches by itself, then rb_insert()s at the link where the search ended.  `update`
 * recomputes a node's summary from its own data and its two children; it is called for every
 * node whose subtree changed, children before parents.  It is passed with each change and never stored: the
 * tree is in shared memory and processes load code at different addresses.
 * Limit: a process that dies inside a change leaves a broken tree.  Users that must survive it
 * keep the entries on a list as well and rebuild.
 */
#ifndef SHELF_BASE_RBTREE_H
#define SHELF_BASE_RBTREE_H

#include "base/base.h"

struct rb_node {
	struct rb_node *parent;
	struct rb_node *child[2]; /* 0: smaller, 1: greater */
	bool red;
};

struct rb_root {
	struct rb_node *top;
};

typedef void rb_update_fn(struct rb_node *node);

static inline void rb_init(struct rb_root *root)
{
	root->top = NULL;
}

/* `parent` is the node the search ended at (NULL: the tree is empty), `side` where below it. */
void rb_insert(struct rb_root *root, struct rb_node *parent, unsigned side, struct rb_node *node,
	       rb_update_fn *update);
void rb_erase(struct rb_root *root, struct rb_node *node, rb_update_fn *update);
/* The node's own data changed, its order did not. */
void rb_changed(struct rb_node *node, rb_update_fn *update);

/* The extreme node on that side: 0 the first, 1 the last.  NULL: empty. */
struct rb_node *rb_edge(const struct rb_root *root, unsigned side);
/* The neighbour: 1 the next greater, 0 the next smaller. */
struct rb_node *rb_step(const struct rb_node *node, unsigned side);

static inline struct rb_node *rb_first(const struct rb_root *root)
{
	return rb_edge(root, 0);
}

static inline struct rb_node *rb_next(const struct rb_node *node)
{
	return rb_step(node, 1);
}

static inline struct rb_node *rb_prev(const struct rb_node *node)
{
	return rb_step(node, 0);
}

#endif

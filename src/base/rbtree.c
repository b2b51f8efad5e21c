/* SPDX-License-Identifier: MIT */
/* rbtree.c - see rbtree.h.  Left and right are child[0] and child[1], so each case is written once. */
#include "base/rbtree.h"

static unsigned rb_side(const struct rb_node *node)
{
	return node->parent->child[1] == node;
}

static bool rb_is_red(const struct rb_node *node)
{
	return node && node->red;
}

static void rb_replace_in_parent(struct rb_root *root, struct rb_node *old, struct rb_node *new)
{
	if (!old->parent)
		root->top = new;
	else
		old->parent->child[rb_side(old)] = new;
	if (new)
		new->parent = old->parent;
}

/* `node` goes down to `side`; its child on the other side takes its place. */
static void rb_rotate(struct rb_root *root, struct rb_node *node, unsigned side, rb_update_fn *update)
{
	struct rb_node *up = node->child[!side];

	node->child[!side] = up->child[side];
	if (up->child[side])
		up->child[side]->parent = node;
	rb_replace_in_parent(root, node, up);
	up->child[side] = node;
	node->parent = up;
	if (update) {
		update(node);
		update(up);
	}
}

void rb_changed(struct rb_node *node, rb_update_fn *update)
{
	if (!update)
		return;
	for (; node; node = node->parent)
		update(node);
}

/* `node` is red; its parent may be red too. */
static void rb_insert_balance(struct rb_root *root, struct rb_node *node, rb_update_fn *update)
{
	while (rb_is_red(node->parent)) {
		struct rb_node *parent = node->parent;
		struct rb_node *grand = parent->parent; /* a red parent is not the top */
		unsigned side = rb_side(parent);
		struct rb_node *uncle = grand->child[!side];

		if (rb_is_red(uncle)) {
			parent->red = false;
			uncle->red = false;
			grand->red = true;
			node = grand;
			continue;
		}
		if (rb_side(node) != side) {
			rb_rotate(root, parent, side, update);
			parent = node;
		}
		parent->red = false;
		grand->red = true;
		rb_rotate(root, grand, !side, update);
		break;
	}
	root->top->red = false;
}

void rb_insert(struct rb_root *root, struct rb_node *parent, unsigned side, struct rb_node *node,
	       rb_update_fn *update)
{
	node->parent = parent;
	node->child[0] = NULL;
	node->child[1] = NULL;
	node->red = true;
	if (parent)
		parent->child[side] = node;
	else
		root->top = node;
	rb_changed(node, update);
	rb_insert_balance(root, node, update);
}

/* One step for a subtree (on `side` of parent) that is short of one black node.  False: done. */
static bool rb_erase_step(struct rb_root *root, struct rb_node *parent, unsigned side, rb_update_fn *update)
{
	struct rb_node *sib = parent->child[!side];

	if (sib->red) {
		sib->red = false;
		parent->red = true;
		rb_rotate(root, parent, side, update);
		sib = parent->child[!side];
	}
	if (!rb_is_red(sib->child[0]) && !rb_is_red(sib->child[1])) {
		sib->red = true;
		return true;
	}
	if (!rb_is_red(sib->child[!side])) {
		sib->child[side]->red = false;
		sib->red = true;
		rb_rotate(root, sib, !side, update);
		sib = parent->child[!side];
	}
	sib->red = parent->red;
	parent->red = false;
	sib->child[!side]->red = false;
	rb_rotate(root, parent, side, update);
	return false;
}

/* A black node is missing above `node` (may be NULL), which hangs on `side` of `parent`. */
static void rb_erase_balance(struct rb_root *root, struct rb_node *parent, unsigned side, rb_update_fn *update)
{
	struct rb_node *node = parent ? parent->child[side] : root->top;

	while (parent && !rb_is_red(node)) {
		if (!rb_erase_step(root, parent, side, update))
			return;
		node = parent;
		parent = node->parent;
		if (parent)
			side = rb_side(node);
	}
	if (node)
		node->red = false;
}

/* `node` has two children: its successor, taken out of its place, steps into node's. */
static void rb_take_place(struct rb_root *root, struct rb_node *node, struct rb_node *heir)
{
	rb_replace_in_parent(root, node, heir);
	heir->child[0] = node->child[0];
	heir->child[1] = node->child[1];
	heir->red = node->red;
	heir->child[0]->parent = heir;
	if (heir->child[1])
		heir->child[1]->parent = heir;
}

void rb_erase(struct rb_root *root, struct rb_node *node, rb_update_fn *update)
{
	struct rb_node *out = node; /* the node whose place disappears: it has at most one child */
	struct rb_node *parent;
	unsigned side;
	bool red;

	if (node->child[0] && node->child[1])
		for (out = node->child[1]; out->child[0]; out = out->child[0])
			;
	parent = out->parent;
	side = parent ? rb_side(out) : 0;
	red = out->red;
	rb_replace_in_parent(root, out, out->child[0] ? out->child[0] : out->child[1]);
	if (out != node) {
		rb_take_place(root, node, out);
		if (parent == node)
			parent = out;
	}
	rb_changed(parent, update);
	if (!red)
		rb_erase_balance(root, parent, side, update);
}

struct rb_node *rb_edge(const struct rb_root *root, unsigned side)
{
	struct rb_node *node = root->top;

	while (node && node->child[side])
		node = node->child[side];
	return node;
}

struct rb_node *rb_step(const struct rb_node *node, unsigned side)
{
	if (node->child[side]) {
		struct rb_node *down = node->child[side];

		while (down->child[!side])
			down = down->child[!side];
		return down;
	}
	while (node->parent && rb_side(node) == side)
		node = node->parent;
	return node->parent;
}

/* SPDX-License-Identifier: MIT */
/*
 * radix.c - changes of a radix tree.  The caller holds the owner's lock.
 *
 * A store builds what is missing aside - nodes above the old root, nodes on
 * the way down - and publishes it with one release store; until that the nodes are in the
 * thread's ledger, and so is a node that is taken out until it is retired (segment/hand.h).  `used` is raised before a
 * slot is filled and lowered after it is cleared, so a death in between leaves it
 * too high: the node is then not retired when it becomes empty.
 */
#include "base/copy.h"
#include "epoch/epoch_priv.h"
#include "epoch/radix.h"
#include "segment/hand.h"

/* Nodes for one store, taken before anything changes: at most one per height above and below. */
struct radix_stock {
	struct radix_node *node[2 * RADIX_HEIGHT_MAX];
	int noted[2 * RADIX_HEIGHT_MAX];
	uint32_t given; /* all of them, in the ledger */
	unsigned n;
};

void radix_free_node(struct slot *self, struct retired *r)
{
	cache_free(self, CACHE_576, container_of(r, struct radix_node, retired));
}

/* Readers see what was stored in the node before: pairs with the acquire loads of all searches. */
static void radix_publish(atomic_u64 *where, uint64_t word)
{
	tracked_store(where, word);
}

/* The nodes of the stock, all used, get into the tree. */
static void radix_link(struct slot *self, const struct radix_stock *stock, atomic_u64 *where, uint64_t word)
{
	hand_begin(self, where, word, stock->given, 0);
	radix_publish(where, word);
	hand_end(self, stock->given);
}

/* `node` gets out of the tree by that store. */
static void radix_unlink(struct slot *self, atomic_u64 *where, uint64_t word, struct radix_node *node)
{
	int k = retire_begin(self, where, word, 0, &node->retired, RETIRE_NODE, 0);

	radix_publish(where, word);
	hand_end(self, 0);
	epoch_retire_noted(self, &node->retired, k);
}

static int radix_stock_fill(struct slot *self, struct radix_stock *stock, unsigned want)
{
	stock->given = 0;
	for (stock->n = 0; stock->n < want; stock->n++) {
		struct radix_node *node = cache_alloc_noted(self, CACHE_576, &stock->noted[stock->n]);

		if (!node)
			break;
		zero_bytes(node, sizeof(*node));
		stock->node[stock->n] = node;
		stock->given |= hand_bit(stock->noted[stock->n]);
	}
	if (stock->n == want)
		return 0;
	while (stock->n--)
		cache_free_noted(self, CACHE_576, stock->node[stock->n], stock->noted[stock->n]);
	return -ENOSPC;
}

/* A private node with one entry. */
static struct radix_node *radix_wrap(struct radix_stock *stock, unsigned place, uint64_t word)
{
	struct radix_node *node = stock->node[--stock->n];

	store_relaxed(&node->slot[place], word); /* published later */
	node->used = word != 0;
	return node;
}

/* A private chain of nodes of heights 1..h that leads to `value` (h 0: the value itself). */
static uint64_t radix_chain(struct radix_stock *stock, unsigned h, uint64_t index, uint64_t value)
{
	unsigned at;

	for (at = 1; at <= h; at++)
		value = (uint64_t)(uintptr_t)radix_wrap(stock, radix_place(index, at), value);
	return value;
}

/* The tree is too low: everything new goes above and beside the old root, and one store shows it. */
static int radix_grow(struct slot *self, struct radix *r, unsigned height, uint64_t index, uint64_t value)
{
	uint64_t root = load_relaxed(&r->root); /* writers hold the lock */
	unsigned h = radix_height(root);
	uint64_t below = h ? root & ~(uint64_t)RADIX_LOW : root;
	struct radix_node *top = NULL;
	struct radix_stock stock;
	unsigned place = radix_place(index, height);

	if (radix_stock_fill(self, &stock, (root ? height - h : 1) + height - 1))
		return -ENOSPC;
	for (h = root ? h : height - 1; h < height; h++) {
		top = radix_wrap(&stock, 0, below);
		below = (uint64_t)(uintptr_t)top;
	}
	top->used += !load_relaxed(&top->slot[place]); /* private still */
	store_relaxed(&top->slot[place], radix_chain(&stock, height - 1, index, value)); /* the same */
	radix_link(self, &stock, &r->root, (uint64_t)(uintptr_t)top | height);
	return 0;
}

/* The tree is high enough: fill the first empty slot on the way down. */
static int radix_fill(struct slot *self, uint64_t root, uint64_t index, uint64_t value, uint64_t *old)
{
	unsigned h = radix_height(root);
	struct radix_node *node = radix_node_of(root);
	struct radix_stock stock;
	atomic_u64 *where = &node->slot[radix_place(index, h)];
	uint64_t word = load_relaxed(where); /* writers hold the lock */

	while (word && h > 1) {
		node = radix_node_of(word);
		where = &node->slot[radix_place(index, --h)];
		word = load_relaxed(where); /* the same */
	}
	if (word) { /* h is 1 */
		*old = word;
		radix_publish(where, value);
		return 0;
	}
	if (h > 1 && radix_stock_fill(self, &stock, h - 1))
		return -ENOSPC;
	node->used++; /* before the slot: see the top */
	fence_compiler();
	if (h > 1)
		radix_link(self, &stock, where, radix_chain(&stock, h - 1, index, value));
	else
		radix_publish(where, value);
	return 0;
}

int radix_store(struct slot *self, struct radix *r, uint64_t index, uint64_t value, uint64_t *old)
{
	uint64_t root = load_relaxed(&r->root); /* writers hold the lock */
	unsigned h = radix_height(root);
	uint64_t dummy;

	shelf_assert(value != 0);
	old = old ? old : &dummy;
	*old = 0;
	if (!h && !index) {
		*old = root;
		if (!(value & RADIX_LOW)) {
			radix_publish(&r->root, value);
			return 0;
		}
	}
	if (h && radix_fits(index, h))
		return radix_fill(self, root, index, value, old);
	for (h = max_of(h, 1u); !radix_fits(index, h); h++)
		;
	return radix_grow(self, r, h, index, value);
}

/* `k` NULL: whose the value is is the caller's affair. */
static void radix_clear_value(struct slot *self, atomic_u64 *where, int *k)
{
	uint64_t value = load_relaxed(where); /* writers hold the lock */

	if (k)
		*k = hand_begin_got(self, where, 0, 0, (void *)(uintptr_t)(value & ~(uint64_t)RADIX_LOW), LEDGER_PAGE);
	radix_publish(where, 0);
	if (k)
		hand_end(self, 0);
}

/* Clear the slot, then its parent's, and so on while nodes become empty. */
static void radix_clear(struct slot *self, struct radix *r, atomic_u64 **where, struct radix_node **path, unsigned n, int *k)
{
	struct radix_node *empty = NULL;

	while (n--) {
		if (empty)
			radix_unlink(self, where[n], 0, empty);
		else
			radix_clear_value(self, where[n], k);
		fence_compiler(); /* before `used`: see the top */
		if (--path[n]->used)
			return;
		empty = path[n];
	}
	radix_unlink(self, &r->root, 0, empty);
}

static inline_always uint64_t radix_erase_as(struct slot *self, struct radix *r, uint64_t index, int *k)
{
	uint64_t word = load_relaxed(&r->root); /* writers hold the lock */
	struct radix_node *path[RADIX_HEIGHT_MAX];
	atomic_u64 *where[RADIX_HEIGHT_MAX];
	unsigned h = radix_height(word);
	unsigned n = 0;

	if (!word || !radix_fits(index, h))
		return 0;
	if (!h) {
		radix_clear_value(self, &r->root, k);
		return word;
	}
	for (; h && word; h--, n++) {
		path[n] = radix_node_of(word);
		where[n] = &path[n]->slot[radix_place(index, h)];
		word = load_relaxed(where[n]); /* writers hold the lock */
	}
	if (word)
		radix_clear(self, r, where, path, n, k);
	return word;
}

uint64_t radix_erase(struct slot *self, struct radix *r, uint64_t index)
{
	return radix_erase_as(self, r, index, NULL);
}

uint64_t radix_erase_noted(struct slot *self, struct radix *r, uint64_t index, int *k)
{
	*k = -1;
	return radix_erase_as(self, r, index, k);
}

/* While only the first slot of the top node is in use, its content is the tree. */
static void radix_shrink(struct slot *self, struct radix *r)
{
	for (;;) {
		uint64_t root = load_relaxed(&r->root); /* writers hold the lock */
		unsigned h = radix_height(root);
		struct radix_node *top = radix_node_of(root);
		uint64_t first;

		if (!h || top->used != 1)
			return;
		first = load_relaxed(&top->slot[0]); /* the same */
		if (!first || (h == 1 && first & RADIX_LOW))
			return;
		radix_unlink(self, &r->root, first | (h - 1), top);
	}
}

/* Depth first over the subtree at *where, children before parents; the depth is the height, at most 11.  With self: they go. */
static uint64_t radix_each_node(struct slot *self, atomic_u64 *where, unsigned h)
{
	struct radix_node *node = radix_node_of(load_relaxed(where)); /* writers hold the lock */
	uint64_t n = 1;
	unsigned i;

	for (i = 0; h > 1 && i < RADIX_SLOTS; i++)
		if (load_relaxed(&node->slot[i])) /* the same */
			n += radix_each_node(self, &node->slot[i], h - 1);
	if (self)
		radix_unlink(self, where, 0, node);
	return n;
}

/* Nodes that a dead writer left empty. */
static void radix_drop_nodes(struct slot *self, struct radix *r)
{
	uint64_t root = load_relaxed(&r->root); /* writers hold the lock */

	if (radix_height(root))
		radix_each_node(self, &r->root, radix_height(root));
}

void radix_erase_range(struct slot *self, struct radix *r, uint64_t from, uint64_t end, radix_drop_fn *fn, void *ctx)
{
	uint64_t at = from, last = UINT64_MAX;
	uint64_t value;

	for (; (value = radix_next_epoch(r, &at, end)); at++) {
		radix_erase(self, r, at);
		fn(self, ctx, at, value);
	}
	if (!from && end == UINT64_MAX && !radix_prev_epoch(r, &last))
		radix_drop_nodes(self, r);
	else
		radix_shrink(self, r);
}

uint64_t radix_nodes(struct radix *r)
{
	uint64_t root = load_relaxed(&r->root); /* see the header */

	return radix_height(root) ? radix_each_node(NULL, &r->root, radix_height(root)) : 0;
}

/* SPDX-License-Identifier: MIT */
/* radix_walk.c - ordered searches in a radix tree, as readers; each goes down once for every 64 places. */
#include "epoch/radix.h"

/* All indexes that share a slot of a node of height h, as a mask: 0 at height 1, 63 at height 2. */
static uint64_t radix_below(unsigned h)
{
	return (UINT64_C(1) << (RADIX_BITS * (h - 1))) - 1;
}

/* Does the node at height h have anything in use between the place of *index and its end on that side?
 * *index moves there; places passed over lose their low digits. */
static uint64_t radix_seek(struct radix_node *node, unsigned h, uint64_t *index, bool up)
{
	unsigned place = radix_place(*index, h);
	uint64_t below = radix_below(h);

	for (;;) {
		uint64_t word = load_acquire(&node->slot[place]); /* pairs with radix_publish */

		if (word)
			return word;
		if (place == (up ? RADIX_LOW : 0))
			return 0;
		if (up && (*index | below) == UINT64_MAX)
			return 0; /* the top node of height 11 has more places than there are indexes */
		place += up ? 1 : -1u;
		*index = up ? (*index | below) + 1 : (*index & ~below) - 1;
	}
}

enum seek { SEEK_FOUND, SEEK_AGAIN, SEEK_NONE };

/* One way down.  SEEK_AGAIN: *index has moved past a subtree without entries. */
static enum seek radix_descend(uint64_t word, unsigned h, uint64_t *index, uint64_t *value, bool up)
{
	for (; h; h--) {
		uint64_t below = radix_below(h);

		word = radix_seek(radix_node_of(word), h, index, up);
		if (word)
			continue;
		/* The rest of this node is empty: on to its neighbour, if there is one. */
		*index = up ? (*index | below) + 1 : (*index & ~below) - 1;
		return *index == (up ? 0 : UINT64_MAX) ? SEEK_NONE : SEEK_AGAIN;
	}
	*value = word;
	return SEEK_FOUND;
}

static uint64_t radix_search(struct radix *r, uint64_t *index, bool up)
{
	uint64_t value;

	for (;;) {
		uint64_t root = load_acquire(&r->root); /* pairs with radix_publish */
		unsigned h = radix_height(root);
		enum seek found;

		if (!root || (up && !radix_fits(*index, h)))
			return 0;
		if (!radix_fits(*index, h))
			*index = (UINT64_C(1) << (RADIX_BITS * h)) - 1; /* the greatest that fits; 0 at height 0 */
		found = radix_descend(root, h, index, &value, up);
		if (found != SEEK_AGAIN)
			return found == SEEK_FOUND ? value : 0;
	}
}

uint64_t radix_next_epoch(struct radix *r, uint64_t *index, uint64_t end)
{
	uint64_t at = *index;
	uint64_t value = at < end ? radix_search(r, &at, true) : 0;

	if (!value || at >= end)
		return 0;
	*index = at;
	return value;
}

uint64_t radix_prev_epoch(struct radix *r, uint64_t *index)
{
	uint64_t at = *index;
	uint64_t value = radix_search(r, &at, false);

	if (value)
		*index = at;
	return value;
}

uint64_t radix_end_epoch(struct radix *r)
{
	uint64_t index = UINT64_MAX;

	return radix_search(r, &index, false) ? index + 1 : 0;
}

/* The leaf that holds `index`, NULL when there is none. */
static struct radix_node *radix_leaf(uint64_t word, uint64_t index)
{
	unsigned h = radix_height(word);

	if (!radix_fits(index, h))
		return NULL;
	for (; h > 1 && word; h--)
		word = load_acquire(&radix_node_of(word)->slot[radix_place(index, h)]); /* pairs with radix_publish */
	return h ? radix_node_of(word) : NULL;
}

uint64_t radix_next_hole_epoch(struct radix *r, uint64_t index, uint64_t end)
{
	while (index < end) {
		uint64_t root = load_acquire(&r->root); /* pairs with radix_publish */
		struct radix_node *leaf = radix_leaf(root, index);

		if (root && !radix_height(root))
			return index ? index : min_of(end, UINT64_C(1));
		if (!leaf)
			return index;
		do {
			if (!load_relaxed(&leaf->slot[index & RADIX_LOW])) /* only whether it is 0 */
				return index;
			index++;
		} while (index < end && index & RADIX_LOW);
	}
	return end;
}

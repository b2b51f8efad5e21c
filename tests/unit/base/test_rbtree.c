/* SPDX-License-Identifier: MIT */
/* An interval tree, as the record locks have it, against a plain array. */
#include "base/rbtree.h"
#include "harness.h"

struct range {
	struct rb_node node;
	unsigned start, end; /* [start, end) */
	unsigned max_end; /* of the subtree */
	bool in;
};

#define RANGES 300u

static struct range *range_of(struct rb_node *node)
{
	return container_of(node, struct range, node);
}

static void range_update(struct rb_node *node)
{
	struct range *r = range_of(node);
	unsigned i;

	r->max_end = r->end;
	for (i = 0; i < 2; i++)
		if (node->child[i])
			r->max_end = max_of(r->max_end, range_of(node->child[i])->max_end);
}

static void range_add(struct rb_root *root, struct range *r)
{
	struct rb_node *parent = NULL, *at = root->top;
	unsigned side = 0;

	while (at) {
		parent = at;
		side = r->start > range_of(at)->start || (r->start == range_of(at)->start && r > range_of(at));
		at = at->child[side];
	}
	rb_insert(root, parent, side, &r->node, range_update);
	r->in = true;
}

/* Number of black nodes on every way down; checks colours, links, order and summaries. */
static unsigned check_subtree(struct rb_node *node, struct rb_node *parent)
{
	unsigned black[2], i, max_end;

	if (!node)
		return 1;
	assert_ptr_equal(node->parent, parent);
	assert_false(node->red && parent && parent->red);
	for (i = 0; i < 2; i++)
		black[i] = check_subtree(node->child[i], node);
	assert_int_equal(black[0], black[1]);
	max_end = range_of(node)->max_end;
	range_update(node);
	assert_int_equal(range_of(node)->max_end, max_end);
	return black[0] + !node->red;
}

static unsigned check_tree(struct rb_root *root)
{
	struct rb_node *node, *before = NULL;
	unsigned n = 0;

	check_subtree(root->top, NULL);
	for (node = rb_first(root); node; node = rb_next(node), n++) {
		assert_ptr_equal(rb_prev(node), before);
		assert_true(!before || range_of(before)->start <= range_of(node)->start);
		before = node;
	}
	assert_ptr_equal(rb_edge(root, 1), before);
	return n;
}

static bool tree_overlaps(struct rb_node *node, unsigned start, unsigned end)
{
	if (!node || range_of(node)->max_end <= start)
		return false;
	if (tree_overlaps(node->child[0], start, end))
		return true;
	if (range_of(node)->start < end && range_of(node)->end > start)
		return true;
	return range_of(node)->start < end && tree_overlaps(node->child[1], start, end);
}

static bool array_overlaps(struct range *all, unsigned start, unsigned end)
{
	unsigned i;

	for (i = 0; i < RANGES; i++)
		if (all[i].in && all[i].start < end && all[i].end > start)
			return true;
	return false;
}

static void random_changes_keep_the_tree_balanced_and_its_summaries_right(void **state)
{
	static struct range all[RANGES];
	uint64_t seed = test_seed();
	struct rb_root root;
	unsigned step, n = 0;

	(void)state;
	rb_init(&root);
	for (step = 0; step < 6000; step++) {
		struct range *r = &all[test_random(&seed) % RANGES];
		unsigned start = test_random(&seed) % 10000;

		if (r->in) {
			rb_erase(&root, &r->node, range_update);
			r->in = false;
			n--;
		} else {
			r->start = start;
			r->end = start + 1 + test_random(&seed) % 50;
			range_add(&root, r);
			n++;
		}
		if (r->in && step % 7 == 0) {
			r->end += 20;
			rb_changed(&r->node, range_update);
		}
		assert_int_equal(check_tree(&root), n);
		assert_int_equal(tree_overlaps(root.top, start, start + 3), array_overlaps(all, start, start + 3));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_changes_keep_the_tree_balanced_and_its_summaries_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

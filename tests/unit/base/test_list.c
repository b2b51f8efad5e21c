/* SPDX-License-Identifier: MIT */
#include "base/list.h"
#include "harness.h"

struct item {
	int n;
	struct list link;
};

static int item_at(struct list *l)
{
	return list_entry(l, struct item, link)->n;
}

static void a_list_keeps_order_and_lets_go(void **state)
{
	struct item item[4];
	struct list head, other, *pos, *tmp;
	int i, seen = 0;

	(void)state;
	list_init(&head);
	list_init(&other);
	assert_true(list_empty(&head));
	assert_null(list_first(&head));
	for (i = 0; i < 4; i++) {
		item[i].n = i;
		list_add_tail(i < 2 ? &head : &other, &item[i].link);
	}
	list_splice_tail(&head, &other);
	assert_true(list_empty(&other));
	list_for_each(pos, &head)
		assert_int_equal(item_at(pos), seen++);
	assert_int_equal(seen, 4);
	list_for_each_safe(pos, tmp, &head)
		if (item_at(pos) % 2)
			list_del(pos);
	list_del(&item[1].link); /* a second time does no harm */
	assert_int_equal(item_at(list_first(&head)), 0);
	assert_int_equal(item_at(list_last(&head)), 2);
	list_add(&head, &item[3].link);
	assert_int_equal(item_at(list_first(&head)), 3);
}

static void repair_follows_the_forward_chain(void **state)
{
	struct item item[3];
	struct list head;
	int i;

	(void)state;
	list_init(&head);
	for (i = 0; i < 3; i++) {
		item[i].n = i;
		list_add_tail(&head, &item[i].link);
	}
	item[1].link.prev = NULL; /* as after a death inside list_add or list_del */
	head.prev = &item[0].link;
	list_repair(&head);
	assert_ptr_equal(item[1].link.prev, &item[0].link);
	assert_int_equal(item_at(list_last(&head)), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_keeps_order_and_lets_go),
		cmocka_unit_test(repair_follows_the_forward_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

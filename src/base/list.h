/* SPDX-License-Identifier: MIT */
/*
 * list.h - intrusive circular list, linked both ways.  Changes and walks happen
 * under the lock of whoever owns the head.
 *
 * A process may die between two stores: list_add and list_del store `next` pointers so that the
 * forward chain is whole at every step, and list_repair() rebuilds the `prev` pointers from it.
 */
#ifndef SHELF_BASE_LIST_H
#define SHELF_BASE_LIST_H

#include "base/base.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

/* Behind `at`: at the head's place this is the front. */
static inline void list_add(struct list *at, struct list *node)
{
	struct list *next = at->next;

	node->next = next;
	node->prev = at;
	fence_compiler(); /* a death here leaves the forward chain without node */
	at->next = node;
	fence_compiler(); /* a death here leaves next->prev stale: list_repair */
	next->prev = node;
}

static inline void list_add_tail(struct list *head, struct list *node)
{
	list_add(head->prev, node);
}

/* Leaves node linked to itself, so a second list_del does no harm. */
static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	fence_compiler(); /* as in list_add */
	node->next->prev = node->prev;
	list_init(node);
}

static inline struct list *list_first(const struct list *head)
{
	return list_empty(head) ? NULL : head->next;
}

static inline struct list *list_last(const struct list *head)
{
	return list_empty(head) ? NULL : head->prev;
}

/* Everything on `from` goes to the tail of `to`. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

/* After the death of a process that held the lock. */
static inline void list_repair(struct list *head)
{
	struct list *at = head;

	do {
		at->next->prev = at;
		at = at->next;
	} while (at != head);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_for_each(pos, head) for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)
/* pos may be taken off the list in the body. */
#define list_for_each_safe(pos, tmp, head)                                                         \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); (pos) = (tmp), (tmp) = (pos)->next)

#endif

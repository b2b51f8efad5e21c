/* SPDX-License-Identifier: MIT */
/*
 * run_list.c - lists of frames, linked by index + 1, for free runs and slabs.
 *
 * Protected by the lock of whoever owns the list's head.  A list torn by a
 * death is thrown away and rebuilt from the frames (buddy.c, slab.c).
 */
#include "segment/segment_priv.h"

void run_push(struct seg_local *sl, struct run_list *l, uint32_t i)
{
	struct frame *f = &sl->frames[i];

	f->prev = 0;
	f->next = l->head;
	if (l->head)
		sl->frames[l->head - 1].prev = i + 1;
	else
		l->tail = i + 1;
	kill_point();
	l->head = i + 1;
	kill_point();
}

void run_push_tail(struct seg_local *sl, struct run_list *l, uint32_t i)
{
	struct frame *f = &sl->frames[i];

	if (!l->tail) {
		run_push(sl, l, i);
		return;
	}
	f->next = 0;
	f->prev = l->tail;
	sl->frames[l->tail - 1].next = i + 1;
	kill_point();
	l->tail = i + 1;
}

void run_remove(struct seg_local *sl, struct run_list *l, uint32_t i)
{
	struct frame *f = &sl->frames[i];

	if (f->prev)
		sl->frames[f->prev - 1].next = f->next;
	else
		l->head = f->next;
	kill_point();
	if (f->next)
		sl->frames[f->next - 1].prev = f->prev;
	else
		l->tail = f->prev;
	kill_point();
}

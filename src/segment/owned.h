/* SPDX-License-Identifier: MIT */
/*
 * owned.h - whose a page in use is, for those who must not lose one when they die.
 *
 * The frame of a page handed out has the kind and the slot id of the thread that took it.  A caller that
 * notes a page in its intent before it takes or unlinks it lets the recoverer tell, by that
 * id, whether the page was still in the dead thread's hands.
 */
#ifndef SHELF_SEGMENT_OWNED_H
#define SHELF_SEGMENT_OWNED_H

#include "segment/slot.h"

/* What page_alloc(order 0) will hand out at the k-th call from now, if no thief comes; NULL: not known. */
void *page_peek(struct slot *self, unsigned k);
/* The caller's run becomes 2^order pages that are freed one by one. */
void page_split(struct slot *self, void *page, unsigned order);
/* Pages as numbers, 0 for none; and a word of each page in use for its user to chain pages by: whatever it was at first. */
uint32_t page_number(const struct segment *seg, const void *page);
void *page_by_number(const struct segment *seg, uint32_t number);
atomic_u32 *page_link(const struct segment *seg, const void *page);
/* A page (order 0) in use that the caller is about to unlink and free becomes its own. */
void page_claim(struct slot *self, void *page);
/* Is it a page in use of that kind, handed out to (or claimed by) slot `id`? */
bool page_owned(struct segment *seg, const void *page, enum page_kind kind, uint32_t id);
bool page_run_owned(struct segment *seg, const void *page, enum page_kind kind, unsigned order, uint32_t id);

#endif

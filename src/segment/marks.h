/* SPDX-License-Identifier: MIT */
/*
 * marks.h - what is reachable and what is not: for the check of a whole segment.
 *
 * The caller follows every pointer of the structures it knows and marks each object and page that it comes to.
 * Marking tells whether something in use begins there at all, so a pointer is marked before it is followed and a
 * damaged one is never followed.  What is in use and was not marked is nobody's: a call died with it in its hands.
 *
 * alone: no other thread has a slot, and none gets one before segment_alone_end().  Then what is nobody's may be freed.
 */
#ifndef SHELF_SEGMENT_MARKS_H
#define SHELF_SEGMENT_MARKS_H

#include "segment/slot.h"

struct seg_marks {
	struct slot *self;
	uint64_t *word; /* for each frame: a bit for each object of a slab, bit 0 for a run */
	size_t bytes;
};

struct marks_left {
	uint64_t objects, pages; /* in use and not marked */
};

int marks_begin(struct slot *self, struct seg_marks *m); /* -ENOMEM */
void marks_end(struct seg_marks *m);

enum mark { MARK_BAD, MARK_NEW, MARK_AGAIN };
/* The object or run that begins at `obj` and has room for `least` bytes.  BAD: there is none in use. */
enum mark marks_add(struct seg_marks *m, const void *obj, size_t least);
/* The same for what mem_alloc(bytes) gave: nothing smaller, nothing larger. */
enum mark marks_add_exact(struct seg_marks *m, const void *obj, size_t bytes);
/* As marks_add without marking: its room in bytes, 0 if there is none. */
size_t marks_room(struct seg_marks *m, const void *obj);
bool marks_has(struct seg_marks *m, const void *obj);
void marks_del(struct seg_marks *m, const void *obj); /* it is nobody's after all */
/* The object that these bytes lie in, or the run that begins with them: not marked before, and now it is. */
bool marks_around(struct seg_marks *m, const void *p, size_t bytes);
/* One page of data. */
enum mark marks_add_page(struct seg_marks *m, const void *page);

/* Caches of this thread emptied, so that nothing in use is in them. */
void marks_flush(struct slot *self);
/* What is left over; `free`: it is given back, which only who is alone may ask for. */
void marks_sweep(struct seg_marks *m, bool free, struct marks_left *out);

/* False: others are there.  Not in a section, no lock held. */
bool segment_alone_begin(struct slot *self);
void segment_alone_end(struct slot *self);

#endif

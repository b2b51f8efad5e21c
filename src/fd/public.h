/* SPDX-License-Identifier: MIT */
/* public.h - from the opaque handles of <shelf/fdtable.h> to what they are. */
#ifndef SHELF_FD_PUBLIC_H
#define SHELF_FD_PUBLIC_H

#include <shelf/fdtable.h>

#include "fd/fd.h"

_Static_assert(SHELF_FILE_USER == FD_TYPE_USER && SHELF_FILE_TYPES == FD_TYPES,
	       "the public types are ours");
_Static_assert(SHELF_FD_CLOEXEC == FD_CLOEXEC_BIT && SHELF_FD_CLOFORK == FD_CLOFORK_BIT,
	       "the flags are ours");
_Static_assert(SHELF_FD_MAX == FD_NUMBER_MAX && SHELF_FD_ANCHORS == FD_ANCHORS,
	       "the limits are ours");
_Static_assert(SHELF_RANGE_CLOEXEC == FD_RANGE_CLOEXEC, "the range flags are ours");

static inline struct segment *segment_of(struct shelf_fdspace *space)
{
	return (struct segment *)space;
}

static inline struct fd_table *table_of(struct shelf_fdtable *tab)
{
	return (struct fd_table *)tab;
}

#endif

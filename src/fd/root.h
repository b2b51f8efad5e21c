/* SPDX-License-Identifier: MIT */
/*
 * root.h - what the descriptor layer keeps once in a segment: the limit of open
 * files (their number is counted in the slots), anchors by which a library user finds
 * tables again, and the big lock of the scheme that has one.
 */
#ifndef SHELF_FD_ROOT_H
#define SHELF_FD_ROOT_H

#include "fd/file.h"
#include "fd/spin.h"
#include "segment/header.h"

#define FD_ANCHORS 16u

struct fd_root { /* SEG_ROOT_FD; one page */
	_Alignas(CACHE_LINE) atomic_u64 limit;
	atomic_u64 anchor[FD_ANCHORS];
	_Alignas(CACHE_LINE) struct fd_file host; /* what all numbers of the kernel's hold; its count is saturated */
	_Alignas(CACHE_LINE) struct fd_spin big;
};
_Static_assert(sizeof(struct fd_root) <= PAGE_BYTES, "the root is one page");

static inline struct fd_root *fd_root_of(struct slot *self)
{
	return self->seg->hdr->root[SEG_ROOT_FD];
}

/* The one file that marks all of the kernel's numbers. */
static inline struct fd_file *fd_host_file(struct slot *self)
{
	return &fd_root_of(self)->host;
}

#endif

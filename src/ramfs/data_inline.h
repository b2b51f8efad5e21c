/* SPDX-License-Identifier: MIT */
/*
 * data_inline.h - the common read, inlined into the calls that make it: one try, inside one page that is there.
 * What protects it: see data.c.  Shared lines written: none.
 */
#ifndef SHELF_RAMFS_DATA_INLINE_H
#define SHELF_RAMFS_DATA_INLINE_H

#include "base/fault.h"
#include "ramfs/ramfs.h"

#define DATA_ENTRY_BITS UINT64_C(63) /* of a page's entry, that are not its address: data_priv.h */

static inline char *data_page(uint64_t entry)
{
	return (char *)(uintptr_t)(entry & ~DATA_ENTRY_BITS);
}

static inline uint64_t data_index(uint64_t pos)
{
	return pos >> PAGE_SHIFT;
}

static inline char *data_page_epoch(struct inode *inode, uint64_t index)
{
	return data_page(radix_lookup_epoch(&inode->file.pages, index));
}

/* Bytes; 0: not here, ramfs_read_epoch() is to decide from the start. */
static inline_always size_t ramfs_read_try_epoch(struct inode *inode, void *buf, size_t n, uint64_t pos)
{
	uint32_t begin = seq_read_begin(&inode->seq);
	uint64_t size = seq_load(&inode->size);
	size_t in_page = pos & PAGE_MASK, want;
	const char *page;

	if (unlikely(pos >= size || begin & 1))
		return 0;
	want = min_of(n, size - pos);
	page = data_page_epoch(inode, data_index(pos));
	if (unlikely(in_page + want > PAGE_BYTES || !page))
		return 0;
	if (unlikely(fault_copy(buf, page + in_page, want)) || unlikely(!seq_read_ok(&inode->seq, begin)))
		return 0;
	return want;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * seek.c - SEEK_DATA and SEEK_HOLE, lock-free.
 *
 * Data is a page that was written; a hole is a missing page or one that
 * fallocate made and nobody wrote to, as on tmpfs.  The end of the file is a hole.
 * Writes to shared lines: none.  Progress: SEEK_TRIES tries; then the answer stands as it is: a file that
 * is written to without a pause had this answer at some moment for each page on the way.
 */
#include "ramfs/data_priv.h"
#include <unistd.h>

#define SEEK_TRIES 16u

/* The first written page in [*index, end): true, and *index is its place. */
static bool seek_written(struct inode *inode, uint64_t *index, uint64_t end)
{
	for (;; ++*index) {
		uint64_t entry = radix_next_epoch(&inode->file.pages, index, end);

		if (!entry)
			return false;
		if (!*index)
			entry = data_entry_epoch(inode, 0);
		if (entry && !(entry & DATA_UNWRITTEN))
			return true;
	}
}

/* The first page of [index, end) that is a hole, else end. */
static uint64_t seek_unwritten(struct inode *inode, uint64_t index, uint64_t end)
{
	while (index < end) {
		uint64_t entry = data_entry_epoch(inode, index);

		if (!entry || entry & DATA_UNWRITTEN)
			break;
		index++;
	}
	return index;
}

static int64_t seek_once(struct inode *inode, uint64_t off, int whence)
{
	uint64_t size = seq_load(&inode->size), index = data_index(off), end = data_pages_of(size);

	if (off >= size)
		return -ENXIO;
	if (whence == SEEK_DATA)
		return seek_written(inode, &index, end) ? (int64_t)max_of(off, index << PAGE_SHIFT) : -ENXIO;
	index = seek_unwritten(inode, index, end);
	return (int64_t)min_of(size, max_of(off, index << PAGE_SHIFT));
}

int64_t ramfs_seek_epoch(struct slot *self, struct inode *inode, uint64_t off, int whence)
{
	unsigned tries;
	int64_t at = -ENXIO;

	(void)self;
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	for (tries = 0; tries < SEEK_TRIES; tries++) {
		uint32_t begin = seq_read_begin(&inode->seq);

		at = seek_once(inode, off, whence);
		if (seq_read_ok(&inode->seq, begin))
			break;
		cpu_relax();
	}
	return at;
}

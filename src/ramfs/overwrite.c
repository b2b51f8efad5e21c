/* SPDX-License-Identifier: MIT */
/*
 * overwrite.c - the common write: bytes of one page that is there, below the end of the file.
 *
 * Data, protection: as write.c, of which this is the short cut: inode.lock, tried only, and one turn of inode.seq.
 * The caller is in a read section and has no count: write.c and vfs/inode.c say why the pages stay.
 * Death inside: INTENT_EXTEND without pages makes seq even again; the page is old, new, or old up to a byte.
 * Shared lines written: the inode's lock and its line of times and seq, the page.  Progress: wait-free.
 */
#include "ramfs/data_priv.h"
#include "segment/header.h"

/* Nothing but bytes and times changes, and nobody is to be told.  Relaxed: lock held; the count's death is behind its acquire. */
static inline bool overwrite_is_plain(struct slot *self, struct inode *inode, size_t n, uint64_t pos)
{
	return !inode_gone(inode) && pos + n <= data_size(inode) &&
	       !(load_relaxed(&inode->mode) & (S_ISUID | S_ISGID)) && !(load_relaxed(&inode->flags) & INODE_HAS_XATTR) &&
	       !notify_wanted(self);
}

static inline_always size_t overwrite_locked(struct slot *self, struct inode *inode, const void *buf, size_t n,
					     uint64_t pos)
{
	uint64_t entry, now;
	size_t left;

	if (unlikely(!overwrite_is_plain(self, inode, n, pos)))
		return 0;
	entry = data_entry_epoch(inode, data_index(pos)); /* lock held */
	if (unlikely(!entry || entry & DATA_UNWRITTEN))
		return 0;
	now = (uint64_t)clock_now_coarse();
	data_repair_begin(self, inode);
	seq_write_begin(&inode->seq);
	left = fault_copy_over(data_page(entry) + (pos & PAGE_MASK), buf, n);
	if (likely(left < n)) {
		seq_store(&inode->mtime, now);
		seq_store(&inode->ctime, now);
	}
	seq_write_end(&inode->seq);
	intent_end(self);
	return n - left;
}

size_t ramfs_overwrite_epoch(struct slot *self, struct inode *inode, const void *buf, size_t n, uint64_t pos)
{
	size_t done;

	/* Relaxed: a hint, for what is longer or goes beyond the end is not worth the lock. */
	if (unlikely((pos & PAGE_MASK) + n > PAGE_BYTES || pos + n > load_relaxed(&inode->size)))
		return 0;
	if (unlikely(!lock_try(&inode->lock, &self->locker, LOCK_INODE)))
		return 0;
	done = overwrite_locked(self, inode, buf, n, pos);
	lock_release(&inode->lock, &self->locker, LOCK_INODE);
	return done;
}

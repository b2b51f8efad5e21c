/* SPDX-License-Identifier: MIT */
/*
 * shift.c - COLLAPSE_RANGE and INSERT_RANGE.
 *
 * A second tree with every page at its new place is built beside the first, in
 * file.shadow; then the roots change places inside seq, so readers see all of it or nothing, and a full
 * segment (-ENOSPC) leaves nothing behind.  The cost is the new nodes: 1/455 of the file.
 * Protection: inode.lock.
 * INTENT_FALLOCATE (inode, FALLOCATE_SHIFT, gone from, gone end, size, old root, new root):
 *	SHIFT_BUILD	died while building: the new tree's nodes go, nothing happened
 *	SHIFT_SWAP	finish: roots and size as the arguments say, then as below
 *	SHIFT_CLEAN	free the pages that fell out, then the old tree's nodes
 */
#include "ramfs/data_priv.h"

enum shift_step { SHIFT_BUILD, SHIFT_SWAP, SHIFT_CLEAN };
enum { ARG_GONE_FROM = 2, ARG_GONE_END, ARG_SIZE, ARG_OLD, ARG_NEW, SHIFT_ARGS };

static void node_only(struct slot *self, void *ctx, uint64_t index, uint64_t entry)
{
	(void)self, (void)ctx, (void)index, (void)entry;
}

/* Entries from `from` on go to the new tree `by` pages away, those of [gone_from, gone_end) nowhere, others stay. */
static int shift_build(struct slot *self, struct file_part *file, uint64_t gone_from, uint64_t gone_end,
		       uint64_t from, int64_t by)
{
	uint64_t i, entry;

	radix_init(&file->shadow);
	for (i = 0; radix_next_epoch(&file->pages, &i, DATA_INDEX_END); i++) { /* lock held */
		uint64_t to = i < from ? i : i + (uint64_t)by;

		if (i >= gone_from && i < gone_end)
			continue;
		entry = radix_lookup_epoch(&file->pages, i);
		if (!to)
			entry &= ~DATA_ENTRY_BITS; /* no room for the unwritten bit: data_flags is cleared below */
		else if (!i && (load_relaxed(&file->data_flags) & DATA_ZERO_UNWRITTEN)) /* lock held */
			entry |= DATA_UNWRITTEN;
		if (radix_store(self, &file->shadow, to, entry, NULL))
			return -ENOSPC;
	}
	return 0;
}

/* Nobody else sees the shadow. */
static void shift_dismantle(struct slot *self, struct file_part *file)
{
	radix_erase_range(self, &file->shadow, 0, DATA_INDEX_END, node_only, NULL);
}

static void shift_clean(struct slot *self, struct inode *inode, uint64_t gone_from, uint64_t gone_end)
{
	struct file_part *file = &inode->file;

	if (data_is_mapped(inode))
		data_kept_pages(self, inode); /* where the others are has changed, too */
	data_erase_range(self, inode, &file->shadow, gone_from, gone_end);
	shift_dismantle(self, file);
}

/* Inside seq; may be repeated. */
static void shift_swap(struct inode *inode, struct intent *i)
{
	tracked_store(&inode->file.shadow.root, load_acquire(&i->arg[ARG_OLD])); /* own, or pairs with intent_set */
	tracked_store(&inode->file.pages.root, load_acquire(&i->arg[ARG_NEW]));
	tracked_store(&inode->file.data_flags, 0);
	tracked_store(&inode->size, load_acquire(&i->arg[ARG_SIZE]));
}

/* [from, ...) moves `by` pages; the pages of [gone_from, gone_end) fall out; then the file has `size` bytes. */
static int shift_locked(struct who *w, struct inode *inode, uint64_t gone_from, uint64_t gone_end, uint64_t from,
			int64_t by, uint64_t size)
{
	struct slot *self = w->self;
	struct file_part *file = &inode->file;
	uint64_t arg[SHIFT_ARGS] = {(uintptr_t)inode, FALLOCATE_SHIFT, gone_from, gone_end, size};
	uint64_t gone = data_count_pages(&file->pages, gone_from, gone_end);
	int err;

	radix_init(&file->shadow);
	intent_begin(self, INTENT_FALLOCATE, SHIFT_ARGS, arg);
	intent_step(self, SHIFT_BUILD);
	err = shift_build(self, file, gone_from, gone_end, from, by);
	if (err) {
		shift_dismantle(self, file);
		intent_end(self);
		return err;
	}
	intent_set(self, ARG_OLD, load_relaxed(&file->pages.root)); /* lock held, both */
	intent_set(self, ARG_NEW, load_relaxed(&file->shadow.root));
	seq_write_begin(&inode->seq);
	intent_step(self, SHIFT_SWAP);
	shift_swap(inode, &self->intent);
	seq_store(&file->page_count, load_relaxed(&file->page_count) - gone); /* lock held */
	data_changed_locked(w, inode, vfs_now());
	seq_write_end(&inode->seq);
	intent_step(self, SHIFT_CLEAN);
	shift_clean(self, inode, gone_from, gone_end);
	intent_end(self);
	return 0;
}

void shift_recover(struct slot *self, struct inode *inode, struct intent *dead)
{
	struct file_part *file = &inode->file;
	uint64_t step = load_acquire(&dead->step); /* pairs with intent_step; the arguments with intent_set */

	if (step == SHIFT_BUILD) {
		shift_dismantle(self, file);
		return;
	}
	if (step == SHIFT_SWAP) {
		shift_swap(inode, dead);
		tracked_store(&dead->step, SHIFT_CLEAN);
	}
	shift_clean(self, inode, load_acquire(&dead->arg[ARG_GONE_FROM]), load_acquire(&dead->arg[ARG_GONE_END]));
}

int shift_collapse(struct who *w, struct inode *inode, uint64_t off, uint64_t len)
{
	uint64_t size = data_size(inode), pages = data_index(len);

	if ((off | len) & PAGE_MASK)
		return -EINVAL;
	if (off + len >= size)
		return -EINVAL; /* that would be a truncate */
	return shift_locked(w, inode, data_index(off), data_index(off) + pages, data_index(off) + pages,
			    -(int64_t)pages, size - len);
}

int shift_insert(struct who *w, struct inode *inode, uint64_t off, uint64_t len)
{
	uint64_t size = data_size(inode);

	if ((off | len) & PAGE_MASK)
		return -EINVAL;
	if (len > (uint64_t)MAX_FILE_BYTES - size)
		return -EFBIG;
	if (off >= size)
		return -EINVAL;
	return shift_locked(w, inode, 0, 0, data_index(off), (int64_t)data_index(len), size + len);
}

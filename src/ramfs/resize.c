/* SPDX-License-Identifier: MIT */
/*
 * resize.c - truncate, and the end of a file.
 *
 * Protection: inode.lock.  The size moves inside inode.seq first; from then on no reader looks
 * behind it, and one that is still copying there will see the count changed.
 * So the pages go back to the allocator at once, with the count even.
 * INTENT_TRUNCATE (inode, length): finished by whoever takes over.
 */
#include "ramfs/data_priv.h"

/* Pages that are gone, counted off where stat may look. */
static void uncount_pages(struct inode *inode, uint64_t pages)
{
	if (!pages)
		return;
	seq_write_begin(&inode->seq);
	seq_store(&inode->file.page_count, load_relaxed(&inode->file.page_count) - pages); /* lock held */
	seq_write_end(&inode->seq);
}

void truncate_tail_locked(struct slot *self, struct inode *inode, uint64_t length)
{
	data_zero_tail(inode, length, MAX_FILE_BYTES);
	uncount_pages(inode, data_erase_range(self, inode, &inode->file.pages,
					data_pages_of(length), DATA_INDEX_END));
}

/* NAMED, and to the size it has, without pages: the times stay as they are. */
static int truncate_as(struct who *w, struct inode *inode, uint64_t length, bool named)
{
	struct slot *self = w->self;
	uint64_t arg[] = {(uintptr_t)inode, length}, size, now;

	if (length > (uint64_t)MAX_FILE_BYTES)
		return -EFBIG;
	lock_acquire(&inode->lock, &self->locker, LOCK_INODE);
	now = vfs_now();
	size = data_size(inode);
	if (length > size && vfs_beyond_limit(w, length)) {
		lock_release(&inode->lock, &self->locker, LOCK_INODE);
		return -EFBIG;
	}
	if (length > size)
		data_zero_tail(inode, size, length);
	intent_begin(self, INTENT_TRUNCATE, ARRAY_SIZE(arg), arg);
	seq_write_begin(&inode->seq);
	if (named && length == size && !load_relaxed(&inode->file.page_count)) /* lock held */
		attr_kill_suid_locked(w, inode);
	else
		data_changed_locked(w, inode, now);
	tracked_store(&inode->size, length);
	seq_write_end(&inode->seq);
	if (length <= size) /* equal: what was allocated behind the end goes, as on tmpfs */
		truncate_tail_locked(self, inode, length);
	intent_end(self);
	lock_release(&inode->lock, &self->locker, LOCK_INODE);
	return 0;
}

int ramfs_truncate(struct who *w, struct inode *inode, uint64_t length)
{
	return truncate_as(w, inode, length, false);
}

int ramfs_truncate_named(struct who *w, struct inode *inode, uint64_t length)
{
	return truncate_as(w, inode, length, true);
}

/*
 * The last reference is gone (INTENT_DROP); a reader may still be in its section with the inode in its hands.
 * It sees the size 0 and then the dead count (read_end() in data.c), not the pages' next contents.
 */
static void data_drop(struct slot *self, struct inode *inode)
{
	seq_write_begin(&inode->seq);
	tracked_store(&inode->size, 0);
	seq_write_end(&inode->seq);
	truncate_tail_locked(self, inode, 0);
	data_drop_kept(self, inode);
}

static void truncate_recover(struct slot *self, struct intent *dead)
{
	struct inode *inode = (struct inode *)(uintptr_t)load_acquire(&dead->arg[0]); /* pairs with intent_begin */
	uint64_t length = load_acquire(&dead->arg[1]);

	if (data_size(inode) == length) {
		truncate_tail_locked(self, inode, length);
		data_recount_locked(inode);
	}
	seq_repair(&inode->seq);
}

static void fallocate_recover(struct slot *self, struct intent *dead)
{
	struct inode *inode = (struct inode *)(uintptr_t)load_acquire(&dead->arg[0]); /* pairs with intent_begin */
	uint64_t off = load_acquire(&dead->arg[2]), end = load_acquire(&dead->arg[3]);

	switch ((enum fallocate_kind)load_acquire(&dead->arg[1])) {
	case FALLOCATE_PUNCH:
		punch_locked(self, inode, off, end);
		break;
	case FALLOCATE_ZERO:
		zero_locked(inode, off, end);
		break;
	case FALLOCATE_SHIFT:
		shift_recover(self, inode, dead);
		break;
	case FALLOCATE_KEPT:
		data_free_kept_locked(self, inode);
		break;
	}
	data_recount_locked(inode);
	seq_repair(&inode->seq);
}

int ramfs_data_attach(struct segment *seg)
{
	(void)seg;
	inode_register_drop(S_IFREG >> 12, data_drop);
	data_map_attach();
	intent_register(INTENT_EXTEND, extend_recover);
	intent_register(INTENT_TRUNCATE, truncate_recover);
	intent_register(INTENT_FALLOCATE, fallocate_recover);
	return 0;
}

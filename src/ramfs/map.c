/* SPDX-License-Identifier: MIT */
/*
 * map.c - pages of files in the memory of processes.
 *
 * Data: file.maps, the files of type FD_TYPE_MAP there are of an inode, one for each process that maps it and those it
 * forked; file.kept, a chain through the pages' links; file.drops and the segment's map_drops, which grow when pages are kept.
 * A page that leaves a file which somebody maps is not free before the last map is gone: who maps it may write to it
 * until it notices.  So it goes to the chain, and the counts tell others to look.
 * Protection: inode.lock.  `maps` grows without it, but pages are mapped under it: whoever takes a page out and sees no map
 * did so before the mapper looked.
 * Death: whoever dies with a map has a descriptor of it in its table, which is swept after its memory is gone.  A death
 * between the count and the descriptor leaves the count too high: pages are then kept until the inode goes, or
 * shelf_verify() mends it.
 * Progress: blocking on inode.lock.
 * Limits: kept pages count as used, and in no file.
 */
#include "ramfs/data_priv.h"
#include "segment/hand.h"
#include "segment/owned.h"

/* ---- pages that left the file ------------------------------------------------------------------- */

/* Before it leaves.  One that heads the chain was put there by somebody who died before it could leave. */
void data_keep_page(struct slot *self, struct inode *inode, char *page)
{
	uint32_t head = load_relaxed(&inode->file.kept), n = page_number(self->seg, page); /* lock held */

	if (head == n)
		return;
	store_release(page_link(self->seg, page), head); /* read after our death */
	tracked_store(&inode->file.kept, n);
}

void data_kept_pages(struct slot *self, struct inode *inode)
{
	add_acq_rel(&inode->file.drops, 1u); /* pairs with ramfs_map_drops: the pages are gone */
	add_acq_rel(&self->seg->hdr->map_drops, 1u); /* after it, so that who sees this one finds the inode */
}

void data_free_kept_locked(struct slot *self, struct inode *inode)
{
	atomic_u32 *head = &inode->file.kept;
	char *page;
	int k;

	while ((page = page_by_number(self->seg, load_relaxed(head)))) { /* lock held */
		uint32_t next = load_acquire(page_link(self->seg, page)); /* pairs with data_keep_page */

		page_claim(self, page);
		k = hand_begin_got32(self, head, next, page, LEDGER_PAGE);
		tracked_store(head, next);
		hand_end(self, 0);
		page_free_noted(self, page, 0, k);
	}
}

void data_drop_kept(struct slot *self, struct inode *inode)
{
	store_relaxed(&inode->file.maps, 0u); /* what a death left: nobody has it any more */
	if (load_relaxed(&inode->file.kept))
		data_free_kept_locked(self, inode);
}

/* Lock held.  Inside another intent (a task's end) there is no room for ours: a death then leaves the rest until the inode goes. */
static void kept_free(struct slot *self, struct inode *inode)
{
	uint64_t arg[] = {(uintptr_t)inode, FALLOCATE_KEPT, 0, 0};
	bool own = !load_relaxed(&self->intent.op); /* own field */

	if (own)
		intent_begin(self, INTENT_FALLOCATE, ARRAY_SIZE(arg), arg);
	data_free_kept_locked(self, inode);
	if (own)
		intent_end(self);
}

/* ---- who maps --------------------------------------------------------------------------------------- */

void ramfs_map_get(struct inode *inode)
{
	add_acq_rel(&inode->file.maps, 1u); /* before we take the lock to look for pages: see data_is_mapped */
}

void ramfs_map_put(struct slot *self, struct inode *inode)
{
	if (sub_acq_rel(&inode->file.maps, 1u) != 1 || !load_acquire(&inode->file.kept)) /* pairs with data_keep_page */
		return;
	lock_acquire(&inode->lock, &self->locker, LOCK_INODE);
	if (!load_relaxed(&inode->file.maps)) /* else somebody who came meanwhile may have mapped what was kept since */
		kept_free(self, inode);
	lock_release(&inode->lock, &self->locker, LOCK_INODE);
}

uint32_t ramfs_map_drops(struct inode *inode)
{
	return load_acquire(&inode->file.drops); /* pairs with data_kept_pages */
}

void ramfs_map_settle(struct slot *self, struct inode *inode, uint32_t drops)
{
	if (!load_acquire(&inode->file.kept)) /* pairs with data_keep_page */
		return;
	lock_acquire(&inode->lock, &self->locker, LOCK_INODE);
	if (load_relaxed(&inode->file.maps) == 1 && load_relaxed(&inode->file.drops) == drops)
		kept_free(self, inode);
	lock_release(&inode->lock, &self->locker, LOCK_INODE);
}

static void map_release(struct slot *self, struct fd_file *head)
{
	struct inode *inode = container_of(head, struct file, head)->inode;

	fd_retire(self, head, RETIRE_FILE, inode);
	ramfs_map_put(self, inode);
	inode_put(self, inode);
}

void data_map_attach(void)
{
	fd_register_type(FD_TYPE_MAP, map_release);
}

/* ---- pages to map --------------------------------------------------------------------------------------- */

/* Page `index` is there and counts as written, as after a fault on tmpfs.  1: it was a hole; 0, or -ENOSPC. */
static int page_make_locked(struct slot *self, struct inode *inode, uint64_t index)
{
	uint64_t entry = data_entry_epoch(inode, index); /* lock held */

	if (!entry && !data_fill_hole_locked(self, inode, index, index + 1, false))
		return -ENOSPC;
	if (!entry || entry & DATA_UNWRITTEN)
		data_mark_written_locked(self, inode, index, index + 1);
	return !entry;
}

/* As the first store to a page does on tmpfs. */
static void times_set_locked(struct slot *self, struct inode *inode)
{
	data_repair_begin(self, inode);
	seq_write_begin(&inode->seq);
	inode_touch_locked(inode, true);
	seq_write_end(&inode->seq);
	intent_end(self);
}

static char *page_written_locked(struct inode *inode, uint64_t index)
{
	uint64_t entry = data_entry_epoch(inode, index); /* lock held */

	return entry & DATA_UNWRITTEN ? NULL : data_page(entry);
}

/* The pages of [first, end) that are there, neighbours in memory together. */
static int runs_locked(struct inode *inode, uint64_t first, uint64_t end, ramfs_map_fn *fn, void *ctx)
{
	int err = 0;

	while (!err && radix_next_epoch(&inode->file.pages, &first, end)) { /* lock held */
		char *page = page_written_locked(inode, first);
		uint64_t n = 1;

		while (page && first + n < end && page_written_locked(inode, first + n) == page + n * PAGE_BYTES)
			n++;
		if (page)
			err = fn(ctx, first, page, n);
		first += n;
	}
	return err;
}

static int map_pages_locked(struct who *w, struct inode *inode, uint64_t first, uint64_t end, unsigned flags,
			    ramfs_map_fn *fn, void *ctx)
{
	uint64_t pages = data_pages_of(data_size(inode));
	int err = 0;

	if (first >= pages)
		return -ENXIO;
	if (flags & MAP_MAKE)
		err = page_make_locked(w->self, inode, first);
	if (err < 0)
		return err;
	if (flags & MAP_WROTE)
		times_set_locked(w->self, inode);
	return runs_locked(inode, first, err ? first + 1 : min_of(end, pages), fn, ctx);
}

int ramfs_map_pages(struct who *w, struct inode *inode, uint64_t first, uint64_t end, unsigned flags, ramfs_map_fn *fn,
		    void *ctx)
{
	struct slot *self = w->self;
	int err;

	if (!(flags & MAP_TRY))
		lock_acquire(&inode->lock, &self->locker, LOCK_INODE);
	else if (load_relaxed(&self->intent.op) || !lock_try(&inode->lock, &self->locker, LOCK_INODE)) /* own field */
		return -EAGAIN;
	err = map_pages_locked(w, inode, first, end, flags, fn, ctx);
	lock_release(&inode->lock, &self->locker, LOCK_INODE);
	return err;
}

/* SPDX-License-Identifier: MIT */
/*
 * erase.c - pages out of a file.
 *
 * Protection: inode.lock, or the inode is dying.  seq is odd, or the size says
 * that nobody reads there any more: a page is free at once.
 * Death: a page that has left the file and is not free is in the thread's ledger (segment/hand.h), claimed in its
 * frame before.  Recovery of the intent, if the operation has one, erases again what is still in the file.
 */
#include "ramfs/data_priv.h"
#include "segment/hand.h"
#include "segment/owned.h"

static void keep(struct slot *self, void *ctx, uint64_t index, uint64_t entry)
{
	(void)self, (void)ctx, (void)index, (void)entry;
}

/*
 * Somebody may map them: out of the file, and kept in the inode's list.  In that list first, so a page is always in one
 * of the two and needs no note; what was in both when we died is erased again (data_keep_page).
 */
static uint64_t erase_mapped(struct slot *self, struct inode *inode, struct radix *pages, uint64_t from, uint64_t end)
{
	uint64_t first = from, entry, n = 0;

	for (; (entry = radix_next_epoch(pages, &from, end)); from++, n++) { /* lock held */
		data_keep_page(self, inode, data_page(entry));
		radix_erase(self, pages, from);
	}
	radix_erase_range(self, pages, first, end, keep, NULL); /* as below */
	if (n)
		data_kept_pages(self, inode);
	return n;
}

/* From the last to the first: the thread's stock then hands them out in the order they had, side by side. */
uint64_t data_erase_range(struct slot *self, struct inode *inode, struct radix *pages, uint64_t from, uint64_t end)
{
	uint64_t at = end - 1, entry, n = 0;
	int k;

	if (!load_relaxed(&pages->root)) /* lock held: an empty file, which most that are removed soon are */
		return 0;
	if (data_is_mapped(inode) || load_relaxed(&inode->file.kept)) /* lock held */
		return erase_mapped(self, inode, pages, from, end);
	while (from < end && at >= from && (entry = radix_prev_epoch(pages, &at)) && at >= from) { /* lock held */
		page_claim(self, data_page(entry));
		radix_erase_noted(self, pages, at, &k);
		page_free_noted(self, data_page(entry), 0, k);
		n++;
		if (!at--)
			break;
	}
	radix_erase_range(self, pages, from, end, keep, NULL); /* the tree's height, and nodes left by a death */
	return n;
}

uint64_t data_count_pages(struct radix *pages, uint64_t from, uint64_t end)
{
	uint64_t n = 0;

	for (; radix_next_epoch(pages, &from, end); from++)
		n++;
	return n;
}

void data_recount_locked(struct inode *inode)
{
	seq_store(&inode->file.page_count, data_count_pages(&inode->file.pages, 0, DATA_INDEX_END));
}

/* SPDX-License-Identifier: MIT */
/*
 * erase.c - pages out of a file.
 *
 * Protection: inode.lock, or the inode is dying.  seq is odd, or the size says
 * that nobody reads there any more: a page is free at once.
 * Death: a page in hand, neither in the file nor free, is noted in the intent's last argument and claimed in its
 * frame first.  Recovery of the intent erases again what is still in the file; then whoever reaps the slot
 * frees the noted page if it still belongs to the dead thread.  An operation that erases has an intent
 * which leaves the last argument to this file; without one (the end of a task that drops inodes, or data that a write
 * kept until the end of its section) a death leaks.
 */
#include "ramfs/data_priv.h"
#include "segment/owned.h"

static bool erase_has_note(struct slot *self)
{
	uint32_t op = load_relaxed(&self->intent.op); /* own field */

	if (self->reclaiming) /* whatever is under way, it is another's */
		return false;
	return op == INTENT_TRUNCATE || op == INTENT_FALLOCATE || op == INTENT_DROP;
}

static void keep(struct slot *self, void *ctx, uint64_t index, uint64_t entry)
{
	(void)self, (void)ctx, (void)index, (void)entry;
}

/* In the intent that is under way, should there be one that leaves us an argument. */
static void erase_note(struct slot *self, bool note, uint64_t page)
{
	if (note)
		intent_set(self, DATA_ARG_ERASING, page);
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
	bool note = erase_has_note(self);
	uint64_t at = end - 1, entry, n = 0;

	if (!load_relaxed(&pages->root)) /* lock held: an empty file, which most that are removed soon are */
		return 0;
	if (data_is_mapped(inode) || load_relaxed(&inode->file.kept)) /* lock held */
		return erase_mapped(self, inode, pages, from, end);
	while (from < end && at >= from && (entry = radix_prev_epoch(pages, &at)) && at >= from) { /* lock held */
		page_claim(self, data_page(entry));
		erase_note(self, note, entry & ~DATA_ENTRY_BITS);
		radix_erase(self, pages, at);
		page_free(self, data_page(entry), 0);
		n++;
		if (!at--)
			break;
	}
	erase_note(self, note, 0);
	radix_erase_range(self, pages, from, end, keep, NULL); /* the tree's height, and nodes left by a death */
	return n;
}

void data_erase_note(struct slot *self, char *page)
{
	erase_note(self, erase_has_note(self), (uintptr_t)page);
}

void erase_slot_gone(struct slot *self, struct slot *gone)
{
	char *page = data_page(load_acquire(&gone->intent.arg[DATA_ARG_ERASING])); /* pairs with intent_set */

	/* Another intent's argument is never the address of a data page of its own slot. */
	if (page && gone != self && page_owned(self->seg, page, PAGE_DATA, slot_id(gone)))
		page_free(self, page, 0);
	intent_set(gone, DATA_ARG_ERASING, 0);
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

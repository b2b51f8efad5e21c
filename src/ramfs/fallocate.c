/* SPDX-License-Identifier: MIT */
/*
 * fallocate.c - pages before they are written, holes, and ranges of zeros.
 *
 * Protection: inode.lock for the whole call; inode.seq is odd for a few pages at a
 * time, so a reader may see a large punch half done, as on any file system.
 * Errors: those of Linux 6.x in its order.  tmpfs itself only knows the modes 0, KEEP_SIZE and PUNCH_HOLE;
 * ZERO, COLLAPSE and INSERT follow ext4 and xfs with blocks of one page.
 * Full segment: -ENOSPC, and what this call allocated is given back (up to
 * UNDO_RANGES separate holes; beyond, the pages stay in the file, unwritten).
 * INTENT_FALLOCATE (inode, kind, off, end): finished by whoever takes over.
 * Allocating goes through INTENT_EXTEND, batch by batch.
 */
#include "ramfs/data_priv.h"

#define UNDO_RANGES 32u
#define PUNCH_BATCH 512u /* pages for which seq stays odd */

struct page_range {
	uint64_t from, end;
};
struct undo {
	unsigned count;
	struct page_range range[UNDO_RANGES];
};

static void undo_note(struct undo *u, uint64_t from, uint64_t end)
{
	if (u->count && u->range[u->count - 1].end == from)
		u->range[u->count - 1].end = end;
	else if (u->count < UNDO_RANGES)
		u->range[u->count++] = (struct page_range){from, end};
}

/* How the beginning of the hole [first, end) is filled: pages. */
static uint64_t hole_plan(struct fresh *f, uint64_t first, uint64_t end, bool run)
{
	unsigned order = min_of(bits_last_one(end - first), (unsigned)PAGE_MAX_ORDER);
	uint64_t i;

	f->count = 0;
	if (run && order > 3) {
		fresh_want(f, first, order);
		return UINT64_C(1) << order;
	}
	for (i = first; i < end && f->count < DATA_FRESH; i++)
		fresh_want(f, i, 0);
	return i - first;
}

/* Inside seq.  The zeroed pages that went in. */
static uint64_t hole_publish(struct slot *self, struct inode *inode, const struct fresh *f)
{
	uint64_t done = 0;
	unsigned i;

	for (i = 0; i < f->count; i++) {
		uint64_t pages = UINT64_C(1) << f->run[i].order;
		uint64_t n = fresh_publish(self, inode, &f->run[i], pages, DATA_UNWRITTEN);

		done += n;
		if (n < pages)
			break;
	}
	return done;
}

/* Fills the beginning of the hole with unwritten pages, a run or single ones.  How many; 0: full. */
uint64_t data_fill_hole_locked(struct slot *self, struct inode *inode, uint64_t first, uint64_t end, bool run)
{
	struct fresh f;
	uint64_t size = data_size(inode), pages = hole_plan(&f, first, end, run), done;
	unsigned i;

	fresh_begin(self, inode, &f, first, first + pages, size, size);
	for (i = 0; i < f.count; i++)
		zero_bytes(f.run[i].page, PAGE_BYTES << f.run[i].order);
	seq_write_begin(&inode->seq);
	done = hole_publish(self, inode, &f);
	seq_write_end(&inode->seq);
	fresh_end(self, &f, first + done);
	return done;
}

/* Frees the pages of [from, end) in batches. */
static void erase_locked(struct slot *self, struct inode *inode, uint64_t from, uint64_t end)
{
	struct file_part *file = &inode->file;

	while (radix_next_epoch(&file->pages, &from, end)) { /* lock held */
		uint64_t upto = min_of(end, from + PUNCH_BATCH), n;

		seq_write_begin(&inode->seq);
		n = data_erase_range(self, inode, &file->pages, from, upto);
		seq_store(&file->page_count, load_relaxed(&file->page_count) - n); /* lock held */
		seq_write_end(&inode->seq);
		from = upto;
	}
}

static void range_intent(struct slot *self, struct inode *inode, enum fallocate_kind kind, uint64_t off,
			 uint64_t end)
{
	uint64_t arg[] = {(uintptr_t)inode, kind, off, end};

	intent_begin(self, INTENT_FALLOCATE, ARRAY_SIZE(arg), arg);
}

static void erase_noted(struct slot *self, struct inode *inode, uint64_t from, uint64_t end)
{
	range_intent(self, inode, FALLOCATE_PUNCH, from << PAGE_SHIFT, end << PAGE_SHIFT);
	erase_locked(self, inode, from, end);
	intent_end(self);
}

/* May [first, end) get pages for all its holes?  A guess for large ranges, so that hopeless ones change nothing. */
static bool space_for(struct slot *self, struct inode *inode, uint64_t first, uint64_t end)
{
	struct segment_space space;
	uint64_t holes = end - first;

	if (holes <= PUNCH_BATCH)
		return true;
	segment_space(self->seg, &space);
	if (holes > space.total_pages)
		return false; /* tmpfs does not look at what is there already either */
	holes -= data_count_pages(&inode->file.pages, first, end);
	if (holes <= space.free_pages)
		return true;
	epoch_reclaim(self);
	segment_space(self->seg, &space);
	return holes <= space.free_pages;
}

/* tmpfs takes pages that were allocated before, and are again, for written: SEEK_DATA finds them. */
void data_mark_written_locked(struct slot *self, struct inode *inode, uint64_t first, uint64_t end)
{
	struct file_part *file = &inode->file;
	uint64_t at = first, entry;

	for (; (entry = radix_next_epoch(&file->pages, &at, end)); at++) { /* lock held */
		if (!at)
			tracked_store(&file->data_flags, 0);
		else if (entry & DATA_UNWRITTEN)
			radix_store(self, &file->pages, at, entry & ~DATA_UNWRITTEN, NULL); /* no new node */
	}
}

/* Every hole of [first, end) gets an unwritten page.  0 or -ENOSPC. */
static int alloc_locked(struct slot *self, struct inode *inode, uint64_t first, uint64_t end)
{
	struct undo u = {.count = 0};
	uint64_t at = first;

	if (!space_for(self, inode, first, end))
		return -ENOSPC;
	data_mark_written_locked(self, inode, first, end);
	while ((at = radix_next_hole_epoch(&inode->file.pages, at, end)) < end) { /* lock held */
		uint64_t next = at, n;

		if (!radix_next_epoch(&inode->file.pages, &next, end))
			next = end;
		n = data_fill_hole_locked(self, inode, at, next, true);
		if (!n)
			n = data_fill_hole_locked(self, inode, at, next, false);
		if (!n)
			goto full;
		undo_note(&u, at, at + n);
		at += n;
	}
	return 0;
full:
	while (u.count--)
		erase_noted(self, inode, u.range[u.count].from, u.range[u.count].end);
	return -ENOSPC;
}

/* [off, end) of pages that are there; at most one page's worth at a time inside seq. */
void zero_locked(struct inode *inode, uint64_t off, uint64_t end)
{
	while (off < end) {
		uint64_t index = data_index(off), upto;

		if (!radix_next_epoch(&inode->file.pages, &index, data_pages_of(end))) /* lock held */
			break;
		off = max_of(off, index << PAGE_SHIFT);
		upto = min_of(end, (index + 1) << PAGE_SHIFT);
		seq_write_begin(&inode->seq);
		data_zero_in_page(inode, off, upto);
		seq_write_end(&inode->seq);
		off = upto;
	}
}

void punch_locked(struct slot *self, struct inode *inode, uint64_t off, uint64_t end)
{
	uint64_t first = data_pages_of(off), last = data_index(end);

	if (first > last) { /* within one page */
		zero_locked(inode, off, end);
		return;
	}
	zero_locked(inode, off, first << PAGE_SHIFT);
	erase_locked(self, inode, first, last);
	zero_locked(inode, last << PAGE_SHIFT, end);
}

/* Times, and a larger size where the call asks for one. */
static void finish_locked(struct who *w, struct inode *inode, uint64_t size)
{
	struct fresh none = {.count = 0};
	uint64_t old = data_size(inode);

	if (size > old)
		data_zero_tail(inode, old, size);
	fresh_begin(w->self, inode, &none, 0, 0, old, size);
	seq_write_begin(&inode->seq);
	data_changed_locked(w, inode, vfs_now());
	tracked_store(&inode->size, size);
	seq_write_end(&inode->seq);
	intent_end(w->self);
}

static int fallocate_locked(struct who *w, struct inode *inode, int mode, uint64_t off, uint64_t len)
{
	struct slot *self = w->self;
	uint64_t end = off + len, size = data_size(inode);
	int err;

	if (mode & FALLOC_FL_COLLAPSE_RANGE)
		return shift_collapse(w, inode, off, len);
	if (mode & FALLOC_FL_INSERT_RANGE)
		return shift_insert(w, inode, off, len);
	if (mode & FALLOC_FL_PUNCH_HOLE) {
		range_intent(self, inode, FALLOCATE_PUNCH, off, end);
		punch_locked(self, inode, off, end);
		intent_end(self);
		finish_locked(w, inode, size);
		return 0;
	}
	if (end > size && vfs_beyond_limit(w, end)) /* with KEEP_SIZE too, as tmpfs */
		return -EFBIG;
	err = alloc_locked(self, inode, data_index(off), data_pages_of(end));
	if (err)
		return err;
	if (mode & FALLOC_FL_ZERO_RANGE) {
		range_intent(self, inode, FALLOCATE_ZERO, off, end);
		zero_locked(inode, off, end);
		intent_end(self);
	}
	finish_locked(w, inode, mode & FALLOC_FL_KEEP_SIZE ? size : max_of(size, end));
	return 0;
}

/* The mode's errors, as vfs_fallocate() and then a file system without UNSHARE_RANGE give them. */
static int fallocate_mode(int mode)
{
	switch (mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_COLLAPSE_RANGE:
	case FALLOC_FL_INSERT_RANGE:
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

int ramfs_fallocate(struct who *w, struct inode *inode, int mode, uint64_t off, uint64_t len)
{
	struct slot *self = w->self;
	int err;

	if (off > (uint64_t)MAX_FILE_BYTES || !len || len > (uint64_t)MAX_FILE_BYTES)
		return -EINVAL; /* negative in the caller's eyes */
	err = fallocate_mode(mode);
	if (err)
		return err;
	if (off + len > (uint64_t)MAX_FILE_BYTES)
		return -EFBIG;
	lock_acquire(&inode->lock, &self->locker, LOCK_INODE);
	err = fallocate_locked(w, inode, mode, off, len);
	lock_release(&inode->lock, &self->locker, LOCK_INODE);
	return err;
}

/* SPDX-License-Identifier: MIT */
/*
 * write.c - writing a file.
 *
 * Protection: inode.lock for the whole call, so appends and writes never mix.
 * A short write in a section holds no reference: others may close the file for good meanwhile.  Under the lock it sees
 * whether they did before; if they do after, they see the lock and leave the data until the section is over (vfs/inode.c).
 * inode.seq is odd for one piece at a time: for as long as it takes to copy up to DATA_ATOMIC
 * bytes into pages that readers may look at, and to store pointers and size.
 * What goes into new pages is copied before.
 * Shared lines written: the inode's, the pages; of the allocator's none while the
 * thread's stock of pages lasts.
 * Full segment: what fits is written, as tmpfs does; nothing fits: -ENOSPC and
 * nothing is changed.
 * Limits: a run of new pages needs memory in one piece; where there is none, single pages serve.
 */
#include "ramfs/data_priv.h"
#include "segment/header.h"

/* Runs for large writes: 64 KiB to 1 MiB.  Smaller writes take single pages, warm from the thread's stock. */
#define RUN_ORDER_MIN 4u
#define RUN_ORDER_MAX 8u

void data_changed_locked(struct who *w, struct inode *inode, uint64_t now)
{
	/* Relaxed: lock held.  With an xattr it may be security.capability, which a write takes away too. */
	if (unlikely(load_relaxed(&inode->mode) & (S_ISUID | S_ISGID) || load_relaxed(&inode->flags) & INODE_HAS_XATTR))
		attr_kill_suid_locked(w, inode);
	seq_store(&inode->mtime, now);
	seq_store(&inode->ctime, now);
}

void data_zero_in_page(struct inode *inode, uint64_t from, uint64_t to)
{
	char *page = data_page_epoch(inode, data_index(from)); /* lock held */

	if (page && from < to)
		zero_bytes(page + (from & PAGE_MASK), to - from);
}

void data_zero_tail(struct inode *inode, uint64_t size, uint64_t end)
{
	if (size & PAGE_MASK)
		data_zero_in_page(inode, size, min_of(end, ALIGN_UP(size, PAGE_BYTES)));
}

/* ---- one piece of single pages ------------------------------------------------------------------ */

struct piece {
	uint64_t pos;
	size_t n; /* shrinks when memory or the source ends early */
	uint64_t first, end; /* pages */
	int err; /* why n is 0, if it is */
	struct fresh fresh; /* one page for each hole, in order */
	uint64_t entry[DATA_PIECE_PAGES]; /* 0: a hole */
};

/* The part of page `index` that the piece covers: [*from, *from + result) within the page. */
static inline size_t piece_part(const struct piece *p, uint64_t index, size_t *from)
{
	uint64_t start = index << PAGE_SHIFT;

	*from = start < p->pos ? p->pos - start : 0;
	return min_of(PAGE_BYTES, p->pos + p->n - start) - *from;
}

/* Nothing of the page at `index`, and nothing behind it, is written. */
static void piece_cut(struct piece *p, uint64_t index, size_t bytes_in_page, int err)
{
	size_t from;

	piece_part(p, index, &from);
	p->n = (index << PAGE_SHIFT) + from + bytes_in_page - p->pos;
	p->end = index + !!bytes_in_page;
	p->err = err;
}

/* Looks up what is there; each hole wants a page. */
static void piece_plan(struct data_write *d, struct piece *p)
{
	uint64_t i;

	p->first = data_index(p->pos);
	p->end = data_pages_of(p->pos + p->n);
	for (i = p->first; i < p->end; i++) {
		uint64_t entry = data_entry_epoch(d->inode, i); /* lock held */

		p->entry[i - p->first] = entry;
		if (!entry)
			fresh_want(&p->fresh, i, 0);
	}
}

/* Fills the new pages, what is not covered with zeros. */
static void piece_fill(struct data_write *d, struct piece *p)
{
	struct data_cursor c = d->src;
	struct fresh_run *r = p->fresh.run;
	uint64_t i;

	for (i = p->first; i < p->end; i++) {
		size_t from, got, len = piece_part(p, i, &from);

		if (p->entry[i - p->first]) {
			cursor_skip(&c, len);
			continue;
		}
		got = cursor_take(&c, r->page + from, len);
		if (from)
			zero_bytes(r->page, from);
		if (from + got < PAGE_BYTES)
			zero_bytes(r->page + from + got, PAGE_BYTES - from - got);
		r++;
		if (unlikely(got < len))
			piece_cut(p, i, got, -EFAULT);
	}
}

static void piece_written(struct data_write *d, uint64_t index, uint64_t entry)
{
	struct file_part *file = &d->inode->file;

	if (!(entry & DATA_UNWRITTEN))
		return;
	if (index)
		radix_store(d->w->self, &file->pages, index, entry & ~DATA_UNWRITTEN, NULL); /* no new node */
	else
		tracked_store(&file->data_flags, 0);
}

/* Inside seq: bytes into the pages that are there, and the new pages into the file. */
static void piece_store(struct data_write *d, struct piece *p)
{
	struct data_cursor c = d->src;
	struct fresh_run *r = p->fresh.run;
	uint64_t i;

	for (i = p->first; i < p->end; i++) {
		uint64_t entry = p->entry[i - p->first];
		size_t from, got, len = piece_part(p, i, &from);

		if (!entry) {
			cursor_skip(&c, len);
			if (unlikely(!fresh_publish(d->w->self, d->inode, r++, 1, 0)))
				piece_cut(p, i, 0, -ENOSPC);
			continue;
		}
		got = cursor_take(&c, data_page(entry) + from, len);
		if (unlikely(got < len))
			piece_cut(p, i, got, -EFAULT);
		if (got)
			piece_written(d, i, entry);
	}
}

/* Bytes, or -errno with nothing changed. */
static ssize_t write_piece(struct data_write *d, size_t n)
{
	struct slot *self = d->w->self;
	uint64_t size = data_size(d->inode);
	struct piece p;

	p.pos = d->pos;
	p.n = n;
	p.err = 0;
	p.fresh.count = 0;
	piece_plan(d, &p);
	if (unlikely(!fresh_begin(self, d->inode, &p.fresh, p.first, p.end, size, max_of(size, p.pos + p.n))))
		piece_cut(&p, p.fresh.run[p.fresh.count].index, 0, -ENOSPC);
	if (p.fresh.count)
		piece_fill(d, &p);
	seq_write_begin(&d->inode->seq);
	piece_store(d, &p);
	if (likely(p.n))
		data_changed_locked(d->w, d->inode, d->now);
	if (p.n && p.pos + p.n > size)
		tracked_store(&d->inode->size, p.pos + p.n);
	seq_write_end(&d->inode->seq);
	fresh_end(self, &p.fresh, p.end);
	return likely(p.n) ? (ssize_t)p.n : p.err;
}

/* ---- the common case: bytes of one page that is there ------------------------------------------- */

/* Bytes, -EFAULT, or 0: not here. */
static inline ssize_t write_in_place(struct data_write *d, size_t n)
{
	struct slot *self = d->w->self;
	struct inode *inode = d->inode;
	struct data_cursor c = d->src;
	size_t in_page = d->pos & PAGE_MASK;
	uint64_t entry;

	if (in_page + n > PAGE_BYTES || d->pos + n > data_size(inode))
		return 0;
	entry = data_entry_epoch(inode, data_index(d->pos)); /* lock held */
	if (!entry || entry & DATA_UNWRITTEN)
		return 0;
	data_repair_begin(self, inode);
	seq_write_begin(&inode->seq);
	n = cursor_take(&c, data_page(entry) + in_page, n);
	if (likely(n))
		data_changed_locked(d->w, inode, d->now);
	seq_write_end(&inode->seq);
	intent_end(self);
	return likely(n) ? (ssize_t)n : -EFAULT;
}

/* ---- a run of new pages ---------------------------------------------------------------------------- */

/* The order of a run that the next `left` bytes would fill; 0: not here. */
static unsigned run_order(struct data_write *d, size_t left)
{
	uint64_t first = data_index(d->pos), next = first, hole;

	if (likely(left < PAGE_BYTES << RUN_ORDER_MIN) || d->pos & PAGE_MASK)
		return 0;
	hole = min_of(left >> PAGE_SHIFT, UINT64_C(1) << RUN_ORDER_MAX);
	if (radix_next_epoch(&d->inode->file.pages, &next, first + hole)) /* lock held */
		hole = next - first;
	return hole < UINT64_C(1) << RUN_ORDER_MIN ? 0 : bits_last_one(hole);
}

/* Bytes; 0: not here or no such run, single pages must do; -EFAULT. */
static ssize_t write_run(struct data_write *d, size_t left)
{
	struct slot *self = d->w->self;
	uint64_t size = data_size(d->inode), first = data_index(d->pos), pages;
	unsigned order = run_order(d, left);
	struct data_cursor c = d->src;
	struct fresh f = {.count = 0};
	size_t n = PAGE_BYTES << order;

	if (!order)
		return 0;
	fresh_want(&f, first, order);
	if (!fresh_begin(self, d->inode, &f, first, first + (1u << order), size, max_of(size, d->pos + n))) {
		fresh_end(self, &f, first);
		return 0;
	}
	n = cursor_take(&c, f.run[0].page, n);
	if (n & PAGE_MASK)
		zero_bytes(f.run[0].page + n, PAGE_BYTES - (n & PAGE_MASK));
	seq_write_begin(&d->inode->seq);
	pages = fresh_publish(self, d->inode, &f.run[0], data_pages_of(n), 0);
	n = min_of(n, pages << PAGE_SHIFT);
	if (n)
		data_changed_locked(d->w, d->inode, d->now);
	if (n && d->pos + n > size)
		tracked_store(&d->inode->size, d->pos + n);
	seq_write_end(&d->inode->seq);
	fresh_end(self, &f, first + pages);
	return (ssize_t)n;
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

/* Large writes come to a page's start first, so that runs fit. */
static inline size_t piece_bytes(uint64_t pos, size_t left)
{
	return likely(left <= DATA_ATOMIC) ? left : DATA_ATOMIC - (pos & PAGE_MASK);
}

ssize_t data_write_locked(struct data_write *d, size_t total)
{
	uint64_t size = data_size(d->inode);
	size_t done = 0;
	ssize_t n = 0;

	if (d->pos > size)
		data_zero_tail(d->inode, size, d->pos);
	while (done < total) {
		n = write_in_place(d, total - done);
		if (!n)
			n = write_run(d, total - done);
		if (!n)
			n = write_piece(d, piece_bytes(d->pos, total - done));
		if (n < 0)
			break;
		cursor_skip(&d->src, (size_t)n);
		d->pos += (uint64_t)n;
		done += (size_t)n;
	}
	return done ? (ssize_t)done : n;
}

int data_write_limit(const struct who *w, uint64_t pos, size_t *total)
{
	uint64_t most = min_of(~w->fsize_not, (uint64_t)MAX_FILE_BYTES);

	if (vfs_beyond_limit(w, pos + 1) || pos >= most)
		return -EFBIG;
	*total = min_of(*total, most - pos);
	return 0;
}

/* In a section only what is short; a counted reference serves the rest. */
static bool write_may_start(struct slot *self, size_t total, unsigned flags)
{
	return !(flags & WRITE_TRY) || !epoch_inside(self) || total <= DATA_ATOMIC;
}

ssize_t ramfs_write(struct who *w, struct inode *inode, const struct iovec *iov, int iovcnt, uint64_t *pos,
		    size_t total, unsigned flags)
{
	struct slot *self = w->self;
	struct data_write d = {.w = w, .inode = inode, .src = {.iov = iov}};
	ssize_t n;

	(void)iovcnt; /* total is what they add up to */
	if (!total)
		return 0;
	if (!(flags & WRITE_APPEND) && (*pos > (uint64_t)MAX_FILE_BYTES || total > (uint64_t)MAX_FILE_BYTES - *pos))
		return -EINVAL;
	if (!write_may_start(self, total, flags))
		return -EAGAIN;
	if (!(flags & WRITE_TRY))
		lock_acquire(&inode->lock, &self->locker, LOCK_INODE);
	else if (!lock_try(&inode->lock, &self->locker, LOCK_INODE))
		return -EAGAIN;
	if (unlikely(inode_gone(inode))) {
		lock_release(&inode->lock, &self->locker, LOCK_INODE);
		return -EAGAIN; /* its data goes, or is gone; who counts the file sees that it was closed */
	}
	if (flags & WRITE_APPEND)
		*pos = data_size(inode);
	d.pos = *pos;
	d.now = vfs_now();
	n = data_write_limit(w, d.pos, &total);
	if (!n)
		n = data_write_locked(&d, total);
	lock_release(&inode->lock, &self->locker, LOCK_INODE);
	if (n == -ENOSPC && (flags & WRITE_TRY) && epoch_inside(self))
		return -EAGAIN; /* outside a section retired memory can be had back */
	return n;
}

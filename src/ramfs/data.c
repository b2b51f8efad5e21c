/* SPDX-License-Identifier: MIT */
/*
 * data.c - reading a file.
 *
 * Data: the pages of an inode, in its radix tree; its size.
 * Protection: changed under inode.lock, inside inode.seq where a reader could
 * see it.  A reader takes the count, the size, the pages, and copies; then it
 * looks at the count again, and starts over if a writer was there.  A page may be freed
 * and reused while it is being copied: whoever frees one has made the count odd before, so what
 * was copied is thrown away.  Nodes of the tree stay for the whole section.
 * Writes to shared lines: none.
 * Progress: lock-free, DATA_TRIES starts at most, then DATA_AGAIN; ramfs_read_slow() takes the
 * lock after that many and so ends.  Nobody waits for a reader.
 * Look at it: `shelf stat FILE`.
 * Limits: a read of more than DATA_ATOMIC bytes is a row of reads of that size.
 */
#include "ramfs/data_priv.h"

#define DATA_TRIES 16u
#define DATA_PATIENCE 64u /* pauses in all for writers to come out: 2-3 us */

/* What holes read as; the caller's buffer may fault, so this too is a copy. */
static const char data_zeros[PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));

/* Page by page, neighbours in memory in one go; each page is looked up once. */
static size_t read_spans(struct inode *inode, struct data_cursor *c, uint64_t pos, size_t n)
{
	uint64_t index = data_index(pos);
	size_t in_page = pos & PAGE_MASK, done = 0;
	const char *page = n ? data_page_epoch(inode, index) : NULL;

	while (done < n) {
		const char *src = (page ? page : data_zeros) + in_page, *next = NULL;
		size_t len = PAGE_BYTES - in_page, got;

		while (len < n - done) {
			next = data_page_epoch(inode, ++index);
			if (!page || next != page + PAGE_BYTES)
				break;
			page = next;
			len += PAGE_BYTES;
		}
		len = min_of(len, n - done);
		got = cursor_put(c, src, len);
		done += got;
		if (unlikely(got < len))
			break;
		page = next;
		in_page = 0;
	}
	return done;
}

/* What a read of nothing means: the end of the file, or of the inode (data_drop() made the size 0). */
static ssize_t read_end(struct inode *inode)
{
	/* The count died before the size became 0, and the size was loaded with acquire. */
	return inode_gone(inode) ? DATA_AGAIN : 0;
}

/* After a failed try: a writer inside gets a moment.  False: enough. */
static bool read_patience(struct seqcount *seq, unsigned *spent)
{
	while (load_relaxed(&seq->n) & 1) { /* a hint; seq_read_begin decides */
		if ((*spent)++ >= DATA_PATIENCE)
			return false;
		cpu_relax();
	}
	return true;
}

/* At most DATA_ATOMIC bytes.  Bytes and *c moved on, 0 at the end, -EFAULT, or DATA_AGAIN. */
static ssize_t read_piece_epoch(struct inode *inode, struct data_cursor *c, uint64_t pos, size_t n)
{
	unsigned tries, spent = 0;

	for (tries = 0; tries < DATA_TRIES && read_patience(&inode->seq, &spent); tries++) {
		struct data_cursor at = *c;
		uint32_t begin = seq_read_begin(&inode->seq);
		uint64_t size = seq_load(&inode->size);
		size_t want = pos < size ? min_of(n, size - pos) : 0;
		size_t got = read_spans(inode, &at, pos, want);

		if (!seq_read_ok(&inode->seq, begin))
			continue;
		if (!want)
			return read_end(inode);
		*c = at;
		return likely(got) ? (ssize_t)got : -EFAULT;
	}
	return DATA_AGAIN;
}

typedef ssize_t read_piece_fn(struct slot *self, struct inode *inode, struct data_cursor *c, uint64_t pos, size_t n);

/* Piece by piece up to the end of the file, a fault, or `total`. */
static ssize_t read_pieces(struct slot *self, struct inode *inode, const struct iovec *iov, uint64_t pos,
			   size_t total, read_piece_fn *piece)
{
	struct data_cursor c = {.iov = iov};
	size_t done = 0;

	while (done < total) {
		size_t n = min_of(total - done, (size_t)DATA_ATOMIC);
		ssize_t got = piece(self, inode, &c, pos + done, n);

		if (got == DATA_AGAIN)
			return got;
		if (got < 0)
			return done ? (ssize_t)done : got;
		done += (size_t)got;
		if ((size_t)got < n)
			break;
	}
	return (ssize_t)done;
}

static ssize_t read_piece_inside(struct slot *self, struct inode *inode, struct data_cursor *c, uint64_t pos,
				 size_t n)
{
	(void)self;
	return read_piece_epoch(inode, c, pos, n);
}

/* Without a section around it. */
static ssize_t read_piece_nowait(struct slot *self, struct inode *inode, struct data_cursor *c, uint64_t pos, size_t n)
{
	ssize_t got;

	epoch_enter(self);
	got = read_piece_epoch(inode, c, pos, n);
	epoch_exit(self);
	return got == DATA_AGAIN ? -EAGAIN : got;
}

/* Then the lock. */
static ssize_t read_piece_slow(struct slot *self, struct inode *inode, struct data_cursor *c, uint64_t pos, size_t n)
{
	ssize_t got = read_piece_nowait(self, inode, c, pos, n);
	uint64_t size;

	if (got != -EAGAIN)
		return got;
	lock_acquire(&inode->lock, &self->locker, LOCK_INODE);
	size = data_size(inode);
	got = pos < size ? (ssize_t)read_spans(inode, c, pos, min_of(n, size - pos)) : 0;
	lock_release(&inode->lock, &self->locker, LOCK_INODE);
	return !got && pos < size ? -EFAULT : got;
}

ssize_t ramfs_read_epoch(struct slot *self, struct inode *inode, const struct iovec *iov, int iovcnt, uint64_t pos,
			 size_t total)
{
	(void)iovcnt; /* total is what they add up to */
	if (!total)
		return 0;
	if (total > DATA_SECTION_BYTES)
		return DATA_AGAIN;
	return read_pieces(self, inode, iov, pos, total, read_piece_inside);
}

ssize_t ramfs_read_slow(struct slot *self, struct inode *inode, const struct iovec *iov, int iovcnt, uint64_t pos,
			size_t total)
{
	(void)iovcnt;
	return total ? read_pieces(self, inode, iov, pos, total, read_piece_slow) : 0;
}

ssize_t ramfs_read_nowait(struct slot *self, struct inode *inode, const struct iovec *iov, uint64_t pos, size_t total)
{
	return total ? read_pieces(self, inode, iov, pos, total, read_piece_nowait) : 0;
}

ssize_t ramfs_pread_epoch(struct slot *self, struct inode *inode, void *buf, size_t n, uint64_t pos)
{
	struct iovec iov = {buf, n};
	size_t got = ramfs_read_try_epoch(inode, buf, n, pos);

	return likely(got) ? (ssize_t)got : ramfs_read_epoch(self, inode, &iov, 1, pos, n);
}

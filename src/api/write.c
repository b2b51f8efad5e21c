/* SPDX-License-Identifier: MIT */
/*
 * write.c - shelf_write and shelf_pwrite: the common write, straight from the number to the copy.
 *
 * Common: a regular file open for writing, bytes of one page that is there, below the end, no RLIMIT_FSIZE.  All else - an error, an
 * append, a new page, a reader of events, somebody else writing - is found and told by io_write(), from the start.
 * Protection: one read section around all of it; the inode's lock, tried.
 * Shared lines written: the inode's (ramfs/overwrite.c); write() stores the file's offset, under its lock unless the thread
 * has the file alone.  Progress: wait-free.
 * Instructions beside the copy: docs/benchmarks.md.
 */
#include "api/api.h"

/* `pos` of -1: at the file's offset. */
static __attribute__((noinline, cold)) ssize_t write_slow(struct shelf_task *t, int fd, const void *buf, size_t count, off_t pos)
{
	struct io io;
	struct iovec one;

	io.moves = pos == -1;
	io.pos = (uint64_t)pos;
	io.rwf = 0;
	io_one(&io, &one, buf, count);
	return io_write(t, fd, &io);
}

static inline bool file_is_overwritable(struct file *f)
{
	return f->head.type == FD_TYPE_REG && file_writable(f) && !(load_relaxed(&f->flags) & O_APPEND); /* relaxed: a flag */
}

/* In a section, the file borrowed.  Bytes, or 0: not here. */
LOCK_NO_ANALYSIS static inline_always size_t write_file(struct slot *self, struct fd_table *files, struct file *f,
							const void *buf, size_t count)
{
	bool alone = file_is_alone(self, files, f);
	uint64_t pos;
	size_t n = 0;

	if (!alone && unlikely(!lock_try(&f->pos_lock, &self->locker, LOCK_FILEPOS)))
		return 0;
	pos = load_relaxed(&f->pos); /* relaxed: [p] */
	if (likely(io_is_common(buf, count, pos)))
		n = ramfs_overwrite_epoch(self, f->inode, buf, count, pos);
	if (likely(n))
		store_relaxed(&f->pos, pos + n); /* relaxed: [p] */
	if (!alone)
		lock_release(&f->pos_lock, &self->locker, LOCK_FILEPOS);
	return n;
}

/* 0: not here. */
static inline_always size_t write_common(struct shelf_task *t, int fd, const void *buf, size_t count, uint64_t pos,
					 bool moves)
{
	struct slot *self = task_slot(t);
	struct fd_table *files;
	struct fd_file *head;
	size_t n = 0;

	if (unlikely(!self || load_relaxed(&t->hdr->poison) || self->seg->read_only)) /* relaxed: a flag */
		return 0;
	if (unlikely(load_relaxed(&t->fsize_not))) /* a number */
		return 0;
	files = load_relaxed(&t->files); /* relaxed: changes only while no call runs */
	epoch_enter_root(self, t->hdr->epoch);
	if (likely(!fd_borrow_epoch(self, files, fd, &head))) {
		struct file *f = file_of(head);

		if (likely(file_is_overwritable(f)))
			n = moves ? write_file(self, files, f, buf, count) :
				    ramfs_overwrite_epoch(self, f->inode, buf, count, pos);
		fd_return_epoch(self, files, head);
	}
	epoch_exit(self);
	return n;
}

ssize_t shelf_pwrite(struct shelf_task *t, int fd, const void *buf, size_t count, off_t offset)
{
	size_t n;

	if (likely(io_is_common(buf, count, (uint64_t)offset))) {
		n = write_common(t, fd, buf, count, (uint64_t)offset, false);
		if (likely(n))
			return (ssize_t)n;
	}
	return offset < 0 ? -EINVAL : write_slow(t, fd, buf, count, offset);
}

ssize_t shelf_write(struct shelf_task *t, int fd, const void *buf, size_t count)
{
	size_t n;

	if (likely(io_is_common(buf, count, 0))) {
		n = write_common(t, fd, buf, count, 0, true);
		if (likely(n))
			return (ssize_t)n;
	}
	return write_slow(t, fd, buf, count, -1);
}

/* SPDX-License-Identifier: MIT */
/*
 * read.c - shelf_read and shelf_pread: the common read, straight from the number to the copy.
 *
 * Common: a regular file open for reading, a part of one page that is there, and nobody writing, nor watching.  All else - an error,
 * the end of the file, a hole, a writer at work - is found and told by io_read(), from the start.
 * Protection: one read section around all of it.
 * Shared lines written: none by a positional read; read() stores the file's offset, under its lock unless the thread
 * has the file alone.  Progress: wait-free.
 * Instructions beside the copy: docs/benchmarks.md.
 */
#include "api/api.h"
#include "ramfs/data_inline.h"

/* `pos` of -1: at the file's offset. */
static __attribute__((noinline, cold)) ssize_t read_slow(struct shelf_task *t, int fd, void *buf, size_t count, off_t pos)
{
	struct io io;
	struct iovec one;

	io.moves = pos == -1;
	io.pos = (uint64_t)pos;
	io.rwf = 0;
	io_one(&io, &one, buf, count);
	return io_read(t, fd, &io);
}

/* In a section, the file borrowed.  Bytes, or 0: not here. */
static inline_always size_t pread_file(struct slot *self, struct file *f, void *buf, size_t count, uint64_t pos)
{
	size_t n;

	if (unlikely(f->head.type != FD_TYPE_REG || !file_readable(f)))
		return 0;
	n = ramfs_read_try_epoch(f->inode, buf, count, pos);
	if (likely(n))
		file_touch(self, f);
	return n;
}

/* The same at the file's offset, which only regular and other seekable files have. */
LOCK_NO_ANALYSIS static inline_always size_t read_file(struct slot *self, struct fd_table *files, struct file *f,
						       void *buf, size_t count)
{
	bool alone = file_is_alone(self, files, f);
	uint64_t pos;
	size_t n = 0;

	if (unlikely(self->seg->read_only)) /* the offset is shared */
		return 0;
	if (!alone && unlikely(!lock_try(&f->pos_lock, &self->locker, LOCK_FILEPOS)))
		return 0;
	pos = load_relaxed(&f->pos); /* relaxed: [p] */
	if (likely(io_is_common(buf, count, pos)))
		n = pread_file(self, f, buf, count, pos);
	if (likely(n))
		store_relaxed(&f->pos, pos + n); /* relaxed: [p] */
	if (!alone)
		lock_release(&f->pos_lock, &self->locker, LOCK_FILEPOS);
	return n;
}

/* 0: not here. */
static inline_always size_t read_common(struct shelf_task *t, int fd, void *buf, size_t count, uint64_t pos, bool moves)
{
	struct slot *self = task_slot(t);
	struct fd_table *files;
	struct fd_file *head;
	size_t n = 0;

	if (unlikely(!self || load_relaxed(&t->hdr->poison) || load_relaxed(&t->hdr->watchers))) /* relaxed: flags */
		return 0;
	files = load_relaxed(&t->files); /* relaxed: changes only while no call runs */
	epoch_enter_root(self, t->hdr->epoch);
	if (likely(!fd_borrow_epoch(self, files, fd, &head))) {
		n = moves ? read_file(self, files, file_of(head), buf, count) :
			    pread_file(self, file_of(head), buf, count, pos);
		fd_return_epoch(self, files, head);
	}
	epoch_exit(self);
	return n;
}

ssize_t shelf_pread(struct shelf_task *t, int fd, void *buf, size_t count, off_t offset)
{
	size_t n;

	if (likely(io_is_common(buf, count, (uint64_t)offset))) {
		n = read_common(t, fd, buf, count, (uint64_t)offset, false);
		if (likely(n))
			return (ssize_t)n;
	}
	return offset < 0 ? -EINVAL : read_slow(t, fd, buf, count, offset);
}

ssize_t shelf_read(struct shelf_task *t, int fd, void *buf, size_t count)
{
	size_t n;

	if (likely(io_is_common(buf, count, 0))) {
		n = read_common(t, fd, buf, count, 0, true);
		if (likely(n))
			return (ssize_t)n;
	}
	return read_slow(t, fd, buf, count, -1);
}

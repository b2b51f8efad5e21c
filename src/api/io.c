/* SPDX-License-Identifier: MIT */
/*
 * io.c - reading and writing through a descriptor.
 *
 * Fast path: inside one read section, on a borrowed file.  A positional read stores nothing that is
 * shared; read() and write() take the offset's lock, left out where one thread has the file alone.  What
 * cannot be done there (a locked inode, a large transfer, a pipe) pins the file and waits outside.
 * A read that makes the access time due (relatime) sets it afterwards.
 */
#include <sys/inotify.h>
#include <sys/uio.h>

#include "api/api.h"

#define RWF_NOAPPEND_ 0x20u
#define RWF_NOSIGNAL_ 0x100u
#define RWF_KNOWN (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | RWF_NOAPPEND_ | RWF_NOSIGNAL_)
#define WRITE_IN_SECTION 16384u /* larger ones would hold the epoch back */

static bool seekable(const struct file *f)
{
	return file_has_inode(f);
}

/* What Linux checks before it moves a byte, in its order.  1: nothing to do. */
static int io_check(const struct file *f, const struct io *io, bool mode_ok)
{
	if (unlikely(!io->moves && !seekable(f)))
		return -ESPIPE;
	if (unlikely(!mode_ok))
		return -EBADF;
	if (unlikely(io->err))
		return io->err;
	if (unlikely(io->vector && !io->total))
		return 1;
	return 0;
}

static int io_check_range(const struct io *io, uint64_t pos)
{
	return unlikely((int64_t)(pos + io->total) < 0) ? -EINVAL : 0;
}

static int io_check_flags(const struct io *io)
{
	if (unlikely(io->rwf & ~RWF_KNOWN))
		return -EOPNOTSUPP;
	return (io->rwf & RWF_APPEND) && (io->rwf & RWF_NOAPPEND_) ? -EINVAL : 0;
}

static uint64_t io_pos(const struct use *u, const struct io *io)
{
	return io->moves ? load_relaxed(&u->f->pos) : io->pos; /* relaxed: [p] */
}

/* ---- read ------------------------------------------------------------------------------------- */

static ssize_t read_data(struct use *u, const struct io *io, uint64_t pos)
{
	struct slot *self = u->w.self;
	struct inode *inode = u->f->inode;
	ssize_t n;

	if (unlikely(io->null))
		return pos >= load_acquire(&inode->size) ? 0 : -EFAULT; /* pairs with the writer's store */
	if (likely(!u->pinned)) {
		n = likely(io->iovcnt == 1) ? ramfs_pread_epoch(self, inode, io->iov->iov_base, io->total, pos) :
					      ramfs_read_epoch(self, inode, io->iov, io->iovcnt, pos, io->total);
		if (likely(n != DATA_AGAIN))
			return n;
		if (self->seg->read_only) /* cannot take the lock: look again */
			return io->rwf & RWF_NOWAIT ? -EAGAIN : DATA_AGAIN;
		int err = use_pin(u);

		if (err)
			return err;
	}
	if (io->rwf & RWF_NOWAIT)
		return ramfs_read_nowait(self, inode, io->iov, pos, io->total);
	return ramfs_read_slow(self, inode, io->iov, io->iovcnt, pos, io->total);
}

static ssize_t read_regular(struct use *u, const struct io *io)
{
	uint64_t pos = io_pos(u, io);
	ssize_t n = io_check_range(io, pos);

	if (unlikely(n))
		return n;
	n = io_check_flags(io);
	if (unlikely(n))
		return n;
	n = read_data(u, io, pos);
	if (n > 0 && io->moves)
		store_relaxed(&u->f->pos, pos + (uint64_t)n); /* relaxed: [p] */
	if (n > DATA_AGAIN)
		use_touch(u); /* whatever came of it, as Linux */
	return n;
}

/* Pipes and their kin; directories and nodes of the tree. */
static ssize_t read_other(struct use *u, const struct io *io)
{
	int err;

	if (u->f->head.type == FD_TYPE_DIR) {
		err = io_check_range(io, io_pos(u, io));
		return err ? err : (io->rwf & ~(unsigned)RWF_HIPRI) ? -EOPNOTSUPP : -EISDIR;
	}
	if (io->rwf & ~(unsigned)RWF_HIPRI)
		return -EOPNOTSUPP; /* none of them takes a flag */
	err = use_pin(u);
	if (err)
		return err;
	if (!file_ops_of(u->f)->read)
		return -EINVAL;
	return file_ops_of(u->f)->read(&u->w, u->f, io->iov, io->iovcnt, io->total);
}

static ssize_t read_once(struct use *u, const struct io *io)
{
	ssize_t n = io_check(u->f, io, file_readable(u->f));

	if (unlikely(n))
		return n == 1 ? 0 : n;
	if (unlikely(u->f->head.type != FD_TYPE_REG))
		return read_other(u, io);
	if (!io->moves)
		return read_regular(u, io);
	n = use_pos_lock(u);
	if (unlikely(n))
		return n;
	n = read_regular(u, io);
	use_pos_unlock(u);
	return n;
}

/* Somebody watches: the file is counted, so that they can be told. */
static ssize_t read_heard(struct use *u, const struct io *io)
{
	ssize_t n = use_pin(u);

	if (!n)
		n = read_once(u, io);
	if (n > 0)
		notify_file(u->w.self, u->f, IN_ACCESS);
	return n;
}

ssize_t io_read(struct shelf_task *t, int fd, struct io *io)
{
	struct use u;
	ssize_t n;

	do {
		n = use_begin(&u, t, fd, false);
		if (unlikely(n))
			return n;
		if (unlikely(io->moves && u.w.self->seg->read_only))
			n = -EROFS; /* the offset is shared */
		else if (notify_wanted(u.w.self) && notify_hears_epoch(u.f) && !u.w.self->seg->read_only)
			n = read_heard(&u, io);
		else
			n = read_once(&u, io);
		use_end(&u);
	} while (unlikely(n <= DATA_AGAIN));
	return n;
}

/* ---- write ------------------------------------------------------------------------------------ */

static unsigned write_flags(const struct use *u, const struct io *io)
{
	bool append = (load_relaxed(&u->f->flags) & O_APPEND) || (io->rwf & RWF_APPEND); /* relaxed: a flag */

	return append && !(io->rwf & RWF_NOAPPEND_) ? WRITE_APPEND : 0;
}

/* A short write needs no count: ramfs_write() and the last close see to each other. */
static ssize_t write_data(struct use *u, const struct io *io, uint64_t *pos)
{
	unsigned flags = write_flags(u, io);
	ssize_t n;

	if (unlikely(io->null))
		return -EFAULT;
	if (!u->pinned && io->total <= WRITE_IN_SECTION) {
		n = ramfs_write(&u->w, u->f->inode, io->iov, io->iovcnt, pos, io->total, flags | WRITE_TRY);
		if (likely(n != -EAGAIN))
			return n;
	}
	n = use_pin(u);
	if (n)
		return n;
	if (io->rwf & RWF_NOWAIT)
		flags |= WRITE_TRY;
	return ramfs_write(&u->w, u->f->inode, io->iov, io->iovcnt, pos, io->total, flags);
}

static ssize_t write_regular(struct use *u, const struct io *io)
{
	uint64_t pos = io_pos(u, io);
	ssize_t n = io_check_range(io, pos);

	if (unlikely(n))
		return n;
	n = io_check_flags(io);
	if (unlikely(n || !io->total))
		return n;
	n = write_data(u, io, &pos);
	if (n > 0 && io->moves)
		store_relaxed(&u->f->pos, pos + (uint64_t)n); /* relaxed: [p] */
	return n;
}

static ssize_t write_other(struct use *u, const struct io *io)
{
	int err = io->rwf & ~(unsigned)RWF_HIPRI ? -EOPNOTSUPP : use_pin(u);

	if (err)
		return err;
	if (!file_ops_of(u->f)->write)
		return -EINVAL;
	return file_ops_of(u->f)->write(&u->w, u->f, io->iov, io->iovcnt, io->total);
}

static ssize_t write_once(struct use *u, const struct io *io)
{
	ssize_t n = io_check(u->f, io, file_writable(u->f));

	if (unlikely(n))
		return n == 1 ? 0 : n;
	if (unlikely(u->f->head.type != FD_TYPE_REG))
		return write_other(u, io);
	if (!io->moves)
		return write_regular(u, io);
	n = use_pos_lock(u);
	if (unlikely(n))
		return n;
	n = write_regular(u, io);
	use_pos_unlock(u);
	return n;
}

static ssize_t write_heard(struct use *u, const struct io *io)
{
	ssize_t n = use_pin(u);

	if (!n)
		n = write_once(u, io);
	if (n > 0)
		notify_file(u->w.self, u->f, IN_MODIFY);
	return n;
}

static ssize_t write_any(struct use *u, const struct io *io)
{
	if (unlikely(u->w.self->seg->read_only))
		return -EROFS;
	return notify_wanted(u->w.self) && notify_hears_epoch(u->f) ? write_heard(u, io) : write_once(u, io);
}

ssize_t io_write(struct shelf_task *t, int fd, struct io *io)
{
	struct use u;
	ssize_t n;

	do {
		n = use_begin(&u, t, fd, false);
		if (unlikely(n))
			return n;
		n = write_any(&u, io);
		use_end(&u);
	} while (unlikely(n == USE_AGAIN));
	return n;
}

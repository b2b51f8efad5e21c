/* SPDX-License-Identifier: MIT */
/* rw.c - the vector forms of read and write. */
#include "api/api.h"

ssize_t shelf_readv(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt)
{
	return shelf_preadv2(t, fd, iov, iovcnt, -1, 0);
}

ssize_t shelf_writev(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt)
{
	return shelf_pwritev2(t, fd, iov, iovcnt, -1, 0);
}

ssize_t shelf_preadv(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
	return offset < 0 ? -EINVAL : shelf_preadv2(t, fd, iov, iovcnt, offset, 0);
}

ssize_t shelf_pwritev(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
	return offset < 0 ? -EINVAL : shelf_pwritev2(t, fd, iov, iovcnt, offset, 0);
}

ssize_t shelf_preadv2(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags)
{
	struct io io = { .moves = offset == -1, .pos = (uint64_t)offset, .rwf = (unsigned)flags };

	if (offset < -1)
		return -EINVAL;
	io_many(&io, iov, iovcnt);
	return io_read(t, fd, &io);
}

ssize_t shelf_pwritev2(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags)
{
	struct io io = { .moves = offset == -1, .pos = (uint64_t)offset, .rwf = (unsigned)flags };

	if (offset < -1)
		return -EINVAL;
	io_many(&io, iov, iovcnt);
	return io_write(t, fd, &io);
}

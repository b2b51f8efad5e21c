/* SPDX-License-Identifier: MIT */
/* iov.c - buffers as the caller gives them: limits, and addresses that cannot be good. */
#include "api/api.h"

void io_one(struct io *io, struct iovec *one, const void *buf, size_t count)
{
	io->err = buffer_ok(buf, count) ? 0 : -EFAULT;
	io->total = min_of(count, RW_COUNT_MAX);
	one->iov_base = (void *)(uintptr_t)buf;
	one->iov_len = io->total;
	io->iov = one;
	io->iovcnt = 1;
	io->null = !buf && count;
	io->vector = false;
}

/* Adds up; stops at a NULL buffer, as a kernel's copy would; cuts at RW_COUNT_MAX. */
static int iov_sum(const struct iovec *iov, int n, size_t *total, bool *null)
{
	bool stopped = false;

	*total = 0;
	*null = false;
	for (int i = 0; i < n; i++) {
		if ((ssize_t)iov[i].iov_len < 0)
			return -EINVAL;
		if (!buffer_ok(iov[i].iov_base, iov[i].iov_len))
			return -EFAULT;
		if (!iov[i].iov_base && iov[i].iov_len) {
			*null |= !stopped && !*total;
			stopped = true;
		}
		if (!stopped)
			*total = min_of(*total + iov[i].iov_len, RW_COUNT_MAX);
		else if (*null)
			*total = 1;
	}
	return 0;
}

void io_many(struct io *io, const struct iovec *iov, int iovcnt)
{
	io->iov = iov;
	io->iovcnt = iovcnt;
	io->total = 0;
	io->null = false;
	io->vector = true;
	io->err = iovcnt < 0 || iovcnt > IOV_MAX ? -EINVAL : iovcnt && !iov ? -EFAULT : 0;
	if (!io->err)
		io->err = iov_sum(iov, iovcnt, &io->total, &io->null);
}

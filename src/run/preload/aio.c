/* SPDX-License-Identifier: MIT */
/*
 * aio.c - io_submit with files of the shelf.
 *
 * A request on one of ours is done at once.  Its completion comes from the kernel, in the same ring as all others: the
 * program's own control block is submitted as a request that does nothing and ends with our result - a write of that many
 * bytes to /dev/null, which looks at no byte - and is put back as it was.  So io_getevents, readers of the ring in user space, event
 * descriptors and waiting threads need no care.
 * Errors that have no such request come from io_submit itself.
 * POSIX's aio_* are threads of libc's that read and write.
 */
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/uio.h>

#include "run/preload/serve.h"

struct submit {
	uint64_t ctx;
	struct iocb **list; /* the program's */
	long n;
	int null; /* /dev/null of the kernel's, -1: not open yet */
};

static bool take(const struct submit *s, long i, struct iocb **at, struct iocb *c)
{
	return !copy_from_user(at, &s->list[i], sizeof(*at)) && !copy_from_user(c, *at, sizeof(*c));
}

static bool is_ours(const struct submit *s, long i)
{
	struct iocb *at, c;

	return take(s, i, &at, &c) && number_is_ours((int)c.aio_fildes);
}

static long transfer(const struct iocb *c)
{
	struct shelf_task *t = task_here();
	struct iovec one = {(void *)(uintptr_t)c->aio_buf, c->aio_nbytes};
	bool many = c->aio_lio_opcode == IOCB_CMD_PREADV || c->aio_lio_opcode == IOCB_CMD_PWRITEV;
	const struct iovec *iov = many ? one.iov_base : &one;
	int n = many ? (int)c->aio_nbytes : 1;

	if (c->aio_lio_opcode == IOCB_CMD_PREAD || c->aio_lio_opcode == IOCB_CMD_PREADV)
		return SERVED(shelf_preadv2(t, (int)c->aio_fildes, iov, n, c->aio_offset, (int)c->aio_rw_flags));
	return SERVED(shelf_pwritev2(t, (int)c->aio_fildes, iov, n, c->aio_offset, (int)c->aio_rw_flags));
}

static long perform(const struct iocb *c)
{
	if (c->aio_reserved2 || (c->aio_flags & IOCB_FLAG_RESFD && number_is_ours((int)c->aio_resfd)))
		return -EINVAL;
	switch (c->aio_lio_opcode) {
	case IOCB_CMD_PREAD:
	case IOCB_CMD_PWRITE:
	case IOCB_CMD_PREADV:
	case IOCB_CMD_PWRITEV:
		return transfer(c);
	case IOCB_CMD_FSYNC:
	case IOCB_CMD_FDSYNC:
		return SERVED(shelf_fsync(task_here(), (int)c->aio_fildes));
	case IOCB_CMD_POLL:
		return 0; /* the stand-in answers */
	default:
		return -EINVAL;
	}
}

static long open_null(struct submit *s)
{
	long fd = s->null;

	if (fd >= 0)
		return fd;
	fd = sys_call3(SYS_open, (long)"/dev/null", O_RDWR | O_CLOEXEC, 0);
	if (fd == -EMFILE) {
		numbers_release();
		fd = sys_call3(SYS_open, (long)"/dev/null", O_RDWR | O_CLOEXEC, 0);
	}
	s->null = (int)fd;
	return fd == -EMFILE || fd == -ENFILE ? -EAGAIN : fd;
}

/* What ends with `result` (at least 0) in the place of `c`. */
static struct iocb stand_in(const struct iocb *c, int null, long result)
{
	struct iocb in = *c;

	in.aio_fildes = (uint32_t)null;
	if (c->aio_lio_opcode == IOCB_CMD_POLL)
		return in; /* always ready, as a file is */
	in.aio_lio_opcode = IOCB_CMD_PWRITE;
	in.aio_flags &= IOCB_FLAG_RESFD;
	in.aio_rw_flags = 0;
	in.aio_reqprio = 0;
	in.aio_buf = PAGE_BYTES; /* an address that could be */
	in.aio_nbytes = (uint64_t)result;
	in.aio_offset = 0;
	return in;
}

/* 1, or -errno. */
static long complete(struct submit *s, struct iocb *at, const struct iocb *c, long result)
{
	struct iocb in, *list = at;
	long null = open_null(s), n;

	if (null < 0)
		return null;
	in = stand_in(c, (int)null, result);
	if (copy_to_user(at, &in, sizeof(in)))
		return -EFAULT;
	n = sys_call3(SYS_io_submit, (long)s->ctx, 1, (long)&list);
	in = *c;
	copy_to_user(at, &in, sizeof(in));
	return n;
}

static long submit_ours(struct submit *s, long i)
{
	struct iocb *at, c;
	long result;

	if (!take(s, i, &at, &c))
		return -EFAULT;
	result = perform(&c);
	return result < 0 ? result : complete(s, at, &c, result);
}

/* From `i` on what the kernel can have. */
static long submit_host(const struct submit *s, long i)
{
	long end = i + 1;

	while (end < s->n && !is_ours(s, end))
		end++;
	return sys_call3(SYS_io_submit, (long)s->ctx, end - i, (long)&s->list[i]);
}

static long submit_all(struct submit *s)
{
	long done = 0;

	while (done < s->n) {
		long n = is_ours(s, done) ? submit_ours(s, done) : submit_host(s, done);

		if (n <= 0)
			return done ? done : n;
		done += n;
	}
	return done;
}

static long serve_io_submit(struct run_regs *r)
{
	struct submit s = {.ctx = r->di, .list = (struct iocb **)r->dx, .n = (long)r->si, .null = -1};
	long i = 0, n;

	if (!attached())
		return run_pass(r);
	while (i < s.n && !is_ours(&s, i))
		i++;
	if (i >= s.n)
		return run_pass(r);
	n = submit_all(&s);
	if (s.null >= 0)
		sys_call3(SYS_close, s.null, 0, 0);
	return n;
}

AT_START void serve_aio_init(void)
{
	serve_table[SYS_io_submit] = serve_io_submit;
}

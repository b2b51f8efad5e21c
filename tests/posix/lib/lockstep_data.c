/* SPDX-License-Identifier: MIT */
/* lockstep_data.c - operations that move data, and sizes. */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness.h"
#include "lockstep_ops.h"

static void fill(struct ls_side *s, const struct ls_op *o, size_t n)
{
	uint64_t state = o->seed;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = test_random(&state);

		memcpy(s->buf + i, &word, 8);
	}
}

static void hash_read(struct ls_side *s, struct ls_result *r)
{
	if (r->ret > 0)
		r->hash = ls_hash(1, s->buf, (size_t)r->ret);
}

void ls_do_read(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_read(s->task, o->fd, s->buf, (size_t)o->len), KERNEL3(SYS_read, o->fd, s->buf, o->len));
	hash_read(s, r);
}

void ls_do_pread(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = ls_pread(s, o->fd, s->buf, (size_t)o->len, o->off);
	hash_read(s, r);
}

/* Sometimes a length that no buffer has. */
static size_t write_length(const struct ls_op *o)
{
	return o->r[0] % 400 == 0 ? (size_t)-1 - o->r[1] % 3 : (size_t)o->len;
}

void ls_do_write(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	fill(s, o, (size_t)o->len);
	r->ret = LS_CALL(s, shelf_write(s->task, o->fd, s->buf, write_length(o)),
			 KERNEL3(SYS_write, o->fd, s->buf, write_length(o)));
}

/* Far offsets make files of a size that only sparse ones may have; rarely. */
void ls_do_pwrite(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	fill(s, o, (size_t)o->len);
	r->ret = LS_CALL(s, shelf_pwrite(s->task, o->fd, s->buf, write_length(o), o->off),
			 KERNEL4(SYS_pwrite64, o->fd, s->buf, write_length(o), o->off));
}

/* ---- vectors --------------------------------------------------------------------------------------- */

static int make_iov(struct ls_side *s, const struct ls_op *o, struct iovec iov[8])
{
	int n = (int)(o->r[0] % 8);
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		size_t len = (o->r[i + 1] % 3 ? o->r[i + 1] % 5000 : o->r[i + 1] % 20);

		if (at + len > LS_BUFFER - 8)
			len = 0;
		iov[i] = (struct iovec){ s->buf + at, len };
		at += len;
	}
	if (n && o->r[8] % 64 == 0)
		iov[n - 1].iov_base = NULL;
	if (n && o->r[8] % 64 == 1)
		iov[n / 2].iov_len = (size_t)-5;
	if (o->r[8] % 64 == 2)
		n = 1025;
	if (o->r[8] % 64 == 3)
		n = -1;
	return n;
}

/* A write that faults at its first byte leaves the kernel's file longer, but not the shelf's. */
static void fault_later(struct ls_side *s, struct iovec iov[8], int n)
{
	size_t before = 0;

	for (int i = 0; i < n && i < 8; i++) {
		if (!iov[i].iov_base && !before)
			iov[i].iov_base = s->buf;
		before += iov[i].iov_len;
	}
}

static int rwf(const struct ls_op *o)
{
	static const int flags[] = { 0, 1, 2, 4, 16, 32, 64, 0x80, 0x200, 16 | 32, 0x1000000 };

	return o->r[9] % 3 ? 0 : flags[o->r[9] / 3 % 11];
}

void ls_do_readv(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct iovec iov[8];
	int n = make_iov(s, o, iov);

	r->ret = LS_CALL(s, shelf_readv(s->task, o->fd, iov, n), KERNEL3(SYS_readv, o->fd, iov, n));
	hash_read(s, r);
}

void ls_do_writev(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct iovec iov[8];
	int n = make_iov(s, o, iov);

	fault_later(s, iov, n);
	fill(s, o, LS_BUFFER - 8);
	r->ret = LS_CALL(s, shelf_writev(s->task, o->fd, iov, n), KERNEL3(SYS_writev, o->fd, iov, n));
}

void ls_do_preadv2(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct iovec iov[8];
	int n = make_iov(s, o, iov);

	r->ret = LS_CALL(s, shelf_preadv2(s->task, o->fd, iov, n, o->off, rwf(o)),
			 KERNEL6(SYS_preadv2, o->fd, iov, n, o->off, 0, rwf(o)));
	hash_read(s, r);
}

void ls_do_pwritev2(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct iovec iov[8];
	int n = make_iov(s, o, iov);

	fault_later(s, iov, n);
	fill(s, o, LS_BUFFER - 8);
	r->ret = LS_CALL(s, shelf_pwritev2(s->task, o->fd, iov, n, o->off, rwf(o)),
			 KERNEL6(SYS_pwritev2, o->fd, iov, n, o->off, 0, rwf(o)));
}

/* ---- offsets and sizes ------------------------------------------------------------------------------ */

void ls_do_lseek(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	int whence = (int)(o->r[0] % 64 ? o->r[0] % 5 : o->r[1] % 9);
	int64_t off = o->off;

	if (whence == SEEK_CUR || whence == SEEK_END)
		off = o->r[2] % 4 ? (int64_t)(o->r[3] % 2000) - 1000 : off;
	r->ret = ls_lseek(s, o->fd, off, whence);
	if (r->ret >= (INT64_MAX & ~4095LL) && r->ret < INT64_MAX) /* no data in the last page of all: make_offset() says why */
		ls_lseek(s, o->fd, 0, SEEK_SET);
}

void ls_do_truncate(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_truncate(s->task, o->path, o->off), KERNEL2(SYS_truncate, o->path, o->off));
}

void ls_do_ftruncate(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_ftruncate(s->task, o->fd, o->off), KERNEL2(SYS_ftruncate, o->fd, o->off));
}

/* Lengths stay small: a kernel would try to find the memory. */
void ls_do_fallocate(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	static const int modes[] = { 0, 1, 3, 3, 0, 1, 2, 4, 9, 33, 64, 0x43 };
	int mode = modes[o->r[0] % 8 ? o->r[0] % 6 : o->r[0] / 8 % 12];
	int64_t len = o->r[1] % 32 ? o->len : o->off2;

	if (!(mode & 2) && len > 1000000)
		len = -1;
	r->ret = LS_CALL(s, shelf_fallocate(s->task, o->fd, mode, o->off, len),
			 KERNEL4(SYS_fallocate, o->fd, mode, o->off, len));
}

void ls_do_copy_range(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	int64_t in = o->off, out = o->off2, *in_at = o->r[0] % 2 ? &in : NULL, *out_at = o->r[1] % 2 ? &out : NULL;
	unsigned flags = o->r[2] % 64 ? 0 : 2;

	r->ret = LS_CALL(s, shelf_copy_file_range(s->task, o->fd, in_at, o->fd2, out_at, (size_t)o->len, flags),
			 KERNEL6(SYS_copy_file_range, o->fd, in_at, o->fd2, out_at, o->len, flags));
	r->hash = (uint64_t)in * 31 + (uint64_t)out;
}

void ls_do_sendfile(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	int64_t in = o->off, *in_at = o->r[0] % 2 ? &in : NULL;
	struct stat a, b;

	/* Within one file a kernel's copy may see its own writes, by pages of its pipe. */
	if (!ls_fstatat(s, o->fd, "", &a, AT_EMPTY_PATH) && !ls_fstatat(s, o->fd2, "", &b, AT_EMPTY_PATH) &&
	    a.st_ino == b.st_ino)
		return;
	r->ret = LS_CALL(s, shelf_sendfile(s->task, o->fd2, o->fd, in_at, (size_t)o->len),
			 KERNEL4(SYS_sendfile, o->fd2, o->fd, in_at, o->len));
	r->hash = (uint64_t)in;
}

void ls_do_sync(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	switch (o->r[0] % 4) {
	case 0:
		r->ret = LS_CALL(s, shelf_fsync(s->task, o->fd), KERNEL1(SYS_fsync, o->fd));
		break;
	case 1:
		r->ret = LS_CALL(s, shelf_fdatasync(s->task, o->fd), KERNEL1(SYS_fdatasync, o->fd));
		break;
	case 2:
		r->ret = LS_CALL(s, shelf_syncfs(s->task, o->fd), KERNEL1(SYS_syncfs, o->fd));
		break;
	default:
		r->ret = LS_CALL(s, shelf_sync_file_range(s->task, o->fd, o->off, o->off2, o->r[1] % 9),
				 KERNEL4(SYS_sync_file_range, o->fd, o->off, o->off2, o->r[1] % 9));
	}
}

void ls_do_advise(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	if (o->r[0] % 2)
		r->ret = LS_CALL(s, shelf_fadvise(s->task, o->fd, o->off, o->off2, (int)(o->r[1] % 8) - 1),
				 KERNEL4(SYS_fadvise64, o->fd, o->off, o->off2, (int)(o->r[1] % 8) - 1));
	else
		r->ret = LS_CALL(s, shelf_readahead(s->task, o->fd, o->off, (size_t)o->len),
				 KERNEL3(SYS_readahead, o->fd, o->off, o->len));
}

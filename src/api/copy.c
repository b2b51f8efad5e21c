/* SPDX-License-Identifier: MIT */
/* copy.c - copy_file_range and sendfile between two files of the shelf. */
#include <sys/inotify.h>

#include "api/api.h"

/* Two descriptors at once, both counted. */
struct pair {
	struct use in, out;
};

static int pair_begin(struct pair *p, struct shelf_task *t, int in_fd, int out_fd)
{
	int err = use_begin_change(&p->in, t, in_fd, false);

	if (err)
		return err;
	err = use_begin_change(&p->out, t, out_fd, false);
	if (err)
		use_end(&p->in);
	return err;
}

/* Data went from the one to the other. */
static void pair_notify(struct pair *p)
{
	notify_file(p->in.w.self, p->in.f, IN_ACCESS);
	notify_file(p->out.w.self, p->out.f, IN_MODIFY);
}

static void pair_end(struct pair *p)
{
	use_end(&p->out);
	use_end(&p->in);
}

/* An offset given by the caller, or the file's own. */
static uint64_t offset_of(struct use *u, const off_t *given)
{
	return given ? (uint64_t)*given : load_relaxed(&u->f->pos); /* relaxed: [p] */
}

static void offset_set(struct use *u, off_t *given, uint64_t pos)
{
	if (given)
		*given = (off_t)pos;
	else
		store_relaxed(&u->f->pos, pos); /* relaxed: [p] */
}

/* Offsets that are the files' own stay ours for the time of the copy; by address, as all pairs. */
static int pair_lock(struct pair *p, bool in_pos, bool out_pos)
{
	struct use *first = p->in.f < p->out.f ? &p->in : &p->out;
	struct use *second = first == &p->in ? &p->out : &p->in;
	bool want_first = first == &p->in ? in_pos : out_pos;
	bool want_second = first == &p->in ? out_pos : in_pos;
	int err = 0;

	if (p->in.f == p->out.f) {
		want_first |= want_second;
		want_second = false;
	}
	if (want_first)
		err = use_pos_lock(first);
	if (!err && want_second)
		err = use_pos_lock(second);
	return err;
}

static void pair_unlock(struct pair *p)
{
	use_pos_unlock(&p->in);
	use_pos_unlock(&p->out);
}

static int range_ok(uint64_t pos, size_t n)
{
	if ((int64_t)pos < 0 || (ssize_t)n < 0)
		return -EINVAL;
	return (int64_t)(pos + n) < 0 ? -EINVAL : 0;
}

static int64_t size_of(struct file *f)
{
	return (int64_t)load_acquire(&f->inode->size); /* pairs with the writer's store */
}

/* ---- copy_file_range ------------------------------------------------------------------------------ */

int copy_check_files(struct file *in, struct file *out)
{
	if (in->head.type == FD_TYPE_DIR || out->head.type == FD_TYPE_DIR)
		return -EISDIR;
	if (in->head.type != FD_TYPE_REG || out->head.type != FD_TYPE_REG)
		return -EINVAL;
	if (!file_readable(in) || !file_writable(out) || (load_relaxed(&out->flags) & O_APPEND)) /* a flag */
		return -EBADF;
	return 0;
}

/* Cuts *n to what the source has, as Linux does before it looks for overlap. */
static int copy_check_range(struct pair *p, uint64_t in, uint64_t out, size_t *n)
{
	int64_t size = size_of(p->in.f);
	uint64_t limit = ~p->out.w.fsize_not;

	if (in + *n < in || out + *n < out)
		return -EOVERFLOW;
	*n = (int64_t)in >= size ? 0 : min_of(*n, (uint64_t)size - in);
	if (out >= (uint64_t)MAX_FILE_BYTES)
		return (int64_t)out < 0 ? -EINVAL : -EFBIG;
	*n = min_of(*n, (uint64_t)MAX_FILE_BYTES - out);
	if (out < limit) /* else the write says so, by a signal as well */
		*n = min_of(*n, limit - out);
	if (p->in.f->inode == p->out.f->inode && out + *n > in && out < in + *n)
		return -EINVAL;
	return 0;
}

static ssize_t copy_locked(struct pair *p, off_t *off_in, off_t *off_out, size_t n)
{
	uint64_t in = offset_of(&p->in, off_in), out = offset_of(&p->out, off_out);
	ssize_t done = copy_check_range(p, in, out, &n);

	if (!done)
		done = range_ok(in, n);
	if (!done)
		done = range_ok(out, n);
	if (done || !n)
		return done;
	n = min_of(n, RW_COUNT_MAX);
	done = ramfs_copy_range(&p->in.w, p->in.f->inode, in, p->out.f->inode, &out, n, 0);
	if (done <= 0)
		return done;
	use_touch(&p->in);
	offset_set(&p->in, off_in, in + (uint64_t)done);
	offset_set(&p->out, off_out, out);
	return done;
}

ssize_t shelf_copy_file_range(struct shelf_task *t, int fd_in, off_t *off_in, int fd_out, off_t *off_out,
			      size_t length, unsigned flags)
{
	struct pair p;
	ssize_t n = pair_begin(&p, t, fd_in, fd_out);

	if (n)
		return n;
	n = flags ? -EINVAL : copy_check_files(p.in.f, p.out.f);
	if (!n)
		n = pair_lock(&p, !off_in, !off_out);
	if (!n)
		n = copy_locked(&p, off_in, off_out, length);
	pair_unlock(&p);
	if (n > 0)
		pair_notify(&p);
	pair_end(&p);
	return n;
}

/* ---- sendfile ---------------------------------------------------------------------------------------- */

static ssize_t send_check(struct pair *p, uint64_t pos, size_t count)
{
	ssize_t err = range_ok(pos, count);

	if (err)
		return err;
	if (!file_writable(p->out.f))
		return -EBADF;
	return p->out.f->head.type == FD_TYPE_REG ? range_ok(load_relaxed(&p->out.f->pos), count) : 0; /* [p] */
}

/* One piece, through a buffer of ours; *out moves where the file has an offset to move. */
#define SEND_PIECE 4096

static ssize_t send_piece(struct pair *p, uint64_t in, uint64_t *out, size_t n)
{
	char piece[SEND_PIECE];
	struct iovec one = { .iov_base = piece, .iov_len = min_of(n, sizeof(piece)) };
	ssize_t got = ramfs_read_slow(p->in.w.self, p->in.f->inode, &one, 1, in, one.iov_len);

	if (got <= 0)
		return got;
	one.iov_len = (size_t)got;
	if (!file_has_inode(p->out.f))
		return file_ops_of(p->out.f)->write(&p->out.w, p->out.f, &one, 1, one.iov_len);
	got = ramfs_write(&p->out.w, p->out.f->inode, &one, 1, out, one.iov_len, 0);
	*out += got > 0 ? (uint64_t)got : 0;
	return got;
}

/* To a pipe or its kin, or within one file. */
static ssize_t send_pieces(struct pair *p, uint64_t in, uint64_t *out, size_t count)
{
	ssize_t n = 0, sent = 0;

	while ((size_t)sent < count) {
		n = send_piece(p, in + (uint64_t)sent, out, count - (size_t)sent);
		if (n <= 0)
			break;
		sent += n;
	}
	return sent ? sent : n;
}

static ssize_t send_data(struct pair *p, uint64_t in, uint64_t *out, size_t count)
{
	int64_t size = size_of(p->in.f);

	count = min_of(count, RW_COUNT_MAX);
	count = (int64_t)in >= size ? 0 : min_of(count, (uint64_t)size - in);
	if (!count)
		return 0;
	if (!file_has_inode(p->out.f) || p->in.f->inode == p->out.f->inode)
		return send_pieces(p, in, out, count);
	return ramfs_copy_range(&p->in.w, p->in.f->inode, in, p->out.f->inode, out, count, 0);
}

static ssize_t send_locked(struct pair *p, off_t *offset, size_t count)
{
	uint64_t in = offset_of(&p->in, offset), out = load_relaxed(&p->out.f->pos); /* relaxed: [p] */
	bool to_file = file_has_inode(p->out.f);
	ssize_t n = send_check(p, in, count);

	if (n)
		return n;
	if (to_file ? load_relaxed(&p->out.f->flags) & O_APPEND : !file_ops_of(p->out.f)->write) /* a flag */
		return -EINVAL;
	n = p->in.f->head.type == FD_TYPE_REG ? send_data(p, in, &out, count) : count ? -EINVAL : 0;
	use_touch(&p->in); /* whatever came of it, as Linux */
	if (n <= 0)
		return n;
	offset_set(&p->in, offset, in + (uint64_t)n);
	if (to_file)
		offset_set(&p->out, NULL, out);
	return n;
}

ssize_t shelf_sendfile(struct shelf_task *t, int out_fd, int in_fd, off_t *offset, size_t count)
{
	struct pair p;
	ssize_t n = use_begin_change(&p.in, t, in_fd, false);

	if (n)
		return n;
	n = !file_readable(p.in.f) ? -EBADF : offset && !file_has_inode(p.in.f) ? -ESPIPE : 0;
	if (!n)
		n = range_ok(offset_of(&p.in, offset), count);
	if (!n)
		n = use_begin_change(&p.out, t, out_fd, false);
	if (n) {
		use_end(&p.in);
		return n;
	}
	n = pair_lock(&p, !offset, file_has_inode(p.out.f));
	if (!n)
		n = send_locked(&p, offset, count);
	pair_unlock(&p);
	if (n > 0)
		pair_notify(&p);
	pair_end(&p);
	return n;
}

/* SPDX-License-Identifier: MIT */
/*
 * copy.c - copy_file_range between files of one shelf.
 *
 * Protection: both inodes' locks, lower address first, for COPY_BATCH bytes at a
 * time; so writers to either get in between batches, as on tmpfs.
 * Holes of the source become pages of zeros, as on tmpfs.
 */
#include "ramfs/data_priv.h"

#define COPY_BATCH (1u << 20)

/* Bytes, 0 at the source's end, or -errno.  Both locks held. */
static ssize_t copy_batch_locked(struct who *w, struct inode *in, uint64_t in_pos, struct inode *out,
				 uint64_t out_pos, size_t n)
{
	struct data_write d = {.w = w, .inode = out, .src = {.from = in, .from_pos = in_pos}, .pos = out_pos};
	uint64_t size = data_size(in);
	int err = data_write_limit(w, out_pos, &n);

	if (err)
		return err;
	if (in_pos >= size)
		return 0;
	d.now = vfs_now();
	n = min_of(n, size - in_pos);
	return data_write_locked(&d, min_of(n, (size_t)COPY_BATCH));
}

/* Before anything is copied, in the kernel's order. */
static ssize_t copy_check(struct inode *in, uint64_t in_pos, struct inode *out, uint64_t out_pos, size_t *n)
{
	uint64_t size;

	if (*n > UINT64_MAX - in_pos || *n > UINT64_MAX - out_pos)
		return -EOVERFLOW;
	if (in_pos + *n > (uint64_t)MAX_FILE_BYTES || out_pos + *n > (uint64_t)MAX_FILE_BYTES)
		return -EOVERFLOW;
	size = load_acquire(&in->size); /* pairs with the writer's store; a moment's value, as in the kernel */
	*n = in_pos < size ? min_of(*n, size - in_pos) : 0;
	if (in == out && *n && out_pos + *n > in_pos && out_pos < in_pos + *n)
		return -EINVAL;
	return 0;
}

ssize_t ramfs_copy_range(struct who *w, struct inode *in, uint64_t in_pos, struct inode *out, uint64_t *out_pos,
			 size_t n, unsigned flags)
{
	struct slot *self = w->self;
	size_t done = 0;
	ssize_t got;

	if (flags)
		return -EINVAL;
	got = copy_check(in, in_pos, out, *out_pos, &n);
	if (got)
		return got;
	while (done < n) {
		lock_acquire_pair(&in->lock, &out->lock, &self->locker, LOCK_INODE);
		got = copy_batch_locked(w, in, in_pos + done, out, *out_pos + done, n - done);
		lock_release_pair(&in->lock, &out->lock, &self->locker, LOCK_INODE);
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (!done)
		return n ? got : 0;
	*out_pos += done;
	return (ssize_t)done;
}

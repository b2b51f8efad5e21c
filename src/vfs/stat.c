/* SPDX-License-Identifier: MIT */
/*
 * stat.c - one consistent picture of an inode, and the forms stat and statx want it in.
 *
 * Progress: wait-free.  A writer inside inode.seq makes the reader try again, ATTR_TRIES
 * times.  After that the writer has been preempted, stopped or killed in the middle, and waiting
 * for it inside a read section would hold everybody's memory back.  Then the
 * fields are taken one by one: each is whole, but together they may be of
 * two moments - what Linux's stat, which takes no lock, promises in every case.
 * A killed writer's change is finished by whoever takes its slot over.
 */
#include "base/copy.h"
#include "vfs/attr_priv.h"

#include <sys/sysmacros.h>

#define ATTR_TRIES 64
#define TMPFS_SHORT_LINK 128 /* tmpfs keeps shorter targets, NUL included, without a page */
#define SECTORS_A_PAGE (PAGE_BYTES / 512)

static uint64_t attr_blocks(struct inode *inode, uint32_t mode)
{
	if (S_ISREG(mode))
		return seq_load(&inode->file.page_count) * SECTORS_A_PAGE;
	if (S_ISLNK(mode) && inode->target_len + 1 > TMPFS_SHORT_LINK)
		return SECTORS_A_PAGE;
	return 0;
}

static void attr_load(struct inode *inode, struct attr *out)
{
	out->mode = seq_load(&inode->mode);
	out->uid = seq_load(&inode->uid);
	out->gid = seq_load(&inode->gid);
	out->nlink = seq_load(&inode->nlink);
	out->ino = inode->ino;
	out->size = seq_load(&inode->size);
	out->blocks = attr_blocks(inode, out->mode);
	out->rdev = S_ISCHR(out->mode) || S_ISBLK(out->mode) ? load_relaxed(&inode->rdev) : 0; /* constant */
	out->atime = seq_load(&inode->atime);
	out->mtime = seq_load(&inode->mtime);
	out->ctime = seq_load(&inode->ctime);
	out->btime = inode->btime;
}

void attr_read_epoch(struct slot *self, struct inode *inode, struct attr *out)
{
	unsigned i;

	(void)self;
	for (i = 0; i < ATTR_TRIES; i++) {
		uint32_t begin = seq_read_begin(&inode->seq);

		attr_load(inode, out);
		if (likely(seq_read_ok(&inode->seq, begin)))
			return;
		cpu_relax();
	}
}

/* Nanoseconds to seconds, rounded down for times before 1970 as well. */
static int64_t attr_seconds(uint64_t ns, long *rest)
{
	int64_t t = (int64_t)ns, sec, nsec;

	if (likely(t >= 0)) {
		*rest = (long)(ns % 1000000000);
		return (int64_t)(ns / 1000000000);
	}
	sec = t / 1000000000;
	nsec = t % 1000000000;

	if (nsec < 0) {
		nsec += 1000000000;
		sec--;
	}
	*rest = (long)nsec;
	return sec;
}

static struct timespec attr_timespec(uint64_t ns)
{
	struct timespec ts;

	ts.tv_sec = attr_seconds(ns, &ts.tv_nsec);
	return ts;
}

void attr_to_stat(struct slot *self, const struct attr *a, struct stat *st)
{
	/* Field by field: clearing the whole first would cost as much again. */
	st->__pad0 = 0;
	st->__glibc_reserved[0] = st->__glibc_reserved[1] = st->__glibc_reserved[2] = 0;
	st->st_dev = ((struct vfs_root *)self->seg->hdr->root[SEG_ROOT_VFS])->dev;
	st->st_ino = a->ino;
	st->st_mode = a->mode;
	st->st_nlink = a->nlink;
	st->st_uid = a->uid;
	st->st_gid = a->gid;
	st->st_rdev = a->rdev;
	st->st_size = (off_t)a->size;
	st->st_blksize = PAGE_BYTES;
	st->st_blocks = (blkcnt_t)a->blocks;
	st->st_atim = attr_timespec(a->atime);
	st->st_mtim = attr_timespec(a->mtime);
	st->st_ctim = attr_timespec(a->ctime);
}

static struct statx_timestamp attr_statx_time(uint64_t ns)
{
	struct statx_timestamp ts = {0};
	long rest;

	ts.tv_sec = attr_seconds(ns, &rest);
	ts.tv_nsec = (uint32_t)rest;
	return ts;
}

/* What tmpfs knows: basic fields and the mount always, the times of changes and birth on request. */
static uint32_t attr_statx_mask(unsigned mask)
{
	uint32_t has = STATX_BASIC_STATS | STATX_MNT_ID | (mask & STATX_BTIME);

	return mask & (STATX_CTIME | STATX_MTIME) ? has : has & ~(STATX_CTIME | STATX_MTIME);
}

void attr_to_statx(struct slot *self, const struct attr *a, unsigned mask, struct statx *stx)
{
	struct vfs_root *root = vfs_root_of(self);

	zero_bytes(stx, sizeof(*stx));
	stx->stx_mask = attr_statx_mask(mask);
	stx->stx_blksize = PAGE_BYTES;
	stx->stx_nlink = a->nlink;
	stx->stx_uid = a->uid;
	stx->stx_gid = a->gid;
	stx->stx_mode = (uint16_t)a->mode;
	stx->stx_ino = a->ino;
	stx->stx_size = a->size;
	stx->stx_blocks = a->blocks;
	stx->stx_attributes = a->ino == root->root->ino ? STATX_ATTR_MOUNT_ROOT : 0;
	stx->stx_attributes_mask = STATX_ATTR_MOUNT_ROOT | STATX_ATTR_AUTOMOUNT | STATX_ATTR_DAX |
				   STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE | STATX_ATTR_NODUMP;
	stx->stx_atime = attr_statx_time(a->atime);
	if (stx->stx_mask & STATX_CTIME) {
		stx->stx_mtime = attr_statx_time(a->mtime);
		stx->stx_ctime = attr_statx_time(a->ctime);
	}
	if (mask & STATX_BTIME)
		stx->stx_btime = attr_statx_time(a->btime);
	stx->stx_rdev_major = major(a->rdev);
	stx->stx_rdev_minor = minor(a->rdev);
	stx->stx_dev_major = major(root->dev);
	stx->stx_dev_minor = minor(root->dev);
	stx->stx_mnt_id = VFS_MNT_ID;
}

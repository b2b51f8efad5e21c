/* SPDX-License-Identifier: MIT */
/* ioctl.c - what a tmpfs file answers to ioctl; the rest is ENOTTY. */
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

#include "api/fcntl_priv.h"

#define FIOQSIZE_ 0x5460
#define FS_NODUMP 0x40u

/* ---- the number and the open file ------------------------------------------------------------- */

static int ioctl_cloexec(struct use *u, int fd, bool on)
{
	int bits = fd_get_bits(u->w.self, u->w.files, fd);

	if (bits < 0)
		return bits;
	bits = on ? bits | (int)FD_CLOEXEC_BIT : bits & ~(int)FD_CLOEXEC_BIT;
	return fd_set_bits(u->w.self, u->w.files, fd, (unsigned)bits);
}

static int ioctl_nonblock(struct use *u, const int *on)
{
	if (!on)
		return -EFAULT;
	if (*on)
		or_acq_rel(&u->f->flags, (uint32_t)O_NONBLOCK);
	else
		and_acq_rel(&u->f->flags, ~(uint32_t)O_NONBLOCK);
	return 0;
}

/* Nothing here sends SIGIO: only "off", which it is, succeeds. */
static int ioctl_async(struct use *u, const int *on)
{
	uint32_t is = load_relaxed(&u->f->flags) & O_ASYNC; /* relaxed: a flag */

	if (!on)
		return -EFAULT;
	return !*on == !is ? 0 : -ENOTTY;
}

/* ---- the inode ------------------------------------------------------------------------------------- */

static int ioctl_readable(struct use *u, int *out)
{
	uint64_t size = load_acquire(&u->f->inode->size); /* pairs with the writer's store */

	if (!out)
		return -EFAULT;
	*out = (int)(size - load_relaxed(&u->f->pos)); /* relaxed: a moment's value */
	return 0;
}

static int ioctl_bytes(struct use *u, long long *out)
{
	struct attr a;

	if (!out)
		return -EFAULT;
	epoch_enter(u->w.self);
	attr_read_epoch(u->w.self, u->f->inode, &a);
	epoch_exit(u->w.self);
	*out = (long long)(a.blocks * 512);
	return 0;
}

/* Kept: "no dump".  Flags that forbid changes are not: refused rather than ignored. */
static int ioctl_flags(struct use *u, unsigned long request, unsigned *flags)
{
	if (!flags)
		return -EFAULT;
	if (request == FS_IOC_GETFLAGS) {
		*flags = inode_fs_flags(u->f->inode);
		return 0;
	}
	if (!owner_or_capable(&u->w, u->f->inode))
		return -EPERM;
	if (*flags & ~FS_NODUMP)
		return -EOPNOTSUPP;
	inode_set_fs_flags(u->f->inode, *flags);
	return 0;
}

static int ioctl_xflags(struct use *u, struct fsxattr *out)
{
	if (!out)
		return -EFAULT;
	memset(out, 0, sizeof(*out));
	if (inode_fs_flags(u->f->inode) & FS_NODUMP)
		out->fsx_xflags = FS_XFLAG_NODUMP;
	return 0;
}

static int ioctl_block_size(int *out)
{
	if (!out)
		return -EFAULT;
	*out = PAGE_BYTES;
	return 0;
}

/* Pages are not shared between files; but the kernel looks at the two files first. */
static int ioctl_clone(struct use *u, int fd)
{
	struct fd_file *head;
	int err;

	if (fd_borrow(u->w.self, u->w.files, fd, &head))
		return -EBADF;
	err = head->type == FD_TYPE_PATH ? -EBADF : copy_check_files(file_of(head), u->f);
	fd_return(u->w.self, u->w.files, head);
	return err ? err : -EOPNOTSUPP;
}

static int ioctl_inode(struct use *u, unsigned long request, uintptr_t arg)
{
	bool regular = u->f->head.type == FD_TYPE_REG;

	switch (request) {
	case FIONREAD:
		return regular ? ioctl_readable(u, (int *)arg) : -ENOTTY;
	case FIOQSIZE_:
		return ioctl_bytes(u, (long long *)arg);
	case FIGETBSZ:
		return ioctl_block_size((int *)arg);
	case FS_IOC_GETFLAGS:
	case FS_IOC_SETFLAGS:
		return ioctl_flags(u, request, (unsigned *)arg);
	case FS_IOC_FSGETXATTR:
		return ioctl_xflags(u, (struct fsxattr *)arg);
	case FIBMAP:
		return regular ? -EINVAL : -ENOTTY;
	case FICLONE:
		return ioctl_clone(u, (int)arg);
	case FICLONERANGE:
	case FIDEDUPERANGE:
	case FIFREEZE:
	case FITHAW:
	case FS_IOC_FIEMAP:
		return -EOPNOTSUPP;
	default:
		return -ENOTTY;
	}
}

static int ioctl_other(struct use *u, unsigned long request, uintptr_t arg)
{
	int err = use_pin(u);

	if (err)
		return err;
	return file_ops_of(u->f)->ioctl ? file_ops_of(u->f)->ioctl(&u->w, u->f, request, arg) : -ENOTTY;
}

static int ioctl_any(struct use *u, int fd, unsigned long request, uintptr_t arg)
{
	switch (request) {
	case FIOCLEX:
	case FIONCLEX:
		return ioctl_cloexec(u, fd, request == FIOCLEX);
	case FIONBIO:
		return ioctl_nonblock(u, (const int *)arg);
	case FIOASYNC:
		return ioctl_async(u, (const int *)arg);
	default:
		return file_has_inode(u->f) ? ioctl_inode(u, request, arg) : ioctl_other(u, request, arg);
	}
}

int shelf_ioctl(struct shelf_task *t, int fd, unsigned long request, uintptr_t arg)
{
	struct use u;
	int err;

	request = (uint32_t)request; /* as the kernel: programs pass sign-extended ones */
	do {
		err = use_begin(&u, t, fd, false);
		if (err)
			return err;
		err = u.w.self->seg->read_only ? -EROFS : ioctl_any(&u, fd, request, arg);
		use_end(&u);
	} while (err == USE_AGAIN);
	return err;
}

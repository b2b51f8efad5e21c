/* SPDX-License-Identifier: MIT */
/* fcntl.c - what fcntl does to a number, to an open file, to an inode. */

#include "api/fcntl_priv.h"

#define SETFL_MASK (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)
#define F_DUPFD_QUERY_ 1027
#define F_CREATED_QUERY_ 1028

/* ---- the number ---------------------------------------------------------------------------------- */

static int fcntl_dup(struct shelf_task *t, int fd, int min, unsigned bits)
{
	struct who w;
	int err = who_change(&w, t);

	return err ? err : fd_dup(w.self, w.files, fd, min, nofile_of(&w), bits);
}

static int fcntl_getfd(struct shelf_task *t, int fd)
{
	struct who w;
	int err = who_init(&w, t);

	return err ? err : fd_get_bits(w.self, w.files, fd); /* FD_CLOEXEC and SHELF_FD_CLOFORK are these bits */
}

static int fcntl_setfd(struct shelf_task *t, int fd, unsigned bits)
{
	struct who w;
	int err = who_change(&w, t);

	return err ? err : fd_set_bits(w.self, w.files, fd, bits & (FD_CLOEXEC_BIT | FD_CLOFORK_BIT));
}

static int fcntl_same_file(struct use *u, int other)
{
	struct fd_file *head;
	int same;

	if (fd_borrow(u->w.self, u->w.files, other, &head))
		return -EBADF;
	same = head == &u->f->head;
	fd_return(u->w.self, u->w.files, head);
	return same;
}

/* ---- the open file ------------------------------------------------------------------------------- */

static int setfl_check(struct use *u, uint32_t old, uint32_t new)
{
	if (!file_has_inode(u->f))
		return 0;
	if ((new & O_NOATIME) && !(old & O_NOATIME) && !owner_or_capable(&u->w, u->f->inode))
		return -EPERM;
	return (new & O_DIRECT) && u->f->head.type == FD_TYPE_DIR ? -EINVAL : 0;
}

static int fcntl_setfl(struct use *u, uint32_t new)
{
	uint32_t old = load_relaxed(&u->f->flags); /* relaxed: the CAS decides */
	int err = setfl_check(u, old, new);

	if (err)
		return err;
	while (!cas_acq_rel(&u->f->flags, &old, (old & ~(uint32_t)SETFL_MASK) | (new & SETFL_MASK)))
		;
	return 0;
}

/* ---- the inode -------------------------------------------------------------------------------------- */

/* A file made by open is sealed against seals; seals need memfd_create. */
static int fcntl_get_seals(struct use *u)
{
	return u->f->head.type == FD_TYPE_REG ? F_SEAL_SEAL : -EINVAL;
}

static int fcntl_add_seals(struct use *u, uintptr_t seals)
{
	if (!file_writable(u->f))
		return -EPERM;
	return seals & ~0x3fUL ? -EINVAL : -EPERM;
}

static int fcntl_rw_hint(struct use *u, int cmd, uint64_t *hint)
{
	if (!hint)
		return -EFAULT;
	if (!file_has_inode(u->f))
		return -EINVAL;
	if (cmd == F_GET_RW_HINT) {
		*hint = inode_hint(u->f->inode);
		return 0;
	}
	if (!owner_or_capable(&u->w, u->f->inode))
		return -EPERM;
	if (*hint > RWH_WRITE_LIFE_EXTREME)
		return -EINVAL;
	inode_set_hint(u->f->inode, (uint32_t)*hint);
	return 0;
}

/* Leases are not kept: nobody would break them for programs beside the library.  So there is none to give back. */
static int fcntl_set_lease(struct use *u, int type)
{
	if (u->f->head.type != FD_TYPE_REG)
		return -EINVAL;
	return type == F_UNLCK || (type == F_RDLCK && file_writable(u->f)) ? -EAGAIN : -EINVAL;
}

/* dnotify: where nothing is asked, nothing is done. */
static int fcntl_notify(struct use *u, uint32_t events)
{
	if (!(events & ~DN_MULTISHOT))
		return 0;
	return u->f->head.type == FD_TYPE_DIR ? -EINVAL : -ENOTDIR;
}

static int fcntl_file(struct use *u, int cmd, uintptr_t arg)
{
	switch (cmd) {
	case F_SETFL:
		return fcntl_setfl(u, (uint32_t)arg);
	case F_GET_SEALS:
		return fcntl_get_seals(u);
	case F_ADD_SEALS:
		return fcntl_add_seals(u, arg);
	case F_GETLEASE:
		return F_UNLCK;
	case F_SETLEASE:
		return fcntl_set_lease(u, (int)arg);
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
		return file_ops_of(u->f)->fcntl ? file_ops_of(u->f)->fcntl(&u->w, u->f, cmd, arg) : -EBADF;
	case F_NOTIFY:
		return fcntl_notify(u, (uint32_t)arg);
	case F_GET_RW_HINT:
	case F_SET_RW_HINT:
		return fcntl_rw_hint(u, cmd, (uint64_t *)arg);
	default:
		return fcntl_owner(u, cmd, arg);
	}
}

/* What works on O_PATH descriptors too. */
static int fcntl_any(struct use *u, int cmd, uintptr_t arg)
{
	switch (cmd) {
	case F_GETFL:
		return (int)load_relaxed(&u->f->flags); /* relaxed: a snapshot */
	case F_DUPFD_QUERY_:
		return fcntl_same_file(u, (int)arg);
	case F_CREATED_QUERY_:
		return u->f->created;
	}
	return u->f->head.type == FD_TYPE_PATH ? -EBADF : fcntl_file(u, cmd, arg);
}

static bool fcntl_reads(int cmd)
{
	return cmd == F_GETFL || cmd == F_DUPFD_QUERY_ || cmd == F_CREATED_QUERY_ || cmd == F_GET_SEALS || cmd == F_GET_RW_HINT;
}

int shelf_fcntl(struct shelf_task *t, int fd, int cmd, uintptr_t arg)
{
	struct use u;
	int err;

	switch (cmd) {
	case F_DUPFD:
		return fcntl_dup(t, fd, (int)arg, 0);
	case F_DUPFD_CLOEXEC:
		return fcntl_dup(t, fd, (int)arg, FD_CLOEXEC_BIT);
	case SHELF_F_DUPFD_CLOFORK:
		return fcntl_dup(t, fd, (int)arg, FD_CLOFORK_BIT);
	case F_GETFD:
		return fcntl_getfd(t, fd);
	case F_SETFD:
		return fcntl_setfd(t, fd, (unsigned)arg);
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return fcntl_lock(t, fd, cmd, (struct flock *)arg);
	}
	err = use_begin(&u, t, fd, true);
	if (err)
		return err;
	err = u.w.self->seg->read_only && !fcntl_reads(cmd) ? -EROFS : fcntl_any(&u, cmd, arg);
	use_end(&u);
	return err;
}

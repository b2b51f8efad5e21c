/* SPDX-License-Identifier: MIT */
/* locks.c - record locks and flock: the calls; vfs/flock.c has the locks. */
#include <sys/file.h>

#include "api/fcntl_priv.h"

#define LOCK_MAND_BITS 32 /* mandatory locks are gone from Linux: accepted, nothing done */

int fcntl_lock(struct shelf_task *t, int fd, int cmd, struct flock *fl)
{
	struct use u;
	int err = use_begin_change(&u, t, fd, false);

	if (err)
		return err;
	if (!fl)
		err = -EFAULT;
	else if (!file_has_inode(u.f))
		err = -EINVAL;
	else
		err = flock_posix(&u.w, u.f, cmd, fl);
	use_end(&u);
	return err;
}

int shelf_flock(struct shelf_task *t, int fd, int operation)
{
	int what = operation & ~LOCK_NB;
	struct use u;
	int err;

	if (operation & LOCK_MAND_BITS)
		return 0;
	if (what != LOCK_SH && what != LOCK_EX && what != LOCK_UN)
		return -EINVAL;
	err = use_begin_change(&u, t, fd, false);
	if (err)
		return err;
	if (what != LOCK_UN && !file_readable(u.f) && !file_writable(u.f))
		err = -EBADF; /* access mode 3 */
	else
		err = file_has_inode(u.f) ? flock_bsd(&u.w, u.f, operation) : -EINVAL;
	use_end(&u);
	return err;
}

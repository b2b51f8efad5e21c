/* SPDX-License-Identifier: MIT */
/* attr.c - chmod, chown, utimensat. */
#include <sys/inotify.h>

#include "api/api.h"

#define ATTR_FLAGS (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)

static unsigned walk_of(int flags)
{
	return (flags & AT_SYMLINK_NOFOLLOW ? 0u : WALK_FOLLOW) | (flags & AT_EMPTY_PATH ? WALK_EMPTY_PATH : 0u);
}

/* ---- mode ----------------------------------------------------------------------------------- */

static int chmod_inode(struct who *w, struct inode *inode, mode_t mode)
{
	return inode_type(inode) == S_IFLNK ? -EOPNOTSUPP : attr_chmod(w, inode, mode & 07777);
}

int shelf_fchmodat2(struct shelf_task *t, int dirfd, const char *path, mode_t mode, int flags)
{
	struct hold h;
	int err;

	if (flags & ~ATTR_FLAGS)
		return -EINVAL;
	err = hold_begin(&h, t, dirfd, path, walk_of(flags));
	return err ? err : hold_changed(&h, chmod_inode(&h.w, h.inode, mode), IN_ATTRIB);
}

int shelf_fchmodat(struct shelf_task *t, int dirfd, const char *path, mode_t mode)
{
	return shelf_fchmodat2(t, dirfd, path, mode, 0);
}

int shelf_chmod(struct shelf_task *t, const char *path, mode_t mode)
{
	return shelf_fchmodat2(t, AT_FDCWD, path, mode, 0);
}

int shelf_fchmod(struct shelf_task *t, int fd, mode_t mode)
{
	struct use u;
	int err = use_begin_change(&u, t, fd, false);

	if (err)
		return err;
	err = file_has_inode(u.f) ? chmod_inode(&u.w, u.f->inode, mode) : -EINVAL;
	return use_changed(&u, err, IN_ATTRIB);
}

/* ---- owner ---------------------------------------------------------------------------------- */

static uint32_t owner_event(uid_t uid, gid_t gid)
{
	return uid != (uid_t)-1 || gid != (gid_t)-1 ? IN_ATTRIB : 0;
}

int shelf_fchownat(struct shelf_task *t, int dirfd, const char *path, uid_t uid, gid_t gid, int flags)
{
	struct hold h;
	int err;

	if (flags & ~ATTR_FLAGS)
		return -EINVAL;
	err = hold_begin(&h, t, dirfd, path, walk_of(flags));
	return err ? err : hold_changed(&h, attr_chown(&h.w, h.inode, uid, gid), owner_event(uid, gid));
}

int shelf_chown(struct shelf_task *t, const char *path, uid_t uid, gid_t gid)
{
	return shelf_fchownat(t, AT_FDCWD, path, uid, gid, 0);
}

int shelf_lchown(struct shelf_task *t, const char *path, uid_t uid, gid_t gid)
{
	return shelf_fchownat(t, AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

int shelf_fchown(struct shelf_task *t, int fd, uid_t uid, gid_t gid)
{
	struct use u;
	int err = use_begin_change(&u, t, fd, false);

	if (err)
		return err;
	err = file_has_inode(u.f) ? attr_chown(&u.w, u.f->inode, uid, gid) : -EINVAL;
	return use_changed(&u, err, owner_event(uid, gid));
}

/* ---- times ---------------------------------------------------------------------------------- */

static bool nsec_valid(long nsec)
{
	return nsec == UTIME_OMIT || nsec == UTIME_NOW || (nsec >= 0 && nsec < 1000000000);
}

/* Both are to be left alone: nothing to look at, not even the path. */
static bool times_omitted(const struct timespec times[2])
{
	return times && times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT;
}

/* One time alone looks like a read or a write to those who watch. */
static uint32_t times_event(const struct timespec times[2])
{
	if (times && times[0].tv_nsec == UTIME_OMIT)
		return IN_MODIFY;
	return times && times[1].tv_nsec == UTIME_OMIT ? IN_ACCESS : IN_ATTRIB;
}

static int utimens_inode(struct who *w, struct inode *inode, const struct timespec times[2])
{
	bool may_write;

	if (times && (!nsec_valid(times[0].tv_nsec) || !nsec_valid(times[1].tv_nsec)))
		return -EINVAL;
	epoch_enter(w->self);
	may_write = !inode_permission_epoch(w, inode, MAY_WRITE);
	epoch_exit(w->self);
	return attr_utimens(w, inode, times, may_write);
}

static int utimens_fd(struct shelf_task *t, int fd, const struct timespec times[2])
{
	struct use u;
	int err = use_begin_change(&u, t, fd, false);

	if (err)
		return err;
	err = file_has_inode(u.f) ? utimens_inode(&u.w, u.f->inode, times) : -EINVAL;
	return use_changed(&u, err, times_event(times));
}

int shelf_utimensat(struct shelf_task *t, int dirfd, const char *path, const struct timespec times[2], int flags)
{
	struct hold h;
	int err;

	if (times_omitted(times))
		return 0;
	if (!path && dirfd != AT_FDCWD)
		return flags ? -EINVAL : utimens_fd(t, dirfd, times);
	if (flags & ~ATTR_FLAGS)
		return -EINVAL;
	err = hold_begin(&h, t, dirfd, path, walk_of(flags));
	return err ? err : hold_changed(&h, utimens_inode(&h.w, h.inode, times), times_event(times));
}

int shelf_futimens(struct shelf_task *t, int fd, const struct timespec times[2])
{
	return shelf_utimensat(t, fd, NULL, times, 0);
}

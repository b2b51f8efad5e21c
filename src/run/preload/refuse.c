/* SPDX-License-Identifier: MIT */
/*
 * refuse.c - calls that no file of a shelf answers, or not yet: the errno that Linux has for such a file.
 *
 * A call on a number of the kernel's and a path of the kernel's goes on as it came.  Not in this list: calls for which
 * the kernel's own answer is right, as the placeholder of a number gives EBADF.
 */
#include <string.h>
#include <sys/mount.h>

#include "run/preload/calls.h"

/* clang-format off */
static const struct {
	uint16_t nr, err;
} refusals[] = {
	/* files of another kind are wanted */
	{SYS_epoll_wait, EINVAL}, {SYS_epoll_pwait, EINVAL}, {SYS_epoll_pwait2, EINVAL},
	{SYS_signalfd, EINVAL}, {SYS_signalfd4, EINVAL}, {SYS_timerfd_settime, EINVAL}, {SYS_timerfd_gettime, EINVAL},
	{SYS_tee, EINVAL}, {SYS_setns, EINVAL}, {SYS_fsconfig, EINVAL},
	{SYS_io_uring_enter, EOPNOTSUPP}, {SYS_io_uring_register, EOPNOTSUPP},
	{SYS_landlock_add_rule, EBADFD}, {SYS_landlock_restrict_self, EBADFD},
	/* a shelf is no mount, and has no device below it */
	{SYS_mount, EPERM}, {SYS_pivot_root, EPERM}, {SYS_open_tree, EPERM}, {467 /* open_tree_attr */, EPERM},
	{SYS_move_mount, EPERM}, {SYS_fspick, EPERM}, {SYS_mount_setattr, EPERM},
	{SYS_quotactl, ENOTBLK}, {SYS_quotactl_fd, ENOSYS}, {SYS_swapoff, EINVAL}, {SYS_fanotify_mark, ENODEV},
	/* as a Linux that does not have them; programs do without */
	{451 /* cachestat */, ENOSYS}, {463 /* setxattrat */, ENOSYS}, {464, ENOSYS}, {465, ENOSYS},
	{466 /* removexattrat */, ENOSYS}, {468 /* file_getattr */, ENOSYS}, {469, ENOSYS},
};
/* clang-format on */

int refused_errno(long nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		if (refusals[i].nr == nr)
			return refusals[i].err;
	return 0;
}

static bool call_gives_number(const struct call_info *call)
{
	return strchr(call->args, '>');
}

/* Flags of open_tree that the kernel refuses before it looks for the file. */
static bool tree_flags_are_bad(unsigned flags)
{
	const unsigned known = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;

	return flags & ~known || (flags & AT_RECURSIVE && !(flags & OPEN_TREE_CLONE));
}

long serve_refused(struct run_regs *r)
{
	const struct call_info *call = call_info((long)r->nr);
	uint64_t a[6];

	regs_args(r, a);
	if (attached() && call_has_parked(call, a))
		return -EBADF;
	if (r->nr == SYS_open_tree && tree_flags_are_bad((unsigned)a[2]))
		return -EINVAL;
	if (call_concerns_shelf(call, a))
		return -refused_errno((long)r->nr);
	return call_gives_number(call) ? number_host_call(r) : run_pass(r);
}

AT_START void serve_refuse_init(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		serve_table[refusals[i].nr] = serve_refused;
}

/* SPDX-License-Identifier: MIT */
/* lockstep_ops.h - the operations, by subject.  Each takes what it needs of an ls_op. */
#ifndef TESTS_POSIX_LOCKSTEP_OPS_H
#define TESTS_POSIX_LOCKSTEP_OPS_H

#include "lockstep.h"

typedef void ls_fn(struct ls_side *s, const struct ls_op *o, struct ls_result *r);

struct ls_kind {
	const char *name;
	unsigned weight;
	ls_fn *fn;
};

unsigned ls_total_weight(void);
unsigned ls_pick_code(unsigned ticket);

/* Either side's call, by what the side is. */
#define LS_CALL(s, shelf_call, kernel_call) ((s)->task ? (int64_t)(shelf_call) : (int64_t)(kernel_call))

#define LS_OPS(X)                                                                                  \
	X(open, 60) X(openat2, 8) X(creat, 4) X(tmpfile, 6)                                        \
	X(close, 50) X(close_range, 2) X(dup, 6) X(dup2, 8) X(dup3, 4) X(dupfd, 5)                 \
	X(getfd, 4) X(setfd, 5) X(getfl, 4) X(setfl, 6) X(fcntl_misc, 4) X(ioctl, 6)               \
	X(lock, 10) X(ofd_lock, 10) X(getlk, 5) X(flock, 8)                                        \
	X(read, 20) X(write, 30) X(pread, 20) X(pwrite, 24)                                        \
	X(readv, 8) X(writev, 8) X(preadv2, 10) X(pwritev2, 10)                                    \
	X(lseek, 20) X(truncate, 8) X(ftruncate, 12) X(fallocate, 14)                              \
	X(copy_range, 14) X(sendfile, 8) X(sync, 4) X(advise, 4)                                   \
	X(fstatat, 24) X(fstat, 20) X(statx, 6) X(access, 18) X(same_inode, 8)                     \
	X(chmod, 12) X(fchmod, 6) X(chown, 12) X(fchown, 6) X(utimens, 12) X(futimens, 6) X(umask, 3) \
	X(setxattr, 10) X(getxattr, 8) X(listxattr, 5) X(removexattr, 5)                           \
	X(fsetxattr, 5) X(fgetxattr, 4) X(flistxattr, 3) X(fremovexattr, 3) X(setacl, 6)           \
	X(mkdir, 24) X(rmdir, 14) X(unlink, 18) X(unlinkat, 6) X(rename, 30)                       \
	X(link, 14) X(link_fd, 6) X(symlink, 14) X(readlink, 10) X(mknod, 5)                       \
	X(chdir, 8) X(fchdir, 4) X(getcwd, 4) X(list, 12)                                          \
	X(ids, 14) X(remove_tree, 2) X(tree, 1)

#define LS_DECLARE(name, weight) ls_fn ls_do_##name;
LS_OPS(LS_DECLARE)
#undef LS_DECLARE

#endif

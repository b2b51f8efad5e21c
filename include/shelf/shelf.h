/* SPDX-License-Identifier: MIT */
/*
 * shelf.h - files in shared memory: the public calls.
 *
 * A shelf is a segment of shared memory that holds one file tree.  Threads and
 * processes that attach it run these calls themselves; none enters the kernel
 * but to sleep, to grow the segment, or to ask the time.
 *
 * Every call that Linux has too takes the same arguments behind the task, has
 * the same effect as on tmpfs, and returns what the system call returns: 0 or
 * more, or -errno.  errno itself is never touched.
 *
 * Threads: a task may be used by any number of threads at once.  Processes: a
 * task belongs to one process; fork() a child with shelf_task_fork().
 */
#ifndef SHELF_SHELF_H
#define SHELF_SHELF_H

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shelf; /* an attached segment, in this process */
struct shelf_task; /* a process as the shelf sees it, in the segment */
struct statx;
struct open_how;

/* ---- segments ------------------------------------------------------------------ */

struct shelf_options {
	uint64_t size; /* bytes; 0: half of RAM */
	uint32_t mode; /* of the root directory; 0: 01777, as tmpfs mounted on /tmp */
	uint32_t uid, gid; /* of the root directory; (uint32_t)-1: the caller's */
};

#define SHELF_WHY 256
/* `why` may be NULL; else it gets one sentence: what failed, why, what to do. */
int shelf_create(const char *name, const struct shelf_options *options, struct shelf **out, char why[SHELF_WHY]);
#define SHELF_READ_ONLY 1u
int shelf_attach(const char *name, unsigned flags, struct shelf **out, char why[SHELF_WHY]);
int shelf_remove(const char *name, char why[SHELF_WHY]);
void shelf_detach(struct shelf *shelf);

/* ---- tasks ---------------------------------------------------------------------- */

struct shelf_cred {
	uid_t uid, euid, suid, fsuid;
	gid_t gid, egid, sgid, fsgid;
	uint32_t ngroups; /* at most 64 */
	gid_t groups[64];
	uint32_t caps; /* SHELF_CAP_*; a task with fsuid 0 starts with all */
};
#define SHELF_CAP_DAC_OVERRIDE 1u
#define SHELF_CAP_DAC_READ_SEARCH 2u
#define SHELF_CAP_FOWNER 4u
#define SHELF_CAP_FSETID 8u
#define SHELF_CAP_CHOWN 16u
#define SHELF_CAP_MKNOD 32u
#define SHELF_CAP_SYS_ADMIN 64u /* trusted xattrs */
#define SHELF_CAP_SYS_CHROOT 128u
#define SHELF_CAP_ALL 255u

#define SHELF_CLONE_FILES 1u /* share the descriptor table */
#define SHELF_CLONE_FS 2u /* share cwd, root, umask */

/* A fresh task of the calling process: cwd and root at the shelf's root, no descriptors, umask 022. cred NULL: the caller's. */
int shelf_task_create(struct shelf *shelf, const struct shelf_cred *cred, struct shelf_task **out);
/* As fork/clone would: called in the parent; the child process then calls shelf_task_adopt(). */
int shelf_task_fork(struct shelf_task *parent, unsigned clone_flags, struct shelf_task **out);
int shelf_task_adopt(struct shelf_task *task); /* the calling process owns the task from now on */
int shelf_task_exec(struct shelf_task *task); /* unshares files, closes CLOEXEC, as a successful execve */
int shelf_task_unshare(struct shelf_task *task, unsigned clone_flags);
int shelf_task_exit(struct shelf_task *task); /* closes all, drops locks; the pointer is dead */
/* Threads that use the task at once; 1 lets calls look descriptors up without an epoch.  Default: many. */
int shelf_task_set_threads(struct shelf_task *task, unsigned threads);
int shelf_task_setcred(struct shelf_task *task, const struct shelf_cred *cred);
int shelf_task_getcred(struct shelf_task *task, struct shelf_cred *out);
int shelf_task_setrlimit_nofile(struct shelf_task *task, uint64_t soft);
/*
 * The task of process `pid`: -ESRCH if it has none here.  For looking at its files, above all from a process
 * that attached for reading.  The pointer is good for as long as that process lives.
 */
int shelf_task_find(struct shelf *shelf, pid_t pid, struct shelf_task **out);

/* ---- open, close, descriptors ---------------------------------------------------- */

int shelf_open(struct shelf_task *t, const char *path, int flags, mode_t mode);
int shelf_openat(struct shelf_task *t, int dirfd, const char *path, int flags, mode_t mode);
int shelf_openat2(struct shelf_task *t, int dirfd, const char *path, const struct open_how *how, size_t size);
int shelf_creat(struct shelf_task *t, const char *path, mode_t mode);
int shelf_close(struct shelf_task *t, int fd);
int shelf_close_range(struct shelf_task *t, unsigned first, unsigned last, unsigned flags);
int shelf_dup(struct shelf_task *t, int fd);
int shelf_dup2(struct shelf_task *t, int oldfd, int newfd);
int shelf_dup3(struct shelf_task *t, int oldfd, int newfd, int flags);
/* arg is an int, or a pointer, as cmd says.  F_SETLKW waits.  F_SETLEASE: -EINVAL. */
int shelf_fcntl(struct shelf_task *t, int fd, int cmd, uintptr_t arg);
int shelf_flock(struct shelf_task *t, int fd, int operation);
int shelf_ioctl(struct shelf_task *t, int fd, unsigned long request, uintptr_t arg);
#define SHELF_O_CLOFORK 020000000000 /* POSIX 2024's close-on-fork, for open flags */
#define SHELF_FD_CLOFORK 2 /* beside FD_CLOEXEC in F_GETFD, F_SETFD */
#define SHELF_F_DUPFD_CLOFORK 1100 /* as F_DUPFD_CLOEXEC */

/* ---- data ------------------------------------------------------------------------ */

ssize_t shelf_read(struct shelf_task *t, int fd, void *buf, size_t count);
ssize_t shelf_write(struct shelf_task *t, int fd, const void *buf, size_t count);
ssize_t shelf_pread(struct shelf_task *t, int fd, void *buf, size_t count, off_t offset);
ssize_t shelf_pwrite(struct shelf_task *t, int fd, const void *buf, size_t count, off_t offset);
ssize_t shelf_readv(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt);
ssize_t shelf_writev(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt);
ssize_t shelf_preadv(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt, off_t offset);
ssize_t shelf_pwritev(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt, off_t offset);
ssize_t shelf_preadv2(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags);
ssize_t shelf_pwritev2(struct shelf_task *t, int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags);
off_t shelf_lseek(struct shelf_task *t, int fd, off_t offset, int whence);
int shelf_truncate(struct shelf_task *t, const char *path, off_t length);
int shelf_ftruncate(struct shelf_task *t, int fd, off_t length);
int shelf_fallocate(struct shelf_task *t, int fd, int mode, off_t offset, off_t length);
ssize_t shelf_copy_file_range(struct shelf_task *t, int fd_in, off_t *off_in, int fd_out, off_t *off_out,
			      size_t length, unsigned flags);
ssize_t shelf_sendfile(struct shelf_task *t, int out_fd, int in_fd, off_t *offset, size_t count);
int shelf_fsync(struct shelf_task *t, int fd);
int shelf_fdatasync(struct shelf_task *t, int fd);
int shelf_syncfs(struct shelf_task *t, int fd);
int shelf_sync_file_range(struct shelf_task *t, int fd, off_t offset, off_t length, unsigned flags);
int shelf_fadvise(struct shelf_task *t, int fd, off_t offset, off_t length, int advice);
ssize_t shelf_readahead(struct shelf_task *t, int fd, off_t offset, size_t count);

/* ---- attributes ------------------------------------------------------------------ */

int shelf_stat(struct shelf_task *t, const char *path, struct stat *st);
int shelf_lstat(struct shelf_task *t, const char *path, struct stat *st);
int shelf_fstat(struct shelf_task *t, int fd, struct stat *st);
int shelf_fstatat(struct shelf_task *t, int dirfd, const char *path, struct stat *st, int flags);
int shelf_statx(struct shelf_task *t, int dirfd, const char *path, int flags, unsigned mask, struct statx *stx);
int shelf_statfs(struct shelf_task *t, const char *path, struct statfs *st);
int shelf_fstatfs(struct shelf_task *t, int fd, struct statfs *st);
#define SHELF_SUPER_MAGIC 0x5348454c /* f_type */
int shelf_access(struct shelf_task *t, const char *path, int mode);
int shelf_faccessat(struct shelf_task *t, int dirfd, const char *path, int mode);
int shelf_faccessat2(struct shelf_task *t, int dirfd, const char *path, int mode, int flags);
int shelf_chmod(struct shelf_task *t, const char *path, mode_t mode);
int shelf_fchmod(struct shelf_task *t, int fd, mode_t mode);
int shelf_fchmodat(struct shelf_task *t, int dirfd, const char *path, mode_t mode);
int shelf_fchmodat2(struct shelf_task *t, int dirfd, const char *path, mode_t mode, int flags);
int shelf_chown(struct shelf_task *t, const char *path, uid_t uid, gid_t gid);
int shelf_lchown(struct shelf_task *t, const char *path, uid_t uid, gid_t gid);
int shelf_fchown(struct shelf_task *t, int fd, uid_t uid, gid_t gid);
int shelf_fchownat(struct shelf_task *t, int dirfd, const char *path, uid_t uid, gid_t gid, int flags);
int shelf_utimensat(struct shelf_task *t, int dirfd, const char *path, const struct timespec times[2], int flags);
int shelf_futimens(struct shelf_task *t, int fd, const struct timespec times[2]);
mode_t shelf_umask(struct shelf_task *t, mode_t mask);
ssize_t shelf_getxattr(struct shelf_task *t, const char *path, const char *name, void *value, size_t size);
ssize_t shelf_lgetxattr(struct shelf_task *t, const char *path, const char *name, void *value, size_t size);
ssize_t shelf_fgetxattr(struct shelf_task *t, int fd, const char *name, void *value, size_t size);
int shelf_setxattr(struct shelf_task *t, const char *path, const char *name, const void *value, size_t size,
		   int flags);
int shelf_lsetxattr(struct shelf_task *t, const char *path, const char *name, const void *value, size_t size,
		    int flags);
int shelf_fsetxattr(struct shelf_task *t, int fd, const char *name, const void *value, size_t size, int flags);
ssize_t shelf_listxattr(struct shelf_task *t, const char *path, char *list, size_t size);
ssize_t shelf_llistxattr(struct shelf_task *t, const char *path, char *list, size_t size);
ssize_t shelf_flistxattr(struct shelf_task *t, int fd, char *list, size_t size);
int shelf_removexattr(struct shelf_task *t, const char *path, const char *name);
int shelf_lremovexattr(struct shelf_task *t, const char *path, const char *name);
int shelf_fremovexattr(struct shelf_task *t, int fd, const char *name);

/* ---- names ----------------------------------------------------------------------- */

int shelf_mkdir(struct shelf_task *t, const char *path, mode_t mode);
int shelf_mkdirat(struct shelf_task *t, int dirfd, const char *path, mode_t mode);
int shelf_rmdir(struct shelf_task *t, const char *path);
int shelf_unlink(struct shelf_task *t, const char *path);
int shelf_unlinkat(struct shelf_task *t, int dirfd, const char *path, int flags);
int shelf_rename(struct shelf_task *t, const char *from, const char *to);
int shelf_renameat(struct shelf_task *t, int fromfd, const char *from, int tofd, const char *to);
int shelf_renameat2(struct shelf_task *t, int fromfd, const char *from, int tofd, const char *to, unsigned flags);
int shelf_link(struct shelf_task *t, const char *from, const char *to);
int shelf_linkat(struct shelf_task *t, int fromfd, const char *from, int tofd, const char *to, int flags);
int shelf_symlink(struct shelf_task *t, const char *target, const char *path);
int shelf_symlinkat(struct shelf_task *t, const char *target, int dirfd, const char *path);
ssize_t shelf_readlink(struct shelf_task *t, const char *path, char *buf, size_t size);
ssize_t shelf_readlinkat(struct shelf_task *t, int dirfd, const char *path, char *buf, size_t size);
int shelf_mknod(struct shelf_task *t, const char *path, mode_t mode, dev_t dev);
int shelf_mknodat(struct shelf_task *t, int dirfd, const char *path, mode_t mode, dev_t dev);
int shelf_chdir(struct shelf_task *t, const char *path);
int shelf_fchdir(struct shelf_task *t, int fd);
int shelf_chroot(struct shelf_task *t, const char *path);
/* The length with the final NUL, as the system call; -ERANGE, -ENOENT when removed. */
ssize_t shelf_getcwd(struct shelf_task *t, char *buf, size_t size);
/* struct linux_dirent64 records; d_off values stay valid positions for lseek. 0 at the end. */
ssize_t shelf_getdents64(struct shelf_task *t, int fd, void *buf, size_t size);
/* The same from *position on, which moves; the descriptor's offset is neither read nor changed. */
ssize_t shelf_pgetdents64(struct shelf_task *t, int fd, void *buf, size_t size, off_t *position);

/* ---- space and health --------------------------------------------------------------- */

struct shelf_counters {
	uint64_t size_pages, used_pages, committed_pages;
	uint64_t inodes, files_open, tasks, threads;
	uint64_t epoch, retired_waiting;
	uint32_t poisoned;
	char poison_reason[128];
};
int shelf_counters(struct shelf *shelf, struct shelf_counters *out);
/* Verify the tree and the allocator; faults are told to `say`; their number, or -errno. */
int64_t shelf_check(struct shelf *shelf, void (*say)(void *ctx, const char *fault), void *ctx);

#ifdef __cplusplus
}
#endif
#endif

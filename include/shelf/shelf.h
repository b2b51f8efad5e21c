/* SPDX-License-Identifier: MIT */
/*
 * shelf.h - files in shared memory: the public calls.
 *
 * A shelf is a segment of shared memory that holds one file tree.  Threads and
 * processes that attach it run these calls themselves; none enters the kernel
 * but to sleep, to grow the segment, or to ask the time.
 *
 * Every call that Linux has too takes the same arguments behind the task, has
 * the same effect as on tmpfs (Linux 6.18 is what it is compared with, call by call), and returns what the
 * system call returns: 0 or more, or -errno.  errno itself is never touched.  The errors of a call are those
 * of its manual page, section 2, in Linux's order of looking for them, and of POSIX.1-2024; the comments below
 * name what is particular.  Any call may also return
 *	-EIO	the segment is damaged and out of use: shelf_counters() has the reason
 *	-ENOMEM	all thread slots of the segment are taken by live threads
 *	-ENOSPC	the segment, or /dev/shm, is full; nothing has been changed
 *	-EROFS	a call that changes something, in a process that attached for reading
 * A NULL path, result or buffer is -EFAULT; other bad addresses are faults of the caller.
 *
 * Threads: a task may be used by any number of threads at once, but shelf_task_exec(), _unshare() and
 * _exit() by one while no other call runs on it.  Processes: a task belongs to one process; fork() a child with
 * shelf_task_fork().
 *
 * Signal handlers: no call is async-signal-safe.  A handler must not call the library, nor leave a call that it interrupted
 * by longjmp(): what the interrupted call holds would be taken for the handler's.  (shelf run holds signals back during a call.)
 *
 * Progress, named at each group:
 *	reads	one read section: no lock, no reference, no store to a line that others share; lock-free,
 *		and after a bounded number of meetings with writers blocking
 *	blocks	takes locks that are held for a bounded time; a holder's death is noticed and repaired
 *	waits	may wait for as long as another program pleases
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
	uint64_t size; /* bytes, rounded up to 2 MiB; 0: half of RAM; at least 4 MiB */
	uint32_t mode; /* of the root directory; 0: 01777, as tmpfs mounted on /tmp */
	uint32_t uid, gid; /* of the root directory; (uint32_t)-1: the caller's */
};

/*
 * NAME: the segment is the file /dev/shm/shelf.NAME, mode 0600, so it is its owner's.  A name has no '/'.
 * `why` may be NULL; else it gets one sentence: what failed, why, what to do.
 * create: -EEXIST, -EINVAL, -ENOSPC, -EOPNOTSUPP (the directory is not on a tmpfs).  options NULL: all defaults.
 * attach: -ENOENT, -EACCES, -EINVAL (another version, a damaged header), -EBUSY (the address is taken).  Closes
 *	what dead processes had open.  Blocks.
 * SHELF_READ_ONLY: the segment is mapped for reading, the calling threads' own slots apart.
 * SHELF_TO_CHECK: for shelf_verify() alone.  Also a shelf that was found damaged; what dead processes had is left as it is.
 * detach: no thread of the process may be in a call; tasks of the process should have exited.
 * remove: the name goes; who has it attached keeps it.
 */
#define SHELF_WHY 256
int shelf_create(const char *name, const struct shelf_options *options, struct shelf **out, char why[SHELF_WHY]);
#define SHELF_READ_ONLY 1u
#define SHELF_TO_CHECK 2u
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
#define SHELF_CAP_SYS_ADMIN 64u /* trusted and security xattrs */
#define SHELF_CAP_SYS_CHROOT 128u
#define SHELF_CAP_ALL 255u

#define SHELF_CLONE_FILES 1u /* share the descriptor table */
#define SHELF_CLONE_FS 2u /* share cwd, root, umask */

/*
 * All block.  A process may have several tasks: each is a table, a place, credentials of its own.
 *
 * create: a fresh task of the calling process: cwd and root at the shelf's root, no descriptors, umask 022, the
 * process's RLIMIT_NOFILE.  cred NULL: the caller's ids, groups (-EINVAL: more than 64) and capabilities.
 * In a process that attached for reading the task is private, has no descriptors and stays at the root.
 */
int shelf_task_create(struct shelf *shelf, const struct shelf_cred *cred, struct shelf_task **out);
/* As fork/clone would: called in the parent, who owns it (and may shelf_task_exit() it) until the child adopts it. */
int shelf_task_fork(struct shelf_task *parent, unsigned clone_flags, struct shelf_task **out);
/* The calling process owns the task from now on.  -ESRCH: its maker died before this, and it has been taken apart. */
int shelf_task_adopt(struct shelf_task *task);
int shelf_task_exec(struct shelf_task *task); /* unshares files, closes CLOEXEC, as a successful execve */
int shelf_task_unshare(struct shelf_task *task, unsigned clone_flags); /* nothing is forked: CLOFORK stays */
int shelf_task_exit(struct shelf_task *task); /* closes all, drops locks; the pointer is dead */
/*
 * Threads that use the task at once; 1, said by that thread itself, lets calls look descriptors up without an epoch.
 * Say 0 (unknown, the default) before a second one starts.
 */
int shelf_task_set_threads(struct shelf_task *task, unsigned threads);
/*
 * Other threads may be in calls: each call has one set of credentials from start to end.  A task with more than
 * one thread keeps each different set it ever had until it exits.
 */
int shelf_task_setcred(struct shelf_task *task, const struct shelf_cred *cred);
int shelf_task_getcred(struct shelf_task *task, struct shelf_cred *out);
int shelf_task_setrlimit_nofile(struct shelf_task *task, uint64_t soft); /* higher numbers that are open stay */
/* RLIMIT_FSIZE; UINT64_MAX: none.  shelf_task_create() takes both limits from the process. */
int shelf_task_setrlimit_fsize(struct shelf_task *task, uint64_t soft);
/*
 * The task of process `pid`: -ESRCH if it has none here.  For looking at its files, above all from a process
 * that attached for reading.  The pointer is good for as long as that process lives.
 */
int shelf_task_find(struct shelf *shelf, pid_t pid, struct shelf_task **out);

/* ---- open, close, descriptors ---------------------------------------------------- */

/*
 * open(2), openat2(2).  A failing open without O_CREAT, O_TRUNC, O_TMPFILE reads; others block.  EMFILE and
 * ENFILE leave nothing created or truncated.  FIFOs, sockets and devices are names here: -ENXIO
 * but for O_PATH.  O_DIRECT is taken for regular files and changes nothing.
 * RESOLVE_CACHED: -EAGAIN where a lock would be needed.
 */
int shelf_open(struct shelf_task *t, const char *path, int flags, mode_t mode);
int shelf_openat(struct shelf_task *t, int dirfd, const char *path, int flags, mode_t mode);
int shelf_openat2(struct shelf_task *t, int dirfd, const char *path, const struct open_how *how, size_t size);
int shelf_creat(struct shelf_task *t, const char *path, mode_t mode);
/*
 * close(2), close_range(2), dup(2), with EBADF, EMFILE, EINVAL, EBUSY as there.  Blocks, for the table's lock.
 * CLOSE_RANGE_UNSHARE: as shelf_task_unshare().
 */
int shelf_close(struct shelf_task *t, int fd);
int shelf_close_range(struct shelf_task *t, unsigned first, unsigned last, unsigned flags);
int shelf_dup(struct shelf_task *t, int fd);
int shelf_dup2(struct shelf_task *t, int oldfd, int newfd);
int shelf_dup3(struct shelf_task *t, int oldfd, int newfd, int flags);
/*
 * fcntl(2): arg is an int, or a pointer, as cmd says.  F_GETFD, F_GETFL read; F_SETLKW and F_OFD_SETLKW wait
 * (-EDEADLK: the wait would never end).  A record lock's owner is the task's table.
 * F_SETLEASE: -EINVAL, nobody would break it; F_NOTIFY: taken, tells nothing; F_ADD_SEALS: -EPERM, as for any
 * file that memfd_create did not make.  F_SETOWN, F_SETSIG are kept; no signal is ever sent.
 */
int shelf_fcntl(struct shelf_task *t, int fd, int cmd, uintptr_t arg);
int shelf_flock(struct shelf_task *t, int fd, int operation); /* waits, without LOCK_NB */
/*
 * ioctl(2): FIOCLEX, FIONCLEX, FIONBIO, FIOASYNC, FIONREAD, FIOQSIZE, FIGETBSZ, FS_IOC_GETFLAGS,
 * FS_IOC_SETFLAGS (FS_NODUMP_FL only, else -EOPNOTSUPP), FS_IOC_FSGETXATTR; else -ENOTTY, or what tmpfs says.
 */
int shelf_ioctl(struct shelf_task *t, int fd, unsigned long request, uintptr_t arg);
#define SHELF_O_CLOFORK 020000000000 /* POSIX 2024's close-on-fork, for open flags */
#define SHELF_FD_CLOFORK 2 /* beside FD_CLOEXEC in F_GETFD, F_SETFD */
#define SHELF_F_DUPFD_CLOFORK 1100 /* as F_DUPFD_CLOEXEC */

/* ---- data ------------------------------------------------------------------------ */

/*
 * read(2), readv(2) and their kin.  pread reads; read() takes the offset's lock besides, but where one
 * thread has the file alone; writes block.  At most 0x7ffff000 bytes a call.  A read of up to 32 KiB sees each write
 * of up to 32 KiB whole or not at all.  O_APPEND with pwrite appends, as Linux does.
 * preadv2, pwritev2: offset -1 is the file's own.  RWF_HIPRI, RWF_DSYNC, RWF_SYNC have no effect; RWF_APPEND,
 * RWF_NOAPPEND.  RWF_NOWAIT, which tmpfs refuses: -EAGAIN, or less than was asked for, in place of waiting for who changes
 * the file; memory for new pages is got as ever.  The rest, and any but RWF_HIPRI for what is no file: -EOPNOTSUPP.
 * -EFBIG: at RLIMIT_FSIZE or the largest size, as from truncate and fallocate; SIGXFSZ is the caller's to send.
 */
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
/* lseek(2), SEEK_DATA and SEEK_HOLE too.  Positions in a directory are what d_off said. */
off_t shelf_lseek(struct shelf_task *t, int fd, off_t offset, int whence);
/*
 * truncate(2); fallocate(2) with modes 0, KEEP_SIZE, KEEP_SIZE|PUNCH_HOLE as tmpfs, and, which tmpfs refuses, ZERO_RANGE,
 * ZERO_RANGE|KEEP_SIZE, COLLAPSE_RANGE and INSERT_RANGE, these two in whole pages.  Block.
 */
int shelf_truncate(struct shelf_task *t, const char *path, off_t length);
int shelf_ftruncate(struct shelf_task *t, int fd, off_t length);
int shelf_fallocate(struct shelf_task *t, int fd, int mode, off_t offset, off_t length);
/* copy_file_range(2), sendfile(2) between descriptors of one task.  Block.  The source's holes become data. */
ssize_t shelf_copy_file_range(struct shelf_task *t, int fd_in, off_t *off_in, int fd_out, off_t *off_out,
			      size_t length, unsigned flags);
ssize_t shelf_sendfile(struct shelf_task *t, int out_fd, int in_fd, off_t *offset, size_t count);
/* Nothing to do, but for the errors: -EBADF, -EINVAL, -ESPIPE.  Read. */
int shelf_fsync(struct shelf_task *t, int fd);
int shelf_fdatasync(struct shelf_task *t, int fd);
int shelf_syncfs(struct shelf_task *t, int fd);
int shelf_sync_file_range(struct shelf_task *t, int fd, off_t offset, off_t length, unsigned flags);
int shelf_fadvise(struct shelf_task *t, int fd, off_t offset, off_t length, int advice);
ssize_t shelf_readahead(struct shelf_task *t, int fd, off_t offset, size_t count);

/* ---- attributes ------------------------------------------------------------------ */

/* stat(2), statx(2): read.  st_dev is one per shelf, its minor below 256.  Path NULL with AT_EMPTY_PATH is "". */
int shelf_stat(struct shelf_task *t, const char *path, struct stat *st);
int shelf_lstat(struct shelf_task *t, const char *path, struct stat *st);
int shelf_fstat(struct shelf_task *t, int fd, struct stat *st);
int shelf_fstatat(struct shelf_task *t, int dirfd, const char *path, struct stat *st, int flags);
int shelf_statx(struct shelf_task *t, int dirfd, const char *path, int flags, unsigned mask, struct statx *stx);
int shelf_statfs(struct shelf_task *t, const char *path, struct statfs *st);
int shelf_fstatfs(struct shelf_task *t, int fd, struct statfs *st);
#define SHELF_SUPER_MAGIC 0x5348454c /* f_type */
/* access(2), with the real ids unless AT_EACCESS: reads. */
int shelf_access(struct shelf_task *t, const char *path, int mode);
int shelf_faccessat(struct shelf_task *t, int dirfd, const char *path, int mode);
int shelf_faccessat2(struct shelf_task *t, int dirfd, const char *path, int mode, int flags);
/* chmod(2) (-EOPNOTSUPP for a symbolic link itself), chown(2), utimensat(2): block. */
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
/* xattr(7): user, trusted, security, and POSIX ACLs as system.posix_acl_access and _default.  Block. */
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

/*
 * mkdir(2), rmdir(2), unlink(2), rename(2), link(2), symlink(2), mknod(2): block, for the locks of the
 * directories they change.  A rename over a name leaves no moment without it.
 * linkat: AT_EMPTY_PATH, or AT_SYMLINK_FOLLOW with the text /proc/self/fd/N, names descriptor N of the task; who did
 * not open it with his present credentials needs SHELF_CAP_DAC_READ_SEARCH (-ENOENT).  Links to files of others
 * follow fs.protected_hardlinks=1 (-EPERM); the other fs.protected_* count as 0.
 */
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
/* readlink(2): reads. */
ssize_t shelf_readlink(struct shelf_task *t, const char *path, char *buf, size_t size);
ssize_t shelf_readlinkat(struct shelf_task *t, int dirfd, const char *path, char *buf, size_t size);
int shelf_mknod(struct shelf_task *t, const char *path, mode_t mode, dev_t dev);
int shelf_mknodat(struct shelf_task *t, int dirfd, const char *path, mode_t mode, dev_t dev);
int shelf_chdir(struct shelf_task *t, const char *path);
int shelf_fchdir(struct shelf_task *t, int fd);
int shelf_chroot(struct shelf_task *t, const char *path);
/* The length with the final NUL, as the system call; "(unreachable)" in front when outside the root; -ERANGE, -ENOENT
 * when removed.  Reads. */
ssize_t shelf_getcwd(struct shelf_task *t, char *buf, size_t size);
/*
 * struct linux_dirent64 records; 0 at the end.  d_off values stay valid positions for lseek.  While entries come and go,
 * each that stays is listed exactly once.  -EINVAL: not even one fits; -ENOENT: the directory is removed.
 */
ssize_t shelf_getdents64(struct shelf_task *t, int fd, void *buf, size_t size);
/* The same from *position on, which moves; the descriptor's offset is neither read nor changed.  Reads. */
ssize_t shelf_pgetdents64(struct shelf_task *t, int fd, void *buf, size_t size, off_t *position);

/* ---- watching -------------------------------------------------------------------- */

/*
 * inotify(7): block.  An instance is a descriptor, and with it a queue of events: read it with shelf_read(), which waits
 * unless IN_NONBLOCK or O_NONBLOCK is set (-EINTR: a signal came), and ask for its length with FIONREAD.  Changes by all
 * tasks of the shelf are told.  16,384 events wait, then one IN_Q_OVERFLOW; so too when the segment is full.
 * init: IN_CLOEXEC, IN_NONBLOCK.  add_watch: the number of the watch, one for each inode whatever its names.
 */
int shelf_inotify_init(struct shelf_task *t, int flags);
int shelf_inotify_add_watch(struct shelf_task *t, int fd, const char *path, uint32_t mask);
int shelf_inotify_rm_watch(struct shelf_task *t, int fd, int wd);

/* ---- space and health --------------------------------------------------------------- */

/* Snapshots, without locks: each number is right by itself. */
struct shelf_counters {
	uint64_t size_pages, used_pages, committed_pages;
	uint64_t inodes, files_open, tasks, threads; /* tasks: 0 when it is poisoned */
	uint64_t epoch, retired_waiting;
	uint64_t calls_past; /* system calls that `shelf run --strict` saw go past the shelf */
	uint32_t poisoned;
	char poison_reason[128];
};
int shelf_counters(struct shelf *shelf, struct shelf_counters *out);
/*
 * Close what dead processes had open, then verify all structures against one another: names, hashes, link counts,
 * open files, counts of references, data pages, attributes, locks, the allocator.  No damage makes it crash.  `say` gets
 * a sentence for each fault, and for each thing that a killed call left over (faults: what is wrong; left: a count
 * too high, an object or pages that are nobody's).
 * What is left over is known only when no other thread has the shelf (report.alone); until the call ends none gets it.
 * SHELF_VERIFY_REPAIR: then what is left over is taken back, and counts, lists, maps of what is free and locks that are
 * nobody's are put right; `mended` are the faults that are no more.  What stays poisons the shelf, and when nothing stays
 * it is poisoned no more.  A child clears away what the dead left on a copy first, and where it falls nothing is changed.
 * Descriptor tables of <shelf/fdtable.h> that stand at no anchor count as nobody's.
 * On a shelf that is being changed counts may be reported falsely.  `progress` is called now and then.
 * -ENOMEM, -EROFS.
 */
#define SHELF_VERIFY_REPAIR 1u
struct shelf_check_options {
	unsigned flags;
	void (*say)(void *ctx, const char *sentence); /* these two may be NULL */
	void (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
};
struct shelf_check_report {
	uint64_t inodes, directories, open_files, data_pages, tasks; /* found */
	uint64_t faults, mended, left;
	uint64_t left_objects, left_pages;
	int alone;
};
int shelf_verify(struct shelf *shelf, const struct shelf_check_options *options, struct shelf_check_report *report);
/* The same without repair: the number of faults, or -errno. */
int64_t shelf_check(struct shelf *shelf, void (*say)(void *ctx, const char *sentence), void *ctx);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/* numbers.c - the list; numbers newer than the headers of Debian 12 are written out. */
#include <sys/syscall.h>

#include "base/base.h"
#include "run/numbers.h"

enum {
	NR_cachestat = 451,
	NR_fchmodat2 = 452,
	NR_statmount = 457,
	NR_listmount = 458,
	NR_setxattrat = 463,
	NR_getxattrat,
	NR_listxattrat,
	NR_removexattrat,
	NR_open_tree_attr,
	NR_file_getattr,
	NR_file_setattr,
};

/* clang-format off */
static const uint16_t by_path[] = {
	SYS_open, SYS_openat, SYS_openat2, SYS_creat, SYS_stat, SYS_lstat, SYS_newfstatat, SYS_statx,
	SYS_statfs, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_truncate, SYS_rename, SYS_renameat,
	SYS_renameat2, SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_link, SYS_linkat, SYS_unlink, SYS_unlinkat,
	SYS_symlink, SYS_symlinkat, SYS_readlink, SYS_readlinkat, SYS_chmod, SYS_fchmodat, NR_fchmodat2,
	SYS_chown, SYS_lchown, SYS_fchownat, SYS_mknod, SYS_mknodat, SYS_utime, SYS_utimes, SYS_futimesat,
	SYS_utimensat, SYS_chdir, SYS_getcwd, SYS_chroot, SYS_pivot_root, SYS_mount, SYS_umount2,
	SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_uselib, SYS_setxattr, SYS_lsetxattr,
	SYS_getxattr, SYS_lgetxattr, SYS_listxattr, SYS_llistxattr, SYS_removexattr, SYS_lremovexattr,
	NR_setxattrat, NR_getxattrat, NR_listxattrat, NR_removexattrat, SYS_name_to_handle_at,
	SYS_open_by_handle_at, SYS_inotify_add_watch, SYS_fanotify_mark, SYS_open_tree, SYS_move_mount,
	SYS_fspick, SYS_mount_setattr, NR_statmount, NR_listmount, NR_open_tree_attr, NR_file_getattr,
	NR_file_setattr, SYS_execve, SYS_execveat, SYS_umask,
};

static const uint16_t by_descriptor[] = {
	SYS_read, SYS_write, SYS_close, SYS_close_range, SYS_fstat, SYS_fstatfs, SYS_poll, SYS_ppoll,
	SYS_select, SYS_pselect6, SYS_lseek, SYS_ioctl, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev,
	SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2, SYS_pipe, SYS_pipe2, SYS_dup, SYS_dup2,
	SYS_dup3, SYS_fcntl, SYS_flock, SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_getdents,
	SYS_getdents64, SYS_fchdir, SYS_fchmod, SYS_fchown, SYS_fsetxattr, SYS_fgetxattr, SYS_flistxattr,
	SYS_fremovexattr, SYS_sendfile, SYS_splice, SYS_tee, SYS_vmsplice, SYS_copy_file_range,
	SYS_readahead, SYS_fadvise64, SYS_fallocate, SYS_sync, SYS_syncfs, SYS_sync_file_range,
	NR_cachestat, SYS_quotactl_fd, SYS_memfd_create, SYS_memfd_secret, SYS_socket, SYS_socketpair,
	SYS_bind, SYS_connect, SYS_listen, SYS_accept, SYS_accept4, SYS_getsockname, SYS_getpeername,
	SYS_setsockopt, SYS_getsockopt, SYS_shutdown, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,
	SYS_sendmmsg, SYS_recvmmsg, SYS_epoll_create, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait,
	SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd, SYS_eventfd2, SYS_signalfd, SYS_signalfd4,
	SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_inotify_init,
	SYS_inotify_init1, SYS_inotify_rm_watch, SYS_fanotify_init, SYS_userfaultfd,
	SYS_perf_event_open, SYS_bpf, SYS_io_setup, SYS_io_destroy, SYS_io_submit, SYS_io_cancel,
	SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_setup, SYS_io_uring_enter,
	SYS_io_uring_register, SYS_mq_open, SYS_mq_unlink, SYS_mq_timedsend, SYS_mq_timedreceive,
	SYS_mq_notify, SYS_mq_getsetattr, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_pidfd_open,
	SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_process_madvise, SYS_process_mrelease, SYS_kcmp,
	SYS_finit_module, SYS_kexec_file_load, SYS_landlock_create_ruleset, SYS_landlock_add_rule,
	SYS_landlock_restrict_self, SYS_setns,
};

static const uint16_t by_process[] = {
	SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_pkey_mprotect, SYS_msync, SYS_madvise,
	SYS_mincore, SYS_remap_file_pages, SYS_mlock, SYS_mlock2, SYS_munlock, SYS_fork, SYS_vfork,
	SYS_clone, SYS_clone3, SYS_unshare, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid,
	SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid,
	SYS_setfsgid, SYS_setgroups, SYS_capset, SYS_setrlimit, SYS_prlimit64, SYS_rt_sigaction,
	SYS_seccomp, SYS_prctl, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ioprio_set,
};
/* clang-format on */

static void add(uint8_t *wanted, const uint16_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		wanted[list[i]] = 1;
}

void run_numbers_of_files(uint8_t wanted[RUN_NUMBERS])
{
	add(wanted, by_path, ARRAY_SIZE(by_path));
	add(wanted, by_descriptor, ARRAY_SIZE(by_descriptor));
	add(wanted, by_process, ARRAY_SIZE(by_process));
}

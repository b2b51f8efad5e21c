/* SPDX-License-Identifier: MIT */
/* calls.c - the list of calls: see calls.h.  Numbers newer than the headers of Debian 12 are written out. */
#include <poll.h>
#include <string.h>
#include <sys/select.h>

#include "run/preload/calls.h"

/* clang-format off */
static const struct call_info calls[] = {
	{SYS_read, "read", "f", ""},
	{SYS_write, "write", "f", ""},
	{SYS_open, "open", "p>n", ""},
	{SYS_close, "close", "f", ""},
	{SYS_stat, "stat", "p", ""},
	{SYS_fstat, "fstat", "f", ""},
	{SYS_lstat, "lstat", "p", ""},
	{SYS_poll, "poll", "m", ""},
	{SYS_lseek, "lseek", "f", ""},
	{SYS_mmap, "mmap", "----f", "shared and private"},
	{SYS_ioctl, "ioctl", "f", ""},
	{SYS_pread64, "pread64", "f", ""},
	{SYS_pwrite64, "pwrite64", "f", ""},
	{SYS_readv, "readv", "f", ""},
	{SYS_writev, "writev", "f", ""},
	{SYS_access, "access", "p", ""},
	{SYS_pipe, "pipe", ">n", ""},
	{SYS_select, "select", "-mmm", ""},
	{SYS_dup, "dup", "f>n", ""},
	{SYS_dup2, "dup2", "ff>n", ""},
	{SYS_sendfile, "sendfile", "ff", ""},
	{SYS_socket, "socket", ">n", ""},
	{SYS_connect, "connect", "fm", ""},
	{SYS_accept, "accept", "f>n", ""},
	{SYS_sendto, "sendto", "f---m", ""},
	{SYS_recvfrom, "recvfrom", "f", ""},
	{SYS_sendmsg, "sendmsg", "fm", ""},
	{SYS_recvmsg, "recvmsg", "f", ""},
	{SYS_shutdown, "shutdown", "f", ""},
	{SYS_bind, "bind", "fm", ""},
	{SYS_listen, "listen", "f", ""},
	{SYS_getsockname, "getsockname", "f", ""},
	{SYS_getpeername, "getpeername", "f", ""},
	{SYS_socketpair, "socketpair", ">n", ""},
	{SYS_setsockopt, "setsockopt", "f", ""},
	{SYS_getsockopt, "getsockopt", "f", ""},
	{SYS_execve, "execve", "p", "programs with other rights are refused"},
	{SYS_fcntl, "fcntl", "f", ""},
	{SYS_flock, "flock", "f", ""},
	{SYS_fsync, "fsync", "f", ""},
	{SYS_fdatasync, "fdatasync", "f", ""},
	{SYS_truncate, "truncate", "p", ""},
	{SYS_ftruncate, "ftruncate", "f", ""},
	{SYS_getdents, "getdents", "f", "ENOSYS in a shelf"},
	{SYS_getcwd, "getcwd", "", "the place"},
	{SYS_chdir, "chdir", "p", ""},
	{SYS_fchdir, "fchdir", "f", ""},
	{SYS_rename, "rename", "pp", ""},
	{SYS_mkdir, "mkdir", "p", ""},
	{SYS_rmdir, "rmdir", "p", ""},
	{SYS_creat, "creat", "p>n", ""},
	{SYS_link, "link", "pp", ""},
	{SYS_unlink, "unlink", "p", ""},
	{SYS_symlink, "symlink", "-p", ""},
	{SYS_readlink, "readlink", "p", ""},
	{SYS_chmod, "chmod", "p", ""},
	{SYS_fchmod, "fchmod", "f", ""},
	{SYS_chown, "chown", "p", ""},
	{SYS_fchown, "fchown", "f", ""},
	{SYS_lchown, "lchown", "p", ""},
	{SYS_umask, "umask", "", "of both sides"},
	{SYS_utime, "utime", "p", ""},
	{SYS_mknod, "mknod", "p", ""},
	{SYS_uselib, "uselib", "p", ""},
	{SYS_ustat, "ustat", "", "asks by device"},
	{SYS_statfs, "statfs", "p", ""},
	{SYS_fstatfs, "fstatfs", "f", ""},
	{SYS_pivot_root, "pivot_root", "pp", ""},
	{SYS_chroot, "chroot", "p", "EPERM in a shelf"},
	{SYS_sync, "sync", "", "a shelf has nothing to write back"},
	{SYS_acct, "acct", "p", "EPERM in a shelf"},
	{SYS_mount, "mount", "-p", ""},
	{SYS_umount2, "umount2", "p", "EPERM in a shelf"},
	{SYS_swapon, "swapon", "p", "EPERM in a shelf"},
	{SYS_swapoff, "swapoff", "p", ""},
	{SYS_quotactl, "quotactl", "-p", ""},
	{SYS_readahead, "readahead", "f", ""},
	{SYS_setxattr, "setxattr", "p", ""},
	{SYS_lsetxattr, "lsetxattr", "p", ""},
	{SYS_fsetxattr, "fsetxattr", "f", ""},
	{SYS_getxattr, "getxattr", "p", ""},
	{SYS_lgetxattr, "lgetxattr", "p", ""},
	{SYS_fgetxattr, "fgetxattr", "f", ""},
	{SYS_listxattr, "listxattr", "p", ""},
	{SYS_llistxattr, "llistxattr", "p", ""},
	{SYS_flistxattr, "flistxattr", "f", ""},
	{SYS_removexattr, "removexattr", "p", ""},
	{SYS_lremovexattr, "lremovexattr", "p", ""},
	{SYS_fremovexattr, "fremovexattr", "f", ""},
	{SYS_io_setup, "io_setup", "", "see io_submit"},
	{SYS_io_destroy, "io_destroy", "", "see io_submit"},
	{SYS_io_getevents, "io_getevents", "", "see io_submit"},
	{SYS_io_submit, "io_submit", "--m", ""},
	{SYS_io_cancel, "io_cancel", "-m", "see io_submit"},
	{SYS_epoll_create, "epoll_create", ">n", ""},
	{SYS_getdents64, "getdents64", "f", ""},
	{SYS_fadvise64, "fadvise64", "f", ""},
	{SYS_epoll_wait, "epoll_wait", "f", ""},
	{SYS_epoll_ctl, "epoll_ctl", "f-f", "EPERM for a file of a shelf"},
	{SYS_utimes, "utimes", "p", ""},
	{SYS_mq_open, "mq_open", ">n", "names of queues are no paths"},
	{SYS_mq_unlink, "mq_unlink", "", "names of queues are no paths"},
	{SYS_mq_timedsend, "mq_timedsend", "f", ""},
	{SYS_mq_timedreceive, "mq_timedreceive", "f", ""},
	{SYS_mq_notify, "mq_notify", "f", ""},
	{SYS_mq_getsetattr, "mq_getsetattr", "f", ""},
	{SYS_inotify_init, "inotify_init", ">n", ""},
	{SYS_inotify_add_watch, "inotify_add_watch", "fp", ""},
	{SYS_inotify_rm_watch, "inotify_rm_watch", "f", ""},
	{SYS_openat, "openat", "dp>n", ""},
	{SYS_mkdirat, "mkdirat", "dp", ""},
	{SYS_mknodat, "mknodat", "dp", ""},
	{SYS_fchownat, "fchownat", "dp", ""},
	{SYS_futimesat, "futimesat", "dp", ""},
	{SYS_newfstatat, "newfstatat", "dp", ""},
	{SYS_unlinkat, "unlinkat", "dp", ""},
	{SYS_renameat, "renameat", "dpdp", ""},
	{SYS_linkat, "linkat", "dpdp", ""},
	{SYS_symlinkat, "symlinkat", "-dp", ""},
	{SYS_readlinkat, "readlinkat", "dp", ""},
	{SYS_fchmodat, "fchmodat", "dp", ""},
	{SYS_faccessat, "faccessat", "dp", ""},
	{SYS_pselect6, "pselect6", "-mmm", ""},
	{SYS_ppoll, "ppoll", "m", ""},
	{SYS_splice, "splice", "f-f", ""},
	{SYS_tee, "tee", "ff", ""},
	{SYS_sync_file_range, "sync_file_range", "f", ""},
	{SYS_vmsplice, "vmsplice", "f", ""},
	{SYS_utimensat, "utimensat", "dp", ""},
	{SYS_epoll_pwait, "epoll_pwait", "f", ""},
	{SYS_signalfd, "signalfd", "f>n", ""},
	{SYS_timerfd_create, "timerfd_create", ">n", ""},
	{SYS_eventfd, "eventfd", ">n", ""},
	{SYS_fallocate, "fallocate", "f", ""},
	{SYS_timerfd_settime, "timerfd_settime", "f", ""},
	{SYS_timerfd_gettime, "timerfd_gettime", "f", ""},
	{SYS_accept4, "accept4", "f>n", ""},
	{SYS_signalfd4, "signalfd4", "f>n", ""},
	{SYS_eventfd2, "eventfd2", ">n", ""},
	{SYS_epoll_create1, "epoll_create1", ">n", ""},
	{SYS_dup3, "dup3", "ff>n", ""},
	{SYS_pipe2, "pipe2", ">n", ""},
	{SYS_inotify_init1, "inotify_init1", ">n", ""},
	{SYS_preadv, "preadv", "f", ""},
	{SYS_pwritev, "pwritev", "f", ""},
	{SYS_perf_event_open, "perf_event_open", "---f>n", ""},
	{SYS_recvmmsg, "recvmmsg", "f", ""},
	{SYS_fanotify_init, "fanotify_init", ">n", ""},
	{SYS_fanotify_mark, "fanotify_mark", "f--dp", ""},
	{SYS_name_to_handle_at, "name_to_handle_at", "dp", "EOPNOTSUPP in a shelf"},
	{SYS_open_by_handle_at, "open_by_handle_at", "f>n", ""},
	{SYS_syncfs, "syncfs", "f", ""},
	{SYS_sendmmsg, "sendmmsg", "fm", ""},
	{SYS_setns, "setns", "f", ""},
	{SYS_kcmp, "kcmp", "---ff", ""},
	{SYS_finit_module, "finit_module", "f", ""},
	{SYS_renameat2, "renameat2", "dpdp", ""},
	{SYS_memfd_create, "memfd_create", ">n", ""},
	{SYS_kexec_file_load, "kexec_file_load", "ff", ""},
	{SYS_bpf, "bpf", "m>n", ""},
	{SYS_execveat, "execveat", "dp", "as execve"},
	{SYS_userfaultfd, "userfaultfd", ">n", ""},
	{SYS_copy_file_range, "copy_file_range", "f-f", ""},
	{SYS_preadv2, "preadv2", "f", ""},
	{SYS_pwritev2, "pwritev2", "f", ""},
	{SYS_statx, "statx", "dp", ""},
	{SYS_io_pgetevents, "io_pgetevents", "", "see io_submit"},
	{SYS_pidfd_send_signal, "pidfd_send_signal", "f", ""},
	{SYS_io_uring_setup, "io_uring_setup", ">n", "ENOSYS: programs fall back"},
	{SYS_io_uring_enter, "io_uring_enter", "f", ""},
	{SYS_io_uring_register, "io_uring_register", "f", ""},
	{SYS_open_tree, "open_tree", "dp>n", ""},
	{SYS_move_mount, "move_mount", "dpdp", ""},
	{SYS_fsopen, "fsopen", ">n", ""},
	{SYS_fsconfig, "fsconfig", "f---f", ""},
	{SYS_fsmount, "fsmount", "f>n", ""},
	{SYS_fspick, "fspick", "dp>n", ""},
	{SYS_pidfd_open, "pidfd_open", ">n", ""},
	{SYS_close_range, "close_range", "", "numbers of both"},
	{SYS_openat2, "openat2", "dp>n", ""},
	{SYS_pidfd_getfd, "pidfd_getfd", "f>n", ""},
	{SYS_faccessat2, "faccessat2", "dp", ""},
	{SYS_process_madvise, "process_madvise", "f", ""},
	{SYS_epoll_pwait2, "epoll_pwait2", "f", ""},
	{SYS_mount_setattr, "mount_setattr", "dp", ""},
	{SYS_quotactl_fd, "quotactl_fd", "f", ""},
	{SYS_landlock_create_ruleset, "landlock_create_ruleset", ">n", ""},
	{SYS_landlock_add_rule, "landlock_add_rule", "f-m", ""},
	{SYS_landlock_restrict_self, "landlock_restrict_self", "f", ""},
	{SYS_memfd_secret, "memfd_secret", ">n", ""},
	{SYS_process_mrelease, "process_mrelease", "f", ""},
	{451, "cachestat", "f", ""},
	{452, "fchmodat2", "dp", ""},
	{457, "statmount", "", "a shelf is no mount of the kernel"},
	{458, "listmount", "", "a shelf is no mount of the kernel"},
	{463, "setxattrat", "dp", ""},
	{464, "getxattrat", "dp", ""},
	{465, "listxattrat", "dp", ""},
	{466, "removexattrat", "dp", ""},
	{467, "open_tree_attr", "dp>n", ""},
	{468, "file_getattr", "dp", ""},
	{469, "file_setattr", "dp", ""},
};
/* clang-format on */

const struct call_info *call_info(long nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

/* ---- whose are the arguments? ----------------------------------------------------------------- */

static bool path_is_shelf(int dirfd, const char *path)
{
	struct route_room *room = path ? route_room_take() : NULL;
	struct route rt;
	bool is;

	if (!room)
		return false;
	is = !route_begin(&rt, room, 0, dirfd, path, LAST_FOLLOWED) && rt.kind == ROUTE_SHELF;
	route_room_give(room);
	return is;
}

static bool poll_set_has_ours(const struct pollfd *fds, uint64_t n)
{
	struct pollfd one;

	for (uint64_t i = 0; i < n && i < (uint64_t)FD_NUMBER_MAX; i++)
		if (!copy_from_user(&one, &fds[i], sizeof(one)) && number_is_ours(one.fd))
			return true;
	return false;
}

static bool select_set_has_ours(const uint64_t *set, int n)
{
	uint64_t word;

	for (int fd = 0; set && fd < min_of(n, FD_SETSIZE); fd++)
		if (!copy_from_user(&word, &set[fd / 64], sizeof(word)) && word >> fd % 64 & 1 && number_is_ours(fd))
			return true;
	return false;
}

/* Memory that holds descriptors: the calls that name files by it. */
static bool memory_has_ours(const struct call_info *call, const uint64_t a[6], unsigned k)
{
	if (call->nr == SYS_poll || call->nr == SYS_ppoll)
		return poll_set_has_ours((const struct pollfd *)a[0], a[1]);
	if (call->nr == SYS_select || call->nr == SYS_pselect6)
		return select_set_has_ours((const uint64_t *)a[k], (int)a[0]);
	return false;
}

bool call_concerns_shelf(const struct call_info *call, const uint64_t a[6])
{
	int dirfd = AT_FDCWD;

	for (unsigned k = 0; call->args[k] && call->args[k] != '>'; k++) {
		char c = call->args[k];

		if (c == 'f' && number_is_ours((int)a[k]))
			return true;
		if (c == 'd')
			dirfd = (int)a[k];
		if (c == 'p' && path_is_shelf(dirfd, (const char *)a[k]))
			return true;
		if (c == 'm' && memory_has_ours(call, a, k))
			return true;
	}
	return false;
}

bool call_has_parked(const struct call_info *call, const uint64_t a[6])
{
	for (unsigned k = 0; call->args[k] && call->args[k] != '>'; k++)
		if ((call->args[k] == 'f' || call->args[k] == 'd') && number_parked((int)a[k]))
			return true;
	return false;
}

/* ---- the table as text ---------------------------------------------------------------------------- */

static const char *errno_name(int err)
{
	static const struct {
		int err;
		const char *name;
	} names[] = {
		{EPERM, "EPERM"}, {EBADF, "EBADF"}, {EINVAL, "EINVAL"}, {ENOSPC, "ENOSPC"}, {ENOSYS, "ENOSYS"},
		{ENOTSOCK, "ENOTSOCK"}, {EOPNOTSUPP, "EOPNOTSUPP"}, {ENODEV, "ENODEV"}, {ENOTBLK, "ENOTBLK"},
		{EBADFD, "EBADFD"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].err == err)
			return names[i].name;
	return "?";
}

static const char *takes(const struct call_info *call)
{
	bool path = strchr(call->args, 'p'), fd = strchr(call->args, 'f') || strchr(call->args, 'd');

	return path && fd		 ? "path, descriptor" :
	       path			 ? "path" :
	       fd			 ? "descriptor" :
	       strchr(call->args, 'm') ? "descriptors in memory" :
	       strchr(call->args, 'n') ? "gives a descriptor" :
					 "";
}

void calls_print(void)
{
	char line[256];
	int n;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct call_info *c = &calls[i];
		serve_fn *fn = serve_table[c->nr];

		n = snprintf(line, sizeof(line), "%s\t%s\t%s%s\t%s\n", c->name, takes(c),
			     fn == serve_refused ? "refused " : fn ? "served" : "passed",
			     fn == serve_refused ? errno_name(refused_errno(c->nr)) : "", c->note);
		sys_call3(SYS_write, 1, (long)line, n);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Any sequence of public calls with hostile arguments: lengths up to 2^63, negative offsets, numbers that are
 * not open, paths through loops and removed directories, several tasks, little memory.  Each byte of the input
 * chooses a call or an argument.  Every answer is one a system call can give, nothing is written
 * behind a buffer, and afterwards nothing is left open.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>

#include "fuzz.h"

enum { TASKS = 3, OPS_MAX = 200, PATH_ROOM = 1400, IOVS = 3 };

struct world {
	struct shelf_task *task[TASKS];
	struct shelf_task *t; /* who calls */
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ---- arguments ------------------------------------------------------------------------------ */

static int an_fd(struct bytes *in)
{
	static const int odd[] = {-1, AT_FDCWD, INT32_MAX, INT32_MIN, 255, 1023, 1024, 65536};
	unsigned v = fuzz_below(in, 256);

	return v < 224 ? (int)(v % 12) : odd[v % COUNT(odd)];
}

static int a_dirfd(struct bytes *in)
{
	return fuzz_below(in, 4) ? AT_FDCWD : an_fd(in);
}

static int64_t a_length(struct bytes *in)
{
	static const int64_t odd[] = {0, 1, 4095, 4096, 4097, 1 << 16, 2 << 20, 1L << 31, (1L << 32) + 1,
				      1L << 42, 1L << 50, INT64_MAX - 4095, INT64_MAX, INT64_MIN, -1, -4096};
	unsigned v = fuzz_below(in, 32);

	return v < COUNT(odd) ? odd[v] : (int64_t)fuzz_take(in, 2);
}

/* Of a buffer: what fits, or what no buffer can have. */
static size_t a_count(struct bytes *in)
{
	static const size_t odd[] = {0, 1, 4095, 4096, 4097, FUZZ_BUFFER, SIZE_MAX, (SIZE_MAX >> 1) + 1};
	unsigned v = fuzz_below(in, 16);

	return v < COUNT(odd) ? odd[v] : (size_t)fuzz_take(in, 2);
}

static void *data(void)
{
	static unsigned char bytes[FUZZ_BUFFER];

	bytes[0]++;
	return bytes;
}

static void add_component(struct bytes *in, char *path, size_t *at)
{
	static const char *const short_names[] = {"a", "b", "c", "d", "e", ".", "..", ""};
	unsigned v = fuzz_below(in, 64);
	size_t n;

	if (v < 60) {
		n = strlen(short_names[v % 8]);
		memcpy(path + *at, short_names[v % 8], n);
	} else {
		n = v < 63 ? 255 : 256;
		memset(path + *at, 'x', n);
	}
	*at += n;
	path[(*at)++] = '/';
}

/* Two paths are alive at a time at most. */
static const char *a_path(struct bytes *in)
{
	static char paths[2][PATH_ROOM];
	static unsigned turn;
	char *path = paths[turn++ & 1];
	unsigned v = fuzz_below(in, 32), parts = 1 + v % 4;
	size_t at = 0;

	if (v & 16)
		path[at++] = '/';
	while (parts--)
		add_component(in, path, &at);
	if (at && (v & 12) != 12)
		at--;
	path[at] = 0;
	return path;
}

static int a_flag(struct bytes *in)
{
	return (int)fuzz_take(in, 1);
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef int64_t op_fn(struct world *w, struct bytes *in);

static int64_t op_open(struct world *w, struct bytes *in)
{
	static const int bits[] = {O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW, O_PATH, O_CLOEXEC};
	unsigned v = fuzz_below(in, 256);
	int flags = fuzz_below(in, 4);

	for (unsigned i = 0; i < COUNT(bits); i++)
		flags |= v >> i & 1 ? bits[i] : 0;
	if (fuzz_below(in, 16) == 0)
		flags |= (int)fuzz_take(in, 4);
	return shelf_openat(w->t, a_dirfd(in), a_path(in), flags, (mode_t)fuzz_take(in, 2));
}

/* The likely one, so that sequences have something to work on. */
static int64_t op_create(struct world *w, struct bytes *in)
{
	return shelf_open(w->t, a_path(in), O_CREAT | O_RDWR, 0666);
}

static int64_t op_close(struct world *w, struct bytes *in)
{
	return shelf_close(w->t, an_fd(in));
}

static int64_t op_close_range(struct world *w, struct bytes *in)
{
	return shelf_close_range(w->t, (unsigned)an_fd(in), (unsigned)an_fd(in), (unsigned)a_flag(in) % 9);
}

static int64_t op_dup(struct world *w, struct bytes *in)
{
	switch (fuzz_below(in, 3)) {
	case 0:
		return shelf_dup(w->t, an_fd(in));
	case 1:
		return shelf_dup2(w->t, an_fd(in), an_fd(in));
	default:
		return shelf_dup3(w->t, an_fd(in), an_fd(in), fuzz_below(in, 2) ? O_CLOEXEC : a_flag(in));
	}
}

static int64_t op_fcntl(struct world *w, struct bytes *in)
{
	static const int with_number[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_NOTIFY,
					  F_ADD_SEALS, F_GET_SEALS, F_SETLEASE, F_GETLEASE, F_SETPIPE_SZ,
					  F_GETPIPE_SZ, SHELF_F_DUPFD_CLOFORK, F_SETOWN, F_SETSIG};
	int fd = an_fd(in), cmd;

	if (fuzz_below(in, 4))
		return shelf_fcntl(w->t, fd, with_number[fuzz_below(in, COUNT(with_number))],
				   (uintptr_t)a_length(in));
	cmd = (int)fuzz_take(in, 2);
	if (cmd == F_SETLKW || cmd == F_OFD_SETLKW)
		cmd--;
	return shelf_fcntl(w->t, fd, cmd, (uintptr_t)data());
}

static int64_t op_lock(struct world *w, struct bytes *in)
{
	static const int cmds[] = {F_GETLK, F_SETLK, F_OFD_GETLK, F_OFD_SETLK};
	struct flock lock = {0};
	int fd = an_fd(in);

	if (fuzz_below(in, 8) == 0)
		return shelf_flock(w->t, fd, a_flag(in) | LOCK_NB);
	lock.l_type = (short)fuzz_below(in, 4);
	lock.l_whence = (short)fuzz_below(in, 4);
	lock.l_start = a_length(in);
	lock.l_len = a_length(in);
	lock.l_pid = fuzz_below(in, 16) == 0;
	return shelf_fcntl(w->t, fd, cmds[fuzz_below(in, 4)], (uintptr_t)&lock);
}

static int64_t op_ioctl(struct world *w, struct bytes *in)
{
	static const unsigned long known[] = {FIONREAD, FIOCLEX, FIONCLEX, FIONBIO, FIOASYNC, FS_IOC_GETFLAGS,
					      FS_IOC_SETFLAGS, FIGETBSZ, FIBMAP, TCGETS};
	int fd = an_fd(in);
	unsigned v = fuzz_below(in, 16);

	return shelf_ioctl(w->t, fd, v < COUNT(known) ? known[v] : fuzz_take(in, 4), (uintptr_t)data());
}

static int64_t op_read(struct world *w, struct bytes *in)
{
	size_t n = a_count(in);
	int fd = an_fd(in);
	int64_t ret;

	if (fuzz_below(in, 2))
		ret = shelf_read(w->t, fd, fuzz_buffer(n), n);
	else
		ret = shelf_pread(w->t, fd, fuzz_buffer(n), n, a_length(in));
	fuzz_buffer_intact(n);
	CHECK(ret < 0 || (size_t)ret <= n);
	return ret;
}

static int64_t op_write(struct world *w, struct bytes *in)
{
	size_t n = a_count(in);
	int fd = an_fd(in);

	if (fuzz_below(in, 2))
		return shelf_write(w->t, fd, data(), n);
	return shelf_pwrite(w->t, fd, data(), n, a_length(in));
}

static int64_t op_vector(struct world *w, struct bytes *in)
{
	static const int counts[] = {0, 1, 2, IOVS, -1, 1025, INT32_MAX};
	struct iovec iov[IOVS];
	int fd = an_fd(in), n = counts[fuzz_below(in, COUNT(counts))];
	bool out = fuzz_below(in, 2);

	for (int i = 0; i < IOVS; i++) {
		iov[i].iov_len = a_count(in);
		iov[i].iov_base = out ? data() : fuzz_buffer(iov[i].iov_len);
	}
	switch (fuzz_below(in, 3)) {
	case 0:
		return out ? shelf_writev(w->t, fd, iov, n) : shelf_readv(w->t, fd, iov, n);
	case 1:
		return out ? shelf_pwritev(w->t, fd, iov, n, a_length(in)) :
			     shelf_preadv(w->t, fd, iov, n, a_length(in));
	default:
		return out ? shelf_pwritev2(w->t, fd, iov, n, a_length(in), a_flag(in)) :
			     shelf_preadv2(w->t, fd, iov, n, a_length(in), a_flag(in));
	}
}

static int64_t op_seek(struct world *w, struct bytes *in)
{
	return shelf_lseek(w->t, an_fd(in), a_length(in), (int)fuzz_below(in, 8) - 1);
}

static int64_t op_truncate(struct world *w, struct bytes *in)
{
	if (fuzz_below(in, 2))
		return shelf_truncate(w->t, a_path(in), a_length(in));
	return shelf_ftruncate(w->t, an_fd(in), a_length(in));
}

static int64_t op_fallocate(struct world *w, struct bytes *in)
{
	return shelf_fallocate(w->t, an_fd(in), a_flag(in), a_length(in), a_length(in));
}

static int64_t op_copy(struct world *w, struct bytes *in)
{
	off_t from = a_length(in), to = a_length(in);
	unsigned v = fuzz_below(in, 8);

	if (v & 4)
		return shelf_sendfile(w->t, an_fd(in), an_fd(in), v & 1 ? &from : NULL, (size_t)a_length(in));
	return shelf_copy_file_range(w->t, an_fd(in), v & 1 ? &from : NULL, an_fd(in), v & 2 ? &to : NULL,
				     (size_t)a_length(in), fuzz_below(in, 8) == 0);
}

static int64_t op_hint(struct world *w, struct bytes *in)
{
	switch (fuzz_below(in, 6)) {
	case 0:
		return shelf_fsync(w->t, an_fd(in));
	case 1:
		return shelf_fdatasync(w->t, an_fd(in));
	case 2:
		return shelf_syncfs(w->t, an_fd(in));
	case 3:
		return shelf_sync_file_range(w->t, an_fd(in), a_length(in), a_length(in), (unsigned)a_flag(in));
	case 4:
		return shelf_fadvise(w->t, an_fd(in), a_length(in), a_length(in), a_flag(in));
	default:
		return shelf_readahead(w->t, an_fd(in), a_length(in), (size_t)a_length(in));
	}
}

static int64_t op_stat(struct world *w, struct bytes *in)
{
	struct statfs fs;
	struct statx stx;
	struct stat st;

	switch (fuzz_below(in, 5)) {
	case 0:
		return shelf_fstat(w->t, an_fd(in), &st);
	case 1:
		return shelf_fstatat(w->t, a_dirfd(in), a_path(in), &st, (int)fuzz_take(in, 2));
	case 2:
		return shelf_statx(w->t, a_dirfd(in), a_path(in), (int)fuzz_take(in, 2), (unsigned)fuzz_take(in, 4),
				   &stx);
	case 3:
		return shelf_fstatfs(w->t, an_fd(in), &fs);
	default:
		return shelf_faccessat2(w->t, a_dirfd(in), a_path(in), a_flag(in), (int)fuzz_take(in, 2));
	}
}

static int64_t op_attr(struct world *w, struct bytes *in)
{
	struct timespec times[2] = {{a_length(in), (long)a_length(in)}, {0, fuzz_below(in, 2) ? UTIME_NOW : UTIME_OMIT}};

	switch (fuzz_below(in, 6)) {
	case 0:
		return shelf_fchmod(w->t, an_fd(in), (mode_t)fuzz_take(in, 4));
	case 1:
		return shelf_fchmodat2(w->t, a_dirfd(in), a_path(in), (mode_t)fuzz_take(in, 2), (int)fuzz_take(in, 2));
	case 2:
		return shelf_fchownat(w->t, a_dirfd(in), a_path(in), (uid_t)a_length(in), (gid_t)a_length(in),
				      (int)fuzz_take(in, 2));
	case 3:
		return shelf_utimensat(w->t, a_dirfd(in), a_path(in), fuzz_below(in, 4) ? times : NULL,
				       (int)fuzz_take(in, 2));
	case 4:
		return shelf_futimens(w->t, an_fd(in), times);
	default:
		return (int64_t)shelf_umask(w->t, (mode_t)fuzz_take(in, 2));
	}
}

static int64_t op_xattr(struct world *w, struct bytes *in)
{
	static const char *const names[] = {"user.a", "user.b", "trusted.c", "security.d", "system.posix_acl_access",
					    "user.", "", "nothing"};
	const char *name = names[fuzz_below(in, COUNT(names))];
	size_t n = a_count(in);
	int64_t ret;

	switch (fuzz_below(in, 5)) {
	case 0:
		return shelf_lsetxattr(w->t, a_path(in), name, data(), n, a_flag(in) % 4);
	case 1:
		return shelf_fsetxattr(w->t, an_fd(in), name, data(), n, a_flag(in) % 4);
	case 2:
		return shelf_removexattr(w->t, a_path(in), name);
	case 3:
		ret = shelf_getxattr(w->t, a_path(in), name, fuzz_buffer(n), n);
		break;
	default:
		ret = shelf_flistxattr(w->t, an_fd(in), fuzz_buffer(n), n);
	}
	fuzz_buffer_intact(n);
	return ret;
}

static int64_t op_make(struct world *w, struct bytes *in)
{
	switch (fuzz_below(in, 4)) {
	case 0:
		return shelf_symlinkat(w->t, a_path(in), a_dirfd(in), a_path(in));
	case 1:
		return shelf_mknodat(w->t, a_dirfd(in), a_path(in), (mode_t)fuzz_take(in, 4), (dev_t)fuzz_take(in, 8));
	default:
		return shelf_mkdirat(w->t, a_dirfd(in), a_path(in), 0777);
	}
}

static int64_t op_link(struct world *w, struct bytes *in)
{
	return shelf_linkat(w->t, a_dirfd(in), a_path(in), a_dirfd(in), a_path(in), (int)fuzz_take(in, 2));
}

static int64_t op_rename(struct world *w, struct bytes *in)
{
	return shelf_renameat2(w->t, a_dirfd(in), a_path(in), a_dirfd(in), a_path(in), fuzz_below(in, 8));
}

static int64_t op_unlink(struct world *w, struct bytes *in)
{
	unsigned v = fuzz_below(in, 8);

	return shelf_unlinkat(w->t, a_dirfd(in), a_path(in), v == 0 ? a_flag(in) : v < 4 ? AT_REMOVEDIR : 0);
}

static int64_t op_read_names(struct world *w, struct bytes *in)
{
	size_t n = a_count(in);
	off_t position = a_length(in);
	int64_t ret;

	switch (fuzz_below(in, 4)) {
	case 0:
		ret = shelf_getdents64(w->t, an_fd(in), fuzz_buffer(n), n);
		break;
	case 1:
		ret = shelf_pgetdents64(w->t, an_fd(in), fuzz_buffer(n), n, &position);
		break;
	case 2:
		ret = shelf_readlinkat(w->t, a_dirfd(in), a_path(in), fuzz_buffer(n), n);
		break;
	default:
		ret = shelf_getcwd(w->t, fuzz_buffer(n), n);
	}
	fuzz_buffer_intact(n);
	return ret;
}

static int64_t op_place(struct world *w, struct bytes *in)
{
	switch (fuzz_below(in, 8)) {
	case 0:
		return shelf_chroot(w->t, a_path(in));
	case 1:
	case 2:
	case 3:
		return shelf_fchdir(w->t, an_fd(in));
	default:
		return shelf_chdir(w->t, a_path(in));
	}
}

static int64_t op_identity(struct world *w, struct bytes *in)
{
	struct shelf_cred c = {.ngroups = fuzz_below(in, 80), .caps = a_flag(in) ? SHELF_CAP_ALL : 0};

	c.uid = c.euid = c.suid = c.fsuid = (uid_t)a_flag(in) % 3 * 1000;
	c.gid = c.egid = c.sgid = c.fsgid = (gid_t)a_flag(in) % 3 * 1000;
	switch (fuzz_below(in, 3)) {
	case 0:
		return shelf_task_setcred(w->t, &c);
	case 1:
		return shelf_task_setrlimit_nofile(w->t, (uint64_t)a_length(in)) +
		       shelf_task_setrlimit_fsize(w->t, ~(uint64_t)a_length(in));
	default:
		return shelf_task_set_threads(w->t, fuzz_below(in, 3));
	}
}

/* One more, one less, another one calls from now on. */
static int64_t op_task(struct world *w, struct bytes *in)
{
	unsigned k = fuzz_below(in, TASKS);
	int64_t ret = 0;

	switch (fuzz_below(in, 4)) {
	case 0:
		if (w->task[k])
			break;
		ret = shelf_task_fork(w->t, (unsigned)a_flag(in) % 5, &w->task[k]);
		if (!ret)
			ret = shelf_task_adopt(w->task[k]);
		break;
	case 1:
		if (!w->task[k] || w->task[k] == w->t)
			break;
		ret = shelf_task_exit(w->task[k]);
		w->task[k] = NULL;
		break;
	case 2:
		ret = fuzz_below(in, 2) ? shelf_task_exec(w->t) : shelf_task_unshare(w->t, (unsigned)a_flag(in) % 8);
		break;
	default:
		if (w->task[k])
			w->t = w->task[k];
	}
	return ret;
}

/* An instance for the time of this; others only by their numbers, as reading one could wait. */
static int64_t op_watch(struct world *w, struct bytes *in)
{
	size_t n = a_count(in);
	int at = shelf_inotify_init(w->t, fuzz_below(in, 8) ? IN_NONBLOCK : a_flag(in));
	int64_t ret;

	ret = shelf_inotify_add_watch(w->t, at < 0 || !fuzz_below(in, 8) ? an_fd(in) : at, a_path(in), (uint32_t)a_flag(in) | IN_ATTRIB);
	if (at < 0)
		return ret;
	shelf_chmod(w->t, a_path(in), 0755);
	shelf_unlink(w->t, a_path(in));
	shelf_inotify_rm_watch(w->t, fuzz_below(in, 4) ? at : an_fd(in), fuzz_below(in, 3));
	if (!shelf_fcntl(w->t, at, F_SETFL, O_NONBLOCK)) {
		ret = shelf_read(w->t, at, fuzz_buffer(n), n);
		fuzz_buffer_intact(n);
	}
	shelf_close(w->t, at);
	return ret;
}

static op_fn *const ops[] = {
	op_watch, op_open, op_create, op_create, op_create, op_close, op_close_range, op_dup, op_fcntl, op_lock, op_ioctl,
	op_read, op_read, op_write, op_write, op_vector, op_seek, op_truncate, op_fallocate, op_copy, op_hint,
	op_stat, op_attr, op_xattr, op_make, op_make, op_link, op_rename, op_rename, op_unlink, op_read_names,
	op_place, op_identity, op_task, op_task,
};

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct bytes in = {input, size};
	struct world w = {0};

	w.t = w.task[0] = fuzz_task();
	for (unsigned k = 0; k < OPS_MAX && in.left; k++)
		fuzz_result(ops[fuzz_below(&in, COUNT(ops))](&w, &in));
	for (unsigned k = 0; k < TASKS; k++)
		if (w.task[k])
			CHECK(!shelf_task_exit(w.task[k]));
	fuzz_settle();
	return 0;
}

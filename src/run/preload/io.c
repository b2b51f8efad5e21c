/* SPDX-License-Identifier: MIT */
/*
 * io.c - calls on a descriptor that the shelf answers alone.
 *
 * The shelf says EBADF for a number that is not its own; then the kernel makes the call.  For a number of the
 * shelf's that is not open for this kind of use, the kernel says EBADF as well: the placeholder can do nothing.
 */
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#include "run/preload/paths.h"

/* serve_NAME: CALL with T the task, FD, A..E the arguments behind the descriptor. */
#define SERVE_FD(name, call)                                                                     \
	static long serve_##name(struct run_regs *r)                                             \
	{                                                                                        \
		struct shelf_task *T = task_here();                                              \
		const uint64_t A = r->si, B = r->dx, C = r->r10, D = r->r8, E = r->r9;           \
		const int FD = (int)r->di;                                                       \
		long n;                                                                          \
                                                                                                 \
		(void)A, (void)B, (void)C, (void)D, (void)E;                                     \
		if (unlikely(!T))                                                                \
			return run_pass(r);                                                      \
		n = SERVED(call);                                                                \
		return likely(n != -EBADF) ? n : pass_number(r, FD);                             \
	}

/* Bytes from a descriptor: one of the kernel's may have an inotify instance beside it. */
#define SERVE_READ(name, call, watched)                                                          \
	static long serve_##name(struct run_regs *r)                                             \
	{                                                                                        \
		struct shelf_task *T = task_here();                                              \
		const uint64_t A = r->si, B = r->dx, C = r->r10, E = r->r9;                      \
		const int FD = (int)r->di;                                                       \
		long n;                                                                          \
                                                                                                 \
		(void)C, (void)E;                                                                \
		if (unlikely(!T))                                                                \
			return run_pass(r);                                                      \
		n = SERVED(call);                                                                \
		if (likely(n != -EBADF))                                                         \
			return n;                                                                \
		return number_watches(FD) ? (watched) : pass_number(r, FD);                      \
	}

/* The same for rare calls: the number is looked at first. */
#define SERVE_OURS(name, call)                                                                   \
	SERVE_FD(name, number_is_ours(FD) ? (call) : -EBADF)

/* The shelf fills the program's buffer itself: paths.c. */
static long fstat_into(struct shelf_task *t, int fd, struct stat *st)
{
	struct stat spare;
	bool good = !user_writable(st, sizeof(*st));
	long err = shelf_fstat(t, fd, good ? st : &spare);

	return err || good ? err : -EFAULT;
}

static long fstatfs_into(struct shelf_task *t, int fd, struct statfs *out)
{
	struct statfs spare;
	long err = shelf_fstatfs(t, fd, &spare);

	return err ? err : statfs_give(&spare, out);
}

void *user_given(uint64_t p, uint64_t n)
{
	unsigned char byte;

	for (uint64_t at = 0; at < n; at += PAGE_BYTES)
		if (copy_from_user(&byte, (void *)(p + at), 1))
			return NULL;
	return n && copy_from_user(&byte, (void *)(p + n - 1), 1) ? NULL : (void *)p;
}

/* Counts out of range are the library's to refuse. */
static const struct iovec *vector_given(uint64_t iov, int count)
{
	return count > 0 && count <= IOV_MAX ? user_given(iov, (uint64_t)count * sizeof(struct iovec)) : (void *)iov;
}

SERVE_READ(read, shelf_read(T, FD, (void *)A, B), watch_read(FD, (void *)A, B))
SERVE_FD(write, shelf_write(T, FD, (const void *)A, B))
SERVE_FD(pread, shelf_pread(T, FD, (void *)A, B, (off_t)C))
SERVE_FD(pwrite, shelf_pwrite(T, FD, (const void *)A, B, (off_t)C))
SERVE_READ(readv, shelf_readv(T, FD, vector_given(A, (int)B), (int)B), watch_readv(FD, (const struct iovec *)A, (unsigned)B))
SERVE_FD(writev, shelf_writev(T, FD, vector_given(A, (int)B), (int)B))
SERVE_FD(preadv, shelf_preadv(T, FD, vector_given(A, (int)B), (int)B, (off_t)C))
SERVE_FD(pwritev, shelf_pwritev(T, FD, vector_given(A, (int)B), (int)B, (off_t)C))
SERVE_READ(preadv2, shelf_preadv2(T, FD, vector_given(A, (int)B), (int)B, (off_t)C, (int)E),
	   (off_t)C == -1 && !E ? watch_readv(FD, (const struct iovec *)A, (unsigned)B) : pass_number(r, FD))
SERVE_FD(pwritev2, shelf_pwritev2(T, FD, vector_given(A, (int)B), (int)B, (off_t)C, (int)E))
SERVE_FD(lseek, shelf_lseek(T, FD, (off_t)A, (int)B))
SERVE_FD(fstat, fstat_into(T, FD, (struct stat *)A))
SERVE_OURS(fsync, shelf_fsync(T, FD))
SERVE_OURS(fdatasync, shelf_fdatasync(T, FD))
SERVE_OURS(syncfs, shelf_syncfs(T, FD))
SERVE_OURS(ftruncate, shelf_ftruncate(T, FD, (off_t)A))
SERVE_OURS(fallocate, shelf_fallocate(T, FD, (int)A, (off_t)B, (off_t)C))
SERVE_OURS(fchmod, shelf_fchmod(T, FD, (mode_t)A))
SERVE_OURS(fchown, shelf_fchown(T, FD, (uid_t)A, (gid_t)B))
SERVE_OURS(fstatfs, fstatfs_into(T, FD, (struct statfs *)A))
SERVE_OURS(getdents, (long)-ENOSYS) /* no libc has used it since 2002 */
SERVE_OURS(fadvise64, shelf_fadvise(T, FD, (off_t)A, (off_t)B, (int)C))
SERVE_OURS(readahead, shelf_readahead(T, FD, (off_t)A, B))
SERVE_OURS(sync_file_range, shelf_sync_file_range(T, FD, (off_t)A, (off_t)B, (unsigned)C))
SERVE_OURS(fgetxattr, shelf_fgetxattr(T, FD, (const char *)A, (void *)B, C))
SERVE_OURS(fsetxattr, shelf_fsetxattr(T, FD, (const char *)A, (const void *)B, C, (int)D))
SERVE_OURS(flistxattr, shelf_flistxattr(T, FD, (char *)A, B))
SERVE_OURS(fremovexattr, shelf_fremovexattr(T, FD, (const char *)A))

static long serve_ioctl(struct run_regs *r)
{
	int fd = (int)r->di;

	if (number_is_ours(fd))
		return SERVED(shelf_ioctl(task_here(), fd, r->si, r->dx));
	return (uint32_t)r->si == FIONREAD && number_watches(fd) ? watch_readable(fd, (void *)r->dx) : pass_number(r, fd);
}

static long serve_flock(struct run_regs *r)
{
	int fd = (int)r->di;

	if (!number_is_ours(fd))
		return pass_number(r, fd);
	return SERVED_WAIT(shelf_flock(task_here(), fd, (int)r->si));
}

static long serve_getdents64(struct run_regs *r)
{
	uint64_t a[6];
	int fd = (int)r->di;

	if (!attached())
		return run_pass(r);
	if (number_is_ours(fd))
		return SERVED(shelf_getdents64(task_here(), fd, (void *)r->si, r->dx));
	if (number_parked(fd))
		return -EBADF;
	regs_args(r, a);
	return proc_listed(fd, (void *)r->si, host_call(SYS_getdents64, a));
}

/* What a socket answers for a file. */
SERVE_OURS(socket_call, (long)-ENOTSOCK)

/* ---- data between a file of the shelf and one of the kernel ---------------------------------------- */

#define CHUNK 8192u /* of the caller's stack, which may be a signal stack */

struct pump {
	int in, out;
	bool in_ours, out_ours;
	off_t *in_pos, *out_pos; /* NULL: the file's own */
};

static long pump_read(struct pump *p, void *buf, size_t n)
{
	if (p->in_ours)
		return SERVED(p->in_pos ? shelf_pread(task_here(), p->in, buf, n, *p->in_pos) :
					  shelf_read(task_here(), p->in, buf, n));
	if (p->in_pos)
		return sys_call6(SYS_pread64, p->in, (long)buf, (long)n, *p->in_pos, 0, 0);
	return sys_call3(SYS_read, p->in, (long)buf, (long)n);
}

static long pump_write(struct pump *p, const void *buf, size_t n)
{
	if (p->out_ours)
		return SERVED(p->out_pos ? shelf_pwrite(task_here(), p->out, buf, n, *p->out_pos) :
					   shelf_write(task_here(), p->out, buf, n));
	if (p->out_pos)
		return sys_call6(SYS_pwrite64, p->out, (long)buf, (long)n, *p->out_pos, 0, 0);
	return sys_call3(SYS_write, p->out, (long)buf, (long)n);
}

/* What was read and could not be written is put back, where there is a position to put it back to. */
static void pump_back(struct pump *p, long n)
{
	if (p->in_pos || n <= 0)
		return;
	if (p->in_ours)
		SERVED(shelf_lseek(task_here(), p->in, -n, SEEK_CUR));
	else
		sys_call3(SYS_lseek, p->in, -n, SEEK_CUR);
}

/* One chunk: bytes moved, 0 at the end, or -errno. */
static long pump_chunk(struct pump *p, size_t want)
{
	char buf[CHUNK];
	long got = pump_read(p, buf, min_of(want, (size_t)CHUNK)), put;

	if (got <= 0)
		return got;
	put = pump_write(p, buf, (size_t)got);
	pump_back(p, got - max_of(put, 0L));
	if (put > 0) {
		if (p->in_pos)
			*p->in_pos += put;
		if (p->out_pos)
			*p->out_pos += put;
	}
	return put;
}

static long pump(struct pump *p, size_t want)
{
	size_t done = 0;
	long n = 0;

	while (done < want) {
		n = pump_chunk(p, want - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done ? (long)done : n;
}

/* False: neither is a file of ours. */
static bool pump_begin(struct pump *p, int in, int out)
{
	*p = (struct pump){.in = in, .out = out, .in_ours = number_is_ours(in), .out_ours = number_is_ours(out)};
	return p->in_ours || p->out_ours;
}

/* Neither is: the kernel's, if the program knows both numbers. */
static long pass_numbers(struct run_regs *r, int in, int out)
{
	return number_parked(in) ? -EBADF : pass_number(r, out);
}

static long serve_sendfile(struct run_regs *r)
{
	off_t pos, *user = (off_t *)r->dx;
	struct pump p;
	long n;

	if (!pump_begin(&p, (int)r->si, (int)r->di))
		return pass_numbers(r, p.in, p.out);
	if (user && user_writable(user, sizeof(*user)))
		return -EFAULT;
	if (p.in_ours && p.out_ours)
		return SERVED(shelf_sendfile(task_here(), p.out, p.in, user, r->r10));
	if (user && copy_from_user(&pos, user, sizeof(pos)))
		return -EFAULT;
	p.in_pos = user ? &pos : NULL;
	n = pump(&p, min_of(r->r10, (uint64_t)RW_COUNT_MAX));
	if (user && copy_to_user(user, &pos, sizeof(pos)))
		return -EFAULT;
	return n;
}

static long serve_copy_file_range(struct run_regs *r)
{
	struct pump p;

	if (!pump_begin(&p, (int)r->di, (int)r->dx))
		return pass_numbers(r, p.in, p.out);
	if ((r->si && user_writable((void *)r->si, sizeof(off_t))) || (r->r10 && user_writable((void *)r->r10, sizeof(off_t))))
		return -EFAULT;
	if (p.in_ours && p.out_ours)
		return SERVED(shelf_copy_file_range(task_here(), (int)r->di, (off_t *)r->si, (int)r->dx, (off_t *)r->r10,
						    r->r8, (unsigned)r->r9));
	return -EXDEV;
}

/* Between a file and a pipe of the kernel's. */
static long serve_splice(struct run_regs *r)
{
	off_t in_pos, out_pos;
	struct pump p;
	long n;

	if (!pump_begin(&p, (int)r->di, (int)r->dx))
		return pass_numbers(r, p.in, p.out);
	if ((p.in_ours && p.out_ours) || (r->si && !p.in_ours) || (r->r10 && !p.out_ours))
		return -EINVAL;
	if ((r->si && copy_from_user(&in_pos, (void *)r->si, sizeof(in_pos))) ||
	    (r->r10 && copy_from_user(&out_pos, (void *)r->r10, sizeof(out_pos))))
		return -EFAULT;
	p.in_pos = r->si ? &in_pos : NULL;
	p.out_pos = r->r10 ? &out_pos : NULL;
	/* One chunk: more might wait for a reader although something was moved already. */
	n = pump_chunk(&p, r->r8);
	if ((r->si && copy_to_user((void *)r->si, &in_pos, sizeof(in_pos))) ||
	    (r->r10 && copy_to_user((void *)r->r10, &out_pos, sizeof(out_pos))))
		return -EFAULT;
	return n;
}

static void add(long nr, serve_fn *fn)
{
	serve_table[nr] = fn;
}

static void add_data(void)
{
	add(SYS_read, serve_read);
	add(SYS_write, serve_write);
	add(SYS_pread64, serve_pread);
	add(SYS_pwrite64, serve_pwrite);
	add(SYS_readv, serve_readv);
	add(SYS_writev, serve_writev);
	add(SYS_preadv, serve_preadv);
	add(SYS_pwritev, serve_pwritev);
	add(SYS_preadv2, serve_preadv2);
	add(SYS_pwritev2, serve_pwritev2);
	add(SYS_lseek, serve_lseek);
	add(SYS_ftruncate, serve_ftruncate);
	add(SYS_fallocate, serve_fallocate);
	add(SYS_fsync, serve_fsync);
	add(SYS_fdatasync, serve_fdatasync);
	add(SYS_syncfs, serve_syncfs);
	add(SYS_fadvise64, serve_fadvise64);
	add(SYS_readahead, serve_readahead);
	add(SYS_sync_file_range, serve_sync_file_range);
	add(SYS_sendfile, serve_sendfile);
	add(SYS_copy_file_range, serve_copy_file_range);
	add(SYS_splice, serve_splice);
}

static void add_rest(void)
{
	static const uint16_t sockets[] = {
		SYS_listen, SYS_setsockopt, SYS_getsockopt, SYS_shutdown,
	};

	add(SYS_fstat, serve_fstat);
	add(SYS_fchmod, serve_fchmod);
	add(SYS_fchown, serve_fchown);
	add(SYS_fstatfs, serve_fstatfs);
	add(SYS_getdents64, serve_getdents64);
	add(SYS_getdents, serve_getdents);
	add(SYS_flock, serve_flock);
	add(SYS_ioctl, serve_ioctl);
	add(SYS_fgetxattr, serve_fgetxattr);
	add(SYS_fsetxattr, serve_fsetxattr);
	add(SYS_flistxattr, serve_flistxattr);
	add(SYS_fremovexattr, serve_fremovexattr);
	for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
		add(sockets[i], serve_socket_call);
}

AT_START void serve_io_init(void)
{
	add_data();
	add_rest();
}

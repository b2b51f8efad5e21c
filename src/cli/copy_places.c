/* SPDX-License-Identifier: MIT */
/* copy_places.c - the calls of the host and of the shelf in one form, and opening a directory there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "copy.h"

/* A system call's wrapper: the same arguments behind a task that is not looked at. */
#define HOST(type, name, params, call)                                                             \
	static type host_##name params                                                             \
	{                                                                                          \
		type result = (type)(call);                                                        \
		(void)t;                                                                           \
		return result < 0 ? (type)-errno : result;                                         \
	}
#define T struct shelf_task *t

HOST(int, openat, (T, int d, const char *p, int f, mode_t m), openat(d, p, f, m))
HOST(int, openat2, (T, int d, const char *p, const struct open_how *h, size_t n),
     syscall(SYS_openat2, d, p, h, n))
HOST(int, close, (T, int fd), close(fd))
HOST(ssize_t, pread, (T, int fd, void *b, size_t n, off_t o), pread(fd, b, n, o))
HOST(ssize_t, pwrite, (T, int fd, const void *b, size_t n, off_t o), pwrite(fd, b, n, o))
HOST(off_t, lseek, (T, int fd, off_t o, int w), lseek(fd, o, w))
HOST(int, ftruncate, (T, int fd, off_t n), ftruncate(fd, n))
HOST(int, fstat, (T, int fd, struct stat *st), fstat(fd, st))
HOST(int, fstatat, (T, int d, const char *p, struct stat *st, int f), fstatat(d, p, st, f))
HOST(ssize_t, getdents64, (T, int fd, void *b, size_t n), syscall(SYS_getdents64, fd, b, n))
HOST(ssize_t, readlinkat, (T, int d, const char *p, char *b, size_t n), readlinkat(d, p, b, n))
HOST(int, mkdirat, (T, int d, const char *p, mode_t m), mkdirat(d, p, m))
HOST(int, mknodat, (T, int d, const char *p, mode_t m, dev_t dev), mknodat(d, p, m, dev))
HOST(int, symlinkat, (T, const char *to, int d, const char *p), symlinkat(to, d, p))
HOST(int, linkat, (T, int a, const char *p, int b, const char *q, int f), linkat(a, p, b, q, f))
HOST(int, unlinkat, (T, int d, const char *p, int f), unlinkat(d, p, f))
HOST(int, fchmod, (T, int fd, mode_t m), fchmod(fd, m))
HOST(int, fchmodat, (T, int d, const char *p, mode_t m), fchmodat(d, p, m, AT_SYMLINK_NOFOLLOW))
HOST(int, fchown, (T, int fd, uid_t u, gid_t g), fchown(fd, u, g))
HOST(int, fchownat, (T, int d, const char *p, uid_t u, gid_t g, int f), fchownat(d, p, u, g, f))
HOST(int, futimens, (T, int fd, const struct timespec ts[2]), futimens(fd, ts))
HOST(int, utimensat, (T, int d, const char *p, const struct timespec ts[2], int f),
     utimensat(d, p, ts, f))
HOST(ssize_t, flistxattr, (T, int fd, char *b, size_t n), flistxattr(fd, b, n))
HOST(ssize_t, fgetxattr, (T, int fd, const char *x, void *b, size_t n), fgetxattr(fd, x, b, n))
HOST(int, fsetxattr, (T, int fd, const char *x, const void *b, size_t n, int f),
     fsetxattr(fd, x, b, n, f))
HOST(int, fremovexattr, (T, int fd, const char *x), fremovexattr(fd, x))

/* There is no lgetxattrat: the name is reached through the directory's descriptor. */
struct through {
	char path[48 + NAME_MAX];
};

static const char *through(struct through *buf, int dirfd, const char *name)
{
	snprintf(buf->path, sizeof(buf->path), "/proc/self/fd/%d/%.255s", dirfd, name);
	return buf->path;
}

#define AT(dirfd, name) through(&(struct through){{0}}, dirfd, name)

HOST(ssize_t, listxattrat, (T, int d, const char *p, char *b, size_t n), llistxattr(AT(d, p), b, n))
HOST(ssize_t, getxattrat, (T, int d, const char *p, const char *x, void *b, size_t n),
     lgetxattr(AT(d, p), x, b, n))
HOST(int, setxattrat, (T, int d, const char *p, const char *x, const void *b, size_t n),
     lsetxattr(AT(d, p), x, b, n, 0))
HOST(int, removexattrat, (T, int d, const char *p, const char *x), lremovexattr(AT(d, p), x))

/* On the shelf through the task's working directory, which nothing else here uses. */
#define SHELF_AT(type, name, params, call)                                                         \
	static type shelf_##name params                                                            \
	{                                                                                          \
		int err = shelf_fchdir(t, d);                                                      \
		return err < 0 ? err : call;                                                       \
	}

SHELF_AT(ssize_t, listxattrat, (T, int d, const char *p, char *b, size_t n),
	 shelf_llistxattr(t, p, b, n))
SHELF_AT(ssize_t, getxattrat, (T, int d, const char *p, const char *x, void *b, size_t n),
	 shelf_lgetxattr(t, p, x, b, n))
SHELF_AT(int, setxattrat, (T, int d, const char *p, const char *x, const void *b, size_t n),
	 shelf_lsetxattr(t, p, x, b, n, 0))
SHELF_AT(int, removexattrat, (T, int d, const char *p, const char *x), shelf_lremovexattr(t, p, x))

/* Whoever puts a link in the file's place meanwhile does not lead the change elsewhere. */
static int shelf_fchmodat_nofollow(T, int d, const char *p, mode_t m)
{
	return shelf_fchmodat2(t, d, p, m, AT_SYMLINK_NOFOLLOW);
}

#define CALLS(prefix, chmod_call)                                                                  \
	{                                                                                          \
		.openat = prefix##openat, .openat2 = prefix##openat2, .close = prefix##close,      \
		.pread = prefix##pread, .pwrite = prefix##pwrite, .lseek = prefix##lseek,          \
		.ftruncate = prefix##ftruncate, .fstat = prefix##fstat,                            \
		.fstatat = prefix##fstatat, .getdents64 = prefix##getdents64,                      \
		.readlinkat = prefix##readlinkat, .mkdirat = prefix##mkdirat,                      \
		.mknodat = prefix##mknodat, .symlinkat = prefix##symlinkat,                        \
		.linkat = prefix##linkat, .unlinkat = prefix##unlinkat, .fchmod = prefix##fchmod,  \
		.fchmodat = chmod_call, .fchown = prefix##fchown, .fchownat = prefix##fchownat,    \
		.futimens = prefix##futimens, .utimensat = prefix##utimensat,                      \
		.flistxattr = prefix##flistxattr, .fgetxattr = prefix##fgetxattr,                  \
		.fsetxattr = prefix##fsetxattr, .fremovexattr = prefix##fremovexattr,              \
		.listxattrat = prefix##listxattrat, .getxattrat = prefix##getxattrat,              \
		.setxattrat = prefix##setxattrat, .removexattrat = prefix##removexattrat,          \
	}

const struct file_calls host_calls = CALLS(host_, host_fchmodat);
const struct file_calls shelf_calls = CALLS(shelf_, shelf_fchmodat_nofollow);

/* Makes each directory of the path that is missing. *made: the last one was. */
static int make_path(const struct place *p, const char *dir, bool *made)
{
	char path[PATH_MAX];
	size_t n = strlen(dir);
	int err = 0;

	if (n >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, dir, n + 1);
	*made = false;
	for (char *s = path; *s; s++) {
		char *end = s + strcspn(s, "/"), was = *end;

		if (end > s) {
			*end = 0;
			err = p->calls->mkdirat(p->task, AT_FDCWD, path, 0777);
			if (err < 0 && err != -EEXIST && err != -EISDIR)
				return err;
			*made = err == 0;
			*end = was;
		}
		if (!was)
			break;
		s = end;
	}
	return 0;
}

int place_open(struct place *p, const char *dir, bool make)
{
	bool made = false;
	int err = make ? make_path(p, dir, &made) : 0;

	if (err < 0)
		return err;
	p->root = p->calls->openat(p->task, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	p->fresh |= made;
	return p->root < 0 ? p->root : 0;
}

/* SPDX-License-Identifier: MIT */
/* Hostile input: every call gives the errno that Linux gives, and nothing is changed. */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#include "lib/fixture.h"
#include "segment/segment.h"

static const int bad_fds[] = { -1, INT_MAX, INT_MIN, 1000, 1 << 24, (1 << 24) - 1 };

static void descriptors_out_of_range_are_bad(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	struct flock fl = { .l_type = F_RDLCK };
	struct iovec iov = { "x", 1 };
	struct statfs fs;
	struct stat st;
	char buf[64];

	for (size_t i = 0; i < sizeof(bad_fds) / sizeof(bad_fds[0]); i++) {
		int fd = bad_fds[i];

		assert_int_equal(shelf_read(t, fd, buf, 1), -EBADF);
		assert_int_equal(shelf_write(t, fd, buf, 1), -EBADF);
		assert_int_equal(shelf_pread(t, fd, buf, 1, 0), -EBADF);
		assert_int_equal(shelf_pwritev(t, fd, &iov, 1, 0), -EBADF);
		assert_int_equal(shelf_lseek(t, fd, 0, SEEK_SET), -EBADF);
		assert_int_equal(shelf_close(t, fd), -EBADF);
		assert_int_equal(shelf_dup(t, fd), -EBADF);
		assert_int_equal(shelf_dup2(t, fd, 3), -EBADF);
		assert_int_equal(shelf_fstat(t, fd, &st), -EBADF);
		assert_int_equal(shelf_fstatfs(t, fd, &fs), -EBADF);
		assert_int_equal(shelf_fcntl(t, fd, F_GETFL, 0), -EBADF);
		assert_int_equal(shelf_fcntl(t, fd, F_SETLK, (uintptr_t)&fl), -EBADF);
		assert_int_equal(shelf_ioctl(t, fd, FIOCLEX, 0), -EBADF);
		assert_int_equal(shelf_flock(t, fd, LOCK_SH), -EBADF);
		assert_int_equal(shelf_getdents64(t, fd, buf, 64), -EBADF);
		assert_int_equal(shelf_fchdir(t, fd), -EBADF);
		assert_int_equal(shelf_fchmod(t, fd, 0), -EBADF);
		assert_int_equal(shelf_ftruncate(t, fd, 0), -EBADF);
		assert_int_equal(shelf_fallocate(t, fd, 0, 0, 1), -EBADF);
		assert_int_equal(shelf_fsync(t, fd), -EBADF);
		assert_int_equal(shelf_openat(t, fd, "x", O_CREAT | O_RDWR, 0600), -EBADF);
		assert_int_equal(shelf_mkdirat(t, fd, "x", 0700), -EBADF);
		assert_int_equal(shelf_copy_file_range(t, fd, NULL, fd, NULL, 1, 0), -EBADF);
		assert_int_equal(shelf_sendfile(t, fd, fd, NULL, 1), -EBADF);
	}
	assert_int_equal(px_count_entries(t, "/"), 0);
}

static void null_pointers_are_faults(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	struct iovec null_iov = { NULL, 10 };
	struct stat st;
	int fd;

	px_write_file(t, "f", "text");
	fd = shelf_open(t, "f", O_RDWR, 0);
	assert_int_equal(shelf_open(t, NULL, O_RDONLY, 0), -EFAULT);
	assert_int_equal(shelf_stat(t, NULL, &st), -EFAULT);
	assert_int_equal(shelf_stat(t, "f", NULL), -EFAULT);
	assert_int_equal(shelf_fstat(t, fd, NULL), -EFAULT);
	assert_int_equal(shelf_mkdir(t, NULL, 0700), -EFAULT);
	assert_int_equal(shelf_unlink(t, NULL), -EFAULT);
	assert_int_equal(shelf_rename(t, NULL, "x"), -EFAULT);
	assert_int_equal(shelf_rename(t, "f", NULL), -EFAULT);
	assert_int_equal(shelf_link(t, "f", NULL), -EFAULT);
	assert_int_equal(shelf_symlink(t, NULL, "x"), -EFAULT);
	assert_int_equal(shelf_symlink(t, "f", "l"), 0);
	assert_int_equal(shelf_readlink(t, "l", NULL, 10), -EFAULT);
	assert_int_equal(shelf_chdir(t, NULL), -EFAULT);
	assert_int_equal(shelf_getcwd(t, NULL, 10), -EFAULT);
	assert_int_equal(shelf_read(t, fd, NULL, 4), -EFAULT);
	assert_int_equal(shelf_write(t, fd, NULL, 4), -EFAULT);
	assert_int_equal(shelf_read(t, fd, NULL, 0), 0);
	assert_int_equal(shelf_readv(t, fd, NULL, 1), -EFAULT);
	assert_int_equal(shelf_readv(t, fd, &null_iov, 1), -EFAULT);
	assert_int_equal(shelf_writev(t, fd, &null_iov, 1), -EFAULT);
	assert_int_equal(shelf_pread(t, fd, NULL, 4, 100), 0); /* nothing to copy */
	assert_int_equal(shelf_fcntl(t, fd, F_SETLK, 0), -EFAULT);
	assert_int_equal(shelf_ioctl(t, fd, FIONREAD, 0), -EFAULT);
	assert_int_equal(shelf_getxattr(t, "f", NULL, NULL, 0), -EFAULT);
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "f", NULL, 24), -EFAULT);
	assert_int_equal(shelf_getdents64(t, shelf_open(t, "/", O_RDONLY, 0), NULL, 100), -EFAULT);
	assert_true(px_file_is(t, "f", "text"));
}

static void paths_too_long_are_too_long(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	static char path[5001], name[300];
	struct stat st;

	memset(path, '/', 5000);
	memset(name, 'n', 256);
	assert_int_equal(shelf_stat(t, path, &st), -ENAMETOOLONG);
	assert_int_equal(shelf_open(t, path, O_CREAT | O_RDWR, 0600), -ENAMETOOLONG);
	assert_int_equal(shelf_mkdir(t, path, 0700), -ENAMETOOLONG);
	assert_int_equal(shelf_symlink(t, path, "x"), -ENAMETOOLONG);
	assert_int_equal(shelf_rename(t, "x", path), -ENAMETOOLONG);
	path[4095] = '\0';
	assert_int_equal(shelf_stat(t, path, &st), 0);
	assert_int_equal(shelf_mkdir(t, name, 0700), -ENAMETOOLONG);
	assert_int_equal(shelf_stat(t, name, &st), -ENAMETOOLONG);
	name[255] = '\0';
	assert_int_equal(shelf_mkdir(t, name, 0700), 0);
	assert_int_equal(shelf_stat(t, name, &st), 0);
	assert_int_equal(shelf_stat(t, "", &st), -ENOENT);
	assert_int_equal(px_count_entries(t, "/"), 1);
}

static void counts_and_offsets_beyond_reason_are_refused(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	struct iovec iov[2] = { { "x", 1 }, { "y", (size_t)-1 } };
	int fd = shelf_open(t, "f", O_CREAT | O_RDWR, 0600), dir = shelf_open(t, "/", O_RDONLY, 0);
	char buf[16];

	assert_int_equal(shelf_write(t, fd, buf, SIZE_MAX), -EFAULT);
	assert_int_equal(shelf_read(t, fd, buf, SSIZE_MAX), -EFAULT);
	assert_int_equal(shelf_pread(t, fd, buf, 1, -1), -EINVAL);
	assert_int_equal(shelf_pwrite(t, fd, buf, 1, INT64_MIN), -EINVAL);
	assert_int_equal(shelf_pwrite(t, fd, buf, 16, INT64_MAX), -EINVAL);
	assert_int_equal(shelf_writev(t, fd, iov, 2), -EINVAL);
	assert_int_equal(shelf_writev(t, fd, iov, IOV_MAX + 1), -EINVAL);
	assert_int_equal(shelf_writev(t, fd, iov, -1), -EINVAL);
	assert_int_equal(shelf_pwritev2(t, fd, iov, 1, 0, 0x4000), -EOPNOTSUPP);
	assert_int_equal(shelf_ftruncate(t, fd, -1), -EINVAL);
	assert_int_equal(shelf_truncate(t, "missing", -1), -EINVAL);
	assert_int_equal(shelf_fallocate(t, fd, 0, -1, 1), -EINVAL);
	assert_int_equal(shelf_fallocate(t, fd, 0, 0, 0), -EINVAL);
	assert_int_equal(shelf_fallocate(t, fd, 0, INT64_MAX, 10), -EFBIG);
	assert_int_equal(shelf_lseek(t, fd, -1, SEEK_SET), -EINVAL);
	assert_int_equal(shelf_lseek(t, fd, 0, 77), -EINVAL);
	assert_int_equal(shelf_lseek(t, fd, 0, SEEK_DATA), -ENXIO);
	assert_int_equal(shelf_read(t, dir, buf, 1), -EISDIR);
	assert_int_equal(shelf_write(t, dir, buf, 1), -EBADF);
	assert_int_equal(shelf_getdents64(t, dir, buf, 5), -EINVAL);
	assert_int_equal(shelf_getdents64(t, fd, buf, 16), -ENOTDIR);
	assert_int_equal(shelf_readlink(t, "f", buf, 0), -EINVAL);
	assert_int_equal(shelf_dup3(t, fd, 9, 1), -EINVAL);
	assert_int_equal(shelf_flock(t, fd, 0), -EINVAL);
	assert_int_equal(shelf_fcntl(t, fd, 4711, 0), -EINVAL);
	assert_int_equal(shelf_ioctl(t, fd, 0x5401, 0), -ENOTTY);
	assert_int_equal(shelf_close_range(t, 2, 1, 0), -EINVAL);
	assert_true(px_file_is(t, "f", ""));
}

static void unknown_flags_are_invalid(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;
	struct open_how how = { .flags = O_RDONLY };
	struct stat st;
	struct {
		struct open_how how;
		uint64_t more;
	} longer = { { .flags = O_RDONLY }, 1 };

	px_write_file(t, "f", "");
	assert_int_equal(shelf_fstatat(t, AT_FDCWD, "f", &st, 1 << 30), -EINVAL);
	assert_int_equal(shelf_fstatat(t, -1, "", &st, AT_EMPTY_PATH | 1 << 30), -EINVAL);
	assert_int_equal(shelf_fstatat(t, 999, "", &st, AT_EMPTY_PATH | 1 << 30), -EBADF); /* as Linux 6.11 */
	assert_int_equal(shelf_faccessat2(t, AT_FDCWD, "f", 8, 0), -EINVAL);
	assert_int_equal(shelf_faccessat2(t, AT_FDCWD, "f", 0, 1 << 30), -EINVAL);
	assert_int_equal(shelf_unlinkat(t, AT_FDCWD, "f", 1), -EINVAL);
	assert_int_equal(shelf_linkat(t, AT_FDCWD, "f", AT_FDCWD, "g", 1), -EINVAL);
	assert_int_equal(shelf_renameat2(t, AT_FDCWD, "f", AT_FDCWD, "g", RENAME_NOREPLACE | RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(shelf_fchownat(t, AT_FDCWD, "f", 0, 0, 1), -EINVAL);
	assert_int_equal(shelf_fchmodat2(t, AT_FDCWD, "f", 0, 1), -EINVAL);
	assert_int_equal(shelf_mknod(t, "n", 0150000, 0), -EINVAL);
	assert_int_equal(shelf_mknod(t, "n", S_IFDIR, 0), -EPERM);
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "f", &how, 8), -EINVAL);
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "f", &how, 5000), -E2BIG);
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "f", &longer.how, sizeof(longer)), -E2BIG);
	longer.more = 0;
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "f", &longer.how, sizeof(longer)), 0);
	how.flags = 1ULL << 50;
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "f", &how, sizeof(how)), -EINVAL);
	how = (struct open_how){ .flags = O_RDONLY, .mode = 0600 };
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "f", &how, sizeof(how)), -EINVAL);
	how = (struct open_how){ .flags = O_RDONLY, .resolve = 1 << 20 };
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "f", &how, sizeof(how)), -EINVAL);
	how = (struct open_how){ .flags = O_RDONLY, .resolve = RESOLVE_BENEATH };
	assert_int_equal(shelf_openat2(t, AT_FDCWD, "../f", &how, sizeof(how)), -EXDEV);
	assert_int_equal(shelf_open(t, "f", O_PATH, 0), 1);
	assert_int_equal(shelf_read(t, 1, &st, 1), -EBADF);
	assert_int_equal(shelf_fchmod(t, 1, 0), -EBADF);
	assert_int_equal(shelf_fstat(t, 1, &st), 0);
	assert_int_equal(px_count_entries(t, "/"), 1);
}

static void names_that_are_no_files_cannot_be_opened(void **state)
{
	struct px *px = *state;
	struct shelf_task *t = px->t;

	assert_int_equal(shelf_mknod(t, "fifo", S_IFIFO | 0600, 0), 0);
	assert_int_equal(shelf_mknod(t, "socket", S_IFSOCK | 0600, 0), 0);
	assert_int_equal(shelf_mknod(t, "device", S_IFCHR | 0600, 0x103), 0);
	assert_int_equal(shelf_open(t, "fifo", O_RDONLY | O_NONBLOCK, 0), -ENXIO);
	assert_int_equal(shelf_open(t, "socket", O_RDONLY, 0), -ENXIO);
	assert_int_equal(shelf_open(t, "device", O_RDWR, 0), -ENXIO);
	assert_int_equal(shelf_open(t, "fifo", O_PATH, 0), 0);
	px_become(t, 1000, 1000);
	assert_int_equal(shelf_mknod(t, "other", S_IFCHR | 0600, 0x103), -EPERM);
	assert_int_equal(shelf_chroot(t, "/"), -EPERM);
}

static void a_segment_without_a_tree_is_refused(void **state)
{
	char name[TEST_NAME_SIZE], why[SHELF_WHY];
	struct segment_options o = { .size = 4 << 20 };
	struct segment *seg;
	struct shelf *shelf;

	(void)state;
	assert_int_equal(segment_create(fresh_name(name), &o, &seg, why), 0);
	segment_set_ready(seg);
	segment_detach(seg);
	assert_int_equal(shelf_attach(name, SHELF_READ_ONLY, &shelf, why), -EINVAL);
	assert_non_null(strstr(why, "has no file tree"));
	assert_int_equal(shelf_attach(name, 0, &shelf, why), -EINVAL);
	assert_int_equal(shelf_remove(name, why), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(descriptors_out_of_range_are_bad),
		PX_TEST(null_pointers_are_faults),
		PX_TEST(paths_too_long_are_too_long),
		PX_TEST(counts_and_offsets_beyond_reason_are_refused),
		PX_TEST(unknown_flags_are_invalid),
		PX_TEST(names_that_are_no_files_cannot_be_opened),
		cmocka_unit_test(a_segment_without_a_tree_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

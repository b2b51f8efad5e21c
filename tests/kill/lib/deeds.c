/* SPDX-License-Identifier: MIT */
#include "deeds.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/sysmacros.h>

#include "harness.h"

#include "epoch/epoch.h"
#include "segment/slot.h"

struct shelf *shelf;
struct shelf_task *ours;
char deeds_name[TEST_NAME_SIZE];
static char bytes[100000];

static struct slot *self_of(void)
{
	return slot_self((struct segment *)(void *)shelf);
}

/* ---- the tree ---------------------------------------------------------------------------------- */

static void put_file(const char *path, size_t n)
{
	int fd = shelf_open(ours, path, O_CREAT | O_RDWR, 0644);

	CHECK(fd >= 0 && shelf_pwrite(ours, fd, bytes, n, 0) == (ssize_t)n);
	CHECK(shelf_close(ours, fd) == 0);
}

void tree_make(void)
{
	CHECK(!shelf_mkdir(ours, "/a", 0755) && !shelf_mkdir(ours, "/b", 0755) && !shelf_mkdir(ours, "/a/full", 0755));
	CHECK(!shelf_mkdir(ours, "/a/empty", 0755) && !shelf_mkdir(ours, "/b/empty", 0755));
	put_file("/a/one", 20000);
	put_file("/a/two", 10);
	put_file("/b/three", 5000);
	put_file("/a/full/four", 1);
	CHECK(!shelf_link(ours, "/a/two", "/b/second"));
	CHECK(!shelf_setxattr(ours, "/a/one", "user.old", "value", 5, 0));
}

struct record {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};
typedef void entry_fn(const char *path, const struct record *r, char *out);

static void each_entry(const char *dir, entry_fn *fn, char *out)
{
	_Alignas(8) char buf[2048];
	char path[512];
	ssize_t n, at;
	int fd = shelf_open(ours, *dir ? dir : "/", O_RDONLY | O_DIRECTORY, 0);

	CHECK(fd >= 0);
	while ((n = shelf_getdents64(ours, fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < n;) {
			struct record *r = (void *)(buf + at);

			at += r->len;
			if (!strcmp(r->name, ".") || !strcmp(r->name, ".."))
				continue;
			CHECK((size_t)snprintf(path, sizeof(path), "%s/%s", dir, r->name) < sizeof(path));
			fn(path, r, out);
		}
	CHECK(n == 0);
	shelf_close(ours, fd);
}

static void remove_entry(const char *path, const struct record *r, char *out)
{
	if (r->type == 4 /* DT_DIR */)
		each_entry(path, remove_entry, out);
	CHECK(!(r->type == 4 ? shelf_rmdir(ours, path) : shelf_unlink(ours, path)));
}

static void dump_entry(const char *path, const struct record *r, char *out)
{
	size_t at = strlen(out);
	char value[16] = "";
	struct stat st;

	CHECK(!shelf_lstat(ours, path, &st));
	shelf_lgetxattr(ours, path, "user.old", value, sizeof(value) - 1);
	snprintf(out + at, DUMP_SIZE - at, "%s %o links %lu size %ld blocks %ld uid %u [%s]\n", path, st.st_mode,
		 (unsigned long)st.st_nlink, (long)st.st_size, (long)st.st_blocks, st.st_uid, value);
	if (r->type == 4)
		each_entry(path, dump_entry, out);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The tree in words, sorted: the order of a listing is no matter. */
void tree_dump(char out[DUMP_SIZE])
{
	static char raw[DUMP_SIZE];
	char *line[64], *at = raw;
	unsigned n = 0, k;

	raw[0] = out[0] = 0;
	each_entry("", dump_entry, raw);
	for (; *at && n < 64; n++) {
		line[n] = at;
		at = strchr(at, '\n');
		*at++ = 0;
	}
	qsort(line, n, sizeof(line[0]), by_text);
	for (k = 0; k < n; k++)
		strcat(strcat(out, line[k]), "\n");
}

/* ---- what is done to it ---------------------------------------------------------------------------- */

static void do_create(struct shelf_task *t)
{
	shelf_open(t, "/a/new", O_CREAT | O_RDWR, 0644);
}
static void do_open_close(struct shelf_task *t)
{
	shelf_close(t, shelf_open(t, "/a/one", O_RDONLY, 0));
}
static void do_truncating_open(struct shelf_task *t)
{
	shelf_open(t, "/a/one", O_RDWR | O_TRUNC, 0);
}
static void do_write_extending(struct shelf_task *t)
{
	shelf_pwrite(t, 0, bytes, 50000, 15000);
}
static void do_write_over(struct shelf_task *t)
{
	shelf_pwrite(t, 0, bytes, 9000, 100);
}
static void do_append(struct shelf_task *t)
{
	shelf_fcntl(t, 0, F_SETFL, O_APPEND);
	shelf_write(t, 0, bytes, 10000);
}
static void do_truncate(struct shelf_task *t)
{
	shelf_ftruncate(t, 0, 5000);
}
static void do_fallocate(struct shelf_task *t)
{
	shelf_fallocate(t, 0, 0, 0, 60000);
}
static void do_fallocate_beyond(struct shelf_task *t)
{
	shelf_fallocate(t, 0, FALLOC_FL_KEEP_SIZE, 30000, 30000);
}
static void do_punch(struct shelf_task *t)
{
	shelf_fallocate(t, 0, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4000, 12000);
}
static void do_zero(struct shelf_task *t)
{
	shelf_fallocate(t, 0, FALLOC_FL_ZERO_RANGE, 4000, 20000);
}
static void do_collapse(struct shelf_task *t)
{
	shelf_fallocate(t, 0, FALLOC_FL_COLLAPSE_RANGE, 4096, 8192);
}
static void do_insert(struct shelf_task *t)
{
	shelf_fallocate(t, 0, FALLOC_FL_INSERT_RANGE, 4096, 8192);
}
static void do_sendfile(struct shelf_task *t)
{
	off_t from = 100;

	shelf_sendfile(t, 2, 0, &from, 15000);
}
static void do_write_vector(struct shelf_task *t)
{
	const struct iovec parts[] = {{bytes, 5000}, {bytes, 1}, {bytes, 9000}};

	shelf_pwritev2(t, 0, parts, 3, 18000, 0);
}
static void do_copy_range(struct shelf_task *t)
{
	off_t from = 0, to = 3000;

	shelf_copy_file_range(t, 0, &from, 2, &to, 15000, 0);
}
static void do_link(struct shelf_task *t)
{
	shelf_link(t, "/a/one", "/b/new");
}
static void do_tmpfile_link(struct shelf_task *t)
{
	int fd = shelf_open(t, "/a", O_TMPFILE | O_RDWR, 0600);

	shelf_linkat(t, fd, "", AT_FDCWD, "/b/new", AT_EMPTY_PATH);
}
static void do_rename(struct shelf_task *t)
{
	shelf_rename(t, "/a/one", "/b/new");
}
static void do_rename_over(struct shelf_task *t)
{
	shelf_rename(t, "/a/one", "/b/three");
}
static void do_rename_dir(struct shelf_task *t)
{
	shelf_rename(t, "/a/full", "/b/new");
}
static void do_rename_dir_over(struct shelf_task *t)
{
	shelf_rename(t, "/a/full", "/b/empty");
}
static void do_exchange(struct shelf_task *t)
{
	shelf_renameat2(t, AT_FDCWD, "/a/full", AT_FDCWD, "/b/three", 2);
}
static void do_whiteout(struct shelf_task *t)
{
	shelf_renameat2(t, AT_FDCWD, "/a/one", AT_FDCWD, "/b/new", 4);
}
static void do_rename_noreplace(struct shelf_task *t)
{
	shelf_renameat2(t, AT_FDCWD, "/a/one", AT_FDCWD, "/b/three", 1);
	shelf_renameat2(t, AT_FDCWD, "/a/one", AT_FDCWD, "/b/new", 1);
}
static void do_exchange_files(struct shelf_task *t)
{
	shelf_renameat2(t, AT_FDCWD, "/a/one", AT_FDCWD, "/a/two", 2);
}
static void do_unlink_open(struct shelf_task *t)
{
	shelf_unlink(t, "/a/one");
}
static void do_unlink_closed(struct shelf_task *t)
{
	shelf_unlink(t, "/a/full/four");
}
static void do_mkdir(struct shelf_task *t)
{
	shelf_mkdir(t, "/a/new", 0700);
}
static void do_rmdir(struct shelf_task *t)
{
	shelf_rmdir(t, "/a/empty");
}
static void do_symlink(struct shelf_task *t)
{
	shelf_symlink(t, "somewhere", "/a/new");
}
static void do_mknod_fifo(struct shelf_task *t)
{
	shelf_mknod(t, "/a/new", S_IFIFO | 0600, 0);
}
static void do_mknod_device(struct shelf_task *t)
{
	shelf_mknod(t, "/a/new", S_IFCHR | 0600, makedev(1, 3));
}
static void do_special_unlink(struct shelf_task *t)
{
	shelf_mknod(t, "/a/new", S_IFSOCK | 0600, 0);
	shelf_open(t, "/a/new", O_PATH, 0);
	shelf_unlink(t, "/a/new");
}
static void do_setxattr(struct shelf_task *t)
{
	shelf_setxattr(t, "/a/one", "user.old", "another", 7, 0);
}
static void do_removexattr(struct shelf_task *t)
{
	shelf_removexattr(t, "/a/one", "user.old");
}
/* A user more than the mode can say, and then a mode that changes the mask. */
static void do_access_list(struct shelf_task *t)
{
	static const struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} entry[5];
	} list = {2, {{1, 6, ~0u}, {2, 4, 5}, {4, 4, ~0u}, {16, 6, ~0u}, {32, 0, ~0u}}};

	shelf_setxattr(t, "/a/one", "system.posix_acl_access", &list, sizeof(list), 0);
	shelf_setxattr(t, "/a", "system.posix_acl_default", &list, sizeof(list), 0);
	shelf_chmod(t, "/a/one", 0600);
	shelf_mkdir(t, "/a/new", 0777);
}
static void do_chmod(struct shelf_task *t)
{
	shelf_chmod(t, "/a/one", 04711);
}
static void do_utimens(struct shelf_task *t)
{
	shelf_utimensat(t, AT_FDCWD, "/a/one", (const struct timespec[]){{1, 2}, {3, 4}}, 0);
}
static void do_chown(struct shelf_task *t)
{
	shelf_chown(t, "/a/one", 12, 13);
}
static void do_record_locks(struct shelf_task *t)
{
	struct flock fl = {.l_type = F_WRLCK, .l_start = 5, .l_len = 10};

	shelf_fcntl(t, 0, F_SETLK, (uintptr_t)&fl);
	fl.l_start = 8;
	fl.l_len = 1;
	fl.l_type = F_UNLCK;
	shelf_fcntl(t, 0, F_SETLK, (uintptr_t)&fl);
}
static void do_ofd_locks(struct shelf_task *t)
{
	struct flock fl = {.l_type = F_RDLCK, .l_start = 5, .l_len = 10};

	shelf_fcntl(t, 0, F_OFD_SETLK, (uintptr_t)&fl);
	fl.l_start = 0;
	fl.l_type = F_WRLCK;
	shelf_fcntl(t, 1, F_OFD_SETLK, (uintptr_t)&fl);
	shelf_close(t, 0);
	shelf_close(t, 1);
}
static void do_flock(struct shelf_task *t)
{
	shelf_flock(t, 0, LOCK_EX);
	shelf_flock(t, 0, LOCK_SH);
	shelf_close(t, 0);
}
static void do_dup(struct shelf_task *t)
{
	shelf_dup(t, 0);
	shelf_fcntl(t, 0, F_DUPFD, 100);
}
static void do_dup2(struct shelf_task *t)
{
	shelf_dup2(t, 0, 2);
}
static void do_close_all(struct shelf_task *t)
{
	shelf_close_range(t, 0, 100, 0);
}
static void do_close_range_unsharing(struct shelf_task *t)
{
	struct shelf_task *child;

	if (!shelf_task_fork(t, SHELF_CLONE_FILES, &child))
		shelf_close_range(child, 1, ~0u, 2 /* CLOSE_RANGE_UNSHARE */);
}
static void do_chdir(struct shelf_task *t)
{
	shelf_chdir(t, "/a/full");
	shelf_chdir(t, "/");
}
static void do_chroot(struct shelf_task *t)
{
	shelf_chroot(t, "/a");
}
static void do_setcred(struct shelf_task *t)
{
	shelf_task_set_threads(t, 1);
	shelf_task_setcred(t, &(struct shelf_cred){.fsuid = 5, .caps = SHELF_CAP_ALL});
	shelf_task_setcred(t, &(struct shelf_cred){.fsuid = 6, .caps = SHELF_CAP_ALL});
}
static void do_fork(struct shelf_task *t)
{
	struct shelf_task *child;

	if (!shelf_task_fork(t, 0, &child))
		shelf_task_exit(child);
}
static void do_fork_far(struct shelf_task *t)
{
	struct shelf_task *child;

	shelf_fcntl(t, 0, F_DUPFD, 600);
	shelf_fcntl(t, 0, F_DUPFD, 9000);
	if (!shelf_task_fork(t, 0, &child))
		shelf_task_exit(child);
}
static void do_fork_sharing(struct shelf_task *t)
{
	struct shelf_task *child;

	if (!shelf_task_fork(t, SHELF_CLONE_FILES | SHELF_CLONE_FS, &child))
		shelf_task_exit(child);
}
static void do_exec(struct shelf_task *t)
{
	struct shelf_task *child;

	shelf_fcntl(t, 1, F_SETFD, FD_CLOEXEC);
	if (!shelf_task_fork(t, SHELF_CLONE_FILES, &child))
		shelf_task_exec(child);
}
static void do_unshare(struct shelf_task *t)
{
	struct shelf_task *child;

	shelf_fcntl(t, 1, F_SETFD, SHELF_FD_CLOFORK);
	if (!shelf_task_fork(t, SHELF_CLONE_FILES | SHELF_CLONE_FS, &child))
		shelf_task_unshare(child, SHELF_CLONE_FILES | SHELF_CLONE_FS);
}
static void do_adopt(struct shelf_task *t)
{
	struct shelf_task *child;

	if (!shelf_task_fork(t, 0, &child))
		shelf_task_adopt(child);
}
static void do_create_task(struct shelf_task *t)
{
	struct shelf_task *another;

	(void)t;
	shelf_task_create(shelf, CRED, &another);
}
static void do_exit(struct shelf_task *t)
{
	shelf_task_exit(t);
}
static void do_advance(struct shelf_task *t)
{
	shelf_close(t, 0);
	shelf_unlink(t, "/a/one");
	epoch_reclaim(self_of());
	epoch_reclaim(self_of());
}
/* More than a chunk's worth of pages: the segment grows. */
static void do_grow(struct shelf_task *t)
{
	unsigned k;

	for (k = 0; k < 9; k++)
		shelf_pwrite(t, 0, bytes, sizeof(bytes), (off_t)k * (off_t)sizeof(bytes));
}
/* An instance as number 3 that watches what the deeds change. */
static int watch_all(struct shelf_task *t)
{
	static const char *const paths[] = {"/a", "/b", "/a/one", "/b/second"};
	int in = shelf_inotify_init(t, IN_NONBLOCK);
	unsigned k;

	for (k = 0; k < sizeof(paths) / sizeof(paths[0]); k++)
		shelf_inotify_add_watch(t, in, paths[k], IN_ALL_EVENTS);
	return in;
}
static void do_watch(struct shelf_task *t)
{
	int in = watch_all(t);

	shelf_inotify_rm_watch(t, in, 2);
	shelf_close(t, in);
}
static void do_watched_changes(struct shelf_task *t)
{
	static char events[4096];
	int in = watch_all(t);

	do_open_close(t);
	do_rename_over(t);
	do_unlink_closed(t);
	shelf_read(t, in, events, sizeof(events));
	do_mkdir(t);
}
static void do_watched_exit(struct shelf_task *t)
{
	watch_all(t);
	do_create(t);
	shelf_task_exit(t);
}

const struct deed deeds[] = {
	{"create", false, do_create}, {"open, close", false, do_open_close}, {"open that truncates", true, do_truncating_open},
	{"write, extending", true, do_write_extending}, {"write over", true, do_write_over}, {"append", true, do_append},
	{"truncate", true, do_truncate}, {"fallocate", true, do_fallocate}, {"punch", true, do_punch},
	{"fallocate beyond the end", true, do_fallocate_beyond}, {"zero range", true, do_zero}, {"collapse", true, do_collapse},
	{"insert", true, do_insert}, {"sendfile", true, do_sendfile}, {"write of a vector", true, do_write_vector},
	{"copy_file_range", true, do_copy_range}, {"link", false, do_link},
	{"link of a tmpfile", false, do_tmpfile_link}, {"rename", false, do_rename}, {"rename over", false, do_rename_over},
	{"rename a directory", false, do_rename_dir}, {"rename a directory over one", false, do_rename_dir_over},
	{"rename, no replacing", false, do_rename_noreplace}, {"exchange of files", false, do_exchange_files},
	{"mknod of a fifo", false, do_mknod_fifo}, {"mknod of a device", false, do_mknod_device},
	{"socket, unlinked", true, do_special_unlink}, {"access lists", true, do_access_list}, {"chmod", false, do_chmod},
	{"utimens", false, do_utimens}, {"locks of open files", false, do_ofd_locks},
	{"close_range, unsharing", false, do_close_range_unsharing},
	{"exchange", false, do_exchange}, {"whiteout", false, do_whiteout}, {"unlink, open", false, do_unlink_open},
	{"unlink, closed", false, do_unlink_closed}, {"mkdir", false, do_mkdir}, {"rmdir", false, do_rmdir},
	{"symlink", false, do_symlink}, {"setxattr", false, do_setxattr}, {"removexattr", false, do_removexattr},
	{"chown", false, do_chown}, {"record locks", false, do_record_locks}, {"flock", false, do_flock}, {"dup", false, do_dup},
	{"dup2", false, do_dup2}, {"close_range", false, do_close_all}, {"chdir", false, do_chdir}, {"chroot", false, do_chroot},
	{"setcred", false, do_setcred}, {"fork", false, do_fork}, {"fork, far numbers", false, do_fork_far},
	{"fork, sharing", false, do_fork_sharing}, {"exec", false, do_exec}, {"unshare", false, do_unshare},
	{"adopt", false, do_adopt}, {"a task", false, do_create_task}, {"exit", false, do_exit}, {"advance", true, do_advance},
	{"growth", true, do_grow}, {"watch", false, do_watch}, {"changes of what is watched", true, do_watched_changes},
	{"exit with watches", false, do_watched_exit},
};
const unsigned deed_count = sizeof(deeds) / sizeof(deeds[0]);


/* ---- the world ----------------------------------------------------------------------------------------- */

int deeds_setup(void **state)
{
	const struct shelf_options options = {.size = 16 << 20, .mode = 01777};

	(void)state;
	test_seed();
	CHECK(!shelf_create(fresh_name(deeds_name), &options, &shelf, NULL));
	CHECK(!shelf_task_create(shelf, CRED, &ours));
	return 0;
}

int deeds_teardown(void **state)
{
	(void)state;
	shelf_remove(deeds_name, NULL);
	shelf_task_exit(ours);
	shelf_detach(shelf);
	return 0;
}

struct shelf_task *deed_task(void)
{
	struct shelf_task *t;

	CHECK(!shelf_task_create(shelf, CRED, &t));
	CHECK(shelf_open(t, "/a/one", O_RDWR, 0) == 0 && shelf_dup(t, 0) == 1 && shelf_open(t, "/b/three", O_RDWR, 0) == 2);
	return t;
}

bool deed_wanted(const struct deed *d)
{
	const char *only = getenv("DEED");

	return !only || strstr(d->name, only);
}

void tree_remove(void)
{
	each_entry("", remove_entry, NULL);
}

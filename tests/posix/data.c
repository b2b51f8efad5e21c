/* SPDX-License-Identifier: MIT */
/* Data: appends, permissions of descriptors, record locks, a full shelf. */
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/uio.h>

#include "lib/fixture.h"

#include "api/api.h"

/* ---- append ------------------------------------------------------------------------------------------- */

enum { LINES = 10000, WRITERS = 4, LINE = 20 };

static int append_lines(struct px *px, void *arg)
{
	int fd = shelf_open(px->t, "log", O_WRONLY | O_APPEND, 0);
	char line[LINE + 1];

	CHECK(fd >= 0);
	for (int i = 0; i < LINES; i++) {
		snprintf(line, sizeof(line), "writer %ld line %05d\n", (long)arg, i);
		CHECK(shelf_write(px->t, fd, line, LINE) == LINE);
	}
	return 0;
}

static void appended_lines_of_four_processes_stay_whole(void **state)
{
	struct px *px = *state;
	int next[WRITERS] = { 0 }, fd;
	char line[LINE + 1] = "";
	pid_t pids[WRITERS];
	long writer;
	int number;

	px_write_file(px->t, "log", "");
	for (long i = 0; i < WRITERS; i++)
		pids[i] = px_fork(px, 0, append_lines, (void *)i);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	fd = shelf_open(px->t, "log", O_RDONLY, 0);
	for (int i = 0; i < LINES * WRITERS; i++) {
		assert_int_equal(shelf_read(px->t, fd, line, LINE), LINE);
		assert_int_equal(sscanf(line, "writer %ld line %d\n", &writer, &number), 2);
		assert_int_equal(number, next[writer]++);
	}
	assert_int_equal(shelf_read(px->t, fd, line, LINE), 0);
}

static off_t size_of(struct px *px, int fd)
{
	struct stat st;

	CHECK(!shelf_fstat(px->t, fd, &st));
	return st.st_size;
}

static void an_append_lands_at_the_end_as_it_is(void **state)
{
	struct px *px = *state;
	char data[32] = "";
	int a = shelf_open(px->t, "f", O_CREAT | O_WRONLY | O_APPEND, 0600), b = shelf_open(px->t, "f", O_RDWR, 0), c;

	assert_int_equal(shelf_write(px->t, a, data, 32), 32);
	assert_int_equal(size_of(px, a), 32);
	assert_int_equal(shelf_ftruncate(px->t, b, 0), 0);
	assert_int_equal(size_of(px, a), 0);
	assert_int_equal(shelf_write(px->t, a, data, 32), 32);
	assert_int_equal(size_of(px, a), 32);
	c = shelf_open(px->t, "f", O_WRONLY | O_APPEND | O_TRUNC, 0);
	assert_int_equal(shelf_write(px->t, c, data, 5), 5);
	assert_int_equal(size_of(px, c), 5);
	assert_int_equal(shelf_pwrite(px->t, c, "xy", 2, 0), 2);
	assert_int_equal(size_of(px, c), 7);
	assert_int_equal(shelf_pread(px->t, b, data, 32, 5), 2);
	assert_memory_equal(data, "xy", 2);
}

static void a_descriptor_keeps_the_rights_it_was_opened_with(void **state)
{
	struct px *px = *state;
	int fd;

	assert_int_equal(shelf_chmod(px->t, "/", 0777), 0);
	px_become(px->t, 1000, 1000);
	fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0444);
	assert_true(fd >= 0);
	assert_int_equal(shelf_write(px->t, fd, "data", 4), 4);
	assert_int_equal(shelf_ftruncate(px->t, fd, 2), 0);
	assert_int_equal(shelf_chmod(px->t, "f", 0), 0);
	assert_int_equal(shelf_write(px->t, fd, "data", 4), 4);
	assert_int_equal(shelf_open(px->t, "f", O_RDONLY, 0), -EACCES);
}

/* ---- record locks ----------------------------------------------------------------------------------------- */

static int lock(struct px *px, int fd, int cmd, int type, off_t start, off_t len, struct flock *out)
{
	struct flock fl = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };
	int r = shelf_fcntl(px->t, fd, cmd, (uintptr_t)&fl);

	if (out)
		*out = fl;
	return r;
}

struct talk {
	int to_child[2], to_parent[2];
};

static void talk_open(struct talk *t)
{
	CHECK(!pipe(t->to_child) && !pipe(t->to_parent));
}

static void say(int fd[2])
{
	CHECK(write(fd[1], "", 1) == 1);
}

static void hear(int fd[2])
{
	char c;

	CHECK(read(fd[0], &c, 1) == 1);
}

/* Locks 0-9, waits to be told, ends without unlocking: by exit, or by a signal. */
static int hold_lock(struct px *px, void *arg)
{
	struct talk *talk = arg;
	int fd = shelf_open(px->t, "f", O_RDWR, 0);

	CHECK(!lock(px, fd, F_SETLK, F_WRLCK, 0, 10, NULL));
	say(talk->to_parent);
	hear(talk->to_child);
	CHECK(!shelf_task_exit(px->t));
	return 0;
}

static void conflicts_name_the_holder(void **state)
{
	struct px *px = *state;
	struct talk talk;
	struct flock fl;
	pid_t pid;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);

	talk_open(&talk);
	pid = px_fork(px, 0, hold_lock, &talk);
	hear(talk.to_parent);
	assert_int_equal(lock(px, fd, F_SETLK, F_RDLCK, 5, 1, NULL), -EAGAIN);
	assert_int_equal(lock(px, fd, F_SETLK, F_WRLCK, 10, 1, NULL), 0);
	assert_int_equal(lock(px, fd, F_GETLK, F_RDLCK, 5, 1, &fl), 0);
	assert_int_equal(fl.l_type, F_WRLCK);
	assert_int_equal(fl.l_pid, pid);
	assert_int_equal(fl.l_len, 10);
	say(talk.to_child);
	assert_int_equal(lock(px, fd, F_SETLKW, F_WRLCK, 0, 10, NULL), 0);
	assert_int_equal(test_wait(pid), 0);
}

static void the_death_of_a_holder_ends_the_wait(void **state)
{
	struct px *px = *state;
	struct talk talk;
	pid_t pid;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);

	talk_open(&talk);
	pid = px_fork(px, 0, hold_lock, &talk);
	hear(talk.to_parent);
	assert_int_equal(lock(px, fd, F_SETLK, F_WRLCK, 0, 1, NULL), -EAGAIN);
	kill(pid, SIGKILL);
	assert_int_equal(lock(px, fd, F_SETLKW, F_WRLCK, 0, 1, NULL), 0);
	assert_int_equal(test_wait(pid), 128 + SIGKILL);
}

static int closes_another(struct px *px, void *arg)
{
	struct talk *talk = arg;
	int fd = shelf_open(px->t, "f", O_RDWR, 0), other = shelf_open(px->t, "f", O_RDONLY, 0);

	CHECK(!lock(px, fd, F_SETLK, F_WRLCK, 0, 0, NULL));
	say(talk->to_parent);
	hear(talk->to_child);
	CHECK(!shelf_close(px->t, other));
	say(talk->to_parent);
	hear(talk->to_child);
	return 0;
}

static void closing_any_descriptor_drops_the_records(void **state)
{
	struct px *px = *state;
	struct talk talk;
	pid_t pid;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);

	talk_open(&talk);
	pid = px_fork(px, 0, closes_another, &talk);
	hear(talk.to_parent);
	assert_int_equal(lock(px, fd, F_SETLK, F_WRLCK, 0, 0, NULL), -EAGAIN);
	say(talk.to_child);
	hear(talk.to_parent);
	assert_int_equal(lock(px, fd, F_SETLK, F_WRLCK, 0, 0, NULL), 0);
	say(talk.to_child);
	assert_int_equal(test_wait(pid), 0);
}

/* The child has 0 and wants 1; we have 1 and want 0. */
static int locks_crosswise(struct px *px, void *arg)
{
	struct talk *talk = arg;
	int fd = shelf_open(px->t, "f", O_RDWR, 0);

	CHECK(!lock(px, fd, F_SETLK, F_WRLCK, 0, 1, NULL));
	say(talk->to_parent);
	CHECK(!lock(px, fd, F_SETLKW, F_WRLCK, 1, 1, NULL));
	return 0;
}

static void a_cycle_of_waiters_is_refused(void **state)
{
	struct px *px = *state;
	struct talk talk;
	int r = -EAGAIN, fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600);
	pid_t pid;

	talk_open(&talk);
	assert_int_equal(lock(px, fd, F_SETLK, F_WRLCK, 1, 1, NULL), 0);
	pid = px_fork(px, 0, locks_crosswise, &talk);
	hear(talk.to_parent);
	usleep(100000); /* until it waits */
	r = lock(px, fd, F_SETLKW, F_WRLCK, 0, 1, NULL);
	assert_int_equal(r, -EDEADLK);
	assert_int_equal(lock(px, fd, F_SETLK, F_UNLCK, 1, 1, NULL), 0);
	assert_int_equal(test_wait(pid), 0);
}

static int tries_flock(struct px *px, void *arg)
{
	int inherited = *(int *)arg, own = shelf_open(px->t, "f", O_RDWR, 0);

	CHECK(shelf_flock(px->t, own, LOCK_EX | LOCK_NB) == -EAGAIN);
	CHECK(lock(px, own, F_OFD_SETLK, F_WRLCK, 0, 1, NULL) == -EAGAIN);
	CHECK(lock(px, inherited, F_OFD_SETLK, F_WRLCK, 0, 1, NULL) == 0);
	CHECK(shelf_flock(px->t, inherited, LOCK_EX | LOCK_NB) == 0);
	CHECK(!shelf_close(px->t, inherited));
	return shelf_task_exit(px->t);
}

static void flock_and_ofd_locks_go_with_the_description(void **state)
{
	struct px *px = *state;
	int fd = shelf_open(px->t, "f", O_CREAT | O_RDWR, 0600), other;

	assert_int_equal(shelf_flock(px->t, fd, LOCK_EX), 0);
	assert_int_equal(lock(px, fd, F_OFD_SETLK, F_WRLCK, 0, 1, NULL), 0);
	assert_int_equal(test_wait(px_fork(px, 0, tries_flock, &fd)), 0);
	other = shelf_open(px->t, "f", O_RDWR, 0);
	assert_int_equal(shelf_flock(px->t, other, LOCK_SH | LOCK_NB), -EAGAIN);
	assert_int_equal(shelf_close(px->t, fd), 0);
	assert_int_equal(shelf_flock(px->t, other, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(lock(px, other, F_OFD_SETLK, F_WRLCK, 0, 1, NULL), 0);
}

/* ---- full ------------------------------------------------------------------------------------------------------ */

static void fill_up(struct px *px, int fd)
{
	static char block[65536];
	ssize_t n;

	memset(block, 'b', sizeof(block));
	while ((n = shelf_write(px->t, fd, block, sizeof(block))) > 0)
		;
	assert_int_equal(n, -ENOSPC);
	while ((n = shelf_write(px->t, fd, block, 1)) > 0)
		;
	assert_int_equal(n, -ENOSPC);
}

static void a_full_shelf_refuses_and_loses_nothing(void **state)
{
	struct px *px = px_make(16u << 20);
	char buf[100], name[40];
	int kept, big, made = 0, fd;

	(void)state;
	px_write_file(px->t, "kept", "written before");
	kept = shelf_open(px->t, "kept", O_RDWR, 0);
	for (int round = 0; round < 3; round++) {
		big = shelf_open(px->t, "big", O_CREAT | O_RDWR, 0600);
		assert_true(big >= 0);
		fill_up(px, big);
		/* Reading and overwriting need no room. */
		assert_true(px_file_is(px->t, "kept", "written before"));
		assert_int_equal(shelf_pwrite(px->t, kept, "w", 1, 0), 1);
		assert_int_equal(shelf_pread(px->t, big, buf, 100, 1 << 20), 100);
		assert_int_equal(shelf_fallocate(px->t, kept, 0, 0, 1 << 23), -ENOSPC);
		assert_true(px_file_is(px->t, "kept", "written before"));
		/* Names too run out in the end, and then nothing is half made. */
		for (fd = 0; fd >= 0 && made < 100000; made++) {
			snprintf(name, sizeof(name), "n%d", made);
			fd = shelf_open(px->t, name, O_CREAT | O_EXCL | O_RDWR, 0600);
			if (fd >= 0)
				shelf_close(px->t, fd);
		}
		assert_int_equal(fd, -ENOSPC);
		made--;
		assert_false(px_exists(px->t, name));
		assert_int_equal(shelf_mkdir(px->t, name, 0700), -ENOSPC);
		assert_int_equal(shelf_close(px->t, big), 0);
		assert_int_equal(shelf_unlink(px->t, "big"), 0);
		while (made > 0) {
			snprintf(name, sizeof(name), "n%d", --made);
			assert_int_equal(shelf_unlink(px->t, name), 0);
		}
		assert_int_equal(px_count_entries(px->t, "/"), 1);
	}
	shelf_close(px->t, kept);
	px_drop(px);
}

/* Data to the last page, then names: what others need to go on is kept back. */
static void a_full_shelf_refuses_its_writer_and_nobody_else(void **state)
{
	enum { FILES = 200 };
	struct px *px = px_make(16u << 20);
	int fds[FILES], fd, big, made = 0;
	struct shelf_task *other;
	char name[40];

	(void)state;
	px_write_file(px->t, "kept", "written before");
	big = shelf_open(px->t, "big", O_CREAT | O_RDWR, 0600);
	fill_up(px, big);
	do {
		snprintf(name, sizeof(name), "n%d", made++);
		fd = shelf_open(px->t, name, O_CREAT | O_EXCL | O_RDWR, 0600);
		if (fd >= 0)
			shelf_close(px->t, fd);
	} while (fd >= 0);
	assert_int_equal(fd, -ENOSPC);
	assert_int_equal(shelf_task_create(px->shelf, NULL, &other), 0);
	for (int i = 0; i < FILES; i++) {
		fds[i] = i & 1 ? shelf_dup(other, fds[i - 1]) : shelf_open(other, "kept", O_CREAT | O_RDWR, 0600);
		assert_in_range(fds[i], 0, FILES - 1);
	}
	assert_int_equal(shelf_pwrite(other, fds[1], "W", 1, 0), 1);
	assert_true(px_file_is(px->t, "kept", "Written before"));
	shelf_task_exit(other);
	shelf_close(px->t, big);
	px_drop(px);
}

static uint64_t used_pages(struct px *px)
{
	struct shelf_counters c;

	assert_int_equal(shelf_counters(px->shelf, &c), 0);
	return c.used_pages;
}

/* Names, inodes, the directory's hash and index, everything: by the pages that are gone. */
static void a_truncate_to_the_same_size_keeps_the_times_and_takes_set_id_away(void **state)
{
	struct px *px = *state;
	const struct timespec times[2] = {{5, 6}, {7, 8}};
	struct stat before, after;

	px_write_file(px->t, "f", "");
	assert_int_equal(shelf_chown(px->t, "f", 1000, 1000), 0);
	assert_int_equal(shelf_chmod(px->t, "f", 06777), 0);
	assert_int_equal(shelf_utimensat(px->t, AT_FDCWD, "f", times, 0), 0);
	assert_int_equal(shelf_stat(px->t, "f", &before), 0);
	assert_int_equal(shelf_truncate(px->t, "f", 0), 0);
	assert_int_equal(shelf_stat(px->t, "f", &after), 0);
	assert_int_equal(after.st_mode & 07777, 06777); /* root may keep them */
	assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof(after.st_mtim));
	assert_memory_equal(&after.st_ctim, &before.st_ctim, sizeof(after.st_ctim));
	px_become(px->t, 1000, 1000);
	assert_int_equal(shelf_truncate(px->t, "f", 0), 0);
	assert_int_equal(shelf_stat(px->t, "f", &after), 0);
	assert_int_equal(after.st_mode & 07777, 0777);
	assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof(after.st_mtim));
	assert_int_equal(shelf_truncate(px->t, "f", 1), 0);
	assert_int_equal(shelf_stat(px->t, "f", &after), 0);
	assert_true(after.st_mtim.tv_sec > 7);
}

static void an_empty_file_costs_512_bytes_and_a_byte_one_page_more(void **state)
{
	enum { FILES = 20000, PAGE = 4096 };
	struct px *px = *state;
	uint64_t before = used_pages(px), empty, filled;
	char name[40];

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file%d", i);
		px_write_file(px->t, name, "");
	}
	empty = used_pages(px);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file%d", i);
		px_write_file(px->t, name, "x");
	}
	filled = used_pages(px);
	print_message("an empty file: %llu bytes; a byte: %llu more\n", (unsigned long long)((empty - before) * PAGE / FILES),
		      (unsigned long long)((filled - empty) * PAGE / FILES));
	assert_true((empty - before) * PAGE <= FILES * 512ull);
	assert_true(filled - empty <= FILES + FILES / 100); /* stocks of pages on the way */
}

static void a_write_takes_file_capabilities_away(void **state)
{
	struct px *px = *state;
	uint32_t cap[5] = { 0x02000000, 1 };
	char value[64];
	int fd;

	px_write_file(px->t, "tool", "abc");
	if (shelf_setxattr(px->t, "tool", "security.capability", cap, sizeof(cap), 0))
		skip(); /* an ordinary user may not */
	assert_true(shelf_getxattr(px->t, "tool", "security.capability", value, sizeof(value)) > 0);
	fd = shelf_open(px->t, "tool", O_WRONLY, 0);
	assert_int_equal(shelf_pwrite(px->t, fd, "x", 1, 0), 1);
	assert_int_equal(shelf_getxattr(px->t, "tool", "security.capability", value, sizeof(value)), -ENODATA);
	shelf_close(px->t, fd);
}

/* ---- access times ---------------------------------------------------------------------------------------- */

enum { HOUR = 3600 };

/* Seconds by which one read moved the access time away from `atime`. */
static long moved_by_a_read(struct px *px, int fd, time_t atime, time_t mtime, bool moves)
{
	struct timespec times[2] = { { .tv_sec = atime }, { .tv_sec = mtime } };
	struct stat st;
	char c;

	assert_int_equal(shelf_utimensat(px->t, AT_FDCWD, "read", times, 0), 0);
	assert_int_equal(moves ? shelf_read(px->t, fd, &c, 1) : shelf_pread(px->t, fd, &c, 1, 1), 1);
	assert_int_equal(shelf_fstat(px->t, fd, &st), 0);
	return st.st_atime - atime;
}

/* utimens sets the change time to now, so only an access time ahead of the clock is later than both others. */
static void a_read_moves_the_access_time_as_relatime_says(void **state)
{
	struct px *px = *state;
	time_t now = time(NULL);
	int fd, quiet;

	px_write_file(px->t, "read", "0123456789");
	fd = shelf_open(px->t, "read", O_RDWR, 0);
	quiet = shelf_open(px->t, "read", O_RDONLY | O_NOATIME, 0);
	for (int moves = 0; moves < 2; moves++) {
		assert_true(moved_by_a_read(px, fd, now - HOUR, now - 2 * HOUR, moves) >= HOUR - 1);
		assert_int_equal(moved_by_a_read(px, fd, now + HOUR, now, moves), 0);
		assert_in_range(moved_by_a_read(px, fd, now + HOUR, now + 2 * HOUR, moves) + HOUR + 1, 0, HOUR / 2);
		assert_int_equal(moved_by_a_read(px, quiet, now - HOUR, now, moves), 0);
	}
}

static void sizes_stop_at_the_tasks_limit(void **state)
{
	struct px *px = *state;
	char buf[4096] = "";
	int fd = shelf_open(px->t, "/limited", O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(shelf_task_setrlimit_fsize(px->t, 5000), 0);
	assert_int_equal(shelf_write(px->t, fd, buf, 4096), 4096);
	assert_int_equal(shelf_write(px->t, fd, buf, 4096), 904);
	assert_int_equal(shelf_write(px->t, fd, buf, 1), -EFBIG);
	assert_int_equal(shelf_ftruncate(px->t, fd, 5001), -EFBIG);
	assert_int_equal(shelf_fallocate(px->t, fd, 0, 0, 5001), -EFBIG);
	assert_int_equal(shelf_task_setrlimit_fsize(px->t, 100), 0);
	assert_int_equal(shelf_pwrite(px->t, fd, buf, 4096, 0), 100); /* below the end, too */
	assert_int_equal(shelf_task_setrlimit_fsize(px->t, UINT64_MAX), 0);
	assert_int_equal(shelf_pwrite(px->t, fd, buf, 10, 6000), 10);
	shelf_close(px->t, fd);
	shelf_unlink(px->t, "/limited");
}

/* ---- more than tmpfs ------------------------------------------------------------------------------------ */

enum { PAGE = 4096 };

static int paged_file(struct px *px, const char *letters)
{
	int fd = shelf_open(px->t, "/paged", O_RDWR | O_CREAT | O_TRUNC, 0644);
	char page[PAGE];

	CHECK(fd >= 0);
	for (; *letters; letters++) {
		memset(page, *letters, PAGE);
		CHECK(shelf_write(px->t, fd, page, PAGE) == PAGE);
	}
	return fd;
}

/* A letter a page, its first byte and its last; '.' for zeroes. */
static void is_paged(struct px *px, int fd, const char *letters)
{
	char page[PAGE];
	off_t at = 0;

	assert_int_equal(size_of(px, fd), strlen(letters) * PAGE);
	for (; *letters; letters++, at += PAGE) {
		assert_int_equal(shelf_pread(px->t, fd, page, PAGE, at), PAGE);
		assert_int_equal(page[0], *letters == '.' ? 0 : *letters);
		assert_int_equal(page[PAGE - 1], page[0]);
	}
}

static void ranges_collapse_and_are_inserted_in_whole_pages(void **state)
{
	struct px *px = *state;
	int fd = paged_file(px, "abcdef"), reader = shelf_open(px->t, "/paged", O_RDONLY, 0);

	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_COLLAPSE_RANGE, PAGE, 2 * PAGE), 0);
	is_paged(px, fd, "adef");
	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_INSERT_RANGE, 2 * PAGE, PAGE), 0);
	is_paged(px, fd, "ad.ef");
	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE - 1), -EINVAL);
	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_COLLAPSE_RANGE, 3 * PAGE, 2 * PAGE), -EINVAL);
	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_INSERT_RANGE, 5 * PAGE, PAGE), -EINVAL);
	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_INSERT_RANGE, 0, INT64_MAX & ~(PAGE - 1)), -EFBIG);
	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_KEEP_SIZE, 0, PAGE), -EOPNOTSUPP);
	assert_int_equal(shelf_fallocate(px->t, reader, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE), -EBADF);
	is_paged(px, fd, "ad.ef");
	assert_int_equal(shelf_close(px->t, reader), 0);
	assert_int_equal(shelf_close(px->t, fd), 0);
}

static void a_zeroed_range_reads_as_zeroes_and_has_its_memory(void **state)
{
	struct px *px = *state;
	int fd = paged_file(px, "abc");
	struct stat st;

	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_ZERO_RANGE, PAGE, PAGE), 0);
	is_paged(px, fd, "a.c");
	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 3 * PAGE, PAGE), 0);
	is_paged(px, fd, "a.c");
	assert_int_equal(shelf_fallocate(px->t, fd, FALLOC_FL_ZERO_RANGE, 2 * PAGE, 3 * PAGE), 0);
	is_paged(px, fd, "a....");
	assert_int_equal(shelf_fstat(px->t, fd, &st), 0);
	assert_int_equal(st.st_blocks, 5 * PAGE / 512);
	assert_int_equal(shelf_close(px->t, fd), 0);
}

static struct inode *inode_of(struct px *px, int fd)
{
	struct inode *inode;
	struct use u;

	CHECK(!use_begin_change(&u, px->t, fd, false));
	inode = u.f->inode;
	CHECK(!use_changed(&u, 0, 0));
	return inode;
}

static atomic_uint stage;
enum { LOCKED = 1, CHANGING, GO };

struct keeper {
	struct px *px;
	struct inode *inode;
};

static void stage_wait(unsigned n)
{
	while (atomic_load(&stage) != n)
		sched_yield();
}

/* Another thread changes the file, and is seen to. */
static void *keep_file(void *arg)
{
	struct keeper *k = arg;
	struct slot *self = slot_self((struct segment *)(void *)k->px->shelf);

	lock_acquire(&k->inode->lock, &self->locker, LOCK_INODE);
	atomic_store(&stage, LOCKED);
	stage_wait(CHANGING);
	seq_write_begin(&k->inode->seq);
	atomic_store(&stage, LOCKED);
	stage_wait(GO);
	seq_write_end(&k->inode->seq);
	lock_release(&k->inode->lock, &self->locker, LOCK_INODE);
	slot_release(self);
	return NULL;
}

static void who_will_not_wait_for_another_is_told_to_come_again(void **state)
{
	struct px *px = *state;
	int fd = paged_file(px, "ab");
	char buf[2 * PAGE];
	struct iovec iov = {buf, sizeof(buf)};
	struct keeper k = {px, inode_of(px, fd)};
	pthread_t thread;

	assert_int_equal(shelf_preadv2(px->t, fd, &iov, 1, 0, RWF_NOWAIT), sizeof(buf));
	assert_int_equal(shelf_pwritev2(px->t, fd, &iov, 1, PAGE, RWF_NOWAIT), sizeof(buf));
	assert_int_equal(pthread_create(&thread, NULL, keep_file, &k), 0);
	stage_wait(LOCKED);
	assert_int_equal(shelf_pwritev2(px->t, fd, &iov, 1, 0, RWF_NOWAIT), -EAGAIN);
	assert_int_equal(shelf_preadv2(px->t, fd, &iov, 1, 0, RWF_NOWAIT), sizeof(buf));
	atomic_store(&stage, CHANGING);
	stage_wait(LOCKED);
	assert_int_equal(shelf_preadv2(px->t, fd, &iov, 1, 0, RWF_NOWAIT), -EAGAIN);
	atomic_store(&stage, GO);
	pthread_join(thread, NULL);
	assert_int_equal(shelf_pwritev2(px->t, fd, &iov, 1, 0, RWF_NOWAIT), sizeof(buf));
	assert_int_equal(shelf_close(px->t, fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(a_write_takes_file_capabilities_away),
		PX_TEST(a_truncate_to_the_same_size_keeps_the_times_and_takes_set_id_away),
		PX_TEST(an_empty_file_costs_512_bytes_and_a_byte_one_page_more),
		PX_TEST(appended_lines_of_four_processes_stay_whole),
		PX_TEST(an_append_lands_at_the_end_as_it_is),
		PX_TEST(a_descriptor_keeps_the_rights_it_was_opened_with),
		PX_TEST(conflicts_name_the_holder),
		PX_TEST(the_death_of_a_holder_ends_the_wait),
		PX_TEST(closing_any_descriptor_drops_the_records),
		PX_TEST(a_cycle_of_waiters_is_refused),
		PX_TEST(flock_and_ofd_locks_go_with_the_description),
		cmocka_unit_test(a_full_shelf_refuses_and_loses_nothing),
		PX_TEST(a_read_moves_the_access_time_as_relatime_says),
		cmocka_unit_test(a_full_shelf_refuses_its_writer_and_nobody_else),
		PX_TEST(sizes_stop_at_the_tasks_limit),
		PX_TEST(ranges_collapse_and_are_inserted_in_whole_pages),
		PX_TEST(a_zeroed_range_reads_as_zeroes_and_has_its_memory),
		PX_TEST(who_will_not_wait_for_another_is_told_to_come_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

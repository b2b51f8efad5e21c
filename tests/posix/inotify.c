/* SPDX-License-Identifier: MIT */
/* inotify in the library: what is told, to whom, in which order and how often; tests/programs/inotify.c compares with the kernel. */
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>

#include "lib/fixture.h"

/* ---- events as text ---------------------------------------------------------------------------------- */

static const struct {
	uint32_t bit;
	const char *name;
} bits[] = {
	{IN_ACCESS, "access"}, {IN_MODIFY, "modify"}, {IN_ATTRIB, "attrib"}, {IN_CLOSE_WRITE, "close_write"},
	{IN_CLOSE_NOWRITE, "close"}, {IN_OPEN, "open"}, {IN_MOVED_FROM, "from"}, {IN_MOVED_TO, "to"}, {IN_CREATE, "create"},
	{IN_DELETE, "delete"}, {IN_DELETE_SELF, "delete_self"}, {IN_MOVE_SELF, "move_self"}, {IN_Q_OVERFLOW, "overflow"},
	{IN_IGNORED, "ignored"}, {IN_ISDIR, "dir"},
};

/* "WD:what[+dir][=NAME] ..." */
static void event_text(const struct inotify_event *e, char *out)
{
	unsigned k;

	out += strlen(out);
	out += sprintf(out, "%d:", e->wd);
	for (k = 0; k < sizeof(bits) / sizeof(bits[0]); k++)
		if (e->mask & bits[k].bit)
			out += sprintf(out, "%s%s", out[-1] == ':' ? "" : "+", bits[k].name);
	if (e->len)
		out += sprintf(out, "=%s", e->name);
	sprintf(out, " ");
}

/* All that waits in a non-blocking instance. */
static const char *told(struct px *px, int fd)
{
	static char text[16384];
	_Alignas(8) char buf[8192];
	ssize_t n, at;

	text[0] = '\0';
	while ((n = shelf_read(px->t, fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(buf + at);

			CHECK(e->len % sizeof(*e) == 0 && strlen(text) < sizeof(text) - 400);
			event_text(e, text);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	CHECK(n == -EAGAIN);
	if (*text)
		text[strlen(text) - 1] = '\0';
	return text;
}

static int instance(struct px *px)
{
	int fd = shelf_inotify_init(px->t, IN_NONBLOCK | IN_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static int watching(struct px *px, const char *path, uint32_t mask)
{
	int fd = instance(px);

	CHECK(shelf_inotify_add_watch(px->t, fd, path, mask) == 1);
	return fd;
}

#define TOLD(fd, what) assert_string_equal(told(px, fd), what)

/* ---- what is told ---------------------------------------------------------------------------------------- */

static void a_directory_hears_of_its_entries(void **state)
{
	struct px *px = *state;
	int in, fd;
	char c;

	CHECK(!shelf_mkdir(px->t, "d", 0755));
	in = watching(px, "d", IN_ALL_EVENTS);
	fd = shelf_open(px->t, "d/f", O_CREAT | O_RDWR, 0644);
	TOLD(in, "1:create=f 1:open=f");
	CHECK(shelf_write(px->t, fd, "abc", 3) == 3 && shelf_pread(px->t, fd, &c, 1, 0) == 1);
	TOLD(in, "1:modify=f 1:access=f");
	CHECK(!shelf_ftruncate(px->t, fd, 1) && !shelf_fchmod(px->t, fd, 0600) && !shelf_close(px->t, fd));
	TOLD(in, "1:modify=f 1:attrib=f 1:close_write=f");
	CHECK(!shelf_mkdir(px->t, "d/s", 0755) && !shelf_rename(px->t, "d/f", "d/g") && !shelf_unlink(px->t, "d/g") && !shelf_rmdir(px->t, "d/s"));
	TOLD(in, "1:create+dir=s 1:from=f 1:to=g 1:delete=g 1:delete+dir=s");
}

static void a_file_hears_of_itself(void **state)
{
	struct px *px = *state;
	int in, fd;

	px_write_file(px->t, "f", "abc");
	in = watching(px, "f", IN_ALL_EVENTS);
	fd = shelf_open(px->t, "f", O_WRONLY | O_TRUNC, 0);
	CHECK(fd >= 0 && !shelf_link(px->t, "f", "g") && !shelf_rename(px->t, "f", "h") && !shelf_unlink(px->t, "g") && !shelf_unlink(px->t, "h"));
	TOLD(in, "1:open 1:modify 1:attrib 1:move_self 1:attrib");
	CHECK(!shelf_close(px->t, fd));
	TOLD(in, "1:close_write 1:delete_self 1:ignored");
	assert_int_equal(shelf_inotify_rm_watch(px->t, in, 1), -EINVAL);
}

static void close_is_told_once_at_the_last_reference(void **state)
{
	struct px *px = *state;
	int in, fd, other;

	px_write_file(px->t, "f", "abc");
	in = watching(px, "f", IN_CLOSE);
	fd = shelf_open(px->t, "f", O_RDONLY, 0);
	other = shelf_dup(px->t, fd);
	CHECK(fd >= 0 && other >= 0 && !shelf_close(px->t, fd));
	TOLD(in, "");
	CHECK(!shelf_close(px->t, other));
	TOLD(in, "1:close");
}

static void one_inode_has_one_watch_whatever_its_names(void **state)
{
	struct px *px = *state;
	int in = instance(px);

	px_write_file(px->t, "f", "");
	px_write_file(px->t, "other", "");
	CHECK(!shelf_link(px->t, "f", "g") && !shelf_symlink(px->t, "g", "s"));
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", IN_OPEN), 1);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "g", IN_MODIFY), 1);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "s", IN_MODIFY | IN_MASK_ADD), 1);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "s", IN_MODIFY | IN_DONT_FOLLOW), 2);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "other", IN_MODIFY), 3);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", IN_MODIFY | IN_MASK_CREATE), -EEXIST);
}

static void only_events_in_the_mask_are_told(void **state)
{
	struct px *px = *state;
	int in;

	px_write_file(px->t, "f", "abc");
	in = watching(px, "f", IN_ATTRIB);
	px_write_file(px->t, "f", "xyz");
	TOLD(in, "");
	CHECK(!shelf_chmod(px->t, "f", 0600));
	TOLD(in, "1:attrib");
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", IN_MODIFY), 1);
	CHECK(!shelf_chmod(px->t, "f", 0644) && !shelf_truncate(px->t, "f", 1));
	TOLD(in, "1:modify");
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", IN_ATTRIB | IN_MASK_ADD), 1);
	CHECK(!shelf_chmod(px->t, "f", 0600) && !shelf_truncate(px->t, "f", 2));
	TOLD(in, "1:attrib 1:modify");
}

static void a_watch_for_once_is_gone_after_its_event(void **state)
{
	struct px *px = *state;
	int in;

	px_write_file(px->t, "f", "abc");
	in = watching(px, "f", IN_ATTRIB | IN_ONESHOT);
	CHECK(!shelf_chmod(px->t, "f", 0600) && !shelf_chmod(px->t, "f", 0644));
	TOLD(in, "1:attrib 1:ignored");
}

static void a_name_that_is_gone_is_told_unless_excluded(void **state)
{
	struct px *px = *state;
	int all, excl, fd;

	CHECK(!shelf_mkdir(px->t, "d", 0755));
	all = watching(px, "d", IN_MODIFY | IN_CLOSE);
	excl = watching(px, "d", IN_MODIFY | IN_CLOSE | IN_EXCL_UNLINK);
	fd = shelf_open(px->t, "d/f", O_CREAT | O_WRONLY, 0644);
	CHECK(shelf_write(px->t, fd, "a", 1) == 1);
	TOLD(excl, "1:modify=f");
	CHECK(!shelf_unlink(px->t, "d/f") && shelf_write(px->t, fd, "a", 1) == 1 && !shelf_close(px->t, fd));
	TOLD(excl, "");
	TOLD(all, "1:modify=f 1:close_write=f");
}

/* ---- the queue ---------------------------------------------------------------------------------------------- */

static void equal_events_in_a_row_are_one(void **state)
{
	struct px *px = *state;
	int in;

	px_write_file(px->t, "f", "abc");
	px_write_file(px->t, "g", "abc");
	in = watching(px, ".", IN_ATTRIB);
	for (int i = 0; i < 3; i++)
		CHECK(!shelf_chmod(px->t, "f", 0600));
	CHECK(!shelf_chmod(px->t, "g", 0600) && !shelf_chmod(px->t, "f", 0600));
	TOLD(in, "1:attrib=f 1:attrib=g 1:attrib=f");
}

static void a_full_queue_ends_in_one_overflow(void **state)
{
	struct px *px = *state;
	_Alignas(8) char buf[4096];
	int in, size, events = 0, overflows = 0;
	ssize_t n, at;

	px_write_file(px->t, "f", "");
	px_write_file(px->t, "g", "");
	in = watching(px, ".", IN_ATTRIB);
	for (int i = 0; i < 8300; i++)
		CHECK(!shelf_chmod(px->t, "f", 0600) && !shelf_chmod(px->t, "g", 0600));
	CHECK(!shelf_ioctl(px->t, in, FIONREAD, (uintptr_t)&size));
	assert_int_equal(size, 16384 * 32 + 16);
	while ((n = shelf_read(px->t, in, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += (ssize_t)(sizeof(struct inotify_event) + ((struct inotify_event *)(void *)(buf + at))->len), events++)
			if (((struct inotify_event *)(void *)(buf + at))->mask == IN_Q_OVERFLOW)
				overflows++;
	assert_int_equal(events, 16385);
	assert_int_equal(overflows, 1);
	CHECK(!shelf_chmod(px->t, "f", 0600));
	TOLD(in, "1:attrib=f");
}

static void a_buffer_too_small_for_the_next_event_is_refused(void **state)
{
	struct px *px = *state;
	_Alignas(8) char buf[64];
	int in = watching(px, ".", IN_CREATE), size;

	assert_int_equal(shelf_read(px->t, in, buf, sizeof(buf)), -EAGAIN);
	CHECK(!shelf_mkdir(px->t, "a", 0700) && !shelf_mkdir(px->t, "a_name_of_16_byt", 0700));
	CHECK(!shelf_ioctl(px->t, in, FIONREAD, (uintptr_t)&size));
	assert_int_equal(size, 32 + 48);
	assert_int_equal(shelf_read(px->t, in, buf, 31), -EINVAL);
	assert_int_equal(shelf_read(px->t, in, buf, 64), 32);
	assert_int_equal(shelf_read(px->t, in, buf, 47), -EINVAL);
	assert_int_equal(shelf_read(px->t, in, buf, 48), 48);
}

static void a_move_has_one_cookie(void **state)
{
	struct px *px = *state;
	_Alignas(8) char buf[256];
	struct inotify_event *e = (void *)buf;
	uint32_t cookie;
	int in;

	CHECK(!shelf_mkdir(px->t, "a", 0755) && !shelf_mkdir(px->t, "b", 0755));
	px_write_file(px->t, "a/f", "");
	in = watching(px, "a", IN_MOVE);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "b", IN_MOVE), 2);
	CHECK(!shelf_rename(px->t, "a/f", "b/g"));
	assert_int_equal(shelf_read(px->t, in, buf, sizeof(buf)), 64);
	cookie = e->cookie;
	assert_true(cookie && e->mask == IN_MOVED_FROM && e->wd == 1 && !strcmp(e->name, "f"));
	e = (void *)(buf + 32);
	assert_true(cookie == e->cookie && e->mask == IN_MOVED_TO && e->wd == 2 && !strcmp(e->name, "g"));
}

/* ---- the calls --------------------------------------------------------------------------------------------- */

static void what_is_wrong_is_told_as_linux_does(void **state)
{
	struct px *px = *state;
	int in = instance(px), fd;

	px_write_file(px->t, "f", "");
	fd = shelf_open(px->t, "f", O_RDONLY, 0);
	assert_int_equal(shelf_inotify_init(px->t, 1), -EINVAL);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "none", IN_OPEN), -ENOENT);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", IN_OPEN | IN_ONLYDIR), -ENOTDIR);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", 0), -EINVAL);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", 0x10000), -EINVAL);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", IN_OPEN | IN_MASK_ADD | IN_MASK_CREATE), -EINVAL);
	assert_int_equal(shelf_inotify_add_watch(px->t, 99, "f", IN_OPEN), -EBADF);
	assert_int_equal(shelf_inotify_add_watch(px->t, fd, "f", IN_OPEN), -EINVAL);
	assert_int_equal(shelf_inotify_rm_watch(px->t, in, 1), -EINVAL);
	assert_int_equal(shelf_inotify_rm_watch(px->t, fd, 1), -EINVAL);
	CHECK(!shelf_chmod(px->t, "f", 0200));
	px_become(px->t, 1000, 1000);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "f", IN_OPEN), -EACCES);
	px_become(px->t, 0, 0);
	assert_int_equal(shelf_write(px->t, in, "x", 1), -EBADF);
	assert_int_equal(shelf_lseek(px->t, in, 0, SEEK_SET), -ESPIPE);
}

static void a_removed_watch_says_so_and_its_number_is_not_given_again(void **state)
{
	struct px *px = *state;
	int in = watching(px, ".", IN_CREATE);

	CHECK(!shelf_mkdir(px->t, "a", 0700));
	assert_int_equal(shelf_inotify_rm_watch(px->t, in, 1), 0);
	CHECK(!shelf_mkdir(px->t, "b", 0700));
	TOLD(in, "1:create+dir=a 1:ignored");
	assert_int_equal(shelf_inotify_add_watch(px->t, in, ".", IN_CREATE), 2);
}

/* ---- others ------------------------------------------------------------------------------------------------- */

static int makes_and_exits(struct px *px, void *arg)
{
	(void)arg;
	px_write_file(px->t, "d/theirs", "abc");
	return shelf_task_exit(px->t);
}

static void changes_by_other_processes_are_told_to_who_waits(void **state)
{
	struct px *px = *state;
	_Alignas(8) char buf[256];
	struct inotify_event *e = (void *)buf;
	pid_t pid;
	int in;

	CHECK(!shelf_mkdir(px->t, "d", 0755));
	in = shelf_inotify_init(px->t, IN_CLOEXEC);
	assert_int_equal(shelf_inotify_add_watch(px->t, in, "d", IN_CREATE), 1);
	pid = px_fork(px, 0, makes_and_exits, NULL);
	assert_int_equal(shelf_read(px->t, in, buf, sizeof(buf)), 32);
	assert_true(e->mask == IN_CREATE && !strcmp(e->name, "theirs"));
	assert_int_equal(test_wait(pid), 0);
}

/* The parent's instance is the child's too. */
static int watches_and_dies(struct px *px, void *arg)
{
	int in = instance(px);

	CHECK(shelf_inotify_add_watch(px->t, in, "d", IN_ALL_EVENTS) == 1);
	CHECK(shelf_inotify_add_watch(px->t, *(int *)arg, "d", IN_CREATE) == 1);
	px_write_file(px->t, "d/one", "abc");
	raise(SIGKILL);
	return 0;
}

static void the_instances_of_the_dead_go_and_shared_ones_stay(void **state)
{
	struct px *px = *state;
	struct shelf_counters before, after;
	int in = instance(px);

	CHECK(!shelf_mkdir(px->t, "d", 0755) && !shelf_counters(px->shelf, &before));
	assert_int_equal(test_wait(px_fork(px, 0, watches_and_dies, &in)), 128 + SIGKILL);
	assert_int_equal(shelf_check(px->shelf, NULL, NULL), 0);
	CHECK(!shelf_counters(px->shelf, &after));
	assert_int_equal(after.files_open, before.files_open);
	TOLD(in, "1:create=one");
}

static void reads_and_writes(struct px *px, void *arg, unsigned k)
{
	char path[32];

	(void)arg;
	snprintf(path, sizeof(path), "d/%u", k);
	for (unsigned i = 0; i < 2000; i++) {
		int fd = shelf_open(px->t, path, O_CREAT | O_RDWR, 0644);

		CHECK(fd >= 0 && shelf_write(px->t, fd, "x", 1) == 1 && !shelf_close(px->t, fd) && !shelf_unlink(px->t, path));
	}
}

/* Threads that change, and one that adds and removes the watch and reads. */
static void watches_and_reads(struct px *px, void *arg, unsigned k)
{
	int in, wd;

	if (k) {
		reads_and_writes(px, arg, k);
		return;
	}
	for (unsigned i = 0; i < 500; i++) {
		in = instance(px);
		wd = shelf_inotify_add_watch(px->t, in, "d", IN_ALL_EVENTS);
		CHECK(wd == 1);
		if (i % 2)
			CHECK(!shelf_inotify_rm_watch(px->t, in, wd));
		CHECK(!shelf_close(px->t, in));
	}
}

static void watches_come_and_go_while_others_change_what_they_watch(void **state)
{
	struct px *px = *state;

	CHECK(!shelf_mkdir(px->t, "d", 0755));
	px_threads(px, 3, watches_and_reads, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(a_directory_hears_of_its_entries),
		PX_TEST(a_file_hears_of_itself),
		PX_TEST(close_is_told_once_at_the_last_reference),
		PX_TEST(one_inode_has_one_watch_whatever_its_names),
		PX_TEST(only_events_in_the_mask_are_told),
		PX_TEST(a_watch_for_once_is_gone_after_its_event),
		PX_TEST(a_name_that_is_gone_is_told_unless_excluded),
		PX_TEST(equal_events_in_a_row_are_one),
		PX_TEST(a_full_queue_ends_in_one_overflow),
		PX_TEST(a_buffer_too_small_for_the_next_event_is_refused),
		PX_TEST(a_move_has_one_cookie),
		PX_TEST(what_is_wrong_is_told_as_linux_does),
		PX_TEST(a_removed_watch_says_so_and_its_number_is_not_given_again),
		PX_TEST(changes_by_other_processes_are_told_to_who_waits),
		PX_TEST(the_instances_of_the_dead_go_and_shared_ones_stay),
		PX_TEST(watches_come_and_go_while_others_change_what_they_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

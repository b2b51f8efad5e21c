/* SPDX-License-Identifier: MIT */
/* Making, attaching and removing segments, and each reason to refuse one. */
#include "lib/seg_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

static char why[SEG_WHY_MAX];

static int make(void **state)
{
	(void)state;
	seg_test_make(8 << 20);
	return 0;
}

static int no_segment(void **state)
{
	(void)state;
	fresh_name(seg_test.name);
	return 0;
}

static int unlink_leftover(void **state)
{
	(void)state;
	unlink(seg_test_path());
	return 0;
}

/* What a process that has not attached yet gets: its error number, and the sentence. */
static int attach_elsewhere(bool read_only, char *sentence)
{
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();
	int err;

	if (pid == 0) {
		struct segment *seg;

		if (seg_test.seg)
			segment_detach(seg_test.seg);
		_exit(-segment_attach(seg_test.name, read_only, &seg, shared));
	}
	err = test_wait(pid);
	memcpy(sentence, shared, SEG_WHY_MAX);
	munmap(shared, 4096);
	return err;
}

static void assert_refused(int err, const char *reason)
{
	assert_int_equal(attach_elsewhere(false, why), err);
	if (!strstr(why, reason))
		fail_msg("'%s' does not say '%s'", why, reason);
	assert_non_null(strstr(why, seg_test_path()));
	assert_non_null(strchr(why, ';')); /* what to do */
}

/* Changes `n` bytes at `offset` of the file. */
static void scribble(off_t offset, const void *bytes, size_t n)
{
	int fd = open(seg_test_path(), O_RDWR);

	assert_int_equal(pwrite(fd, bytes, n, offset), n);
	close(fd);
}

static void attach_finds_the_same_bytes_at_the_same_address(void **state)
{
	char *page = page_alloc(slot_self(seg_test.seg), 0, PAGE_DATA, 0);

	(void)state;
	strcpy(page, "hello");
	segment_set_root(seg_test.seg, SEG_ROOT_VFS, page);
	pid_t pid = fork();
	if (pid == 0) {
		struct segment *seg;

		segment_detach(seg_test.seg);
		CHECK(segment_attach(seg_test.name, false, &seg, why) == 0);
		CHECK(segment_root(seg, SEG_ROOT_VFS) == page);
		CHECK(!strcmp(page, "hello"));
		strcpy(page, "there");
		segment_detach(seg);
		_exit(0);
	}
	assert_int_equal(test_wait(pid), 0);
	assert_string_equal(page, "there");
}

static void attach_twice_is_one_mapping(void **state)
{
	struct segment *again;

	(void)state;
	assert_int_equal(segment_attach(seg_test.name, false, &again, why), 0);
	assert_ptr_equal(again, seg_test.seg);
	segment_detach(again);
	assert_non_null(slot_self(seg_test.seg));
}

static void attach_leaves_no_descriptor_open(void **state)
{
	int before = dup(0), after;

	(void)state;
	close(before);
	seg_test_make(4 << 20);
	slot_self(seg_test.seg);
	after = dup(0);
	close(after);
	assert_int_equal(after, before);
}

static void segments_of_one_process_do_not_disturb_one_another(void **state)
{
	struct segment_options opt = {.size = 4 << 20};
	struct segment *seg[12];
	char name[12][TEST_NAME_SIZE];
	unsigned k;

	(void)state;
	for (k = 0; k < 12; k++)
		assert_int_equal(segment_create(fresh_name(name[k]), &opt, &seg[k], why), 0);
	for (k = 0; k < 24; k++) { /* more than a thread's list of slots */
		struct slot *self = slot_self(seg[k % 12]);

		assert_int_equal(slot_id(self), 1);
		assert_ptr_equal(self->seg, seg[k % 12]);
		page_free(self, page_alloc(self, 0, PAGE_DATA, 0), 0);
	}
	for (k = 0; k < 12; k++) {
		segment_detach(seg[k]);
		assert_int_equal(segment_remove(name[k], why), 0);
	}
}

static void bases_of_segments_differ(void **state)
{
	uint64_t first = base_choose("a", 0);
	unsigned k, same = 0;

	(void)state;
	for (k = 0; k < 100; k++)
		same += base_choose("a", 0) == first;
	assert_true(same < 3);
}

static void names_with_slash_empty_or_too_long_are_refused(void **state)
{
	struct segment *seg;
	char name[SEG_NAME_MAX + 2];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(segment_create("a/b", NULL, &seg, why), -EINVAL);
	assert_int_equal(segment_create("", NULL, &seg, why), -EINVAL);
	assert_int_equal(segment_create(name, NULL, &seg, why), -ENAMETOOLONG);
	assert_int_equal(segment_attach("../x", false, &seg, why), -EINVAL);
	assert_int_equal(segment_remove("a/b", why), -EINVAL);
}

static void a_directory_that_is_relative_or_too_long_is_refused(void **state)
{
	char dir[4096] = "/", *before = getenv("SHELF_SHM_DIR") ? strdup(getenv("SHELF_SHM_DIR")) : NULL;
	struct segment *seg;

	(void)state;
	setenv("SHELF_SHM_DIR", "tmp", 1);
	assert_int_equal(segment_create("relative", NULL, &seg, why), -EINVAL);
	assert_non_null(strstr(why, "absolute"));
	memset(dir + 1, 'd', sizeof(dir) - 2);
	setenv("SHELF_SHM_DIR", dir, 1);
	assert_int_equal(segment_attach("long", false, &seg, why), -ENAMETOOLONG);
	assert_int_equal(segment_remove("long", why), -ENAMETOOLONG);
	unsetenv("SHELF_SHM_DIR");
	if (before)
		setenv("SHELF_SHM_DIR", before, 1);
	free(before);
}

/* /proc is a directory of every machine that is on no tmpfs. */
static void a_segment_is_made_on_a_tmpfs_only(void **state)
{
	char *before = getenv("SHELF_SHM_DIR") ? strdup(getenv("SHELF_SHM_DIR")) : NULL;
	struct segment *seg;

	(void)state;
	setenv("SHELF_SHM_DIR", "/proc", 1);
	assert_int_equal(segment_create("disk", NULL, &seg, why), -EOPNOTSUPP);
	assert_non_null(strstr(why, "/proc: is not on a tmpfs"));
	assert_int_equal(segment_attach("disk", false, &seg, why), -ENOENT);
	unsetenv("SHELF_SHM_DIR");
	if (before)
		setenv("SHELF_SHM_DIR", before, 1);
	free(before);
}

static void create_over_an_existing_name_is_refused(void **state)
{
	struct segment *seg;

	(void)state;
	assert_int_equal(segment_create(seg_test.name, NULL, &seg, why), -EEXIST);
	assert_non_null(strstr(why, "exists already"));
}

static void missing_segment_is_refused(void **state)
{
	(void)state;
	assert_refused(ENOENT, "no such shelf");
	assert_int_equal(segment_remove(seg_test.name, why), -ENOENT);
}

static void foreign_owner_is_refused(void **state)
{
	(void)state;
	if (chown(seg_test_path(), 12345, -1))
		skip();
	assert_refused(EPERM, "belongs to user 12345");
}

static long hand_over(void)
{
	return open(seg_test_path(), O_RDWR | O_CLOEXEC);
}

static long hand_over_nothing(void)
{
	return -EACCES;
}

static void foreign_segment_is_attached_if_its_owner_hands_it_over(void **state)
{
	struct segment *seg;

	(void)state;
	if (chown(seg_test_path(), 12345, -1))
		skip();
	segment_register_opener(hand_over_nothing);
	assert_refused(EPERM, "belongs to user 12345");
	segment_register_opener(hand_over);
	assert_int_equal(segment_attach(seg_test.name, false, &seg, why), 0);
	segment_detach(seg);
	assert_int_equal(chmod(seg_test_path(), 0644), 0);
	assert_refused(EPERM, "0644"); /* whoever hands it over */
	segment_register_opener(NULL);
}

static void wrong_mode_is_refused(void **state)
{
	(void)state;
	assert_int_equal(chmod(seg_test_path(), 0644), 0);
	assert_refused(EPERM, "0644");
}

static void symbolic_link_is_refused(void **state)
{
	(void)state;
	assert_int_equal(symlink("/etc/passwd", seg_test_path()), 0);
	assert_refused(ELOOP, "symbolic link");
	assert_int_equal(segment_remove(seg_test.name, why), -EINVAL);
}

static void directory_and_fifo_are_refused(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(seg_test_path(), 0600), 0);
	assert_refused(EINVAL, "not a plain file");
	unlink(seg_test_path());
	assert_int_equal(mkdir(seg_test_path(), 0700), 0);
	assert_int_not_equal(attach_elsewhere(false, why), 0);
	rmdir(seg_test_path());
}

static void other_bytes_are_refused(void **state)
{
	(void)state;
	scribble(0, "GARBAGE!", 8);
	assert_refused(EINVAL, "not a shelf segment");
}

static void other_version_is_refused(void **state)
{
	uint32_t version = SEG_VERSION + 1;
	char reason[64];

	(void)state;
	scribble(offsetof(struct seg_header, version), &version, sizeof(version));
	snprintf(reason, sizeof(reason), "format version %u", version);
	assert_refused(EPROTO, reason);
}

static void damaged_header_is_refused(void **state)
{
	uint64_t size = 1 << 30;

	(void)state;
	scribble(offsetof(struct seg_header, size), &size, sizeof(size));
	assert_refused(EIO, "checksum");
}

static void other_build_options_are_refused(void **state)
{
	struct seg_header h = *seg_test.seg->hdr;

	(void)state;
	h.build ^= 0x80;
	layout_seal(&h);
	scribble(0, &h, offsetof(struct seg_header, sum) + sizeof(h.sum));
	assert_refused(EPROTO, "build with options");
}

static void nonsense_with_a_good_checksum_is_refused(void **state)
{
	struct seg_header h = *seg_test.seg->hdr;

	(void)state;
	h.frames_at += 64;
	layout_seal(&h);
	scribble(0, &h, offsetof(struct seg_header, sum) + sizeof(h.sum));
	assert_refused(EIO, "makes no sense");
}

static void damaged_roots_are_refused(void **state)
{
	const void *nowhere = (void *)0x20;

	(void)state;
	scribble(offsetof(struct seg_header, root[SEG_ROOT_VFS]), &nowhere, sizeof(nowhere));
	assert_refused(EIO, "roots");
}

static void truncated_file_is_refused(void **state)
{
	(void)state;
	assert_int_equal(truncate(seg_test_path(), 5 << 20), 0);
	assert_refused(EINVAL, "truncated");
	assert_int_equal(truncate(seg_test_path(), 100), 0);
	assert_refused(EINVAL, "truncated");
}

static void taken_range_is_refused(void **state)
{
	struct seg_header *h = seg_test.seg->hdr;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		uint64_t base = h->base;
		struct segment *seg;

		segment_detach(seg_test.seg);
		CHECK(mmap((void *)(base + 8192), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		      MAP_FAILED);
		CHECK(segment_attach(seg_test.name, false, &seg, why) == -EADDRINUSE);
		CHECK(strstr(why, "taken in this process"));
		_exit(0);
	}
	assert_int_equal(test_wait(pid), 0);
}

static void creator_dead_before_the_header_is_named(void **state)
{
	int fd = open(seg_test_path(), O_RDWR | O_CREAT | O_EXCL, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_refused(EIO, "creator died");
	assert_int_equal(ftruncate(fd, 8 << 20), 0);
	close(fd);
	assert_refused(EIO, "creator died");
	assert_int_equal(segment_remove(seg_test.name, why), 0);
}

static void creator_dead_before_ready_is_named(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct segment_options opt = {.size = 4 << 20};
		struct segment *seg;

		_exit(segment_create(seg_test.name, &opt, &seg, why) != 0);
	}
	assert_int_equal(test_wait(pid), 0);
	assert_refused(EIO, "died");
	assert_int_equal(segment_remove(seg_test.name, why), 0);
}

static void attach_waits_for_a_creator_that_is_busy(void **state)
{
	struct segment_options opt = {.size = 4 << 20};
	struct timespec ts = {0, 30000000};
	pid_t pid;

	(void)state;
	assert_int_equal(segment_create(seg_test.name, &opt, &seg_test.seg, why), 0);
	pid = fork();
	if (pid == 0) {
		struct segment *seg;

		segment_detach(seg_test.seg);
		_exit(segment_attach(seg_test.name, false, &seg, why) != 0);
	}
	nanosleep(&ts, NULL);
	segment_set_ready(seg_test.seg);
	assert_int_equal(test_wait(pid), 0);
}

static void poisoned_segment_is_for_reading_only(void **state)
{
	(void)state;
	segment_poison(seg_test.seg, "first reason");
	segment_poison(seg_test.seg, "second reason");
	assert_refused(EIO, "first reason");
	assert_int_equal(attach_elsewhere(true, why), 0);
}

static int read_only_child(void *arg)
{
	char *page = arg;
	struct segment *seg;
	struct slot *self;

	segment_detach(seg_test.seg);
	CHECK(segment_attach(seg_test.name, true, &seg, why) == 0);
	self = slot_self(seg);
	CHECK(self && slot_id(self) == 2);
	store_relaxed(&self->epoch, 3); /* the own slot can be written */
	store_relaxed(&self->epoch, 0);
	CHECK(*page == 7);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		*page = 8; /* nothing else can */
		_exit(0);
	}
	CHECK(test_wait(pid) != 0);
	slot_release(self);
	CHECK(slot_id(slot_self(seg)) == 2);
	segment_detach(seg);
	return 0;
}

static void reader_can_write_its_own_slot_only(void **state)
{
	char *page = page_alloc(slot_self(seg_test.seg), 0, PAGE_DATA, 0);

	(void)state;
	*page = 7;
	assert_int_equal(test_in_child(read_only_child, page), 0);
	assert_int_equal(*page, 7);
}

static void a_fresh_segment_is_small_and_cheap(void **state)
{
	struct segment_options opt = {.size = 1 << 30};
	struct timespec a, b;
	struct stat st;
	double best = 1e9;
	unsigned k;

	(void)state;
	for (k = 0; k < 20; k++) {
		seg_test_remove(NULL);
		clock_gettime(CLOCK_MONOTONIC, &a);
		assert_int_equal(segment_create(seg_test.name, &opt, &seg_test.seg, why), 0);
		assert_non_null(page_alloc(slot_self(seg_test.seg), 0, PAGE_DATA, 0));
		clock_gettime(CLOCK_MONOTONIC, &b);
		best = min_of(best, (b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) / 1e3);
	}
	assert_int_equal(stat(seg_test_path(), &st), 0);
	printf("create, slot and first page: %.0f us, %ld KiB\n", best, (long)st.st_blocks / 2);
	assert_true(st.st_blocks / 2 <= 128);
}

#define WITH_SEGMENT(f) cmocka_unit_test_setup_teardown(f, make, seg_test_remove)
#define WITH_NAME(f) cmocka_unit_test_setup_teardown(f, no_segment, seg_test_remove)
#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, no_segment, unlink_leftover)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SEGMENT(attach_finds_the_same_bytes_at_the_same_address),
		WITH_SEGMENT(attach_twice_is_one_mapping),
		WITH_NAME(attach_leaves_no_descriptor_open),
		WITH_NAME(segments_of_one_process_do_not_disturb_one_another),
		WITH_NAME(bases_of_segments_differ),
		WITH_NAME(names_with_slash_empty_or_too_long_are_refused),
		WITH_NAME(a_directory_that_is_relative_or_too_long_is_refused),
		WITH_NAME(a_segment_is_made_on_a_tmpfs_only),
		WITH_SEGMENT(create_over_an_existing_name_is_refused),
		WITH_NAME(missing_segment_is_refused),
		WITH_SEGMENT(foreign_owner_is_refused),
		WITH_SEGMENT(foreign_segment_is_attached_if_its_owner_hands_it_over),
		WITH_SEGMENT(wrong_mode_is_refused),
		WITH_FILE(symbolic_link_is_refused),
		WITH_FILE(directory_and_fifo_are_refused),
		WITH_SEGMENT(other_bytes_are_refused),
		WITH_SEGMENT(other_version_is_refused),
		WITH_SEGMENT(damaged_header_is_refused),
		WITH_SEGMENT(damaged_roots_are_refused),
		WITH_SEGMENT(other_build_options_are_refused),
		WITH_SEGMENT(nonsense_with_a_good_checksum_is_refused),
		WITH_SEGMENT(truncated_file_is_refused),
		WITH_SEGMENT(taken_range_is_refused),
		WITH_FILE(creator_dead_before_the_header_is_named),
		WITH_FILE(creator_dead_before_ready_is_named),
		WITH_NAME(attach_waits_for_a_creator_that_is_busy),
		WITH_SEGMENT(poisoned_segment_is_for_reading_only),
		WITH_SEGMENT(reader_can_write_its_own_slot_only),
		WITH_NAME(a_fresh_segment_is_small_and_cheap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

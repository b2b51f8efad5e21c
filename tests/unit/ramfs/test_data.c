/* SPDX-License-Identifier: MIT */
/* What single calls on file data do: sizes, holes, limits, costs, errors. */
#include "data_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define END ((uint64_t)MAX_FILE_BYTES)

static int setup(void **state)
{
	static struct data_world world;

	world_open(&world, 0);
	*state = &world;
	return 0;
}

static int teardown(void **state)
{
	struct data_world *world = *state;

	assert_int_equal(world_data_pages(world), 0);
	world_close(world);
	return 0;
}

static void a_file_of_one_byte_costs_one_page_and_no_node(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	char got[8] = "";

	assert_int_equal(world_pwrite(&world->w, f, "x", 1, 0), 1);
	assert_int_equal(world_pages(f), 1);
	assert_int_equal(world_data_pages(world), 1);
	assert_int_equal(world_nodes(world), 0);
	assert_int_equal(world_pread(&world->w, f, got, 8, 0), 1);
	assert_int_equal(got[0], 'x');
	inode_put(world->self, f);
}

static void holes_read_as_zeros_and_cost_nothing(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	char got[10000];
	int i;

	assert_int_equal(world_pwrite(&world->w, f, "x", 1, 50000), 1);
	assert_int_equal(world_size(f), 50001);
	assert_int_equal(world_pages(f), 1);
	assert_int_equal(world_pread(&world->w, f, got, sizeof(got), 40001), sizeof(got));
	for (i = 0; i < 9999; i++)
		assert_int_equal(got[i], 0);
	assert_int_equal(got[9999], 'x');
	assert_int_equal(world_seek(&world->w, f, 0, SEEK_DATA), 49152);
	assert_int_equal(world_seek(&world->w, f, 0, SEEK_HOLE), 0);
	inode_put(world->self, f);
}

static void the_largest_offset_is_that_of_linux(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	char got[8];

	assert_int_equal(world_pwrite(&world->w, f, "abc", 3, END - 3), 3);
	assert_int_equal(world_size(f), END);
	assert_int_equal(world_pread(&world->w, f, got, 8, END - 3), 3);
	assert_memory_equal(got, "abc", 3);
	assert_int_equal(world_pwrite(&world->w, f, "abc", 3, END - 2), -EINVAL);
	assert_int_equal(world_pwrite(&world->w, f, "a", 1, END), -EINVAL);
	assert_int_equal(world_append(&world->w, f, "a", 1), -EFBIG);
	assert_int_equal(ramfs_truncate(&world->w, f, END + 1), -EFBIG);
	assert_int_equal(world_seek(&world->w, f, 0, SEEK_DATA), ALIGN_DOWN(END, PAGE_BYTES));
	assert_int_equal(world_pages(f), 1);
	assert_int_equal(ramfs_truncate(&world->w, f, 0), 0);
	assert_int_equal(ramfs_truncate(&world->w, f, END), 0);
	assert_int_equal(world_pread(&world->w, f, got, 8, END - 8), 8);
	assert_memory_equal(got, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(world_nodes(world), 0);
	inode_put(world->self, f);
}

static void what_lay_behind_the_end_never_comes_back(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	char got[6] = "zzzzzz";

	world_pwrite(&world->w, f, "abcdef", 6, 0);
	ramfs_truncate(&world->w, f, 2);
	ramfs_truncate(&world->w, f, 4);
	world_pwrite(&world->w, f, "x", 1, 5);
	assert_int_equal(world_pread(&world->w, f, got, 6, 0), 6);
	assert_memory_equal(got, "ab\0\0\0x", 6);
	inode_put(world->self, f);
}

static void append_goes_to_the_new_end_after_truncate(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	char data[32] = {1};
	uint64_t pos = 99;
	struct iovec iov = {data, 32};

	assert_int_equal(ramfs_write(&world->w, f, &iov, 1, &pos, 32, WRITE_APPEND), 32);
	assert_int_equal(pos, 0);
	assert_int_equal(world_size(f), 32);
	ramfs_truncate(&world->w, f, 0);
	assert_int_equal(world_size(f), 0);
	assert_int_equal(world_append(&world->w, f, data, 32), 32);
	assert_int_equal(world_size(f), 32);
	inode_put(world->self, f);
}

static void writing_changes_times_and_writing_nothing_does_not(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);

	store_relaxed(&f->mtime, 5);
	store_relaxed(&f->ctime, 5);
	assert_int_equal(world_pwrite(&world->w, f, "", 0, 10), 0);
	assert_int_equal(load_relaxed(&f->mtime), 5);
	assert_int_equal(world_size(f), 0);
	world_pwrite(&world->w, f, "a", 1, 0);
	assert_true(load_relaxed(&f->mtime) > 5 && load_relaxed(&f->ctime) > 5);
	store_relaxed(&f->mtime, 5);
	ramfs_truncate(&world->w, f, 1); /* the same size */
	assert_true(load_relaxed(&f->mtime) > 5);
	inode_put(world->self, f);
}

static void writing_takes_setuid_away(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);

	world->cred.caps = 0;
	world->cred.fsuid = 1000;
	world_pwrite(&world->w, f, "a", 1, 0);
	store_relaxed(&f->mode, S_IFREG | 06777);
	world_pwrite(&world->w, f, "a", 1, 0);
	assert_int_equal(load_relaxed(&f->mode), S_IFREG | 0777);
	store_relaxed(&f->mode, S_IFREG | 06777);
	ramfs_truncate(&world->w, f, 1);
	assert_int_equal(load_relaxed(&f->mode), S_IFREG | 0777);
	store_relaxed(&f->mode, S_IFREG | 06777);
	ramfs_fallocate(&world->w, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1);
	assert_int_equal(load_relaxed(&f->mode), S_IFREG | 0777);
	inode_put(world->self, f);
}

static void a_try_never_waits_for_the_lock(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	struct iovec iov = {(char[]){'a'}, 1};
	uint64_t pos = 0;

	lock_acquire(&f->lock, &world->self->locker, LOCK_INODE);
	assert_int_equal(ramfs_write(&world->w, f, &iov, 1, &pos, 1, WRITE_TRY), -EAGAIN);
	lock_release(&f->lock, &world->self->locker, LOCK_INODE);
	epoch_enter(world->self);
	assert_int_equal(ramfs_write(&world->w, f, &iov, 1, &pos, 1, WRITE_TRY), 1);
	epoch_exit(world->self);
	inode_put(world->self, f);
}

/* In a section, as a borrower is when another thread closes the last descriptor. */
static void a_reader_of_a_file_that_is_freed_is_told_to_look_again(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	char got;

	world_pwrite(&world->w, f, "a", 1, 0);
	epoch_enter(world->self);
	inode_put(world->self, f);
	assert_int_equal(ramfs_pread_epoch(world->self, f, &got, 1, 0), DATA_AGAIN);
	epoch_exit(world->self);
}

static void fallocate_gives_the_errors_of_linux(void **state)
{
	static const struct {
		int mode;
		uint64_t off, len;
		int err;
	} cases[] = {
		{0, 0, 0, -EINVAL},
		{0, (uint64_t)-1, 1, -EINVAL},
		{0, 0, (uint64_t)-1, -EINVAL},
		{0, END, 1, -EFBIG},
		{FALLOC_FL_PUNCH_HOLE, 0, 1, -EOPNOTSUPP},
		{FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0, 1, -EOPNOTSUPP},
		{FALLOC_FL_UNSHARE_RANGE, 0, 1, -EOPNOTSUPP},
		{0x4000, 0, 1, -EOPNOTSUPP},
		{FALLOC_FL_COLLAPSE_RANGE, 1, 4096, -EINVAL},
		{FALLOC_FL_COLLAPSE_RANGE, 0, 4095, -EINVAL},
		{FALLOC_FL_COLLAPSE_RANGE, 4096, 4096, -EINVAL}, /* reaches the end */
		{FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_KEEP_SIZE, 0, 4096, -EOPNOTSUPP},
		{FALLOC_FL_INSERT_RANGE, 8192, 4096, -EINVAL}, /* at the end */
		{FALLOC_FL_INSERT_RANGE, 0, 100, -EINVAL},
		{FALLOC_FL_INSERT_RANGE, 0, END - 4095, -EFBIG},
		{0, 0, UINT64_C(1) << 50, -ENOSPC},
		{FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, UINT64_C(1) << 40, UINT64_C(1) << 40, 0},
	};
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	size_t i;

	ramfs_truncate(&world->w, f, 8192);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(ramfs_fallocate(&world->w, f, cases[i].mode, cases[i].off, cases[i].len), cases[i].err);
	assert_int_equal(world_size(f), 8192);
	assert_int_equal(world_pages(f), 0);
	inode_put(world->self, f);
}

static void allocated_pages_are_holes_until_they_are_written(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);

	assert_int_equal(ramfs_fallocate(&world->w, f, 0, 0, 10000), 0);
	assert_int_equal(world_size(f), 10000);
	assert_int_equal(world_pages(f), 3);
	assert_int_equal(world_seek(&world->w, f, 0, SEEK_DATA), -ENXIO);
	assert_int_equal(world_seek(&world->w, f, 0, SEEK_HOLE), 0);
	world_pwrite(&world->w, f, "a", 1, 0);
	assert_int_equal(world_seek(&world->w, f, 0, SEEK_DATA), 0);
	assert_int_equal(world_seek(&world->w, f, 0, SEEK_HOLE), 4096);
	assert_int_equal(ramfs_fallocate(&world->w, f, FALLOC_FL_KEEP_SIZE, 20000, 5000), 0);
	assert_int_equal(world_size(f), 10000);
	assert_int_equal(world_pages(f), 6);
	ramfs_truncate(&world->w, f, 10000);
	assert_int_equal(world_pages(f), 3);
	inode_put(world->self, f);
}

static void copying_ends_at_the_source_s_end_and_fills_holes(void **state)
{
	struct data_world *world = *state;
	struct inode *in = world_file(&world->w), *out = world_file(&world->w);
	uint64_t pos = 100;
	char got[4];

	world_pwrite(&world->w, in, "abc", 3, 100000);
	assert_int_equal(ramfs_copy_range(&world->w, in, 2, out, &pos, 1 << 30, 0), 100001);
	assert_int_equal(pos, 100101);
	assert_int_equal(world_size(out), 100101);
	assert_int_equal(world_pages(out), 25);
	assert_int_equal(world_pread(&world->w, out, got, 4, 100097), 4);
	assert_memory_equal(got, "\0abc", 4);
	assert_int_equal(ramfs_copy_range(&world->w, in, 100003, out, &pos, 1, 0), 0);
	assert_int_equal(ramfs_copy_range(&world->w, in, 0, out, &pos, 1, 1), -EINVAL);
	assert_int_equal(ramfs_copy_range(&world->w, in, 0, out, &pos, UINT64_MAX, 0), -EOVERFLOW);
	pos = 10;
	assert_int_equal(ramfs_copy_range(&world->w, in, 0, in, &pos, 11, 0), -EINVAL);
	inode_put(world->self, in);
	inode_put(world->self, out);
}

static void catch_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uintptr_t ip = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];

	(void)sig, (void)info;
	if (!fault_fixup(&ip))
		_exit(99);
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)ip;
}

static void a_bad_buffer_gives_what_came_before_it_or_efault(void **state)
{
	struct data_world *world = *state;
	struct inode *f = world_file(&world->w);
	struct sigaction act = {.sa_sigaction = catch_fault, .sa_flags = SA_SIGINFO}, old;
	char *mem = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char got[200];
	int i;

	mprotect(mem + PAGE_BYTES, PAGE_BYTES, PROT_NONE);
	memset(mem, 7, PAGE_BYTES);
	sigaction(SIGSEGV, &act, &old);
	for (i = 0; i < 3; i++) { /* into a hole, into the pages, at the end */
		uint64_t pos = i == 2 ? world_size(f) : 10;

		assert_int_equal(world_pwrite(&world->w, f, mem + PAGE_BYTES, 100, pos), -EFAULT);
		assert_int_equal(world_pwrite(&world->w, f, mem + PAGE_BYTES - 100, 60000, pos), 100);
		assert_int_equal(world_size(f), pos + 100);
		assert_int_equal(world_pages(f), 1);
	}
	assert_int_equal(world_pread(&world->w, f, got, 200, 10), 200);
	assert_int_equal(got[0], 7);
	assert_int_equal(got[199], 7);
	assert_int_equal(world_pread(&world->w, f, mem + PAGE_BYTES, 100, 0), -EFAULT);
	assert_int_equal(world_pread(&world->w, f, mem + PAGE_BYTES - 100, 200, 0), 100);
	sigaction(SIGSEGV, &old, NULL);
	munmap(mem, 2 * PAGE_BYTES);
	inode_put(world->self, f);
}

#define data_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		data_test(a_file_of_one_byte_costs_one_page_and_no_node),
		data_test(holes_read_as_zeros_and_cost_nothing),
		data_test(the_largest_offset_is_that_of_linux),
		data_test(what_lay_behind_the_end_never_comes_back),
		data_test(append_goes_to_the_new_end_after_truncate),
		data_test(writing_changes_times_and_writing_nothing_does_not),
		data_test(writing_takes_setuid_away),
		data_test(a_try_never_waits_for_the_lock),
		data_test(a_reader_of_a_file_that_is_freed_is_told_to_look_again),
		data_test(fallocate_gives_the_errors_of_linux),
		data_test(allocated_pages_are_holes_until_they_are_written),
		data_test(copying_ends_at_the_source_s_end_and_fills_holes),
		data_test(a_bad_buffer_gives_what_came_before_it_or_efault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* A full segment: short writes, ENOSPC with nothing changed, room again after freeing, and every page accounted for. */
#include "data_world.h"

#include <fcntl.h>
#include <sys/mman.h>

#define SMALL (8UL << 20)

static char block[1 << 20];

static uint64_t fill(struct who *w, struct inode *f, size_t n)
{
	uint64_t done = 0;
	ssize_t got;

	while ((got = world_pwrite(w, f, block, n, done)) > 0)
		done += (uint64_t)got;
	assert_int_equal(got, -ENOSPC);
	return done;
}

static void check_filled(struct who *w, struct inode *f, uint64_t size)
{
	static char got[1 << 16];
	uint64_t at;
	ssize_t n;

	assert_int_equal(world_size(f), size);
	for (at = 0; at < size; at += (uint64_t)n) {
		n = world_pread(w, f, got, sizeof(got), at);
		assert_true(n > 0);
		assert_memory_equal(got, block, n);
	}
}

static void fill_and_free(void **state, size_t n)
{
	struct data_world world;
	struct inode *f, *other;
	uint64_t size, again, before;
	int i;

	(void)state;
	memset(block, 0x5a, sizeof(block));
	world_open(&world, SMALL);
	before = world_data_pages(&world);
	for (i = 0; i < 4; i++) {
		f = world_file(&world.w);
		other = world_file(&world.w);
		assert_int_equal(world_pwrite(&world.w, other, "keep", 4, 0), 4);
		size = fill(&world.w, f, n);
		assert_true(size > SMALL / 2);
		check_filled(&world.w, f, size);
		assert_int_equal(world_pages(f), data_pages_of(size));
		/* nobody else suffers */
		assert_int_equal(world_pwrite(&world.w, other, "KEEP", 4, 0), 4);
		ramfs_truncate(&world.w, f, size / 2);
		assert_int_equal(world_data_pages(&world), world_pages(f) + 1);
		again = (uint64_t)world_pwrite(&world.w, f, block, 4096, size);
		assert_int_equal(again, 4096);
		inode_put(world.self, f);
		inode_put(world.self, other);
		assert_int_equal(world_data_pages(&world), before);
		assert_int_equal(world_nodes(&world), 0);
	}
	world_close(&world);
}

static void a_segment_filled_byte_blocks_at_a_time_is_whole_again_after_freeing(void **state)
{
	fill_and_free(state, 1000);
}

static void a_segment_filled_by_pages_is_whole_again_after_freeing(void **state)
{
	fill_and_free(state, 4096);
}

static void a_segment_filled_by_runs_is_whole_again_after_freeing(void **state)
{
	fill_and_free(state, sizeof(block));
}

static void what_fits_is_written_and_counted(void **state)
{
	struct data_world world;
	struct inode *f;
	char *big = calloc(1, 2 * SMALL);
	ssize_t n;

	(void)state;
	world_open(&world, SMALL);
	f = world_file(&world.w);
	n = world_pwrite(&world.w, f, big, 2 * SMALL, 0);
	assert_true(n > (ssize_t)SMALL / 2 && n < (ssize_t)SMALL);
	assert_int_equal(world_size(f), n);
	assert_int_equal(world_pwrite(&world.w, f, big, 1, (uint64_t)n + 1), -ENOSPC);
	assert_int_equal(world_size(f), n);
	inode_put(world.self, f);
	free(big);
	assert_int_equal(world_data_pages(&world), 0);
	world_close(&world);
}

static void fallocate_that_does_not_fit_changes_nothing(void **state)
{
	struct data_world world;
	struct inode *f;
	uint64_t len, pages;

	(void)state;
	world_open(&world, SMALL);
	f = world_file(&world.w);
	world_pwrite(&world.w, f, "a", 1, 5 * PAGE_BYTES);
	for (len = SMALL - (2UL << 20); len <= 2 * SMALL; len += 20 * PAGE_BYTES) {
		int err = ramfs_fallocate(&world.w, f, 0, 0, len);

		if (!err) {
			assert_int_equal(world_size(f), len);
			ramfs_truncate(&world.w, f, 5 * PAGE_BYTES + 1);
			ramfs_fallocate(&world.w, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 5 * PAGE_BYTES);
			continue;
		}
		assert_int_equal(err, -ENOSPC);
		assert_int_equal(world_size(f), 5 * PAGE_BYTES + 1);
		assert_int_equal(world_pages(f), 1);
	}
	pages = world_data_pages(&world);
	assert_int_equal(pages, 1);
	inode_put(world.self, f);
	world_close(&world);
}

static void shifting_pages_in_a_full_segment_fails_or_is_whole(void **state)
{
	struct data_world world;
	struct inode *f;
	uint64_t size, pages;
	int err;

	(void)state;
	memset(block, 0x5a, sizeof(block));
	world_open(&world, SMALL);
	f = world_file(&world.w);
	size = fill(&world.w, f, 65536);
	pages = world_pages(f);
	err = ramfs_fallocate(&world.w, f, FALLOC_FL_COLLAPSE_RANGE, PAGE_BYTES, PAGE_BYTES);
	if (!err)
		size -= PAGE_BYTES, pages--;
	else
		assert_int_equal(err, -ENOSPC);
	check_filled(&world.w, f, size);
	assert_int_equal(world_pages(f), pages);
	inode_put(world.self, f);
	assert_int_equal(world_data_pages(&world), 0);
	assert_int_equal(world_nodes(&world), 0);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_filled_byte_blocks_at_a_time_is_whole_again_after_freeing),
		cmocka_unit_test(a_segment_filled_by_pages_is_whole_again_after_freeing),
		cmocka_unit_test(a_segment_filled_by_runs_is_whole_again_after_freeing),
		cmocka_unit_test(what_fits_is_written_and_counted),
		cmocka_unit_test(fallocate_that_does_not_fit_changes_nothing),
		cmocka_unit_test(shifting_pages_in_a_full_segment_fails_or_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/* Site tables: what is written comes back; what is damaged, foreign or hostile does not. */
#include "harness.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "run/insn.h"
#include "run/table.h"

enum { HOSTILE_RUNS = 4000 };

static struct run_image im;
static struct run_sites sites;
static uint8_t *table;
static size_t size;

static int start(void **state)
{
	(void)state;
	if (image_map_file(&im, "/lib64/ld-linux-x86-64.so.2"))
		test_skip("no loader of that name");
	CHECK(scan_image(&im, &sites) == 0);
	size = table_size(&sites);
	table = malloc(size);
	table_write(&im, &sites, table);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	free(table);
	sites_free(&sites);
	image_unmap_file(&im);
	return 0;
}

static void what_is_written_comes_back(void **state)
{
	struct table_cursor c;
	struct run_site s;

	(void)state;
	assert_int_equal(table_open(&im, table, size, &c), 0);
	for (uint32_t i = 0; i < sites.count; i++) {
		const struct run_site *want = &sites.sites[i];

		assert_int_equal(table_next(&c, &s), 1);
		assert_int_equal(s.at, want->at);
		assert_int_equal(s.nr, want->nr);
		assert_int_equal(s.before, want->before);
		assert_int_equal(s.len, want->len);
		assert_int_equal(s.why, want->why);
		assert_memory_equal(s.bytes, want->bytes, s.len);
	}
	assert_int_equal(table_next(&c, &s), 0);
	printf("%u sites in %zu bytes\n", sites.count, size);
}

static void every_changed_byte_is_noticed(void **state)
{
	struct table_cursor c;

	(void)state;
	for (size_t i = 0; i < size; i++) {
		table[i] ^= 0x10;
		assert_int_not_equal(table_open(&im, table, size, &c), 0);
		table[i] ^= 0x10;
	}
	assert_int_equal(table_open(&im, table, size, &c), 0);
}

static void every_cut_is_noticed(void **state)
{
	struct table_cursor c;

	(void)state;
	for (size_t i = 0; i < size; i++) {
		uint8_t *copy = malloc(i + !i);

		memcpy(copy, table, i);
		assert_int_equal(table_open(&im, copy, i, &c), -EBADMSG);
		free(copy);
	}
}

static void another_build_is_refused(void **state)
{
	struct run_image other = im;
	struct table_cursor c;

	(void)state;
	other.id[3] ^= 1;
	assert_int_equal(table_open(&other, table, size, &c), -ESTALE);
	other = im;
	other.text_len--;
	assert_int_equal(table_open(&other, table, size, &c), -ESTALE);
}

/* Whatever a table says, what comes out lies in the text, in order, and is movable code. */
static void check_site(const struct run_site *s, uint32_t *floor)
{
	unsigned int at = 0;
	struct insn in;

	CHECK(s->why < SITE_WHYS && s->nr >= -1);
	CHECK(s->at >= im.text && s->at + SYSCALL_LEN <= im.text + im.text_len);
	CHECK(s->at - s->before >= *floor && s->len <= WINDOW_MAX);
	if (s->why != SITE_OK) {
		*floor = s->at + SYSCALL_LEN;
		return;
	}
	CHECK(s->len >= JUMP_LEN && s->at - s->before + s->len <= im.text + im.text_len);
	while (at < s->len) {
		CHECK(insn_decode(&in, s->bytes + at, s->len - at));
		CHECK(insn_is_syscall(&in) == (at == s->before));
		CHECK(at == s->before || (at < s->before ? insn_relocatable(&in) : insn_relocatable_behind(&in)));
		at += in.len;
	}
	CHECK(s->before + SYSCALL_LEN <= s->len);
	*floor = s->at - s->before + s->len;
}

static void hostile_tables_yield_good_sites_or_none(void **state)
{
	uint64_t rng = test_seed();
	unsigned long runs = test_scaled(HOSTILE_RUNS), refused = 0;

	(void)state;
	for (unsigned long run = 0; run < runs; run++) {
		size_t len =
			size -
			(run % 5 ? 0 : test_random(&rng) % (size - sizeof(struct table_header)));
		/* Its own allocation, so that a sanitizer sees a byte read too far. */
		uint8_t *copy = malloc(len);
		unsigned int changes = 1 + test_random(&rng) % 4;
		/* The build id and what comes before it are mostly left alone. */
		size_t start =
			run % 7 ? sizeof(struct table_header) : offsetof(struct table_header, text);
		struct table_cursor c;
		struct run_site s;
		uint32_t floor = im.text;
		int rc;

		memcpy(copy, table, len);
		while (changes-- && len > start)
			copy[start + test_random(&rng) % (len - start)] =
				(uint8_t)test_random(&rng);
		/* A hostile writer computes the size and the sum as well. */
		table_seal(copy, len);
		rc = table_open(&im, copy, len, &c);
		if (rc == 0)
			while ((rc = table_next(&c, &s)) > 0)
				check_site(&s, &floor);
		refused += rc != 0;
		free(copy);
	}
	printf("%lu of %lu hostile tables refused\n", refused, runs);
	assert_true(refused > runs / 4);
}

static void files_of_others_are_refused(void **state)
{
	char dir[] = "/tmp/shelf-sites.XXXXXX", path[PATH_MAX];
	const void *buf;
	size_t len;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(table_load(&im, dir, &buf, &len), -ENOENT);
	assert_int_equal(table_save(&im, &sites, dir), 0);
	assert_int_equal(table_path(&im, dir, path), 0);
	assert_int_equal(table_load(&im, dir, &buf, &len), 0);
	assert_int_equal(len, size);
	assert_memory_equal(buf, table, size);
	table_unload(buf, len);
	assert_int_equal(chmod(path, 0620), 0);
	assert_int_equal(table_load(&im, dir, &buf, &len), -EPERM);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(table_load(&im, dir, &buf, &len), -EBADMSG);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(table_load(&im, dir, &buf, &len), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void folder_names_too_long_are_refused(void **state)
{
	static char dir[2 * PATH_MAX], path[PATH_MAX];

	(void)state;
	memset(dir, 'x', sizeof(dir) - 1);
	assert_int_equal(table_path(&im, dir, path), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_comes_back),
		cmocka_unit_test(every_changed_byte_is_noticed),
		cmocka_unit_test(every_cut_is_noticed),
		cmocka_unit_test(another_build_is_refused),
		cmocka_unit_test(hostile_tables_yield_good_sites_or_none),
		cmocka_unit_test(files_of_others_are_refused),
		cmocka_unit_test(folder_names_too_long_are_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}

// SPDX-License-Identifier: MIT
/* Which system calls the scanner finds, which numbers it knows, and which windows it dares. */
#include "harness.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "run/numbers.h"
#include "unit/run/lib/fake.h"

static _Alignas(4096) uint8_t memory[FAKE_PAGES * 4096];

static int start(void **state)
{
	static struct fake f;

	CHECK(mprotect(memory, sizeof(memory), PROT_READ | PROT_WRITE) == 0);
	fake_start(&f, memory);
	*state = &f;
	return 0;
}

/* Scans, wants COUNT sites, and returns site I.  The sites stay mapped for the test's time. */
static struct run_site scan_one(struct fake *f, uint32_t count, uint32_t i)
{
	struct run_sites sites;
	struct run_site site;

	fake_finish(f);
	assert_int_equal(scan_image(&f->im, &sites), 0);
	assert_int_equal(sites.count, count);
	site = sites.sites[i];
	sites_free(&sites);
	return site;
}

static void number_and_call_make_one_window(void **state)
{
	struct fake *f = *state;
	uint32_t at = FAKE_CODE(f, 0x90, 0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3);
	struct run_site s = scan_one(f, 1, 0);

	assert_int_equal(s.at, at + 6);
	assert_int_equal(s.nr, SYS_getpid);
	assert_int_equal(s.why, SITE_OK);
	assert_int_equal(s.before, 5);
	assert_int_equal(s.len, 7);
}

static void bytes_inside_an_instruction_are_no_site(void **state)
{
	FAKE_CODE(*state, 0xb8, 0x0f, 0x05, 0, 0, 0xb9, 0, 0x0f, 0x05, 0, 0xc3);
	struct run_sites sites;

	fake_finish(*state);
	assert_int_equal(scan_image(&((struct fake *)*state)->im, &sites), 0);
	assert_int_equal(sites.count, 0);
	sites_free(&sites);
}

static void data_between_functions_is_no_sure_site(void **state)
{
	struct fake *f = *state;

	FAKE_CODE(f, 0xc3);
	memcpy(f->base + FAKE_TEXT + 4, "\xb8\1\0\0\0\x0f\x05\xc3", 8);
	FAKE_CODE(f, 0xc3);
	assert_int_equal(scan_one(f, 1, 0).why, SITE_UNSURE);
}

static void code_behind_a_function_that_runs_on_is_sure(void **state)
{
	static const uint8_t first[] = {0x90, 0xb8, 56, 0, 0, 0}, rest[] = {0x0f, 0x05, 0xc3, 0x90};
	struct fake *f = *state;
	uint32_t at = fake_function(f, first, sizeof(first), sizeof(rest));
	struct run_site s;

	memcpy(f->base + at + sizeof(first), rest, sizeof(rest));
	FAKE_CODE(f, 0xc3);
	s = scan_one(f, 1, 0);
	assert_int_equal(s.why, SITE_OK);
	assert_int_equal(s.nr, SYS_clone);
}

static void function_that_breaks_off_is_not_sure(void **state)
{
	/* The function ends inside its last instruction. */
	FAKE_CODE(*state, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0xb8, 1);
	FAKE_CODE(*state, 0xc3);
	assert_int_equal(scan_one(*state, 1, 0).why, SITE_UNSURE);
}

static void branch_to_the_call_moves_what_follows_instead(void **state)
{
	/* je to the syscall; the compare behind it goes along. */
	FAKE_CODE(*state, 0x74, 5, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0x48, 0x3d, 0, 0xf0, 0xff, 0xff,
		  0xc3);
	struct run_site s = scan_one(*state, 1, 0);

	assert_int_equal(s.why, SITE_OK);
	assert_int_equal(s.before, 0);
	assert_int_equal(s.len, 8);
	assert_int_equal(s.nr, -1);
}

static void branches_to_both_sides_leave_no_window(void **state)
{
	/* je to the syscall, jne to what follows it */
	FAKE_CODE(*state, 0x74, 7, 0x75, 7, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0x48, 0x3d, 0, 0xf0, 0xff,
		  0xff, 0xc3);
	assert_int_equal(scan_one(*state, 1, 0).why, SITE_TARGET);
}

static void switch_tables_and_pointers_are_targets(void **state)
{
	/* lea table(%rip), %rdx; mov $1, %eax; syscall; cmp; ret */
	static const uint8_t code[] = {0x48, 0x8d, 0x15, 0,    0,    0, 0,    0xb8, 1,	  0,   0,
				       0,    0x0f, 0x05, 0x48, 0x3d, 0, 0xf0, 0xff, 0xff, 0xc3};
	struct fake *f = *state;
	uint32_t at = fake_function(f, code, sizeof(code), 8), table = FAKE_DATA + 64;
	int32_t rel = (int32_t)(table - (at + 7)), entry = (int32_t)(at + 12 - table);
	uint64_t pointer = (uint64_t)f->base + at + 14;

	memcpy(f->base + at + 3, &rel, 4);
	memcpy(f->base + table, &entry, 4); /* to the syscall */
	memcpy(f->base + FAKE_DATA + 8, &pointer, 8); /* to what follows it */
	assert_int_equal(scan_one(f, 1, 0).why, SITE_TARGET);
}

static void neighbours_that_branch_leave_no_window(void **state)
{
	FAKE_CODE(*state, 0xff, 0xd0, 0x0f, 0x05, 0xc3);
	assert_int_equal(scan_one(*state, 1, 0).why, SITE_FIXED);
}

static void signal_return_is_left_alone(void **state)
{
	FAKE_CODE(*state, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05, 0xc3);
	assert_int_equal(scan_one(*state, 1, 0).why, SITE_SIGRETURN);
}

static void two_calls_side_by_side_share_no_byte(void **state)
{
	FAKE_CODE(*state, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x05, 0x48, 0x89, 0xc3, 0xc3);
	struct run_site second = scan_one(*state, 2, 1);

	assert_int_equal(second.why, SITE_OK);
	assert_int_equal(second.before, 0);
	assert_int_equal(second.nr, -1);
}

static void number_is_known_only_if_nothing_else_can_set_it(void **state)
{
	struct fake *f = *state;
	struct run_sites sites;

	FAKE_CODE(f, 0xb8, 3, 0, 0, 0, 0x89, 0xdf, 0x0f, 0x05, 0xc3); /* mov %ebx, %edi between */
	FAKE_CODE(f, 0x31, 0xc0, 0x89, 0xdf, 0x0f, 0x05, 0xc3); /* xor %eax, %eax */
	FAKE_CODE(f, 0xb8, 3, 0, 0, 0, 0x89, 0xd8, 0x0f, 0x05, 0xc3); /* mov %ebx, %eax between */
	FAKE_CODE(f, 0xb8, 3, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x90, 0x0f, 0x05, 0x90, 0x90, 0x90, 0xc3);
	fake_finish(f);
	assert_int_equal(scan_image(&f->im, &sites), 0);
	assert_int_equal(sites.count, 4);
	assert_int_equal(sites.sites[0].nr, 3);
	assert_int_equal(sites.sites[1].nr, 0);
	assert_int_equal(sites.sites[2].nr, -1);
	assert_int_equal(sites.sites[3].nr, -1);
	sites_free(&sites);
}

static void libc_and_loader_have_no_file_call_out_of_reach(void **state)
{
	static const char *const files[] = {"/lib/x86_64-linux-gnu/libc.so.6",
					    "/lib64/ld-linux-x86-64.so.2"};
	uint8_t wanted[RUN_NUMBERS] = {0};

	(void)state;
	run_numbers_of_files(wanted);
	for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
		struct run_image im;
		struct run_sites sites;
		unsigned int ok = 0, known = 0, want = 0;

		if (image_map_file(&im, files[f]))
			continue;
		assert_int_equal(scan_image(&im, &sites), 0);
		for (uint32_t i = 0; i < sites.count; i++) {
			const struct run_site *s = &sites.sites[i];

			ok += s->why == SITE_OK;
			known += s->nr >= 0;
			want += s->nr < 0 || wanted[s->nr];
			if (s->why != SITE_OK)
				printf("  %x, number %d: %s\n", s->at, s->nr,
				       site_why_text(s->why));
			assert_true(s->why == SITE_OK || (s->nr >= 0 && !wanted[s->nr]));
		}
		printf("%s: %u sites, %u replaceable, %u numbers known, %u concern files\n",
		       files[f], sites.count, ok, known, want);
		sites_free(&sites);
		image_unmap_file(&im);
	}
}

#define CASE(f) cmocka_unit_test_setup(f, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(number_and_call_make_one_window),
		CASE(bytes_inside_an_instruction_are_no_site),
		CASE(data_between_functions_is_no_sure_site),
		CASE(code_behind_a_function_that_runs_on_is_sure),
		CASE(function_that_breaks_off_is_not_sure),
		CASE(branch_to_the_call_moves_what_follows_instead),
		CASE(branches_to_both_sides_leave_no_window),
		CASE(switch_tables_and_pointers_are_targets),
		CASE(neighbours_that_branch_leave_no_window),
		CASE(signal_return_is_left_alone),
		CASE(two_calls_side_by_side_share_no_byte),
		CASE(number_is_known_only_if_nothing_else_can_set_it),
		CASE(libc_and_loader_have_no_file_call_out_of_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/*
 * The length of every instruction of every function of libraries and programs, beside capstone's.
 * Where capstone knows no instruction ours is taken, and both must meet again.  Of a large file
 * every n-th function is looked at; SHELF_TEST_SCALE makes n smaller.
 */
#include "harness.h"

#include <capstone/capstone.h>

#include "run/image.h"
#include "run/insn.h"

enum { FUNCTIONS = 4000 }; /* of each file, at scale 1 */

struct tally {
	unsigned long functions, agreed, unknown, differ;
};

static void show(const char *what, const struct run_image *im, uint32_t at, const cs_insn *cs,
		 int len)
{
	fprintf(stderr, "%s at %x: we say %d, capstone %u (%s %s):", what, at, len, cs->size,
		cs->mnemonic, cs->op_str);
	for (int i = 0; i < 15; i++)
		fprintf(stderr, " %02x", image_ptr(im, at)[i]);
	fprintf(stderr, "\n");
}

static void compare_function(csh handle, cs_insn *cs, const struct run_image *im, uint32_t at,
			     uint32_t end, struct tally *t)
{
	struct insn in;

	t->functions++;
	while (at < end) {
		const uint8_t *p = image_ptr(im, at);
		size_t left = end - at;
		uint64_t address = at;
		bool known = insn_decode(&in, p, left);
		bool theirs = cs_disasm_iter(handle, &p, &left, &address, cs);

		if (known && theirs && in.len == cs->size) {
			t->agreed++;
		} else if (known && !theirs) {
			t->unknown++;
		} else {
			if (t->differ++ < 20 && (known || theirs))
				show("differs", im, at, cs, known ? in.len : -1);
			return;
		}
		at += in.len;
	}
}

static void compare_file(csh handle, const char *path, struct tally *sum)
{
	cs_insn *cs = cs_malloc(handle);
	struct tally t = {0};
	struct run_image im;
	uint32_t step;
	int rc = image_map_file(&im, path);

	if (rc && rc != -ENODATA) {
		fprintf(stderr, "%s: not here (%d)\n", path, rc);
		cs_free(cs, 1);
		return;
	}
	image_read_frames(&im);
	step = 1 + im.frame_count / (uint32_t)test_scaled(FUNCTIONS);
	for (uint32_t i = 0; i < im.frame_count; i += step) {
		uint32_t at = image_function(&im, i);

		/* A function that starts one byte early, so that unwinders find a signal frame. */
		if (at == UINT32_MAX ||
		    (im.id_len && image_ptr(&im, at)[1] == 0x48 && image_ptr(&im, at)[4] == 0x0f &&
		     image_ptr(&im, at)[9] == 0x05))
			continue;
		compare_function(handle, cs, &im, at, at + image_function_len(&im, i), &t);
	}
	printf("%s: %lu functions, %lu lengths agree, %lu unknown to capstone, %lu differ\n", path,
	       t.functions, t.agreed, t.unknown, t.differ);
	sum->agreed += t.agreed;
	sum->differ += t.differ;
	sum->unknown += t.unknown;
	image_unmap_file(&im);
	cs_free(cs, 1);
}

static void every_length_agrees_with_capstone(void **state)
{
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/lib/x86_64-linux-gnu/libpthread.so.0",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/bin/bash",
		"/usr/bin/perl",
		"/usr/bin/python3",
		"/usr/bin/node",
	};
	struct tally sum = {0};
	csh handle;

	(void)state;
	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		compare_file(handle, files[i], &sum);
	cs_close(&handle);
	assert_int_equal(sum.differ, 0);
	assert_true(sum.agreed > 100000);
	/* What capstone 4 lacks is some of AVX-512 and newer: a few in ten thousand. */
	assert_true(sum.unknown < sum.agreed / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_length_agrees_with_capstone)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

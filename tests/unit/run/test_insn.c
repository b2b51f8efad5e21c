// SPDX-License-Identifier: MIT
/* Instruction lengths: one case for each form of encoding, and what branches and moves need. */
#include "harness.h"

#include "run/insn.h"

#define HEX(...)                                                                                   \
	sizeof((const uint8_t[]){__VA_ARGS__}),                                                    \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static const struct {
	const char *text;
	unsigned int len;
	uint8_t bytes[16];
} forms[] = {
	{"nop", HEX(0x90)},
	{"mov $imm32, %eax", HEX(0xb8, 1, 2, 3, 4)},
	{"mov $imm64, %rax", HEX(0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8)},
	{"mov $imm16, %ax", HEX(0x66, 0xb8, 1, 2)},
	{"mov $imm32, %rax with a prefix without effect", HEX(0x66, 0x48, 0xc7, 0xc0, 1, 2, 3, 4)},
	{"movabs addr64, %eax", HEX(0xa1, 1, 2, 3, 4, 5, 6, 7, 8)},
	{"mov addr32, %eax", HEX(0x67, 0xa1, 1, 2, 3, 4)},
	{"mov disp8(%rsp), %rcx", HEX(0x48, 0x8b, 0x4c, 0x24, 8)},
	{"mov disp32(,%rax,8), %rcx", HEX(0x48, 0x8b, 0x0c, 0xc5, 1, 2, 3, 4)},
	{"mov disp32(%rip), %eax", HEX(0x8b, 0x05, 1, 2, 3, 4)},
	{"mov (%r13), %eax takes a displacement", HEX(0x41, 0x8b, 0x45, 0)},
	{"mov %fs:0x10, %rax", HEX(0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0)},
	{"testb $1, (%rax)", HEX(0xf6, 0x00, 1)},
	{"not (%rax)", HEX(0xf7, 0x10)},
	{"testl $1, (%rax)", HEX(0xf7, 0x00, 1, 0, 0, 0)},
	{"enter", HEX(0xc8, 1, 2, 3)},
	{"ret $8", HEX(0xc2, 8, 0)},
	{"call rel32", HEX(0xe8, 1, 2, 3, 4)},
	{"jne rel32", HEX(0x0f, 0x85, 1, 2, 3, 4)},
	{"nopw with many prefixes", HEX(0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0)},
	{"mov %cr0, %rax ignores the mode", HEX(0x0f, 0x20, 0x00)},
	{"extrq", HEX(0x66, 0x0f, 0x78, 0xc1, 1, 2)},
	{"pshufb", HEX(0x66, 0x0f, 0x38, 0x00, 0xc1)},
	{"palignr", HEX(0x66, 0x0f, 0x3a, 0x0f, 0xc1, 4)},
	{"pfadd", HEX(0x0f, 0x0f, 0xc1, 0x9e)},
	{"vzeroupper", HEX(0xc5, 0xf8, 0x77)},
	{"vpshufd", HEX(0xc5, 0xf9, 0x70, 0xc1, 0x4e)},
	{"vpbroadcastb", HEX(0xc4, 0xe2, 0x79, 0x78, 0xc0)},
	{"vpalignr", HEX(0xc4, 0xe3, 0x79, 0x0f, 0xc1, 4)},
	{"vmovdqu64 disp8(%rsi), %zmm16", HEX(0x62, 0xe1, 0xfe, 0x48, 0x6f, 0x46, 1)},
	{"vpcmpub $0, (%rdi), %ymm16, %k0", HEX(0x62, 0xf3, 0x7d, 0x20, 0x3e, 0x07, 0)},
	{"xop vpcomb", HEX(0x8f, 0xe8, 0x78, 0xcc, 0xc1, 0)},
	{"pop (%rax)", HEX(0x8f, 0x00)},
	{"xbegin", HEX(0xc7, 0xf8, 1, 2, 3, 4)},
	{"endbr64", HEX(0xf3, 0x0f, 0x1e, 0xfa)},
	{"syscall", HEX(0x0f, 0x05)},
};

static void lengths_of_each_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct insn in;

		if (insn_decode(&in, forms[i].bytes, sizeof(forms[i].bytes)) &&
		    in.len == forms[i].len)
			continue;
		fail_msg("%s: %u bytes, not %u", forms[i].text, in.len, forms[i].len);
	}
}

static void cut_off_instructions_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		for (unsigned int len = 0; len < forms[i].len; len++) {
			struct insn in;

			if (insn_decode(&in, forms[i].bytes, len))
				fail_msg("%s: decoded from %u bytes", forms[i].text, len);
		}
}

static void invalid_and_overlong_are_refused(void **state)
{
	static const uint8_t bad[][16] = {
		{0x06},
		{0x9a},
		{0xea},
		{0xd6},
		{0x0f, 0x04},
		{0x0f, 0x39},
		{0x62, 0xf4, 0x7c, 0x08, 0x00, 0xc0}, /* EVEX map 4 */
		{0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
		 0x66, 0x90},
	};
	struct insn in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(insn_decode(&in, bad[i], sizeof(bad[i])));
}

static void branches_tell_their_target(void **state)
{
	static const uint8_t back[] = {0xeb, 0xfe}, far[] = {0x0f, 0x84, 0, 1, 0, 0};
	uintptr_t target;
	struct insn in;

	(void)state;
	assert_true(insn_decode(&in, back, sizeof(back)));
	assert_true(insn_branch(&in, back, 0x1000, &target));
	assert_int_equal(target, 0x1000);
	assert_true(insn_decode(&in, far, sizeof(far)));
	assert_true(insn_branch(&in, far, 0x1000, &target));
	assert_int_equal(target, 0x1106);
}

static void what_cannot_move_is_known(void **state)
{
	static const uint8_t fixed[][8] = {
		{0xe8, 1, 2, 3, 4},
		{0xeb, 1},
		{0x74, 1},
		{0xc3},
		{0x50},
		{0xf3, 0x0f, 0x1e, 0xfa},
		{0x0f, 0x05},
		{0xff, 0x10},
		{0xff, 0x20},
		{0xff, 0x30},
		{0xcc},
		{0x0f, 0x0b},
		{0xc9},
		{0xe3, 1},
		{0xc7, 0xf8, 1, 2, 3, 4},
	};
	static const uint8_t moves[][8] = {
		{0xb8, 1, 2, 3, 4},
		{0x48, 0x89, 0xd8},
		{0xff, 0xc0},
		{0x8b, 0x05, 1, 2, 3, 4},
		{0x90},
	};
	struct insn in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		assert_true(insn_decode(&in, fixed[i], 8) && !insn_relocatable(&in));
	for (size_t i = 0; i < ARRAY_SIZE(moves); i++)
		assert_true(insn_decode(&in, moves[i], 8) && insn_relocatable(&in));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_of_each_form),
		cmocka_unit_test(cut_off_instructions_are_refused),
		cmocka_unit_test(invalid_and_overlong_are_refused),
		cmocka_unit_test(branches_tell_their_target),
		cmocka_unit_test(what_cannot_move_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

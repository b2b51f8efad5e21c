/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/copy.h"
#include "base/fault.h"
#include "harness.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { ROOM = 300 };

static void pattern(unsigned char *p, unsigned first)
{
	unsigned i;

	for (i = 0; i < ROOM; i++)
		p[i] = (unsigned char)(first + i * 7);
}

static void copies_change_n_bytes_and_no_more(void **state)
{
	unsigned char src[ROOM], dst[ROOM], want[ROOM];
	size_t n;

	(void)state;
	pattern(src, 1);
	for (n = 0; n < ROOM - 20; n++) {
		pattern(dst, 100);
		pattern(want, 100);
		memcpy(want + 9, src + 3, n);
		copy_bytes(dst + 9, src + 3, n);
		assert_memory_equal(dst, want, ROOM);
		memset(want + 5, 0, n);
		zero_bytes(dst + 5, n);
		assert_memory_equal(dst, want, ROOM);
		memset(want + 4, 0xa5, n);
		fill_bytes(dst + 4, 0xa5, n);
		assert_memory_equal(dst, want, ROOM);
		pattern(dst, 100);
		pattern(want, 100);
		memcpy(want + 9, src + 3, n);
		assert_int_equal(copy_to_user(dst + 9, src + 3, n), 0);
		assert_memory_equal(dst, want, ROOM);
	}
}

static void moves_may_overlap(void **state)
{
	unsigned char got[ROOM], want[ROOM];
	size_t n;
	unsigned shift;

	(void)state;
	for (n = 0; n < 200; n += 3)
		for (shift = 0; shift < 40; shift += 3) {
			pattern(got, 3);
			pattern(want, 3);
			memmove(want + 20 + shift, want + 40, n);
			move_bytes(got + 20 + shift, got + 40, n);
			assert_memory_equal(got, want, ROOM);
		}
}

static void pages_are_copied_and_cleared_whole(void **state)
{
	static _Alignas(PAGE_BYTES) unsigned char a[PAGE_BYTES], b[2 * PAGE_BYTES];
	uint64_t seed = test_seed();
	size_t i;

	(void)state;
	for (i = 0; i < PAGE_BYTES; i++)
		a[i] = (unsigned char)test_random(&seed);
	b[PAGE_BYTES] = 1;
	copy_page(b, a);
	assert_memory_equal(a, b, PAGE_BYTES);
	zero_page(b);
	for (i = 0; i < PAGE_BYTES; i++)
		assert_int_equal(b[i], 0);
	assert_int_equal(b[PAGE_BYTES], 1);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uintptr_t ip = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];

	(void)info;
	if (!fault_fixup(&ip))
		signal(sig, SIG_DFL); /* a real fault: it happens again, and kills */
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)ip;
}

static void bad_addresses_give_efault_under_a_handler(void **state)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, old;
	char *p = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[200];
	size_t n;

	(void)state;
	assert_true(p != MAP_FAILED && !mprotect(p + PAGE_BYTES, PAGE_BYTES, PROT_NONE));
	sigaction(SIGSEGV, &sa, &old);
	for (n = 1; n < sizeof(buf); n++) {
		assert_int_equal(copy_to_user(p + PAGE_BYTES, buf, n), -EFAULT);
		assert_int_equal(copy_from_user(buf, p + PAGE_BYTES - n / 2, n), -EFAULT);
		assert_int_equal(copy_from_user(buf, p + PAGE_BYTES - n, n), 0);
		assert_int_equal(copy_to_user(NULL, buf, n), -EFAULT);
	}
	assert_int_equal(copy_to_user(NULL, buf, 0), 0);
	sigaction(SIGSEGV, &old, NULL);
	munmap(p, 2 * PAGE_BYTES);
}

/* Lengths on both sides of every limit between the ways to copy. */
static const size_t lengths[] = {1,   2,   3,   4,   7,   8,   9,    15,   16,   17,   31,   32,    33,    63,    64,    65,
				 100, 511, 512, 513, 544, 545, 1000, 4095, 4096, 4097, 9999, 16383, 16384, 16385, 20000};
enum { LONG_ROOM = 24576 };

static void copies_of_all_lengths_and_alignments(void **state)
{
	static unsigned char src[LONG_ROOM], dst[LONG_ROOM], want[LONG_ROOM];
	uint64_t seed = test_seed();
	size_t i, from, to;

	(void)state;
	for (i = 0; i < LONG_ROOM; i++)
		src[i] = (unsigned char)test_random(&seed);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (from = 0; from < 64; from += 7)
			for (to = 0; to < 64; to += 5) {
				memset(dst, 0xaa, LONG_ROOM);
				memset(want, 0xaa, LONG_ROOM);
				memcpy(want + to, src + from, lengths[i]);
				assert_int_equal(fault_copy(dst + to, src + from, lengths[i]), 0);
				assert_memory_equal(dst, want, LONG_ROOM);
				memset(dst, 0xaa, LONG_ROOM);
				assert_int_equal(fault_copy_over(dst + to, src + from, lengths[i]), 0);
				assert_memory_equal(dst, want, LONG_ROOM);
			}
}

/* As the kernel's: everything before the bad page is there, and the rest is counted. */
static void a_fault_in_a_copy_is_told_to_the_byte(void **state)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, old;
	size_t room = 8 * PAGE_BYTES, i, good;
	char *p = mmap(NULL, room + PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char buf[LONG_ROOM];

	(void)state;
	assert_true(p != MAP_FAILED && !mprotect(p + room, PAGE_BYTES, PROT_NONE));
	memset(buf, 'b', sizeof(buf));
	sigaction(SIGSEGV, &sa, &old);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (good = 0; good < lengths[i]; good = good * 2 + 1) {
			char *user = p + room - good;

			memset(user, 'u', good);
			assert_int_equal(fault_copy(user, buf, lengths[i]), lengths[i] - good);
			assert_true(!good || (user[0] == 'b' && user[good - 1] == 'b'));
			assert_int_equal(fault_copy(buf, user, lengths[i]), lengths[i] - good);
			assert_int_equal(fault_copy_over(buf, user, lengths[i]), lengths[i] - good);
		}
	sigaction(SIGSEGV, &old, NULL);
	munmap(p, room + PAGE_BYTES);
}

static void clocks_agree_with_the_system(void **state)
{
	int64_t a = clock_now_coarse(), b = clock_now();
	int64_t m = clock_now_monotonic();

	(void)state;
	assert_true(a <= b && b - a < 1000000000);
	assert_true(llabs(b / 1000000000 - (int64_t)time(NULL)) <= 1);
	assert_true(clock_now_monotonic() >= m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_change_n_bytes_and_no_more),
		cmocka_unit_test(moves_may_overlap),
		cmocka_unit_test(pages_are_copied_and_cleared_whole),
		cmocka_unit_test(bad_addresses_give_efault_under_a_handler),
		cmocka_unit_test(copies_of_all_lengths_and_alignments),
		cmocka_unit_test(a_fault_in_a_copy_is_told_to_the_byte),
		cmocka_unit_test(clocks_agree_with_the_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/*
 * Patched code does what it did: registers, flags, red zone, vector registers; served calls give
 * the handler's result; patching is all or nothing and can be undone; protections come back.
 */
#include "harness.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "run/attach.h"
#include "run/slots.h"
#include "unit/run/lib/fake.h"
#include "unit/run/lib/handler.h"

#define GENERAL_REGS __attribute__((target("general-regs-only")))

struct registers {
	uint64_t ax, bx, cx, dx, si, di, bp, r8, r9, r10, r11, r12, r13, r14, r15, flags;
	uint64_t xmm0[2], xmm15[2];
	uint64_t red_zone[15]; /* as seen below the code's own stack pointer */
};

/*
 * Calls CODE with the registers of IN, and stores what they are afterwards in OUT.  The words
 * below the callee's stack pointer are filled before and read back after.
 */
void call_with(const struct registers *in, struct registers *out, uintptr_t code);
__asm__(".text\n.globl call_with\n.type call_with, @function\ncall_with:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	push %rsi\n	push %rdx\n"
	"	mov %rdi, %r11\n"
	"	xor %ecx, %ecx\n"
	"1:	mov 160(%r11,%rcx,8), %rax\n"
	"	mov %rcx, %rdx\n	neg %rdx\n"
	"	mov %rax, -16(%rsp,%rdx,8)\n"
	"	inc %ecx\n	cmp $15, %ecx\n	jb 1b\n"
	"	movdqu 128(%r11), %xmm0\n	movdqu 144(%r11), %xmm15\n"
	"	mov 0(%r11), %rax\n	mov 8(%r11), %rbx\n	mov 24(%r11), %rdx\n"
	"	mov 32(%r11), %rsi\n	mov 40(%r11), %rdi\n	mov 48(%r11), %rbp\n"
	"	mov 56(%r11), %r8\n	mov 64(%r11), %r9\n	mov 72(%r11), %r10\n"
	"	mov 88(%r11), %r12\n	mov 96(%r11), %r13\n	mov 104(%r11), %r14\n"
	"	mov 112(%r11), %r15\n"
	"	mov 120(%r11), %rcx\n"
	"	xchg %rax, %rcx\n	add $0x7f, %al\n	sahf\n	xchg %rax, %rcx\n"
	"	call *(%rsp)\n"
	"	mov 8(%rsp), %r11\n"
	"	mov %rax, 0(%r11)\n	lahf\n	seto %al\n	mov %rax, 120(%r11)\n"
	"	mov %rbx, 8(%r11)\n	mov %rdx, 24(%r11)\n	mov %rsi, 32(%r11)\n"
	"	mov %rdi, 40(%r11)\n	mov %rbp, 48(%r11)\n	mov %r8, 56(%r11)\n"
	"	mov %r9, 64(%r11)\n	mov %r10, 72(%r11)\n	mov %r12, 88(%r11)\n"
	"	mov %r13, 96(%r11)\n	mov %r14, 104(%r11)\n	mov %r15, 112(%r11)\n"
	"	movdqu %xmm0, 128(%r11)\n	movdqu %xmm15, 144(%r11)\n"
	"	xor %ecx, %ecx\n"
	"2:	mov %rcx, %rdx\n	neg %rdx\n"
	"	mov -16(%rsp,%rdx,8), %rax\n	mov %rax, 160(%r11,%rcx,8)\n"
	"	inc %ecx\n	cmp $15, %ecx\n	jb 2b\n"
	"	add $16, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n.size call_with, . - call_with\n");

_Static_assert(offsetof(struct registers, flags) == 120, "call_with");
_Static_assert(offsetof(struct registers, xmm0) == 128, "call_with");
_Static_assert(offsetof(struct registers, red_zone) == 160, "call_with");

static _Alignas(4096) uint8_t near_memory[FAKE_PAGES * 4096];
static struct fake f;
static uint8_t *table;
static struct table_cursor cursor;
static struct patch_count count;
static uint8_t all[RUN_NUMBERS], none[RUN_NUMBERS];

static void begin(void *memory)
{
	CHECK(mprotect(memory, FAKE_PAGES * 4096, PROT_READ | PROT_WRITE) == 0);
	fake_start(&f, memory);
	memset(all, 1, sizeof(all));
	memcpy(run_wanted, all, sizeof(all));
	test_handler = NULL;
}

/* Scans the image, keeps its table, patches it. */
static int finish_and_patch(const uint8_t *wanted)
{
	struct run_sites sites;
	size_t size;

	fake_finish(&f);
	CHECK(scan_image(&f.im, &sites) == 0);
	size = table_size(&sites);
	free(table);
	table = malloc(size);
	table_write(&f.im, &sites, table);
	sites_free(&sites);
	CHECK(table_open(&f.im, table, size, &cursor) == 0);
	return patch_image(&f.im, cursor, wanted, &count);
}

static int start(void **state)
{
	(void)state;
	begin(near_memory);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	memset(run_wanted, 0, RUN_NUMBERS);
	test_handler = NULL;
	free(table);
	table = NULL;
	return 0;
}

static uintptr_t address(uint32_t offset)
{
	return f.im.bias + offset;
}

/* The protection of the page at P as /proc says it: "r-xp". */
static void protection(const void *p, char out[5])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	strcpy(out, "none");
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		char prot[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, prot) == 3 && (uintptr_t)p >= from &&
		    (uintptr_t)p < to)
			memcpy(out, prot, 5);
	}
	fclose(maps);
}

static void fill_random(struct registers *r, uint64_t *rng)
{
	for (size_t i = 0; i < sizeof(*r) / 8; i++)
		((uint64_t *)r)[i] = test_random(rng);
	r->flags = (test_random(rng) & 0xd500) | 0x200 | (test_random(rng) & 1);
}

/* What a system call changes is rax, rcx and r11. */
static void assert_same(const struct registers *in, struct registers *out, uint64_t result)
{
	assert_int_equal(out->ax, result);
	out->ax = in->ax;
	out->cx = in->cx;
	out->r11 = in->r11;
	/* lahf always sets bit 1 and leaves the rest of rax. */
	assert_int_equal(out->flags & 0xd501, in->flags & 0xd501);
	out->flags = in->flags;
	assert_memory_equal(out, in, sizeof(*in));
}

static struct run_regs seen;

/* What a handler may do to the registers that calls do not save, and to the flags. */
static GENERAL_REGS void spoil_registers(void)
{
	__asm__ volatile("mov $-1, %%rcx; mov %%rcx, %%rdx; mov %%rcx, %%rsi; mov %%rcx, %%rdi;"
			 "mov %%rcx, %%r8; mov %%rcx, %%r9; mov %%rcx, %%r10; mov %%rcx, %%r11;"
			 "xor %%eax, %%eax" ::
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
				   "cc");
}

static GENERAL_REGS long serve_with_42(struct run_regs *regs)
{
	seen = *regs;
	spoil_registers();
	return 42;
}

static GENERAL_REGS long note_and_pass(struct run_regs *regs)
{
	seen = *regs;
	spoil_registers();
	return run_pass(regs);
}

static void calls_and_registers(long (*handler)(struct run_regs *), bool wanted, uint64_t result)
{
	uint64_t rng = test_seed();
	/* syscall; nop; nop; nop; ret: the number comes from the test */
	uint32_t at = FAKE_CODE(&f, 0x0f, 0x05, 0x90, 0x90, 0x90, 0xc3);

	assert_int_equal(finish_and_patch(all), 0);
	assert_int_equal(count.patched, 1);
	assert_int_equal(*(uint8_t *)address(at), 0xe9);
	if (!wanted)
		memset(run_wanted, 0, RUN_NUMBERS);
	test_handler = handler;
	for (unsigned int i = 0; i < 200; i++) {
		struct registers in, out;

		fill_random(&in, &rng);
		in.ax = SYS_getppid;
		in.cx = in.r11 = 0;
		out = in;
		call_with(&in, &out, address(at));
		assert_same(&in, &out, result);
		if (!handler)
			continue;
		assert_int_equal(seen.nr, in.ax);
		assert_int_equal(seen.di, in.di);
		assert_int_equal(seen.si, in.si);
		assert_int_equal(seen.dx, in.dx);
		assert_int_equal(seen.r10, in.r10);
		assert_int_equal(seen.r8, in.r8);
		assert_int_equal(seen.r9, in.r9);
		assert_int_equal(seen.bp, in.bp);
	}
}

static void served_call_changes_nothing_but_the_result(void **state)
{
	(void)state;
	calls_and_registers(serve_with_42, true, 42);
}

static void passed_call_changes_what_the_kernel_changes(void **state)
{
	(void)state;
	calls_and_registers(note_and_pass, true, (uint64_t)getppid());
}

static void unwanted_number_never_reaches_the_handler(void **state)
{
	(void)state;
	calls_and_registers(NULL, false, (uint64_t)getppid());
}

static void site_far_from_the_library_works_the_same(void **state)
{
	void *far = mmap((void *)0x200000000000, sizeof(near_memory), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(far, MAP_FAILED);
	begin(far);
	calls_and_registers(serve_with_42, true, 42);
	munmap(far, sizeof(near_memory));
}

static void number_out_of_range_passes(void **state)
{
	uint32_t at = FAKE_CODE(&f, 0x0f, 0x05, 0x90, 0x90, 0x90, 0xc3);
	struct registers in = {.ax = 100000}, out = {0};

	(void)state;
	assert_int_equal(finish_and_patch(all), 0);
	test_handler = serve_with_42;
	call_with(&in, &out, address(at));
	assert_int_equal((long)out.ax, -ENOSYS);
}

static void moved_instructions_see_the_same_operands(void **state)
{
	/* mov disp(%rip), %ebx; syscall; ret; nop; syscall; mov disp(%rip), %ebp; ret */
	static const uint8_t code[] = {0x8b, 0x1d, 0,	 0,    0, 0, 0x0f, 0x05, 0xc3, 0x90,
				       0x0f, 0x05, 0x8b, 0x2d, 0, 0, 0,	   0,	 0xc3};
	uint32_t at = fake_function(&f, code, sizeof(code), 16), value = 0x12345678;
	int32_t rel = (int32_t)(FAKE_DATA + 256 - (at + 6)),
		rel2 = (int32_t)(FAKE_DATA + 256 - (at + 18));
	struct registers in = {.ax = SYS_getppid}, out = {0};

	(void)state;
	memcpy(f.base + at + 2, &rel, 4);
	memcpy(f.base + at + 14, &rel2, 4);
	memcpy(f.base + FAKE_DATA + 256, &value, 4);
	/* A branch to the second syscall, so that the window cannot start before it. */
	FAKE_CODE(&f, 0xe9, 0, 0, 0, 0);
	rel = (int32_t)(at + 10) - (int32_t)(FAKE_TEXT + f.used - 16);
	memcpy(f.base + FAKE_TEXT + f.used - 20, &rel, 4);
	assert_int_equal(finish_and_patch(all), 0);
	assert_int_equal(count.patched, 2);
	test_handler = serve_with_42;
	call_with(&in, &out, address(at));
	assert_int_equal(out.bx, value);
	assert_int_equal(out.ax, 42);
	call_with(&in, &out, address(at + 10));
	assert_int_equal(out.bp, value);
}

static void known_unwanted_sites_stay_as_they_are(void **state)
{
	uint32_t at = FAKE_CODE(&f, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3), other;

	(void)state;
	other = FAKE_CODE(&f, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3);
	none[39] = 1;
	assert_int_equal(finish_and_patch(none), 0);
	none[39] = 0;
	assert_int_equal(count.sites, 2);
	assert_int_equal(count.patched, 1);
	assert_int_equal(*(uint8_t *)address(at), 0xb8);
	assert_int_equal(*(uint8_t *)address(other), 0xe9);
}

static void branch_to_the_covered_call_still_makes_it(void **state)
{
	uint32_t at = FAKE_CODE(&f, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3);
	struct registers in = {.ax = SYS_getppid}, out = {0};

	(void)state;
	assert_int_equal(finish_and_patch(all), 0);
	test_handler = serve_with_42;
	call_with(&in, &out, address(at));
	assert_int_equal(out.ax, 42);
	call_with(&in, &out, address(at + 5));
	assert_int_equal(out.ax, getppid());
}

static void protections_come_back(void **state)
{
	char text[5], data[5];
	uint32_t at = FAKE_CODE(&f, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3);

	(void)state;
	assert_int_equal(finish_and_patch(all), 0);
	protection((void *)address(at), text);
	protection((void *)address(FAKE_DATA), data);
	assert_string_equal(text, "r-xp");
	assert_string_equal(data, "rw-p");
}

static void unpatching_restores_every_byte(void **state)
{
	static uint8_t before[4096];
	char text[5];
	uint32_t at = FAKE_CODE(&f, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3);

	(void)state;
	FAKE_CODE(&f, 0x0f, 0x05, 0x48, 0x89, 0xc3, 0xc3);
	memcpy(before, f.base + FAKE_TEXT, 4096);
	assert_int_equal(finish_and_patch(all), 0);
	assert_memory_not_equal(f.base + FAKE_TEXT, before, 4096);
	assert_int_equal(unpatch_image(&f.im, cursor), 0);
	assert_memory_equal(f.base + FAKE_TEXT, before, 4096);
	/* Once more, with nothing to restore. */
	assert_int_equal(unpatch_image(&f.im, cursor), 0);
	assert_memory_equal(f.base + FAKE_TEXT, before, 4096);
	protection((void *)address(at), text);
	assert_string_equal(text, "r-xp");
}

static void other_bytes_in_memory_leave_everything_unpatched(void **state)
{
	uint32_t at = FAKE_CODE(&f, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3), last;
	uint8_t *page = f.base + FAKE_TEXT, *bytes;

	(void)state;
	last = FAKE_CODE(&f, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3);
	assert_int_equal(finish_and_patch(all), 0);
	assert_int_equal(unpatch_image(&f.im, cursor), 0);
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
	bytes = (uint8_t *)address(last);
	bytes[1] ^= 1;
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(patch_image(&f.im, cursor, all, &count), -ESTALE);
	assert_int_equal(*(uint8_t *)address(at), 0xb8);
}

static void endbr_in_a_window_is_not_moved(void **state)
{
	/* endbr64; syscall; mov; ret: called through pointers, so the mark stays where it is */
	uint32_t at = FAKE_CODE(&f, 0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x05, 0x48, 0x89, 0xc3, 0xc3);
	struct registers in = {.ax = SYS_getppid}, out = {0};

	(void)state;
	assert_int_equal(finish_and_patch(all), 0);
	assert_int_equal(count.patched, 1);
	assert_int_equal(*(uint8_t *)address(at), 0xf3);
	test_handler = serve_with_42;
	call_with(&in, &out, address(at));
	assert_int_equal(out.ax, 42);
	assert_int_equal(out.bx, 42);
}

static uint64_t sum_of_text(const struct run_image *im)
{
	const uint8_t *p = image_ptr(im, im->text);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < im->text_len; i++)
		sum = sum * 31 + p[i];
	return sum;
}

static void attaching_serves_libc_and_detaching_restores_it(void **state)
{
	struct attach_result result;
	struct run_image libc;
	uint64_t before;
	pid_t parent = getppid();
	char prot[5];

	(void)state;
	if (run_find_image("libc.so.6", &libc))
		skip();
	before = sum_of_text(&libc);
	assert_int_equal(run_attach(NULL, all, &result), 0);
	assert_int_equal(result.images, 2);
	assert_int_equal(result.count.left, 0);
	assert_true(result.count.patched > 300);
	memset(run_wanted, 0, RUN_NUMBERS);
	run_wanted[SYS_getppid] = 1;
	test_handler = serve_with_42;
	assert_int_equal(getppid(), 42);
	assert_int_not_equal(getpid(), 42);
	assert_int_equal(run_detach(), 0);
	assert_int_equal(getppid(), parent);
	assert_int_equal(sum_of_text(&libc), before);
	protection(image_ptr(&libc, libc.text), prot);
	assert_string_equal(prot, "r-xp");
}

static void *ask_for_attach(void *arg)
{
	struct attach_result result;

	*(int *)arg = run_attach(NULL, all, &result);
	return NULL;
}

static void process_with_threads_is_left_alone(void **state)
{
	pthread_t thread;
	int rc = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, ask_for_attach, &rc), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rc, -EBUSY);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(served_call_changes_nothing_but_the_result),
		CASE(passed_call_changes_what_the_kernel_changes),
		CASE(unwanted_number_never_reaches_the_handler),
		CASE(site_far_from_the_library_works_the_same),
		CASE(number_out_of_range_passes),
		CASE(moved_instructions_see_the_same_operands),
		CASE(known_unwanted_sites_stay_as_they_are),
		CASE(branch_to_the_covered_call_still_makes_it),
		CASE(protections_come_back),
		CASE(unpatching_restores_every_byte),
		CASE(other_bytes_in_memory_leave_everything_unpatched),
		CASE(endbr_in_a_window_is_not_moved),
		CASE(attaching_serves_libc_and_detaching_restores_it),
		CASE(process_with_threads_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * fault.c - the copy whose faults are survived.
 *
 * By length, since rep movsb takes 20 to 35 ns to start on some processors:
 *	0..512			moves of general registers
 *	513..FAULT_VECTOR_MAX	moves of 32 bytes, where this file may use vector registers and the processor has
 *				them; dst at a multiple of 32
 *	else			rep movsb
 * -mgeneral-regs-only (no __SSE2__) leaves the second kind out: what runs behind a rewritten system call must not
 * touch vector registers.
 * Wherever a fault is, rdi, rsi and rcx say what is left to copy (moves that overlap repeat bytes), so
 * fault_fixup() sends it to rep movsb, which goes on up to the very byte, and a fault there to the end.
 * Order: loads and stores of each kind are in program order for other processors, as seqcount.h asks.
 */
#include "base/fault.h"

#ifdef __SSE2__
/* Set before main(), by one thread; 0 is right, too. */
uint32_t shelf_fault_vector_on __attribute__((visibility("hidden")));

__attribute__((constructor)) static void fault_choose(void)
{
	__builtin_cpu_init();
	shelf_fault_vector_on = __builtin_cpu_supports("avx2") != 0;
}

#define FAULT_VECTOR_TRY                                                                           \
	"	cmpl	$0, shelf_fault_vector_on(%rip)\n"                                         \
	"	je	shelf_fault_rep\n"                                                         \
	"	cmp	$" FAULT_VECTOR_MAX ", %rdx\n"                                             \
	"	jbe	shelf_fault_vector\n"
/* The first 32 bytes wherever they lie; then blocks from the next multiple of 32 on; the last 128 bytes once more. */
#define FAULT_VECTOR                                                                               \
	"	.p2align 4\n"                                                                      \
	"shelf_fault_vector:\n"                                                                    \
	"	vmovdqu	(%rsi), %ymm0\n"                                                           \
	"	vmovdqu	%ymm0, (%rdi)\n"                                                           \
	"	mov	%rdi, %rax\n"                                                              \
	"	neg	%rax\n"                                                                    \
	"	and	$31, %eax\n"                                                               \
	"	add	%rax, %rdi\n"                                                              \
	"	add	%rax, %rsi\n"                                                              \
	"	sub	%rax, %rcx\n"                                                              \
	"	.p2align 4\n"                                                                      \
	"7:	vmovdqu	(%rsi), %ymm0\n"                                                           \
	"	vmovdqu	32(%rsi), %ymm1\n"                                                         \
	"	vmovdqu	64(%rsi), %ymm2\n"                                                         \
	"	vmovdqu	96(%rsi), %ymm3\n"                                                         \
	"	vmovdqa	%ymm0, (%rdi)\n"                                                           \
	"	vmovdqa	%ymm1, 32(%rdi)\n"                                                         \
	"	vmovdqa	%ymm2, 64(%rdi)\n"                                                         \
	"	vmovdqa	%ymm3, 96(%rdi)\n"                                                         \
	"	sub	$-128, %rsi\n"                                                             \
	"	sub	$-128, %rdi\n"                                                             \
	"	add	$-128, %rcx\n"                                                             \
	"	cmp	$128, %rcx\n"                                                              \
	"	ja	7b\n"                                                                      \
	"	vmovdqu	-128(%rsi,%rcx), %ymm0\n"                                                  \
	"	vmovdqu	-96(%rsi,%rcx), %ymm1\n"                                                   \
	"	vmovdqu	-64(%rsi,%rcx), %ymm2\n"                                                   \
	"	vmovdqu	-32(%rsi,%rcx), %ymm3\n"                                                   \
	"	vmovdqu	%ymm0, -128(%rdi,%rcx)\n"                                                  \
	"	vmovdqu	%ymm1, -96(%rdi,%rcx)\n"                                                   \
	"	vmovdqu	%ymm2, -64(%rdi,%rcx)\n"                                                   \
	"	vmovdqu	%ymm3, -32(%rdi,%rcx)\n"                                                   \
	"	vzeroupper\n"                                                                      \
	"	xor	%eax, %eax\n"                                                              \
	"	ret\n"                                                                             \
	"shelf_fault_vector_end:\n"                                                                \
	"	vzeroupper\n"                                                                      \
	"	jmp	shelf_fault_rep\n"
#else
#define FAULT_VECTOR_TRY ""
#define FAULT_VECTOR "shelf_fault_vector:\nshelf_fault_vector_end:\n"
#endif
#define FAULT_VECTOR_MAX "16384"

__asm__(".text\n"
	".p2align 4\n"
	".globl fault_copy\n"
	".hidden fault_copy\n"
	".type fault_copy, @function\n"
	"fault_copy:\n"
	"	mov	%rdx, %rcx\n"
	"	cmp	$16, %rdx\n"
	"	ja	4f\n"
	"	cmp	$8, %rdx\n"
	"	jb	1f\n"
	"shelf_fault_moves:\n"
	"	mov	(%rsi), %rax\n"
	"	mov	-8(%rsi,%rdx), %r8\n"
	"	mov	%rax, (%rdi)\n"
	"	mov	%r8, -8(%rdi,%rdx)\n"
	"	xor	%eax, %eax\n"
	"	ret\n"
	"1:	cmp	$4, %rdx\n"
	"	jb	2f\n"
	"	mov	(%rsi), %eax\n"
	"	mov	-4(%rsi,%rdx), %r8d\n"
	"	mov	%eax, (%rdi)\n"
	"	mov	%r8d, -4(%rdi,%rdx)\n"
	"	xor	%eax, %eax\n"
	"	ret\n"
	"2:	cmp	$1, %rdx\n"
	"	ja	3f\n"
	"	jb	8f\n"
	"	movzbl	(%rsi), %eax\n"
	"	mov	%al, (%rdi)\n"
	"	xor	%eax, %eax\n"
	"	ret\n"
	"3:	movzwl	(%rsi), %eax\n"
	"	movzbl	-1(%rsi,%rdx), %r8d\n"
	"	mov	%ax, (%rdi)\n"
	"	mov	%r8b, -1(%rdi,%rdx)\n"
	"8:	xor	%eax, %eax\n"
	"	ret\n"
	"4:	cmp	$512, %rdx\n"
	"	ja	6f\n"
	"	cmp	$32, %rdx\n"
	"	jbe	5f\n"
	"	.p2align 4\n"
	"9:	mov	(%rsi), %rax\n"
	"	mov	8(%rsi), %r8\n"
	"	mov	16(%rsi), %r9\n"
	"	mov	24(%rsi), %r10\n"
	"	mov	%rax, (%rdi)\n"
	"	mov	%r8, 8(%rdi)\n"
	"	mov	%r9, 16(%rdi)\n"
	"	mov	%r10, 24(%rdi)\n"
	"	add	$32, %rsi\n"
	"	add	$32, %rdi\n"
	"	sub	$32, %rcx\n"
	"	cmp	$32, %rcx\n"
	"	ja	9b\n"
	"	mov	-32(%rsi,%rcx), %rax\n"
	"	mov	-24(%rsi,%rcx), %r8\n"
	"	mov	-16(%rsi,%rcx), %r9\n"
	"	mov	-8(%rsi,%rcx), %r10\n"
	"	mov	%rax, -32(%rdi,%rcx)\n"
	"	mov	%r8, -24(%rdi,%rcx)\n"
	"	mov	%r9, -16(%rdi,%rcx)\n"
	"	mov	%r10, -8(%rdi,%rcx)\n"
	"	xor	%eax, %eax\n"
	"	ret\n"
	"5:	mov	(%rsi), %rax\n" /* 17 to 32 */
	"	mov	8(%rsi), %r8\n"
	"	mov	-16(%rsi,%rdx), %r9\n"
	"	mov	-8(%rsi,%rdx), %r10\n"
	"	mov	%rax, (%rdi)\n"
	"	mov	%r8, 8(%rdi)\n"
	"	mov	%r9, -16(%rdi,%rdx)\n"
	"	mov	%r10, -8(%rdi,%rdx)\n"
	"	xor	%eax, %eax\n"
	"	ret\n"
	"6:\n" FAULT_VECTOR_TRY
	"shelf_fault_rep:\n"
	"	rep movsb\n"
	"shelf_fault_done:\n"
	"	mov	%rcx, %rax\n"
	"	ret\n" FAULT_VECTOR
	".size fault_copy, . - fault_copy\n"
	"	.p2align 4\n"
	".globl fault_copy_over\n"
	".hidden fault_copy_over\n"
	".type fault_copy_over, @function\n"
	"fault_copy_over:\n"
	"	cmp	$2048, %rdx\n"
	"	jb	fault_copy\n"
	"	mov	%rdx, %rcx\n"
	"	jmp	shelf_fault_rep\n"
	".size fault_copy_over, . - fault_copy_over\n"
	".hidden shelf_fault_moves\n"
	".hidden shelf_fault_rep\n"
	".hidden shelf_fault_done\n"
	".hidden shelf_fault_vector\n"
	".hidden shelf_fault_vector_end\n");

extern const char shelf_fault_moves[] __attribute__((visibility("hidden")));
extern const char shelf_fault_rep[] __attribute__((visibility("hidden")));
extern const char shelf_fault_done[] __attribute__((visibility("hidden")));
extern const char shelf_fault_vector[] __attribute__((visibility("hidden")));
extern const char shelf_fault_vector_end[] __attribute__((visibility("hidden")));

static bool fault_is_in(uintptr_t ip, const char *from, const char *end)
{
	return ip >= (uintptr_t)from && ip < (uintptr_t)end;
}

bool fault_fixup(uintptr_t *ip)
{
	if (fault_is_in(*ip, shelf_fault_moves, shelf_fault_rep))
		*ip = (uintptr_t)shelf_fault_rep;
	else if (fault_is_in(*ip, shelf_fault_vector, shelf_fault_vector_end))
		*ip = (uintptr_t)shelf_fault_vector_end;
	else if (fault_is_in(*ip, shelf_fault_rep, shelf_fault_done))
		*ip = (uintptr_t)shelf_fault_done;
	else
		return false;
	return true;
}

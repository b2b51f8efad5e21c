/* SPDX-License-Identifier: MIT */
/*
 * fault.c - the copy whose faults are survived.
 *
 *	shelf_fault_small .. shelf_fault_rep	moves: a fault means nothing was copied (all loads
 *						come first; a store that faults half-way
 *						across two pages counts as nothing)
 *	shelf_fault_rep				rep movsb: rcx is what is left
 */
#include "base/fault.h"

__asm__(".text\n"
	".p2align 4\n"
	".globl fault_copy\n"
	".hidden fault_copy\n"
	".type fault_copy, @function\n"
	"fault_copy:\n"
	"	mov	%rdx, %rcx\n"
	"	cmp	$16, %rdx\n"
	"	ja	shelf_fault_rep\n"
	"	cmp	$8, %rdx\n"
	"	jb	1f\n"
	"shelf_fault_small:\n"
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
	"	jne	shelf_fault_rep\n"
	"	mov	(%rsi), %al\n"
	"	mov	%al, (%rdi)\n"
	"	xor	%eax, %eax\n"
	"	ret\n"
	"shelf_fault_rep:\n"
	"	rep movsb\n"
	"shelf_fault_done:\n"
	"	mov	%rcx, %rax\n"
	"	ret\n"
	".size fault_copy, . - fault_copy\n"
	".hidden shelf_fault_small\n"
	".hidden shelf_fault_rep\n"
	".hidden shelf_fault_done\n");

extern const char shelf_fault_small[] __attribute__((visibility("hidden")));
extern const char shelf_fault_done[] __attribute__((visibility("hidden")));

bool fault_fixup(uintptr_t *ip)
{
	if (*ip < (uintptr_t)shelf_fault_small || *ip >= (uintptr_t)shelf_fault_done)
		return false;
	*ip = (uintptr_t)shelf_fault_done; /* rcx: n in the moves, what is left in rep movsb */
	return true;
}

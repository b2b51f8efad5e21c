/* SPDX-License-Identifier: MIT */
/*
 * enter.S - the first instruction, the program's first, and a thread's.
 *
 * A clone that makes a thread is let pass by the instruction here, with all registers as the site has them. The child has its parent's
 * GS until it has its own, so signals are blocked (thread.c), and it reads one word of its parent's. Both returns come by
 * run_entry once more.
 */
#include "run/regs.h"
#include "run/static/offsets.h"

	.text
	.globl	_start
	.type	_start, @function
_start:
	.cfi_startproc
	.cfi_undefined %rip
	xor	%ebp, %ebp
	mov	%rsp, %rdi
	and	$-16, %rsp
	call	static_start
	hlt
	.cfi_endproc
	.size	_start, . - _start

/* rdx: nothing to be called at the end. */
	.globl	static_enter
	.hidden	static_enter
	.type	static_enter, @function
static_enter:
	.cfi_startproc
	.cfi_undefined %rip
	mov	%rdi, %rsp
	mov	%rsi, %rax
	xor	%ebx, %ebx
	xor	%ecx, %ecx
	xor	%edx, %edx
	xor	%ebp, %ebp
	xor	%esi, %esi
	xor	%edi, %edi
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	xor	%r10d, %r10d
	xor	%r11d, %r11d
	jmp	*%rax
	.cfi_endproc
	.size	static_enter, . - static_enter

	.globl	static_thread_raw
	.hidden	static_thread_raw
	.type	static_thread_raw, @function
static_thread_raw:
	.cfi_startproc
	.cfi_def_cfa %rsp, 0
	.cfi_undefined %rip
	syscall
	mov	%rax, %rcx			/* no flag is changed here: entry.S */
	jrcxz	0f
	jmp	1f
0:	lea	-RUN_RED_ZONE(%rsp), %rsp
	push	%rdi
	push	%rsi
	mov	%gs:STATIC_CHILD, %rsi
	mov	$ARCH_SET_GS, %edi
	mov	$SYS_ARCH_PRCTL, %eax
	syscall
	mov	%eax, %ecx
	jrcxz	2f
	ud2					/* a filter of the program's keeps its threads from having any data of ours */
2:	pop	%rsi
	pop	%rdi
	lea	RUN_RED_ZONE(%rsp), %rsp
	mov	$0, %eax
1:	lea	static_thread_raw(%rip), %rcx
	jmp	run_spawned
	.cfi_endproc
	.size	static_thread_raw, . - static_thread_raw

	.section .note.GNU-stack, "", @progbits

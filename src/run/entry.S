/* SPDX-License-Identifier: MIT */
/*
 * entry.S - from a site's slot to run_syscall and back.
 *
 * In: rcx, the slot's own syscall instruction; r11 free, as a system call destroys both; everything
 * else as the program had it.  Out: at rcx to make the call, or behind it with the result in rax;
 * all other registers and the arithmetic flags unchanged.  The direction flag is clear, as the ABI
 * wants it at each call; vector and x87 registers are never touched.
 *
 * A signal may come between any two instructions here.  The stack pointer moves down past the red
 * zone and the frame in one instruction before anything is stored, and up in one instruction after
 * everything is loaded, so a handler never overwrites what is in use.  There is no state but
 * registers and that frame: a handler may make calls of its own, leave by longjmp, or fork.
 * Until run_syscall is entered nothing has an effect, and a call that passes is made by the slot's
 * instruction, to which the kernel goes back when it restarts it.
 *
 * At each instruction the unwind description is exact, so that cancellation and exceptions get
 * through to the site.
 */
#include "run/regs.h"
#include "run/slots.h"

	.text
	.p2align 6
	.globl	run_entry
	.hidden	run_entry
	.type	run_entry, @function
run_entry:
	.cfi_startproc
	.cfi_def_cfa %rsp, 0
	.cfi_register %rip, %rcx
	lea	-RUN_FRAME(%rsp), %rsp
	.cfi_def_cfa_offset RUN_FRAME
	mov	%rcx, RUN_RAW(%rsp)
	.cfi_rel_offset %rip, RUN_RAW
	mov	%rax, RUN_NR(%rsp)
	mov	%eax, %r11d
	lahf
	seto	%al
	mov	%rax, RUN_FLAGS(%rsp)
	cmp	$RUN_NUMBERS, %r11d
	jae	.Lpass
	lea	run_wanted(%rip), %rcx
	cmpb	$0, (%rcx, %r11)
	je	.Lpass

	mov	%rdi, RUN_DI(%rsp)
	mov	%rsi, RUN_SI(%rsp)
	mov	%rdx, RUN_DX(%rsp)
	mov	%r10, RUN_R10(%rsp)
	mov	%r8, RUN_R8(%rsp)
	mov	%r9, RUN_R9(%rsp)
	lea	RUN_FRAME(%rsp), %r11
	mov	%r11, RUN_SP(%rsp)
	movq	$0, RUN_PASS(%rsp)
	mov	%rbp, RUN_BP(%rsp)
	.cfi_remember_state
	.cfi_rel_offset %rbp, RUN_BP
	mov	%rsp, %rdi
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	and	$-16, %rsp
	call	run_syscall
	mov	%rbp, %rsp
	.cfi_def_cfa_register %rsp
	mov	RUN_DI(%rsp), %rdi
	mov	RUN_SI(%rsp), %rsi
	mov	RUN_DX(%rsp), %rdx
	mov	RUN_R10(%rsp), %r10
	mov	RUN_R8(%rsp), %r8
	mov	RUN_R9(%rsp), %r9
	mov	RUN_BP(%rsp), %rbp
	.cfi_restore_state
	cmpq	$0, RUN_PASS(%rsp)
	jne	.Lpass

	mov	%rax, %r11
	mov	RUN_FLAGS(%rsp), %rax
	add	$0x7f, %al			/* sets OF if al is 1 */
	sahf
	mov	%r11, %rax
	mov	RUN_RAW(%rsp), %rcx
	.cfi_remember_state
	.cfi_register %rip, %rcx
	lea	2(%rcx), %rcx
	lea	RUN_FRAME(%rsp), %rsp
	.cfi_def_cfa_offset 0
	notrack jmp *%rcx
	.cfi_restore_state

.Lpass:
	mov	RUN_FLAGS(%rsp), %rax
	add	$0x7f, %al
	sahf
	mov	RUN_NR(%rsp), %rax
	mov	RUN_RAW(%rsp), %rcx
	.cfi_register %rip, %rcx
	lea	RUN_FRAME(%rsp), %rsp
	.cfi_def_cfa_offset 0
	notrack jmp *%rcx
	.cfi_endproc
	.size	run_entry, . - run_entry

	.section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: MIT */
/*
 * spawn.S - a fork, seen by both sides.
 *
 * The handler of fork and its kin lets the call pass, but by the instruction here in place of the slot's: with
 * every register, the stack pointer included, as the site has it.  Both returns, the child's perhaps on a stack of its
 * own, come by run_entry once more, as number RUN_AFTER_SPAWN; the handler of that number sends each back to its site.
 * What the call returned lies in thread-local memory meanwhile, which a vfork's child shares with its parent; but the parent
 * does not run before the child is done with it.
 */
#include "run/regs.h"

	.text
	.globl	run_spawn_raw
	.hidden	run_spawn_raw
	.type	run_spawn_raw, @function
run_spawn_raw:
	.cfi_startproc
	.cfi_def_cfa %rsp, 0
	.cfi_undefined %rip
	syscall
	lea	run_spawn_raw(%rip), %rcx
/* From here on by whoever made such a call elsewhere, in rcx (static/enter.S). */
	.globl	run_spawned
	.hidden	run_spawned
run_spawned:
	mov	run_spawn_result@gottpoff(%rip), %r11
	mov	%rax, %fs:(%r11)
	mov	$(RUN_NUMBERS - 1), %eax
	jmp	run_entry
	.cfi_endproc
	.size	run_spawn_raw, . - run_spawn_raw

	.section .note.GNU-stack, "", @progbits

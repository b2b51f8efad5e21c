/* SPDX-License-Identifier: MIT */
/*
 * user.S - user_strnlen(s, max): the length of a program's string, or -EFAULT where its memory ends; user_writable(p, n):
 * can the first and the last byte be stored to?
 *
 * Whole aligned words, so that no read crosses a page.  A fault anywhere between the two labels goes on at
 * user_fault (user_fixup in signal.c): nothing is on the stack here.
 */
	.text
	.globl	user_strnlen
	.hidden	user_strnlen
	.type	user_strnlen, @function
	.globl	user_fault
	.hidden	user_fault
user_strnlen:
	.cfi_startproc
	xor	%eax, %eax
1:	cmp	%rsi, %rax
	jae	6f
	lea	(%rdi, %rax), %rdx
	test	$7, %dl
	jz	2f
	cmpb	$0, (%rdx)
	je	6f
	inc	%rax
	jmp	1b
2:	movabs	$0x0101010101010101, %r8
	movabs	$0x8080808080808080, %r9
3:	cmp	%rsi, %rax
	jae	5f
	mov	(%rdi, %rax), %rdx
	mov	%rdx, %rcx
	not	%rcx
	sub	%r8, %rdx
	and	%rcx, %rdx
	and	%r9, %rdx
	jnz	4f
	add	$8, %rax
	jmp	3b
4:	bsf	%rdx, %rdx
	shr	$3, %edx
	add	%rdx, %rax
5:	cmp	%rsi, %rax
	cmova	%rsi, %rax
6:	ret
	.cfi_endproc
	.size	user_strnlen, . - user_strnlen

	.globl	user_writable
	.hidden	user_writable
	.type	user_writable, @function
user_writable:
	.cfi_startproc
	orb	$0, (%rdi)
	orb	$0, -1(%rdi, %rsi)
	xor	%eax, %eax
	ret
user_fault:
	mov	$-14, %rax
	ret
	.cfi_endproc
	.size	user_writable, . - user_writable

	.section .note.GNU-stack, "", @progbits

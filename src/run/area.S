/* SPDX-License-Identifier: MIT */
/* area.S - room for slots in this library's own text (slots.h), and their unwind description. */
#include "run/slots.h"

/* The slots.  A frame in one of them: the same registers, the same stack, at the site's address. */
	.section .text.run_slots, "ax", @progbits
	.p2align 12
	.globl	run_slots
	.hidden	run_slots
	.type	run_slots, @object
run_slots:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_def_cfa %rsp, 0
	/*
	 * rip: val_expression {
	 *	breg16 0; const1s -SLOT_BYTES; and				the slot
	 *	dup; plus_uconst SLOT_SITE; deref; swap				its last word, the slot
	 *	dup; plus_uconst SLOT_BASE; deref_size 4; plus; deref; plus }	and the word it leads to
	 */
	.cfi_escape 0x16, 16, 18, 0x80, 0, 0x09, 0x100 - SLOT_BYTES, 0x1a, 0x12, 0x23, SLOT_SITE, 0x06, 0x16, \
		0x12, 0x23, SLOT_BASE, 0x94, 4, 0x22, 0x06, 0x22
	.fill	SLOTS_OWN * SLOT_BYTES, 1, 0xcc
	.cfi_endproc
	.size	run_slots, . - run_slots

/* What ready slots go by: memory is mapped in its place (slots_links) before there are any. */
	.globl	run_links
	.hidden	run_links
	.type	run_links, @object
run_links:
	.fill	LINKS_BYTES, 1, 0
	.size	run_links, . - run_links

	.section .note.GNU-stack, "", @progbits

/* SPDX-License-Identifier: MIT */
/*
 * regs.h - a system call on its way through the dispatcher; shared by C and entry.S.
 */
#ifndef SHELF_RUN_REGS_H
#define SHELF_RUN_REGS_H

#define RUN_NUMBERS 512 /* numbers that can be wanted; larger ones pass */

#define RUN_NR 0
#define RUN_DI 8
#define RUN_SI 16
#define RUN_DX 24
#define RUN_R10 32
#define RUN_R8 40
#define RUN_R9 48
#define RUN_BP 56
#define RUN_SP 64
#define RUN_RAW 72
#define RUN_FLAGS 80
#define RUN_PASS 88
#define RUN_SIZE 96

#define RUN_RED_ZONE 128
#define RUN_FRAME (RUN_RED_ZONE + RUN_SIZE)

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct run_regs {
	uint64_t nr; /* all of rax; the kernel looks at the low half */
	uint64_t di, si, dx, r10, r8, r9; /* the six arguments */
	uint64_t bp; /* the caller's frame pointer */
	uint64_t sp; /* the caller's stack pointer */
	uint64_t raw; /* the syscall instruction in the site's slot */
	uint64_t flags; /* as lahf and seto left them */
	uint64_t pass; /* zero on entry: the return value is the call's result */
};

/*
 * Serves a system call: returns its result, or run_pass(REGS) to have the kernel make it exactly as
 * the program asked for.  Registers go back to what REGS holds, so the arguments are not to be
 * changed: a call with other arguments is made by the handler itself.
 *
 * Runs on the program's stack, in whatever state the program is in: inside a signal handler,
 * between vfork and exec, with locks of libc held.  General registers only.
 */
long run_syscall(struct run_regs *regs);

static inline long run_pass(struct run_regs *regs)
{
	regs->pass = 1;
	return 0;
}

/* Which numbers go to run_syscall; the others pass after one load.  Written before patching. */
extern uint8_t run_wanted[RUN_NUMBERS] __attribute__((visibility("hidden")));

_Static_assert(offsetof(struct run_regs, nr) == RUN_NR && offsetof(struct run_regs, di) == RUN_DI &&
		       offsetof(struct run_regs, si) == RUN_SI &&
		       offsetof(struct run_regs, dx) == RUN_DX &&
		       offsetof(struct run_regs, r10) == RUN_R10 &&
		       offsetof(struct run_regs, r8) == RUN_R8 &&
		       offsetof(struct run_regs, r9) == RUN_R9 &&
		       offsetof(struct run_regs, bp) == RUN_BP &&
		       offsetof(struct run_regs, sp) == RUN_SP &&
		       offsetof(struct run_regs, raw) == RUN_RAW &&
		       offsetof(struct run_regs, flags) == RUN_FLAGS &&
		       offsetof(struct run_regs, pass) == RUN_PASS &&
		       sizeof(struct run_regs) == RUN_SIZE,
	       "regs.h: offsets for entry.S");
#endif
#endif

/* SPDX-License-Identifier: MIT */
/*
 * insn.h - where an x86-64 instruction ends, and what of it matters for moving it: opcode, operand
 * bytes, displacement relative to rip, branch target.  No list of mnemonics: lengths only.
 *
 * Covers the one-byte map, 0F, 0F38, 0F3A, 3DNow!, VEX, EVEX and XOP.  Unknown forms are refused,
 * never guessed.  APX (REX2, EVEX map 4) is unknown.
 */
#ifndef SHELF_RUN_INSN_H
#define SHELF_RUN_INSN_H

#include "base/base.h"

enum {
	INSN_MAX = 15, /* bytes an instruction may have */
};

enum insn_map {
	MAP_ONE, /* one-byte opcodes */
	MAP_0F,
	MAP_0F38,
	MAP_0F3A,
	MAP_VECTOR, /* VEX, EVEX, XOP: only the length is known */
};

struct insn {
	uint8_t len;
	uint8_t map; /* enum insn_map */
	uint8_t op;
	uint8_t rex; /* 0 if absent */
	bool opsize; /* prefix 66 */
	bool addrsize; /* prefix 67 */
	uint8_t repeat; /* prefix F2 or F3, the last of them; 0 if absent */
	bool has_modrm;
	uint8_t modrm;
	uint8_t disp_at, disp_len; /* offset in the instruction, bytes */
	uint8_t imm_at, imm_len;
};

/* Decodes the instruction at P, of which MAX bytes may be read.  False: not an instruction we know. */
bool insn_decode(struct insn *in, const uint8_t *p, size_t max);

/* Whether the displacement counts from the end of the instruction. */
static inline bool insn_rip_relative(const struct insn *in)
{
	return in->has_modrm && (in->modrm & 0xc7) == 0x05;
}

/* Whether IN is a direct branch or call; *target is then its target, for IN at address AT. */
bool insn_branch(const struct insn *in, const uint8_t *p, uintptr_t at, uintptr_t *target);

/* Whether execution never goes on with the next instruction. */
bool insn_ends_block(const struct insn *in);

static inline bool insn_is_syscall(const struct insn *in)
{
	return in->map == MAP_0F && in->op == 0x05;
}

/* Whether IN does the same at another address, once a rip-relative displacement is corrected: no
 * branch, no change of rsp through the stack, no landing mark (endbr64). */
bool insn_relocatable(const struct insn *in);
/* The same behind the call: a return, too. */
static inline bool insn_relocatable_behind(const struct insn *in)
{
	return insn_relocatable(in) || (in->map == MAP_ONE && in->op == 0xc3);
}

#endif

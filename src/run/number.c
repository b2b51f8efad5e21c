/* SPDX-License-Identifier: MIT */
/*
 * number.c - which system call a site asks for.
 *
 * Backwards from the call, through instructions that certainly leave eax alone, to one that sets it
 * to a constant; a branch target on the way ends the search.  If eax comes from another register,
 * as in loops around futex, the whole function is looked at: if all that can write to that register
 * is the number of futex, it is futex.  (A function's cold part may be entered in its middle with
 * another value, so no other number is taken from this.)  -1 is always safe: such a site is patched, and the
 * dispatcher looks at eax each time.
 */
#include <sys/syscall.h>

#include "base/copy.h"
#include "run/scan_priv.h"

enum eax_effect { EAX_KEPT, EAX_SET, EAX_COPIED, EAX_UNKNOWN };

static bool decode_at(const struct scan *s, struct insn *in, uint32_t at)
{
	return insn_decode(in, image_ptr(s->im, at), s->im->text + s->im->text_len - at);
}

static unsigned int reg_of(const struct insn *in)
{
	return ((in->modrm >> 3) & 7) | (in->rex & 4) << 1;
}

/* The register that is the register-or-memory operand, or 16. */
static unsigned int rm_of(const struct insn *in)
{
	return in->modrm >> 6 == 3 ? (in->modrm & 7u) | (in->rex & 1u) << 3 : 16;
}

static enum eax_effect kept_if(bool kept)
{
	return kept ? EAX_KEPT : EAX_UNKNOWN;
}

/* Whether an 8-bit register-or-memory operand is al or ah. */
static bool byte_in_eax(const struct insn *in)
{
	return rm_of(in) == 0 || (rm_of(in) == 4 && !in->rex);
}

static enum eax_effect set_to(int32_t *value, const struct insn *in, const uint8_t *p)
{
	if (in->imm_len != 4)
		return EAX_UNKNOWN;
	*value = (int32_t)raw_load32(p + in->imm_at);
	return EAX_SET;
}

static enum eax_effect one_byte_effect(const struct insn *in, const uint8_t *p, int32_t *value)
{
	unsigned int reg = reg_of(in), rm = rm_of(in);

	switch (in->op) {
	case 0x31: /* xor, also as zero */
	case 0x33:
		if (rm || reg)
			return kept_if(in->op == 0x31 ? rm : reg);
		*value = 0;
		return EAX_SET;
	case 0xc7:
		return rm ? EAX_KEPT : set_to(value, in, p);
	case 0xb8:
		return in->rex & 1 ? EAX_KEPT : set_to(value, in, p);
	case 0x89: /* mov */
		*value = (int32_t)reg;
		return rm ? EAX_KEPT : EAX_COPIED;
	case 0x8b:
		*value = (int32_t)rm;
		return reg ? EAX_KEPT : rm < 16 ? EAX_COPIED : EAX_UNKNOWN;
	case 0x01: /* add, or, and, sub to register or memory */
	case 0x09:
	case 0x21:
	case 0x29:
	case 0x81:
	case 0x83:
	case 0xc1: /* shifts */
	case 0xd1:
	case 0xd3:
		return kept_if(rm);
	case 0xf7: /* test, not, neg; mul and div write eax */
		return kept_if(rm && (reg_of(in) & 7) < 4);
	case 0x80: /* the same on bytes */
		return kept_if(!byte_in_eax(in));
	case 0x03: /* the same to a register, movslq, lea */
	case 0x0b:
	case 0x23:
	case 0x2b:
	case 0x63:
	case 0x8d:
		return kept_if(reg);
	case 0x88: /* stores of bytes */
	case 0xc6:
		return kept_if(rm == 16);
	case 0x39: /* cmp, test */
	case 0x3b:
	case 0x84:
	case 0x85:
		return EAX_KEPT;
	default:
		return kept_if(in->op >= 0xb9 && in->op <= 0xbf);
	}
}

/* What IN does to eax, as far as a few common instructions go; *value is a number or a register. */
static enum eax_effect effect_on_eax(const struct insn *in, const uint8_t *p, int32_t *value)
{
	if (in->map == MAP_ONE)
		return one_byte_effect(in, p, value);
	if (in->map != MAP_0F)
		return EAX_UNKNOWN;
	if (in->op >= 0x40 && in->op <= 0x4f) /* cmov */
		return kept_if(reg_of(in));
	if (in->op >= 0x90 && in->op <= 0x9f) /* setcc */
		return kept_if(!byte_in_eax(in));
	switch (in->op) {
	case 0xb6: /* movzb, movzw, movsb, movsw */
	case 0xb7:
	case 0xbe:
	case 0xbf:
		return kept_if(reg_of(in));
	case 0x10: /* moves and shuffles of vector registers, nop */
	case 0x11:
	case 0x16:
	case 0x17:
	case 0x1f:
	case 0x28:
	case 0x29:
	case 0x57:
	case 0x6c:
	case 0x6e:
	case 0x6f:
	case 0x7f:
	case 0xd6:
	case 0xef:
		return EAX_KEPT;
	default:
		return EAX_UNKNOWN;
	}
}

/* Whether IN leaves register R alone: rbx, rbp, r8 to r10, r12 to r15, which few instructions write
 * without naming them. */
static bool leaves_alone(const struct insn *in, unsigned int r)
{
	if (in->map == MAP_VECTOR)
		return false;
	if (in->map == MAP_ONE && (in->op == 0xc8 || in->op == 0xc9))
		return r != 5; /* enter, leave */
	if (in->map == MAP_0F && in->op == 0xa2)
		return r != 3; /* cpuid */
	if (!in->has_modrm) {
		/* The register may be named by the opcode: xchg, mov, bswap.  (A pop gives a saved
		 * register its old value back before the function ends.) */
		bool named = in->map == MAP_ONE ? (in->op >= 0x90 && in->op <= 0x97) ||
							  (in->op >= 0xb0 && in->op <= 0xbf) :
						  in->op >= 0xc8 && in->op <= 0xcf;

		return !named || ((in->op & 7u) | (in->rex & 1u) << 3) != r;
	}
	if (in->map != MAP_ONE)
		return reg_of(in) != r && rm_of(in) != r;
	switch (in->op) {
	case 0x38: /* cmp, test */
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x84:
	case 0x85:
		return true;
	case 0x01: /* to register or memory, from a register */
	case 0x09:
	case 0x21:
	case 0x29:
	case 0x31:
	case 0x88:
	case 0x89:
	case 0x80: /* the middle field is part of the opcode */
	case 0x81:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd1:
	case 0xd3:
	case 0xf6:
	case 0xf7:
	case 0xff:
		return rm_of(in) != r;
	default:
		return reg_of(in) != r && rm_of(in) != r;
	}
}

/* Whether IN is mov $imm32, %R. */
static bool sets_constant(const struct insn *in, unsigned int r)
{
	if (in->map != MAP_ONE || in->imm_len != 4)
		return false;
	return (in->op >= 0xb8 && in->op <= 0xbf && ((in->op & 7u) | (in->rex & 1u) << 3) == r) ||
	       (in->op == 0xc7 && rm_of(in) == r);
}

/* The only value that the function [at, end) ever gives to R, or -1. */
static int32_t only_value(const struct scan *s, uint32_t at, uint32_t end, unsigned int r)
{
	int32_t value = -1, v;
	struct insn in;

	if ((r < 8 && r != 3 && r != 5) || r == 11)
		return -1;
	for (; at < end; at += in.len) {
		if (!decode_at(s, &in, at))
			return -1;
		if (sets_constant(&in, r)) {
			v = (int32_t)raw_load32(image_ptr(s->im, at) + in.imm_at);
			if (value >= 0 && v != value)
				return -1;
			value = v;
		} else if (!leaves_alone(&in, r)) {
			return -1;
		}
	}
	return value;
}

/* Whether the call whose number comes from R can only be futex. */
static int16_t futex_if(int32_t value)
{
	return value == SYS_futex ? SYS_futex : -1;
}

static int16_t checked(int32_t value)
{
	return value >= 0 && value <= INT16_MAX ? (int16_t)value : -1;
}

int16_t number_of(const struct scan *s, const struct candidate *c)
{
	uint32_t at = c->at;
	int32_t value = -1;
	struct insn in;

	for (unsigned int i = 0; i < c->back_count; i++) {
		if (target_at(s, at))
			return -1; /* eax may come from elsewhere */
		at -= c->back[i];
		if (!decode_at(s, &in, at))
			return -1;
		switch (effect_on_eax(&in, image_ptr(s->im, at), &value)) {
		case EAX_SET:
			return checked(value);
		case EAX_COPIED:
			return futex_if(only_value(s, c->start, c->limit, (unsigned int)value));
		case EAX_UNKNOWN:
			return -1;
		case EAX_KEPT:
			break;
		}
	}
	return -1;
}

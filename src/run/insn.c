/* SPDX-License-Identifier: MIT */
/*
 * insn.c - the tables of insn.h, one letter for each opcode:
 *
 *   .  nothing follows          m  ModRM                 x  no instruction in 64-bit mode
 *   1  8-bit immediate          M  ModRM, 8-bit          p  prefix
 *   z  16 or 32 bits            Z  ModRM, 16 or 32       R  REX
 *   v  16, 32 or 64 bits        g  F6: 8-bit if /0, /1   #  another map, or decided by hand
 *   w  16 bits                  G  F7: the same, z       c  ModRM that names registers only
 *   e  16 and 8 bits            o  address               r  32-bit branch
 */
#include "run/insn.h"

/* clang-format off */
static const char one_byte[256 + 1] =
	"mmmm1zxxmmmm1zx#"
	"mmmm1zxxmmmm1zxx"
	"mmmm1zpxmmmm1zpx"
	"mmmm1zpxmmmm1zpx"
	"RRRRRRRRRRRRRRRR"
	"................"
	"xx#mppppzZ1M...."
	"1111111111111111"
	"MZxMmmmmmmmmmmm#"
	"..........x....."
	"oooo....1z......"
	"11111111vvvvvvvv"
	"MMw.##MZe.w..1x."
	"mmmmxxx.mmmmmmmm"
	"11111111rrx1...."
	"p.pp..gG......mm";

static const char two_byte[256 + 1] =
	"mmmmx.....x.xm.M"
	"mmmmmmmmmmmmmmmm"
	"ccccxxxxmmmmmmmm"
	"......x.#x#xxxxx"
	"mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm"
	"MMMMmmm.mmxxmmmm"
	"rrrrrrrrrrrrrrrr"
	"mmmmmmmmmmmmmmmm"
	"...mMmmm...mMmmm"
	"mmmmmmmmmmMmmmmm"
	"mmMmMMMm........"
	"mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm";
/* clang-format on */

struct cursor {
	const uint8_t *start, *at, *end;
};

static inline bool take(struct cursor *c, uint8_t *byte)
{
	if (c->at == c->end)
		return false;
	*byte = *c->at++;
	return true;
}

static inline bool skip(struct cursor *c, size_t n)
{
	if ((size_t)(c->end - c->at) < n)
		return false;
	c->at += n;
	return true;
}

static bool take_imm(struct insn *in, struct cursor *c, size_t n)
{
	in->imm_at = (uint8_t)(c->at - c->start);
	in->imm_len = (uint8_t)n;
	return skip(c, n);
}

static bool take_modrm(struct insn *in, struct cursor *c)
{
	uint8_t mod, sib = 0;

	if (!take(c, &in->modrm))
		return false;
	in->has_modrm = true;
	mod = in->modrm >> 6;
	if (mod == 3)
		return true;
	if ((in->modrm & 7) == 4 && !take(c, &sib))
		return false;
	if (mod == 1)
		in->disp_len = 1;
	else if (mod == 2 || (in->modrm & 7) == 5 || ((in->modrm & 7) == 4 && (sib & 7) == 5))
		in->disp_len = 4;
	in->disp_at = (uint8_t)(c->at - c->start);
	return skip(c, in->disp_len);
}

/* Bytes of an immediate that follows the operand size. */
static size_t size_z(const struct insn *in)
{
	return in->opsize && !(in->rex & 8) ? 2 : 4;
}

static size_t size_v(const struct insn *in)
{
	return in->rex & 8 ? 8 : size_z(in);
}

static bool take_operands(struct insn *in, struct cursor *c, char kind)
{
	switch (kind) {
	case '.':
		return true;
	case 'm':
		return take_modrm(in, c);
	case 'c':
		in->has_modrm = true;
		return take(c, &in->modrm);
	case '1':
		return take_imm(in, c, 1);
	case 'M':
		return take_modrm(in, c) && take_imm(in, c, 1);
	case 'z':
		return take_imm(in, c, size_z(in));
	case 'Z':
		return take_modrm(in, c) && take_imm(in, c, size_z(in));
	case 'v':
		return take_imm(in, c, size_v(in));
	case 'w':
		return take_imm(in, c, 2);
	case 'e':
		return take_imm(in, c, 3);
	case 'r':
		return take_imm(in, c, 4);
	case 'o':
		return take_imm(in, c, in->addrsize ? 4 : 8);
	case 'g':
		return take_modrm(in, c) && ((in->modrm & 0x30) || take_imm(in, c, 1));
	case 'G':
		return take_modrm(in, c) && ((in->modrm & 0x30) || take_imm(in, c, size_z(in)));
	default:
		return false;
	}
}

/* Operands of a VEX or EVEX instruction of opcode map MAP. */
static bool take_vector(struct insn *in, struct cursor *c, unsigned int map, bool evex)
{
	bool imm;

	in->map = MAP_VECTOR;
	if (!take(c, &in->op))
		return false;
	if (map == 1 && in->op == 0x77 && !evex)
		return true; /* vzeroupper, vzeroall */
	imm = map == 3 || (map == 1 && ((in->op >= 0x70 && in->op <= 0x73) || in->op == 0xc2 ||
					(in->op >= 0xc4 && in->op <= 0xc6)));
	return take_operands(in, c, imm ? 'M' : 'm');
}

static bool take_vex(struct insn *in, struct cursor *c, uint8_t first)
{
	uint8_t byte;

	if (in->rex || !take(c, &byte))
		return false;
	if (first == 0xc5)
		return take_vector(in, c, 1, false);
	if ((byte & 0x1f) < 1 || (byte & 0x1f) > 3 || !skip(c, 1))
		return false;
	return take_vector(in, c, byte & 0x1f, false);
}

static bool take_evex(struct insn *in, struct cursor *c)
{
	uint8_t p0, p1;

	if (in->rex || !take(c, &p0) || !take(c, &p1) || !skip(c, 1))
		return false;
	if ((p0 & 8) || !(p1 & 4))
		return false; /* APX */
	switch (p0 & 7) {
	case 1:
	case 2:
	case 3:
	case 5:
	case 6:
		return take_vector(in, c, p0 & 7, true);
	default:
		return false;
	}
}

/* 8F: pop, or the three maps of XOP. */
static bool take_8f(struct insn *in, struct cursor *c)
{
	uint8_t map;

	if (c->at == c->end)
		return false;
	map = *c->at & 0x1f;
	if (map < 8)
		return take_modrm(in, c);
	if (map > 10 || !skip(c, 2) || !take(c, &in->op))
		return false;
	in->map = MAP_VECTOR;
	return take_modrm(in, c) && (map == 9 || take_imm(in, c, map == 8 ? 1 : 4));
}

static bool take_two_byte(struct insn *in, struct cursor *c)
{
	if (!take(c, &in->op))
		return false;
	in->map = MAP_0F;
	if (in->op == 0x38 || in->op == 0x3a) {
		in->map = in->op == 0x38 ? MAP_0F38 : MAP_0F3A;
		return take(c, &in->op) && take_operands(in, c, in->map == MAP_0F38 ? 'm' : 'M');
	}
	if (in->op == 0x78 && (in->opsize || in->repeat == 0xf2))
		return take_modrm(in, c) && take_imm(in, c, 2); /* extrq, insertq */
	return take_operands(in, c, two_byte[in->op]);
}

/* Reads prefixes and the first opcode byte. */
static bool take_prefixes(struct insn *in, struct cursor *c)
{
	for (;;) {
		if (!take(c, &in->op))
			return false;
		switch (one_byte[in->op]) {
		case 'R':
			in->rex = in->op;
			continue;
		case 'p':
			/* A REX that is not the last prefix has no effect. */
			in->rex = 0;
			in->opsize |= in->op == 0x66;
			in->addrsize |= in->op == 0x67;
			if (in->op == 0xf2 || in->op == 0xf3)
				in->repeat = in->op;
			continue;
		default:
			return true;
		}
	}
}

static bool take_by_hand(struct insn *in, struct cursor *c)
{
	switch (in->op) {
	case 0x0f:
		return take_two_byte(in, c);
	case 0x62:
		return take_evex(in, c);
	case 0x8f:
		return take_8f(in, c);
	default:
		return take_vex(in, c, in->op);
	}
}

bool insn_decode(struct insn *in, const uint8_t *p, size_t max)
{
	struct cursor c = {p, p, p + min_of(max, (size_t)INSN_MAX)};
	char kind;

	*in = (struct insn){0};
	if (!take_prefixes(in, &c))
		return false;
	kind = one_byte[in->op];
	if (!(kind == '#' ? take_by_hand(in, &c) : take_operands(in, &c, kind)))
		return false;
	in->len = (uint8_t)(c.at - p);
	return true;
}

static bool is_branch(const struct insn *in)
{
	if (in->map == MAP_0F)
		return in->op >= 0x80 && in->op <= 0x8f;
	if (in->map != MAP_ONE)
		return false;
	return (in->op >= 0x70 && in->op <= 0x7f) || (in->op >= 0xe0 && in->op <= 0xe3) ||
	       in->op == 0xe8 || in->op == 0xe9 || in->op == 0xeb ||
	       (in->op == 0xc7 && in->modrm == 0xf8); /* xbegin */
}

bool insn_branch(const struct insn *in, const uint8_t *p, uintptr_t at, uintptr_t *target)
{
	int64_t rel = 0;

	if (!is_branch(in))
		return false;
	if (in->imm_len == 1)
		rel = (int8_t)p[in->imm_at];
	else if (in->imm_len == 4)
		rel = (int32_t)(p[in->imm_at] | (uint32_t)p[in->imm_at + 1] << 8 |
				(uint32_t)p[in->imm_at + 2] << 16 |
				(uint32_t)p[in->imm_at + 3] << 24);
	*target = at + in->len + (uintptr_t)rel;
	return true;
}

bool insn_ends_block(const struct insn *in)
{
	if (in->map == MAP_0F)
		return in->op == 0x0b; /* ud2 */
	if (in->map != MAP_ONE)
		return false;
	switch (in->op) {
	case 0xc2: /* ret, far ret, int3, iret, jmp, hlt */
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcc:
	case 0xcf:
	case 0xe9:
	case 0xeb:
	case 0xf4:
		return true;
	case 0xff: /* jmp */
		return ((in->modrm >> 3) & 7) == 4 || ((in->modrm >> 3) & 7) == 5;
	default:
		return false;
	}
}

static bool one_byte_relocatable(const struct insn *in)
{
	uint8_t op = in->op;

	if ((op >= 0x50 && op <= 0x5f) || op == 0x68 || op == 0x6a || op == 0x8f)
		return false; /* push, pop */
	if (op >= 0x9a && op <= 0x9d)
		return false; /* wait, pushf, popf */
	if (op == 0xc8 || op == 0xc9 || op == 0xcd || op == 0xf1)
		return false; /* enter, leave, int */
	if (op == 0xff)
		return ((in->modrm >> 3) & 7) < 2; /* inc, dec */
	return true;
}

bool insn_relocatable(const struct insn *in)
{
	if (is_branch(in) || insn_ends_block(in))
		return false;
	if (insn_rip_relative(in) && (in->disp_len != 4 || in->addrsize))
		return false;
	switch (in->map) {
	case MAP_ONE:
		return one_byte_relocatable(in);
	case MAP_0F:
		if (in->op == 0x1e && in->repeat == 0xf3)
			return false; /* endbr64, rdssp */
		/* syscall, sysret, sysenter, sysexit, push and pop of fs and gs, rsm */
		return in->op != 0x05 && in->op != 0x07 && in->op != 0x34 && in->op != 0x35 &&
		       in->op != 0xa0 && in->op != 0xa1 && in->op != 0xa8 && in->op != 0xa9 &&
		       in->op != 0xaa;
	default:
		return true;
	}
}

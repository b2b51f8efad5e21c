/* SPDX-License-Identifier: MIT */
/*
 * targets.c - where a branch may lead.  Too many targets cost a site its window; one too few would
 * let a branch land in the middle of a jump, so everything that could be an address counts.
 */
#include "base/copy.h"
#include "run/scan_priv.h"

enum {
	TABLE_MAX = 4096, /* entries of one switch table looked at */
};

/* The loaded segment that holds [offset, offset + len) in its file part, or NULL. */
static const Elf64_Phdr *segment_of(const struct run_image *im, uint64_t offset, size_t len)
{
	for (unsigned int i = 0; i < im->phnum; i++) {
		const Elf64_Phdr *ph = &im->phdr[i];

		if (ph->p_type == PT_LOAD && offset >= ph->p_vaddr && len <= ph->p_filesz &&
		    offset - ph->p_vaddr <= ph->p_filesz - len)
			return ph;
	}
	return NULL;
}

/* A table of 4-byte distances from its own start, as compilers make for switch. */
static void targets_of_table(struct scan *s, uint64_t table)
{
	const Elf64_Phdr *ph = segment_of(s->im, table, 4);
	uint64_t count;

	if (!ph || table % 4)
		return;
	count = min_of((ph->p_vaddr + ph->p_filesz - table) / 4, (uint64_t)TABLE_MAX);
	for (uint64_t i = 0; i < count; i++) {
		int32_t rel = (int32_t)raw_load32((const void *)(s->im->bias + table + 4 * i));
		uint64_t to = table + (uint64_t)(int64_t)rel;

		if (!image_in_text(s->im, to))
			return;
		target_add(s, to);
	}
}

void targets_of_insn(struct scan *s, const struct insn *in, const uint8_t *p, uint32_t at)
{
	uintptr_t target;

	if (insn_branch(in, p, at, &target)) {
		target_add(s, target);
		return;
	}
	if (in->map == MAP_0F && in->op == 0x1e && in->repeat == 0xf3 && in->modrm == 0xfa)
		target_add(s, at); /* endbr64 */
	if (in->map != MAP_ONE || in->op != 0x8d || !insn_rip_relative(in))
		return;
	target = at + in->len + (uint64_t)(int64_t)(int32_t)raw_load32(p + in->disp_at);
	if (image_in_text(s->im, target))
		target_add(s, target);
	if (s->im->strange || !image_in_text(s->im, target))
		targets_of_table(s, target);
}

void targets_of_data(struct scan *s)
{
	const struct run_image *im = s->im;

	for (unsigned int i = 0; i < im->phnum; i++) {
		const Elf64_Phdr *ph = &im->phdr[i];
		uint64_t at = ALIGN_UP(ph->p_vaddr, 8), end = ph->p_vaddr + ph->p_filesz;

		if (ph->p_type != PT_LOAD || (ph->p_flags & PF_X && !im->strange))
			continue;
		for (; at + 8 <= end; at += 8) {
			uint64_t word = raw_load64((const void *)(im->bias + at));

			/* Relocated, or still as in the file. */
			target_add(s, word - im->bias);
			target_add(s, word);
		}
	}
}

static void add_pad(void *arg, uint32_t offset)
{
	target_add(arg, offset);
}

void targets_of_functions(struct scan *s)
{
	for (uint32_t i = 0; i < s->im->frame_count; i++) {
		uint32_t start = image_function(s->im, i);

		if (start == UINT32_MAX)
			continue;
		target_add(s, start);
		image_landing_pads(s->im, i, add_pad, s);
	}
}

// SPDX-License-Identifier: MIT
/* The image of fake.h, made by hand. */
#include "unit/run/lib/fake.h"

#include <sys/mman.h>

#include "harness.h"

enum { PHDRS = 5, NOTE = 0x800 };

static Elf64_Phdr *add_phdr(struct fake *f, uint32_t type, uint32_t at, uint32_t len,
			    uint32_t flags)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)f->base;
	Elf64_Phdr *ph = (Elf64_Phdr *)(f->base + eh->e_phoff) + eh->e_phnum++;

	CHECK(eh->e_phnum <= PHDRS);
	*ph = (Elf64_Phdr){.p_type = type,
			   .p_flags = flags,
			   .p_offset = at,
			   .p_vaddr = at,
			   .p_filesz = len,
			   .p_memsz = len,
			   .p_align = 4096};
	return ph;
}

void fake_start(struct fake *f, void *base)
{
	Elf64_Ehdr *eh = base;
	Elf64_Nhdr *note = (Elf64_Nhdr *)((char *)base + NOTE);

	memset(base, 0, FAKE_PAGES * 4096);
	memset((char *)base + FAKE_TEXT, 0xcc, 4096);
	*f = (struct fake){.base = base};
	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_machine = EM_X86_64;
	eh->e_type = ET_DYN;
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(Elf64_Phdr);
	*note = (Elf64_Nhdr){4, 20, NT_GNU_BUILD_ID};
	memcpy(note + 1, "GNU\0some build of these", 24);
	add_phdr(f, PT_LOAD, 0, 4096, PF_R);
	add_phdr(f, PT_LOAD, FAKE_TEXT, 4096, PF_R | PF_X);
	add_phdr(f, PT_LOAD, FAKE_DATA, 8192, PF_R | PF_W);
	add_phdr(f, PT_NOTE, NOTE, 12 + 4 + 20, PF_R);
	add_phdr(f, PT_GNU_EH_FRAME, FAKE_FRAMES, 4096, PF_R);
}

uint32_t fake_function(struct fake *f, const uint8_t *code, size_t len, size_t pad)
{
	uint32_t at = FAKE_TEXT + f->used, i = f->functions++;
	int32_t *table = (int32_t *)(f->base + FAKE_FRAMES + 12),
		fde = 12 + 8 * FAKE_FUNCTIONS + 16 * (int)i;
	uint32_t *frame = (uint32_t *)(f->base + FAKE_FRAMES + fde);

	CHECK(i < FAKE_FUNCTIONS && f->used + len + pad <= 4096);
	memcpy(f->base + at, code, len);
	f->used += (uint32_t)(len + pad);
	table[2 * i] = (int32_t)at - FAKE_FRAMES;
	table[2 * i + 1] = fde;
	frame[0] = 12;
	frame[1] = 4;
	frame[2] = at - (FAKE_FRAMES + (uint32_t)fde + 8);
	frame[3] = (uint32_t)len;
	return at;
}

void fake_finish(struct fake *f)
{
	uint8_t *hdr = f->base + FAKE_FRAMES;

	memcpy(hdr, "\x01\x1b\x03\x3b", 4);
	memcpy(hdr + 8, &f->functions, 4);
	CHECK(mprotect(f->base + FAKE_TEXT, 4096, PROT_READ | PROT_EXEC) == 0);
	CHECK(image_at(&f->im, f->base) == 0);
	image_read_frames(&f->im);
	CHECK(f->im.id_len == 20 && f->im.frame_count == f->functions);
}

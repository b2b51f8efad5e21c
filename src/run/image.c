/* SPDX-License-Identifier: MIT */
/* image.c - program headers and build id of an image in memory. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/copy.h"
#include "base/syscall.h"
#include "run/image.h"

static int prot_of(uint32_t flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

static int take_load(struct run_image *im, const Elf64_Phdr *ph, bool absolute)
{
	uint64_t end = ph->p_vaddr + ph->p_memsz;

	if (end < ph->p_vaddr || end > UINT32_MAX - PAGE_BYTES)
		return absolute ? -ENOEXEC : -EFBIG;
	im->end = max_of(im->end, (uint32_t)end);
	if (!(ph->p_flags & PF_X))
		return 0;
	if (im->text_len >= ph->p_filesz)
		return 0;
	im->text = (uint32_t)ph->p_vaddr;
	im->text_len = (uint32_t)ph->p_filesz;
	im->text_prot = prot_of(ph->p_flags);
	return 0;
}

static void take_notes(struct run_image *im, const Elf64_Phdr *ph)
{
	const uint8_t *at = image_ptr(im, (uint32_t)ph->p_vaddr), *end = at + ph->p_memsz;

	while ((size_t)(end - at) >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
		size_t name = ALIGN_UP((size_t)note->n_namesz, 4);
		size_t size = sizeof(*note) + name + ALIGN_UP((size_t)note->n_descsz, 4);
		const char *owner = (const char *)(note + 1);

		if (size > (size_t)(end - at))
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && owner[0] == 'G' &&
		    owner[1] == 'N' && owner[2] == 'U' && note->n_descsz <= BUILD_ID_MAX) {
			im->id_len = note->n_descsz;
			for (unsigned int i = 0; i < im->id_len; i++)
				im->id[i] = ((const uint8_t *)owner)[name + i];
			return;
		}
		at += size;
	}
}

/* The search table of .eh_frame_hdr, if it has the form that every linker writes. */
static void take_frames(struct run_image *im, const Elf64_Phdr *ph)
{
	const uint8_t *hdr = image_ptr(im, (uint32_t)ph->p_vaddr);
	uint32_t count;

	/* version 1; pointer pcrel sdata4; count udata4; table datarel sdata4 */
	if (ph->p_memsz < 12 || hdr[0] != 1 || hdr[1] != 0x1b || hdr[2] != 0x03 || hdr[3] != 0x3b)
		return;
	count = *(const uint32_t *)(hdr + 8);
	if (count > (ph->p_memsz - 12) / 8)
		return;
	im->frames = (uintptr_t)hdr;
	im->frame_table = (const int32_t *)(hdr + 12);
	im->frame_count = count;
}

int image_init(struct run_image *im, uintptr_t bias, const Elf64_Phdr *phdr, unsigned int phnum)
{
	int rc;

	*im = (struct run_image){.bias = bias, .phdr = phdr, .phnum = phnum};
	for (unsigned int i = 0; i < phnum; i++) {
		if (phdr[i].p_type != PT_LOAD)
			continue;
		rc = take_load(im, &phdr[i], bias == 0);
		if (rc)
			return rc;
	}
	if (!im->text_len)
		return -ENOEXEC;
	for (unsigned int i = 0; i < phnum; i++)
		if (phdr[i].p_type == PT_NOTE && !im->id_len && phdr[i].p_vaddr + phdr[i].p_memsz <= im->end)
			take_notes(im, &phdr[i]);
	return im->id_len ? 0 : -ENODATA;
}

void image_read_frames(struct run_image *im)
{
	for (unsigned int i = 0; i < im->phnum; i++)
		if (im->phdr[i].p_type == PT_GNU_EH_FRAME && im->phdr[i].p_vaddr + im->phdr[i].p_memsz <= im->end)
			take_frames(im, &im->phdr[i]);
}

/* Refuses what is no image for this machine. */
static int check_ehdr(const Elf64_Ehdr *eh)
{
	if (eh->e_ident[0] != ELFMAG0 || eh->e_ident[1] != ELFMAG1 || eh->e_ident[2] != ELFMAG2 ||
	    eh->e_ident[3] != ELFMAG3 || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh->e_machine != EM_X86_64 || eh->e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	return eh->e_type == ET_DYN || eh->e_type == ET_EXEC ? 0 : -ENOEXEC;
}

int image_at(struct run_image *im, const void *ehdr)
{
	const Elf64_Ehdr *eh = ehdr;
	const Elf64_Phdr *phdr = (const Elf64_Phdr *)((const char *)ehdr + eh->e_phoff);
	int rc = check_ehdr(eh);

	if (rc)
		return rc;
	/* The headers are at the start of the first loaded segment. */
	for (unsigned int i = 0; i < eh->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_offset == 0)
			return image_init(im, (uintptr_t)ehdr - phdr[i].p_vaddr, phdr, eh->e_phnum);
	return -ENOEXEC;
}

static long map_segment(uintptr_t bias, const Elf64_Phdr *ph, int fd)
{
	uintptr_t start = ALIGN_DOWN(bias + ph->p_vaddr, PAGE_BYTES);
	size_t skew = ph->p_vaddr & PAGE_MASK;

	/* Readable whatever its flags: this copy is looked at, not run. */
	return ph->p_filesz ?
		       sys_call6(SYS_mmap, (long)start, (long)(ph->p_filesz + skew), PROT_READ,
				 MAP_PRIVATE | MAP_FIXED, fd, (long)(ph->p_offset - skew)) :
		       0;
}

static int map_segments(struct run_image *im, const Elf64_Ehdr *eh, const Elf64_Phdr *phdr, int fd)
{
	uint64_t end = 0;
	long base, rc;

	for (unsigned int i = 0; i < eh->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD)
			end = max_of(end, ALIGN_UP(phdr[i].p_vaddr + phdr[i].p_memsz, PAGE_BYTES));
	if (!end || end > UINT32_MAX)
		return -ENOEXEC;
	base = sys_call6(SYS_mmap, 0, (long)end, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base < 0)
		return (int)base;
	for (unsigned int i = 0; i < eh->e_phnum; i++) {
		rc = phdr[i].p_type == PT_LOAD ? map_segment((uintptr_t)base, &phdr[i], fd) : 0;
		if (rc < 0)
			goto undo;
	}
	rc = -ENOEXEC;
	for (unsigned int i = 0; i < eh->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD && eh->e_phoff >= phdr[i].p_offset &&
		    eh->e_phoff + eh->e_phnum * sizeof(*phdr) <=
			    phdr[i].p_offset + phdr[i].p_filesz)
			rc = image_init(
				im, (uintptr_t)base,
				(const Elf64_Phdr *)(base + (long)(phdr[i].p_vaddr -
								   phdr[i].p_offset + eh->e_phoff)),
				eh->e_phnum);
	if (rc == 0 || rc == -ENODATA)
		return (int)rc;
undo:
	sys_call3(SYS_munmap, base, (long)end, 0);
	return (int)rc;
}

int image_map_file(struct run_image *im, const char *path)
{
	long fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0), size, map;
	const Elf64_Ehdr *eh;
	int rc;

	if (fd < 0)
		return (int)fd;
	rc = -ENOEXEC;
	size = sys_call3(SYS_lseek, fd, 0, SEEK_END);
	if (size < (long)sizeof(*eh))
		goto out;
	map = sys_call6(SYS_mmap, 0, size, PROT_READ, MAP_PRIVATE, fd, 0);
	rc = (int)map;
	if (map < 0 && map > -4096)
		goto out;
	eh = (const Elf64_Ehdr *)map;
	rc = check_ehdr(eh);
	if (!rc && eh->e_phoff + eh->e_phnum * sizeof(Elf64_Phdr) > (uint64_t)size)
		rc = -ENOEXEC;
	if (!rc)
		rc = map_segments(im, eh, (const Elf64_Phdr *)(map + (long)eh->e_phoff), (int)fd);
	sys_call3(SYS_munmap, map, size, 0);
out:
	sys_call3(SYS_close, fd, 0, 0);
	return rc;
}

void image_unmap_file(struct run_image *im)
{
	sys_call3(SYS_munmap, (long)im->bias, (long)ALIGN_UP(im->end, PAGE_BYTES), 0);
}

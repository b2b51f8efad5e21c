/* SPDX-License-Identifier: MIT */
/*
 * load.c - a statically linked program's segments, where they belong, and a table of its functions.
 *
 * The linker makes no table of functions (.eh_frame_hdr) for such a program, but their descriptions are there (.eh_frame): the
 * table is made here, sorted, in memory of its own, for as long as it is scanned.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "run/program.h"
#include "run/static/static.h"

struct load {
	struct program_file file;
	struct program_head head;
	const char *path;
	uintptr_t bias;
};

static _Noreturn void cannot(const struct load *l, const char *what)
{
	run_die("%s: %s", l->path, what);
}

/* ---- segments -------------------------------------------------------------------------------------- */

static int prot_of(const Elf64_Phdr *ph)
{
	return (ph->p_flags & PF_R ? PROT_READ : 0) | (ph->p_flags & PF_W ? PROT_WRITE : 0) | (ph->p_flags & PF_X ? PROT_EXEC : 0);
}

static void map_at(const struct load *l, uintptr_t at, size_t len, int prot, int fd, uint64_t offset)
{
	int flags = MAP_PRIVATE | (l->bias ? MAP_FIXED : MAP_FIXED_NOREPLACE) | (fd < 0 ? MAP_ANONYMOUS : 0);

	if (sys_call6(SYS_mmap, (long)at, (long)len, prot, flags, fd, (long)offset) != (long)at)
		cannot(l, "its addresses are taken");
}

static void map_segment(const struct load *l, const Elf64_Phdr *ph)
{
	uintptr_t start = l->bias + ph->p_vaddr, page = ALIGN_DOWN(start, PAGE_BYTES), filled = start + ph->p_filesz;
	uintptr_t in_file = ph->p_filesz ? ALIGN_UP(filled, PAGE_BYTES) : page, end = ALIGN_UP(start + ph->p_memsz, PAGE_BYTES);

	if (in_file > page)
		map_at(l, page, in_file - page, prot_of(ph), l->file.fd, ph->p_offset - (start - page));
	if (end > in_file)
		map_at(l, in_file, end - in_file, prot_of(ph), -1, 0);
	if (ph->p_memsz > ph->p_filesz && ph->p_flags & PF_W && in_file > filled)
		memset((void *)filled, 0, in_file - filled);
}

/* Where a program that may lie anywhere does. */
static uintptr_t place(const struct load *l)
{
	uint64_t end = 0;
	Elf64_Phdr ph;
	long at;

	for (unsigned i = 0; program_header(&l->file, &l->head, i, &ph); i++)
		if (ph.p_type == PT_LOAD)
			end = max_of(end, ph.p_vaddr + ph.p_memsz);
	at = sys_call6(SYS_mmap, 0, (long)ALIGN_UP(end, PAGE_BYTES), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at < 0 && at > -4096)
		cannot(l, "there is no room for it");
	return (uintptr_t)at;
}

/* Nothing of it is trusted: its memory is ours as well. */
static void look_at_segments(const struct load *l)
{
	unsigned executable = 0;
	Elf64_Phdr ph;

	for (unsigned i = 0; program_header(&l->file, &l->head, i, &ph); i++) {
		if (ph.p_type != PT_LOAD)
			continue;
		if (ph.p_filesz > ph.p_memsz || ph.p_vaddr > UINT32_MAX || ph.p_memsz > UINT32_MAX - ph.p_vaddr ||
		    (ph.p_vaddr - ph.p_offset) & PAGE_MASK || (!ph.p_filesz && ph.p_vaddr & PAGE_MASK))
			cannot(l, "its segments are not as they should be");
		executable += ph.p_flags & PF_X && ph.p_filesz;
	}
	if (executable != 1)
		cannot(l, "has not one executable segment");
}

/* As the kernel would have made it for such a program. */
static void stack_executable(void *stack)
{
	sys_call3(SYS_mprotect, (long)ALIGN_DOWN((uintptr_t)stack, PAGE_BYTES), PAGE_BYTES,
		  PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN);
}

/* Its headers as they lie in its memory; 0: they do not. */
static uintptr_t map_segments(struct load *l, void *stack)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)l->head.bytes;
	uint64_t size = (uint64_t)eh->e_phnum * sizeof(Elf64_Phdr);
	uintptr_t headers = 0;
	Elf64_Phdr ph;

	look_at_segments(l);
	if (eh->e_type == ET_DYN)
		l->bias = place(l);
	for (unsigned i = 0; program_header(&l->file, &l->head, i, &ph); i++) {
		if (ph.p_type == PT_GNU_STACK && ph.p_flags & PF_X)
			stack_executable(stack);
		if (ph.p_type != PT_LOAD)
			continue;
		map_segment(l, &ph);
		if (eh->e_phoff >= ph.p_offset && eh->e_phoff + size <= ph.p_offset + ph.p_filesz)
			headers = l->bias + ph.p_vaddr + (eh->e_phoff - ph.p_offset);
	}
	return headers;
}

/* ---- functions ----------------------------------------------------------------------------------------- */

/* One description of .eh_frame: length, and at 4 the distance back to what it shares with others, 0 in such a shared one. */
static uint32_t word(uintptr_t at)
{
	return *(const uint32_t *)at;
}

static uint64_t skip_uleb(uintptr_t *at)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 63; shift += 7) {
		uint8_t byte = *(const uint8_t *)(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

/* The shared part at CIE, of at least 24 bytes: do functions begin at a 4-byte distance from where that is written (0x1b)? */
static bool is_common(uintptr_t cie)
{
	const char *letters = (const char *)cie + 9;
	uintptr_t at = cie + 9 + strlen(letters) + 1;

	if (*letters++ != 'z')
		return false;
	skip_uleb(&at); /* alignments, and the return address's register */
	skip_uleb(&at);
	skip_uleb(&at);
	skip_uleb(&at);
	for (; *letters && *letters != 'R'; letters++) {
		if (*letters == 'P')
			at += (*(const uint8_t *)at & 7) == 3 ? 5 : 9; /* 4 bytes, or an address's 8 */
		else if (*letters == 'L')
			at++;
	}
	return *letters == 'R' && *(const uint8_t *)at == 0x1b;
}

/* How many there are from AT to END, and what is known of them, relative to AT, unless TABLE is NULL. */
static uint32_t take_frames(uintptr_t at, uintptr_t end, int32_t (*table)[2])
{
	uintptr_t base = at;
	uint32_t n = 0;

	for (; at + 4 <= end && word(at) && word(at) < UINT32_MAX && at + 4 + word(at) <= end; at += 4 + word(at)) {
		uintptr_t cie;

		if (word(at) < 16 || !word(at + 4))
			continue;
		cie = at + 4 - word(at + 4);
		if (cie < base || cie >= at || word(cie) < 16 || !is_common(cie))
			continue;
		if (table) {
			table[n][0] = (int32_t)((long)(at + 8 - base) + (int32_t)word(at + 8)); /* frames.c looks whether that holds */
			table[n][1] = (int32_t)(at - base);
		}
		n++;
	}
	return n;
}

/* By address; nearly sorted already, as the linker wrote them. */
static void sort_down(int32_t (*table)[2], uint32_t root, uint32_t n)
{
	for (uint32_t child; (child = 2 * root + 1) < n; root = child) {
		int32_t first = table[root][0], second = table[root][1];

		if (child + 1 < n && table[child][0] < table[child + 1][0])
			child++;
		if (first >= table[child][0])
			return;
		memcpy(table[root], table[child], sizeof(table[0]));
		table[child][0] = first;
		table[child][1] = second;
	}
}

static void sort_frames(int32_t (*table)[2], uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sort_down(table, i, n);
	for (uint32_t i = n; i-- > 1;) {
		int32_t last[2] = {table[i][0], table[i][1]};

		memcpy(table[i], table[0], sizeof(last));
		memcpy(table[0], last, sizeof(last));
		sort_down(table, 0, i);
	}
}

static bool in_a_segment(const struct load *l, const Elf64_Shdr *section)
{
	Elf64_Phdr ph;

	for (unsigned i = 0; program_header(&l->file, &l->head, i, &ph); i++)
		if (ph.p_type == PT_LOAD && section->sh_addr >= ph.p_vaddr && section->sh_addr - ph.p_vaddr <= ph.p_filesz &&
		    section->sh_size <= ph.p_filesz - (section->sh_addr - ph.p_vaddr))
			return true;
	return false;
}

static void find_functions(const struct load *l, struct run_image *im)
{
	Elf64_Shdr section;
	uintptr_t at;
	uint32_t n;
	long room;

	if (!program_section(&l->file, &l->head, ".eh_frame", &section) || !in_a_segment(l, &section))
		return;
	at = l->bias + section.sh_addr;
	n = take_frames(at, at + section.sh_size, NULL);
	room = sys_call6(SYS_mmap, 0, (long)(n + 1) * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room < 0 && room > -4096)
		cannot(l, "there is no memory to look at it");
	take_frames(at, at + section.sh_size, (int32_t(*)[2])room);
	sort_frames((int32_t(*)[2])room, n);
	im->frames = at;
	im->frame_table = (const int32_t *)room;
	im->frame_count = n;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

void static_load(struct static_program *p, int fd, const char *path, void *stack)
{
	struct load l = {.file = program_kernels(fd), .path = path};
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)l.head.bytes;
	int rc;

	if (program_look(&l.file, path, &l.head) != PROGRAM_STATIC)
		cannot(&l, "is no statically linked program any more");
	p->headers = map_segments(&l, stack);
	p->header_count = eh->e_phnum;
	p->entry = l.bias + eh->e_entry;
	if (!p->headers)
		cannot(&l, "its headers are not in its memory");
	rc = image_init(&p->image, l.bias, (const Elf64_Phdr *)p->headers, p->header_count);
	if (rc && rc != -ENODATA)
		cannot(&l, "has no code");
	p->image.path = path;
	p->image.strange = true;
	find_functions(&l, &p->image);
}

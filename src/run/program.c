/* SPDX-License-Identifier: MIT */
/* program.c - see program.h. */
#include <elf.h>
#include <string.h>

#include "base/base.h"
#include "base/syscall.h"
#include "run/program.h"

/* N bytes at AT: out of the head, which has what is wanted of nearly every program, or of the file. */
static bool read_part(const struct program_file *f, const struct program_head *head, void *buf, size_t n, uint64_t at)
{
	if (at > (size_t)head->len || n > (size_t)head->len - at)
		return f->read(f, buf, n, (off_t)at) == (long)n;
	memcpy(buf, head->bytes + at, n);
	return true;
}

bool program_header(const struct program_file *f, const struct program_head *head, unsigned i, Elf64_Phdr *ph)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)head->bytes;

	return i < eh->e_phnum && eh->e_phentsize == sizeof(*ph) && read_part(f, head, ph, sizeof(*ph), eh->e_phoff + i * sizeof(*ph));
}

/* The first header of TYPE. */
static bool find_header(const struct program_file *f, const struct program_head *head, uint32_t type, Elf64_Phdr *ph)
{
	for (unsigned i = 0; program_header(f, head, i, ph); i++)
		if (ph->p_type == type)
			return true;
	return false;
}

/* Whether the loader takes part: there is a PT_INTERP. */
static bool is_dynamic(const struct program_file *f, const struct program_head *head)
{
	Elf64_Phdr ph;

	return find_header(f, head, PT_INTERP, &ph);
}

/* The command `shelf`: below a shelf it only executes another program. */
static bool is_front(const struct program_file *f, const struct program_head *head)
{
	static const char name[] = PROGRAM_FRONT_NOTE;
	_Alignas(4) char notes[256];
	Elf64_Phdr ph;
	long n, at = 0;

	if (!find_header(f, head, PT_NOTE, &ph))
		return false;
	n = f->read(f, notes, min_of(sizeof(notes), (size_t)ph.p_filesz), (off_t)ph.p_offset);
	while (at + (long)(sizeof(Elf64_Nhdr) + sizeof(name)) <= n) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)(notes + at);

		if (note->n_namesz == sizeof(name) && !memcmp(note + 1, name, sizeof(name)))
			return true;
		at += (long)(sizeof(*note) + ALIGN_UP((size_t)note->n_namesz, 4) + ALIGN_UP((size_t)note->n_descsz, 4));
	}
	return false;
}

/* The loader run by name has no loader itself, but loads the library. */
bool program_is_loader(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "ld-linux", 8);
}

static bool gains_rights(const struct program_file *f)
{
	struct stat st;

	if (f->stat(f, &st))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != (uint64_t)sys_call3(SYS_geteuid, 0, 0, 0)) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != (uint64_t)sys_call3(SYS_getegid, 0, 0, 0));
}

enum program_kind program_look(const struct program_file *f, const char *path, struct program_head *head)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)head->bytes;

	memset(head, 0, sizeof(*head));
	head->len = f->read(f, head->bytes, sizeof(head->bytes) - 1, 0);
	if (head->len >= 2 && head->bytes[0] == '#' && head->bytes[1] == '!')
		return PROGRAM_SCRIPT;
	if (head->len < (long)sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG))
		return PROGRAM_OTHER;
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_machine != EM_X86_64)
		return PROGRAM_FOREIGN;
	if (eh->e_phentsize == sizeof(Elf64_Phdr) && !is_dynamic(f, head) && !program_is_loader(path) && !is_front(f, head))
		return PROGRAM_STATIC;
	return gains_rights(f) ? PROGRAM_RIGHTS : PROGRAM_PLAIN;
}

const char *program_refusal(enum program_kind kind)
{
	switch (kind) {
	case PROGRAM_STATIC:
		return "is statically linked, and would not see the shelf: not started";
	case PROGRAM_RIGHTS:
		return "runs with other rights than yours, and would not see the shelf: not started";
	case PROGRAM_FOREIGN:
		return "is a program for another machine, and would not see the shelf: not started";
	default:
		return NULL;
	}
}

/* SPDX-License-Identifier: MIT */
/* program.c - see program.h. */
#include <elf.h>
#include <string.h>

#include "base/base.h"
#include "base/syscall.h"
#include "run/program.h"

/* Whether the loader takes part: there is a PT_INTERP. */
static bool is_dynamic(const struct program_file *f, const Elf64_Ehdr *eh)
{
	Elf64_Phdr ph;

	for (unsigned i = 0; i < eh->e_phnum; i++) {
		off_t at = (off_t)(eh->e_phoff + i * sizeof(ph));

		if (f->read(f, &ph, sizeof(ph), at) != sizeof(ph))
			return false;
		if (ph.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* The loader run by name has no loader itself, but loads the library. */
static bool is_loader(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "ld-linux", 8);
}

static bool gains_rights(const struct program_file *f)
{
	uint64_t uid = (uint64_t)sys_call3(SYS_geteuid, 0, 0, 0), gid = (uint64_t)sys_call3(SYS_getegid, 0, 0, 0);
	struct stat st;

	if (f->stat(f, &st))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != uid) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != gid);
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
	if (eh->e_phentsize == sizeof(Elf64_Phdr) && !is_dynamic(f, eh) && !is_loader(path))
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

/* SPDX-License-Identifier: MIT */
/* program.c - see program.h. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

bool program_section(const struct program_file *f, const struct program_head *head, const char *name, Elf64_Shdr *sh)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)head->bytes;
	size_t len = strlen(name) + 1;
	Elf64_Shdr names;
	char text[32];

	if (eh->e_shentsize != sizeof(*sh) || len > sizeof(text) ||
	    !read_part(f, head, &names, sizeof(names), eh->e_shoff + eh->e_shstrndx * sizeof(names)))
		return false;
	for (unsigned i = 0; i < eh->e_shnum; i++)
		if (read_part(f, head, sh, sizeof(*sh), eh->e_shoff + i * sizeof(*sh)) &&
		    read_part(f, head, text, len, names.sh_offset + sh->sh_name) && !strncmp(text, name, len))
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

	return !strncmp(slash ? slash + 1 : path, "ld-linux", 8) || !strcmp(slash ? slash + 1 : path, "ld.so");
}

/* ---- files of the kernel's ---------------------------------------------------------------------- */

static long kernels_read(const struct program_file *f, void *buf, size_t n, off_t at)
{
	return sys_call6(SYS_pread64, f->fd, (long)buf, (long)n, at, 0, 0);
}

static long kernels_stat(const struct program_file *f, struct stat *st)
{
	return sys_call3(SYS_fstat, f->fd, (long)st, 0);
}

static long kernels_attribute(const struct program_file *f, const char *name, void *buf, size_t n)
{
	long got = sys_call6(SYS_fgetxattr, f->fd, (long)name, (long)buf, (long)n, 0, 0);
	char path[32];

	if (got != -EBADF)
		return got;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd); /* opened as a path alone */
	return sys_call6(SYS_getxattr, (long)path, (long)name, (long)buf, (long)n, 0, 0);
}

static bool kernels_gives_rights(const struct program_file *f)
{
	struct statfs fs;

	return sys_call3(SYS_fstatfs, f->fd, (long)&fs, 0) || !(fs.f_flags & ST_NOSUID);
}

struct program_file program_kernels(int fd)
{
	return (struct program_file){kernels_read, kernels_stat, kernels_attribute, kernels_gives_rights, fd};
}

long program_open(int dirfd, const char *path)
{
	/* It may be a FIFO. */
	long fd = sys_call6(SYS_openat, dirfd, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0, 0);

	return fd == -EACCES ? sys_call6(SYS_openat, dirfd, (long)path, O_PATH | O_CLOEXEC, 0, 0, 0) : fd;
}

bool program_script(struct program_head *head, char **interpreter, char **argument)
{
	char *p = head->bytes + 2, *end = strchr(head->bytes, '\n');

	if (!end && head->len == sizeof(head->bytes) - 1 && !strchr(p, ' '))
		return false; /* the name is cut off */
	if (end)
		*end = '\0';
	for (end = p + strlen(p); end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'); end--)
		if (end[-1] == '\r')
			break;
	*end = '\0';
	while (*p == ' ' || *p == '\t')
		p++;
	*interpreter = p;
	while (*p && *p != ' ' && *p != '\t')
		p++;
	if (*p)
		*p++ = '\0';
	while (*p == ' ' || *p == '\t')
		p++;
	*argument = *p ? p : NULL;
	return **interpreter != '\0';
}

long program_path(int fd, char *buf, size_t size)
{
	char link[32];
	long n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = sys_call3(SYS_readlink, (long)link, (long)buf, (long)size - 1);
	buf[max_of(n, 0L)] = '\0';
	return n;
}

long program_may_run(const struct program_file *f)
{
	return sys_call6(SYS_faccessat2, f->fd, (long)"", X_OK, AT_EACCESS | AT_EMPTY_PATH, 0, 0);
}

/* ---- rights ------------------------------------------------------------------------------------- */

#define CAPABILITIES "security.capability"

/* As linux/capability.h has it: 20 or 24 bytes. */
struct file_capabilities {
	uint32_t magic;
	struct {
		uint32_t permitted, inheritable;
	} word[2];
	uint32_t root;
};

static bool has_capabilities(const struct program_file *f)
{
	struct file_capabilities c;
	long n = f->attribute(f, CAPABILITIES, &c, sizeof(c));

	return n > 0 && (c.magic & 1 || n < 20 || c.word[0].permitted || c.word[0].inheritable || c.word[1].permitted || c.word[1].inheritable);
}

static bool may_change_ids(const struct program_file *f)
{
	return f->gives_rights(f) && sys_call6(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) != 1;
}

/*
 * When the kernel has the loader leave preloaded libraries out (AT_SECURE): the ids in force are not the real ones, or who is not root gets
 * capabilities by the file.
 */
static bool is_secure(const struct program_file *f)
{
	uint32_t uid, gid, real_uid, real_gid, saved;
	struct stat st;

	if (f->stat(f, &st) || sys_call3(SYS_getresuid, (long)&real_uid, (long)&uid, (long)&saved) ||
	    sys_call3(SYS_getresgid, (long)&real_gid, (long)&gid, (long)&saved))
		return false;
	if (st.st_mode & (S_ISUID | S_ISGID) && may_change_ids(f)) {
		uid = st.st_mode & S_ISUID ? st.st_uid : uid;
		gid = (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) ? st.st_gid : gid;
	}
	return uid != real_uid || gid != real_gid || (real_uid && has_capabilities(f) && f->gives_rights(f));
}

/* ---- what it is ----------------------------------------------------------------------------------- */

enum program_kind program_look(const struct program_file *f, const char *path, struct program_head *head)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)head->bytes;
	Elf64_Shdr frames;

	memset(head, 0, sizeof(*head));
	head->len = f->read(f, head->bytes, sizeof(head->bytes) - 1, 0);
	if (head->len >= 2 && head->bytes[0] == '#' && head->bytes[1] == '!')
		return PROGRAM_SCRIPT;
	if (head->len < 0)
		return is_secure(f) ? PROGRAM_RIGHTS : PROGRAM_OTHER; /* may be run, but not be read */
	if (head->len < (long)sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG))
		return PROGRAM_OTHER;
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_machine != EM_X86_64)
		return PROGRAM_FOREIGN;
	if (is_secure(f))
		return PROGRAM_RIGHTS;
	if (eh->e_phentsize != sizeof(Elf64_Phdr) || is_dynamic(f, head) || program_is_loader(path) || is_front(f, head))
		return PROGRAM_PLAIN;
	return program_section(f, head, ".eh_frame", &frames) ? PROGRAM_STATIC : PROGRAM_BARE;
}

const char *program_refusal(enum program_kind kind)
{
	switch (kind) {
	case PROGRAM_BARE:
		return "is statically linked, does not tell where its functions are, and would not see the shelf: not started";
	case PROGRAM_RIGHTS:
		return "runs with other rights than yours, and would not see the shelf: not started";
	case PROGRAM_FOREIGN:
		return "is a program for another machine, and would not see the shelf: not started";
	default:
		return NULL;
	}
}

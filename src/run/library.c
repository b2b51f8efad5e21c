/* SPDX-License-Identifier: MIT */
/* library.c - see library.h. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/syscall.h"
#include "run/alone/libc.h"
#include "run/library.h"

#define LIST_MAX 1024 /* of a list in a program: one that is longer is taken to reach */
#define DYNAMIC_MAX 128 /* entries; the like */

/* ---- lists of folders ----------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool entry_reaches(const struct library_place *place, const char *entry)
{
	size_t n = strlen(place->prefix);

	if (begins(entry, "$ORIGIN") || begins(entry, "${ORIGIN}"))
		return place->origin;
	if (*entry != '/')
		return place->here; /* an empty one is the working directory */
	return begins(entry, place->prefix) && (!entry[n] || strchr("/:;", entry[n]));
}

bool library_list_reaches(const struct library_place *place, const char *list)
{
	while (list && *list) {
		if (entry_reaches(place, list))
			return true;
		while (*list && *list != ':' && *list != ';')
			list++;
		if (*list && !*++list)
			return place->here;
	}
	return false;
}

/* ---- programs --------------------------------------------------------------------------------------- */

struct dynamic {
	Elf64_Dyn entry[DYNAMIC_MAX];
	unsigned count;
};

/* The part of the file that has what is at ADDRESS in memory.  0: none. */
static uint64_t offset_of(const struct program_file *f, const struct program_head *head, uint64_t address)
{
	Elf64_Phdr ph;

	for (unsigned i = 0; program_header(f, head, i, &ph); i++)
		if (ph.p_type == PT_LOAD && address - ph.p_vaddr < ph.p_filesz)
			return ph.p_offset + (address - ph.p_vaddr);
	return 0;
}

static bool dynamic_read(const struct program_file *f, const struct program_head *head, struct dynamic *d)
{
	Elf64_Phdr ph;
	long n;

	for (unsigned i = 0; program_header(f, head, i, &ph); i++) {
		if (ph.p_type != PT_DYNAMIC)
			continue;
		n = f->read(f, d->entry, min_of(sizeof(d->entry), (size_t)ph.p_filesz), (off_t)ph.p_offset);
		d->count = n > 0 ? (unsigned)((size_t)n / sizeof(d->entry[0])) : 0;
		return d->count;
	}
	return false;
}

static uint64_t dynamic_find(const struct dynamic *d, int64_t tag)
{
	for (unsigned i = 0; i < d->count && d->entry[i].d_tag != DT_NULL; i++)
		if (d->entry[i].d_tag == tag)
			return d->entry[i].d_un.d_val;
	return 0;
}

static bool list_in_file_reaches(const struct library_place *place, const struct program_file *f, uint64_t at)
{
	char list[LIST_MAX];
	long n = f->read(f, list, sizeof(list) - 1, (off_t)at);

	if (n <= 0)
		return false;
	list[n] = '\0';
	return strlen(list) == sizeof(list) - 1 || library_list_reaches(place, list);
}

bool library_program_reaches(const struct library_place *place, const struct program_file *f, const struct program_head *head)
{
	static const int64_t tags[] = {DT_RPATH, DT_RUNPATH};
	struct dynamic d;
	uint64_t names = 0, at;

	if (!dynamic_read(f, head, &d))
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(tags); i++) {
		at = dynamic_find(&d, tags[i]);
		if (at && !names)
			names = offset_of(f, head, dynamic_find(&d, DT_STRTAB));
		if (at && names && list_in_file_reaches(place, f, names + at))
			return true;
	}
	return false;
}

/* ---- the environment -------------------------------------------------------------------------------- */

static const char *const names[LIBRARY_ENV] = {"LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES"};

bool library_env_is(const char *entry)
{
	for (unsigned i = 0; i < LIBRARY_ENV; i++)
		if (begins(entry, names[i]) && entry[strlen(names[i])] == '=')
			return true;
	return false;
}

/* What stands in TEXT behind OURS and a separator. */
static const char *after_ours(const char *text, const char *ours)
{
	size_t n = strlen(ours);

	if (!text || strncmp(text, ours, n) || (text[n] && text[n] != ':' && text[n] != ' '))
		return text && *text ? text : NULL;
	return text[n] && text[n + 1] ? text + n + 1 : NULL;
}

void library_env_take(struct library_env *e, char **envp, const char *library, bool early)
{
	*e = (struct library_env){
		.library = library,
		.preload = after_ours(libc_env(envp, names[0]), library),
		.audit = after_ours(libc_env(envp, names[1]), library),
		.tunables = after_ours(libc_env(envp, names[2]), LIBRARY_TLS),
		.early = early,
	};
}

static size_t length_of(const char *text)
{
	return text ? strlen(text) : 0;
}

size_t library_env_size(const struct library_env *e)
{
	return length_of(e->preload) + length_of(e->audit) + length_of(e->tunables) + strlen(e->library) + sizeof(LIBRARY_TLS) +
	       LIBRARY_ENV * 24;
}

/* NAME=OURS:THEIRS, either of which may be missing.  Where the next one goes. */
static char *write_one(char *buf, size_t size, const char *name, const char *ours, const char *theirs, char **out)
{
	*out = NULL;
	if (!ours && !theirs)
		return buf;
	*out = buf;
	return buf + snprintf(buf, size, "%s=%s%s%s", name, ours ? ours : "", ours && theirs ? ":" : "", theirs ? theirs : "") + 1;
}

void library_env_write(const struct library_env *e, char *buf, char *out[LIBRARY_ENV])
{
	char *end = buf + library_env_size(e);

	buf = write_one(buf, (size_t)(end - buf), names[0], e->early ? NULL : e->library, e->preload, &out[0]);
	buf = write_one(buf, (size_t)(end - buf), names[1], e->early ? e->library : NULL, e->audit, &out[1]);
	write_one(buf, (size_t)(end - buf), names[2], e->early ? LIBRARY_TLS : NULL, e->tunables, &out[2]);
}

long library_static_program(char *buf, size_t size, const char *library)
{
	const char *slash = strrchr(library, '/');
	size_t n = slash ? (size_t)(slash + 1 - library) : 0;

	if (n + sizeof(STATIC_PROGRAM) > size)
		return -ENAMETOOLONG;
	memcpy(buf, library, n);
	memcpy(buf + n, STATIC_PROGRAM, sizeof(STATIC_PROGRAM));
	return sys_call3(SYS_access, (long)buf, 1 /* X_OK */, 0) ? -ENOENT : 0;
}

/* SPDX-License-Identifier: MIT */
/* vdso.c - see vdso.h.  Kernels have one table of its symbols or the other: DT_HASH, DT_GNU_HASH. */
#include <string.h>

#include "base/base.h"
#include "run/vdso.h"

#define AT_START __attribute__((section(".text.startup"))) /* as serve.h */

struct vdso {
	uintptr_t slide;
	const char *names;
	const Elf64_Sym *symbols;
	const uint32_t *hash; /* buckets, chains (= symbols), ... */
	const uint32_t *gnu; /* buckets, first symbol, words of the filter, its shift; filter, buckets, values */
};

static AT_START void take(struct vdso *v, const Elf64_Dyn *d)
{
	for (; d->d_tag != DT_NULL; d++) {
		const void *at = (const void *)(v->slide + d->d_un.d_ptr);

		if (d->d_tag == DT_STRTAB)
			v->names = at;
		else if (d->d_tag == DT_SYMTAB)
			v->symbols = at;
		else if (d->d_tag == DT_HASH)
			v->hash = at;
		else if (d->d_tag == DT_GNU_HASH)
			v->gnu = at;
	}
}

static AT_START void open_page(struct vdso *v, const Elf64_Ehdr *h)
{
	const Elf64_Phdr *ph = (const Elf64_Phdr *)((const char *)h + h->e_phoff);
	const Elf64_Dyn *dynamic = NULL;

	for (unsigned i = 0; i < h->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && !v->slide)
			v->slide = (uintptr_t)h + ph[i].p_offset - ph[i].p_vaddr;
		else if (ph[i].p_type == PT_DYNAMIC)
			dynamic = (const Elf64_Dyn *)((const char *)h + ph[i].p_offset);
	}
	if (dynamic)
		take(v, dynamic);
}

static AT_START bool symbol_is(const struct vdso *v, uint32_t i, const char *name)
{
	return v->symbols[i].st_shndx != SHN_UNDEF && !strcmp(v->names + v->symbols[i].st_name, name);
}

/* Its number; 0: there is none. */
static AT_START uint32_t find_in_all(const struct vdso *v, const char *name)
{
	for (uint32_t i = 1; i < v->hash[1]; i++)
		if (symbol_is(v, i, name))
			return i;
	return 0;
}

static AT_START uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	while (*name)
		h = h * 33 + (unsigned char)*name++;
	return h;
}

/* The same.  The symbols of a bucket are one behind the other, and the last one's value has bit 0 set. */
static AT_START uint32_t find_in_bucket(const struct vdso *v, const char *name)
{
	const uint32_t *buckets = v->gnu + 4 + 2 * (size_t)v->gnu[2], *values = buckets + v->gnu[0];
	uint32_t hash = gnu_hash(name), i = v->gnu[0] ? buckets[hash % v->gnu[0]] : 0, value;

	if (!i)
		return 0;
	do {
		value = values[i - v->gnu[1]];
		if ((value | 1) == (hash | 1) && symbol_is(v, i, name))
			return i;
		i++;
	} while (!(value & 1));
	return 0;
}

AT_START const void *vdso_find(const Elf64_Ehdr *page, const char *name)
{
	struct vdso v = {0};
	uint32_t i = 0;

	open_page(&v, page);
	if (!v.names || !v.symbols)
		return NULL;
	if (v.gnu)
		i = find_in_bucket(&v, name);
	else if (v.hash)
		i = find_in_all(&v, name);
	return i ? (const void *)(v.slide + v.symbols[i].st_value) : NULL;
}

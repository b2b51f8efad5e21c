// SPDX-License-Identifier: MIT
/* Functions of the kernel's page, with either table of symbols. */
#include "harness.h"

#include <sys/auxv.h>
#include <time.h>

#include "base/base.h"
#include "run/vdso.h"

#define SLIDE 0x1000 /* addresses in the page are this much more than where they are */
#define SYMBOLS 5 /* the first is none, the second undefined */

static struct page {
	Elf64_Ehdr head;
	Elf64_Phdr ph[2];
	Elf64_Dyn dynamic[5];
	Elf64_Sym symbol[SYMBOLS];
	uint32_t hash[2 + 1 + SYMBOLS];
	uint32_t gnu[4 + 2 + 2 + 3]; /* a filter of one word, two buckets, the values of three symbols */
	char names[64];
} page;

static const char *const names[SYMBOLS] = {"", "one", "two", "three", "four"};

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = (h << 5) + h + (unsigned char)*name;
	return h;
}

static void add_entry(int64_t tag, const void *what)
{
	Elf64_Dyn *d = page.dynamic;

	while (d->d_tag)
		d++;
	d->d_tag = tag;
	d->d_un.d_ptr = (uintptr_t)what - (uintptr_t)&page + SLIDE;
}

static void make_page(bool gnu, bool hash)
{
	/* Two buckets: the symbols 2.. are in the order of theirs. */
	const char *sorted[SYMBOLS] = {"", "one"};
	unsigned n = 2, at = 0;

	memset(&page, 0, sizeof(page));
	for (unsigned bucket = 0; bucket < 2; bucket++)
		for (unsigned i = 2; i < SYMBOLS; i++)
			if (hash_of(names[i]) % 2 == bucket) {
				page.gnu[8 + n - 2] = hash_of(names[i]) & ~1u;
				if (!page.gnu[6 + bucket])
					page.gnu[6 + bucket] = n;
				sorted[n++] = names[i];
			}
	for (unsigned bucket = 0; bucket < 2; bucket++) /* the last of each */
		for (unsigned i = SYMBOLS - 1; i >= 2; i--)
			if (hash_of(sorted[i]) % 2 == bucket) {
				page.gnu[8 + i - 2] |= 1;
				break;
			}
	page.gnu[0] = 2, page.gnu[1] = 2, page.gnu[2] = 1;
	page.hash[0] = 1, page.hash[1] = SYMBOLS;
	for (unsigned i = 1; i < SYMBOLS; i++) {
		page.symbol[i].st_name = ++at;
		page.symbol[i].st_shndx = i == 1 ? SHN_UNDEF : 1;
		page.symbol[i].st_value = SLIDE + 1000 + (uint64_t)sorted[i][0];
		strcpy(page.names + at, sorted[i]);
		at += (unsigned)strlen(sorted[i]);
	}
	page.head.e_phoff = offsetof(struct page, ph);
	page.head.e_phnum = 2;
	page.ph[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = SLIDE};
	page.ph[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_offset = offsetof(struct page, dynamic)};
	add_entry(DT_STRTAB, page.names);
	add_entry(DT_SYMTAB, page.symbol);
	if (hash)
		add_entry(DT_HASH, page.hash);
	if (gnu)
		add_entry(DT_GNU_HASH, page.gnu);
}

static void check_page(void)
{
	static const char *const none[] = {"one", "five", "", "twoo", "tw"};

	for (unsigned i = 2; i < SYMBOLS; i++)
		assert_ptr_equal(vdso_find(&page.head, names[i]), (const char *)&page + 1000 + names[i][0]);
	for (unsigned i = 0; i < ARRAY_SIZE(none); i++)
		assert_null(vdso_find(&page.head, none[i]));
}

static void functions_are_found_by_either_table(void **state)
{
	(void)state;
	make_page(true, false);
	check_page();
	make_page(false, true);
	check_page();
	make_page(true, true);
	check_page();
}

static void a_page_without_a_table_has_none(void **state)
{
	(void)state;
	make_page(false, false);
	assert_null(vdso_find(&page.head, "two"));
	memset(&page, 0, sizeof(page));
	assert_null(vdso_find(&page.head, "two"));
}

static void the_kernels_own_tells_the_time(void **state)
{
	const Elf64_Ehdr *own = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	int (*clock_now)(clockid_t, struct timespec *);
	struct timespec ts, after;

	(void)state;
	if (!own)
		skip();
	clock_now = (int (*)(clockid_t, struct timespec *))(uintptr_t)vdso_find(own, "__vdso_clock_gettime");
	assert_non_null(clock_now);
	assert_int_equal(clock_now(CLOCK_MONOTONIC, &ts), 0);
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &after), 0);
	assert_true(after.tv_sec - ts.tv_sec <= 60 && after.tv_sec >= ts.tv_sec);
	assert_null(vdso_find(own, "__vdso_nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_either_table),
		cmocka_unit_test(a_page_without_a_table_has_none),
		cmocka_unit_test(the_kernels_own_tells_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

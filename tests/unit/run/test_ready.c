// SPDX-License-Identifier: MIT
/*
 * Ready copies: what a process maps is what it would have patched itself, and where it may not or cannot it patches.
 * Each case attaches in children, which begin with untouched libraries.
 */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "run/attach.h"
#include "run/ready_priv.h"
#include "unit/run/lib/handler.h"

static uint8_t all[RUN_NUMBERS];
static char dir[64];

static __attribute__((target("general-regs-only"))) long serve_with_42(struct run_regs *regs)
{
	return regs->nr == SYS_getppid ? 42 : run_pass(regs);
}

static int start(void **state)
{
	struct run_image im;

	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/shelf-ready.XXXXXX");
	CHECK(mkdtemp(dir));
	memset(all, 1, sizeof(all));
	if (run_find_image("libc.so.6", &im))
		test_skip("no libc of that name");
	return 0;
}

/* Calls FN with the path of each file in the folder that ends in ENDING; how many there are. */
static int each_file(const char *ending, void (*fn)(const char *path))
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[512];
	int n = 0;

	CHECK(d);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name), end = strlen(ending);

		if (e->d_name[0] == '.' || len < end || strcmp(e->d_name + len - end, ending))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n++;
		if (fn)
			fn(path);
	}
	closedir(d);
	return n;
}

static void remove_file(const char *path)
{
	CHECK(unlink(path) == 0);
}

static int stop(void **state)
{
	(void)state;
	each_file("", remove_file);
	return rmdir(dir);
}

/* ---- in a child ----------------------------------------------------------------------------- */

static int run_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* Attaches; READY images are to be ready copies, SCANNED to have had no table. Then calls are served and children work. */
static void attach_here(uint32_t ready, uint32_t scanned)
{
	struct attach_result result;
	int status;

	memcpy(run_wanted, all, sizeof(run_wanted));
	test_handler = serve_with_42;
	CHECK(run_attach(dir, all, &result) == 0);
	CHECK(result.images >= 2 && result.ready == ready && result.scanned == scanned);
	CHECK(result.count.left == 0 && result.count.patched > 300);
	CHECK(getppid() == 42 && getpid() != 42 && syscall(SYS_getppid) == 42);
	CHECK(system("exit 7") >= 0);
	status = fork();
	if (status == 0)
		_exit(getppid() == 42 ? 5 : 6);
	CHECK(waitpid(-1, &status, 0) > 0 && WEXITSTATUS(status) == 5);
}

static void makes_them(void)
{
	attach_here(2, 2);
}

static void has_them(void)
{
	attach_here(2, 0);
}

/* libc is patched in place, so the loader's slots begin elsewhere, and it has another copy. */
static void patches_libc(void)
{
	attach_here(1, 0);
	CHECK(*(const uint8_t *)(uintptr_t)getppid != 0xff);
}

static void scans_and_patches(void)
{
	attach_here(0, 2);
}

static void libc_image(struct run_image *im)
{
	CHECK(run_find_image("libc.so.6", im) == 0);
}

/* ---- what is mapped ---------------------------------------------------------------------------- */

static void copies_are_made_once_and_used_from_then_on(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 2);
	assert_int_equal(run_child(has_them), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 2);
	assert_int_equal(each_file("", NULL), 4); /* and two tables */
}

/* Every byte of the text but those of the sites is the original's. */
static void compare_text(void)
{
	uint8_t *before;
	struct table_cursor c;
	struct run_image im;
	struct run_site site;
	const void *table;
	size_t size;
	uint32_t at;

	libc_image(&im);
	before = malloc(im.text_len);
	memcpy(before, image_ptr(&im, im.text), im.text_len);
	attach_here(2, 0);
	CHECK(table_load(&im, dir, &table, &size) == 0 && table_open(&im, table, size, &c) == 0);
	at = im.text;
	while (table_next(&c, &site) > 0) {
		uint32_t begin = site.at - site.before;
		const uint8_t *p = image_ptr(&im, begin);

		if (site.why != SITE_OK)
			continue;
		CHECK(memcmp(before + (at - im.text), image_ptr(&im, at), begin - at) == 0);
		CHECK(p[0] == 0xff && p[1] == 0x25);
		CHECK(memcmp(p + FAR_JUMP_LEN, site.bytes + FAR_JUMP_LEN, (size_t)site.len - FAR_JUMP_LEN) == 0);
		at = begin + site.len;
	}
	CHECK(memcmp(before + (at - im.text), image_ptr(&im, at), im.text + im.text_len - at) == 0);
}

static void nothing_but_the_sites_differs_from_the_library(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(run_child(compare_text), 0);
}

static void count_own_pages(void)
{
	uint64_t entry;
	struct run_image im;
	int fd;

	libc_image(&im);
	attach_here(2, 0);
	for (uint32_t at = 0; at < im.text_len; at += 4096)
		(void)*(volatile const uint8_t *)image_ptr(&im, im.text + at);
	fd = open("/proc/self/pagemap", O_RDONLY);
	for (uint32_t at = 0; at < im.text_len; at += 4096) {
		CHECK(pread(fd, &entry, 8, (off_t)((im.bias + im.text + at) / 4096 * 8)) == 8);
		CHECK(entry >> 63 && entry >> 61 & 1); /* there, and a file's */
	}
}

static void no_page_of_the_text_is_the_processs_own(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(run_child(count_own_pages), 0);
}

/* mov $nr,%eax; syscall: entered at the syscall the kernel is asked, as behind a jump of five bytes. */
static void enter_at_the_call(void)
{
	struct run_image im;
	long nr = SYS_getppid, parent = getppid(), result;
	uintptr_t at;

	libc_image(&im);
	attach_here(2, 0);
	at = (uintptr_t)getppid;
	CHECK(*(const uint16_t *)at == 0x25ff && *(const uint16_t *)(at + 5) == 0x050f);
	__asm__ volatile("lea -128(%%rsp), %%rsp; call *%2; lea 128(%%rsp), %%rsp"
			 : "=a"(result) : "a"(nr), "r"(at + 5) : "rcx", "r11", "memory", "cc");
	CHECK(result == parent);
}

static void branch_to_the_covered_call_still_makes_it(void **state)
{
	(void)state;
	if (*(const uint8_t *)(uintptr_t)getppid != 0xb8)
		skip();
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(run_child(enter_at_the_call), 0);
}

static void other_numbers(void)
{
	all[SYS_sync] = 0;
	attach_here(2, 0);
}

static void other_numbers_have_copies_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(run_child(other_numbers), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 4);
	assert_int_equal(run_child(has_them), 0);
}

/* ---- where a copy may not or cannot be used ------------------------------------------------------- */

/* As a debugger leaves it: a page written to, whatever is in it. */
static void written_to(void)
{
	struct run_image im;
	uint8_t *page;

	libc_image(&im);
	page = (uint8_t *)ALIGN_DOWN(im.bias + im.text + im.text_len / 2, 4096UL);
	CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
	*(volatile uint8_t *)page = *(volatile uint8_t *)page;
	CHECK(mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0);
	patches_libc();
}

static void text_that_was_written_to_is_not_replaced(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(run_child(written_to), 0);
}

static void address_taken(void)
{
	struct run_image im;
	void *at;

	libc_image(&im);
	at = (void *)(im.bias + ready_words(&im));
	CHECK(mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at);
	attach_here(1, 0);
	CHECK(*(const uint64_t *)at == 0); /* still the program's */
}

static void memory_in_the_words_place_stays_the_programs(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(run_child(address_taken), 0);
}

static void cut_short(const char *path)
{
	CHECK(truncate(path, 8192) == 0);
}

static void change_tail(const char *path)
{
	int fd = open(path, O_RDWR);
	uint64_t word;
	struct stat st;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = st.st_size - 4096 + (off_t)sizeof(word); at < st.st_size - 96; at += 500) {
		CHECK(pread(fd, &word, 8, at) == 8);
		word ^= 1;
		CHECK(pwrite(fd, &word, 8, at) == 8);
	}
	close(fd);
}

static void damaged_copies_are_made_anew(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	each_file(READY_ENDING, cut_short);
	assert_int_equal(run_child(has_them), 0);
	each_file(READY_ENDING, change_tail);
	assert_int_equal(run_child(has_them), 0);
	assert_int_equal(run_child(has_them), 0);
	assert_int_equal(each_file("", NULL), 4);
}

static void let_others_write(const char *path)
{
	CHECK(chmod(path, 0622) == 0);
}

static void copies_that_others_may_write_to_are_not_used(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	each_file(READY_ENDING, let_others_write);
	assert_int_equal(run_child(has_them), 0); /* new ones, beside them */
	assert_int_equal(each_file(READY_ENDING, NULL), 4);
	each_file(READY_ENDING, let_others_write);
	assert_int_equal(run_child(patches_libc), 0);
}

static void become_another(void)
{
	CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0); /* as after an exec: /proc/self is its own */
}

static void another_user(void)
{
	become_another();
	attach_here(2, 2);
}

static void another_user_again(void)
{
	become_another();
	attach_here(2, 0);
}

static void another_users_are_beside_ones_own(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(run_child(another_user), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 4);
	assert_int_equal(run_child(another_user_again), 0);
	assert_int_equal(run_child(has_them), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 4);
}

static void in_a_folder_of_others(void)
{
	become_another();
	attach_here(0, 2);
}

static void folder_that_may_not_be_written_means_patching(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(run_child(in_a_folder_of_others), 0);
	assert_int_equal(each_file("", NULL), 0);
	assert_int_equal(run_child(makes_them), 0);
	assert_int_equal(run_child(in_a_folder_of_others), 0);
	assert_int_equal(each_file("", NULL), 4);
}

/* ---- old ones ----------------------------------------------------------------------------------- */

static void set_age(const char *path, time_t seconds)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - seconds}};

	CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static void age_by_two_days(const char *path)
{
	set_age(path, 2 * 24 * 60 * 60);
}

static void age_by_two_months(const char *path)
{
	set_age(path, 60 * 24 * 60 * 60);
}

static void check_that_it_is_young(const char *path)
{
	struct stat st;

	CHECK(stat(path, &st) == 0 && time(NULL) - st.st_mtime < 60 * 60);
}

static void use_keeps_copies_young(void **state)
{
	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	each_file(READY_ENDING, age_by_two_days);
	assert_int_equal(run_child(has_them), 0);
	each_file(READY_ENDING, check_that_it_is_young);
}

static void put(const char *name, time_t age)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
	set_age(path, age);
}

static bool is_there(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void what_is_old_goes_when_something_new_is_made(void **state)
{
	const time_t hour = 60 * 60, day = 24 * hour;

	(void)state;
	assert_int_equal(run_child(makes_them), 0);
	each_file(READY_ENDING, age_by_two_months);
	put("0123ab-0123456789abcdef.so.00c0ffee", 2 * hour); /* never finished */
	put("0123ab-0123456789abcdef.so.0123456789abcdef", hour / 2); /* in the making */
	put("0123ab-5.sites", 60 * day);
	put("0123ab-6.sites", 20 * day);
	put("0123ab-libc.so", 60 * day); /* somebody else's */
	put("notes.so", 60 * day);
	assert_int_equal(run_child(other_numbers), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 2 + 2);
	assert_false(is_there("0123ab-0123456789abcdef.so.00c0ffee"));
	assert_true(is_there("0123ab-0123456789abcdef.so.0123456789abcdef"));
	assert_false(is_there("0123ab-5.sites"));
	assert_true(is_there("0123ab-6.sites"));
	assert_true(is_there("0123ab-libc.so") && is_there("notes.so"));
}

/* ---- no room ---------------------------------------------------------------------------------------- */

static void little_room(void)
{
	struct rlimit limit = {100000, 100000};

	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	attach_here(0, 2);
}

static void limit_on_files_lets_the_program_live(void **state)
{
	(void)state;
	assert_int_equal(run_child(little_room), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 0);
	assert_int_equal(each_file("", NULL), 2);
}

static void folder_that_is_not_there_means_scanning(void **state)
{
	char there[sizeof(dir)];

	(void)state;
	strcpy(there, dir);
	strcat(dir, "/not");
	assert_int_equal(run_child(scans_and_patches), 0);
	strcpy(dir, there);
}

/* ---- which file it was made of ------------------------------------------------------------------------ */

static char library[128];

static void copy_library(int change)
{
	char command[512];
	struct run_image im;
	const Elf64_Phdr *ph;
	int fd;

	libc_image(&im);
	snprintf(library, sizeof(library), "%s/library", dir);
	snprintf(command, sizeof(command), "cp %s %s", im.path, library);
	CHECK(system(command) == 0);
	fd = open(library, O_RDWR);
	for (ph = im.phdr; ph->p_type != PT_LOAD || ph->p_vaddr != im.text; ph++)
		;
	if (change) /* of a byte that is no site's */
		CHECK(pwrite(fd, "\xcc", 1, (off_t)ph->p_offset + im.text_len - 1) == 1);
	close(fd);
}

/* libc, as if it had been loaded from the copy: how many ready copies it has then. */
static uint32_t attach_copy(void)
{
	struct attach_result result = {0};
	struct run_image im;

	libc_image(&im);
	im.path = library;
	CHECK(run_attach_image(&im, dir, all, &result) == 0 && result.images == 1);
	return result.ready;
}

static void attaches_copy(void)
{
	CHECK(attach_copy() == 1);
}

static void patches_copy(void)
{
	CHECK(attach_copy() == 0);
}

static void newer_file_of_the_same_build_has_its_own_copy(void **state)
{
	struct timespec times[2] = {{1000000000, 0}, {1000000000, 7}};

	(void)state;
	copy_library(0);
	assert_int_equal(run_child(attaches_copy), 0);
	assert_int_equal(utimensat(AT_FDCWD, library, times, 0), 0);
	assert_int_equal(run_child(attaches_copy), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 2);
}

static void file_that_is_not_what_was_loaded_is_not_copied(void **state)
{
	(void)state;
	copy_library(1);
	assert_int_equal(run_child(patches_copy), 0);
	assert_int_equal(each_file(READY_ENDING, NULL), 0);
	remove_file(library);
	assert_int_equal(run_child(patches_copy), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(copies_are_made_once_and_used_from_then_on),
		CASE(nothing_but_the_sites_differs_from_the_library),
		CASE(no_page_of_the_text_is_the_processs_own),
		CASE(branch_to_the_covered_call_still_makes_it),
		CASE(other_numbers_have_copies_of_their_own),
		CASE(text_that_was_written_to_is_not_replaced),
		CASE(memory_in_the_words_place_stays_the_programs),
		CASE(damaged_copies_are_made_anew),
		CASE(copies_that_others_may_write_to_are_not_used),
		CASE(another_users_are_beside_ones_own),
		CASE(folder_that_may_not_be_written_means_patching),
		CASE(use_keeps_copies_young),
		CASE(what_is_old_goes_when_something_new_is_made),
		CASE(limit_on_files_lets_the_program_live),
		CASE(folder_that_is_not_there_means_scanning),
		CASE(newer_file_of_the_same_build_has_its_own_copy),
		CASE(file_that_is_not_what_was_loaded_is_not_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

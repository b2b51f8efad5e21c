/* SPDX-License-Identifier: MIT */
/* fuzz.c - see fuzz.h. */
#include "fuzz.h"

#include <dirent.h>

enum { SHELF_BYTES = 16 << 20, CHECK_EVERY = 64, GUARD = 256, GUARD_BYTE = 0xa5, DEPTH_MAX = 2000 };

/* ---- the input --------------------------------------------------------------------------- */

uint64_t fuzz_take(struct bytes *in, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n && in->left; i++, in->at++, in->left--)
		v |= (uint64_t)*in->at << (8 * i);
	return v;
}

unsigned fuzz_below(struct bytes *in, unsigned n)
{
	return (unsigned)fuzz_take(in, n > 256 ? 2 : 1) % n;
}

size_t fuzz_take_block(struct bytes *in, void *out, size_t most)
{
	size_t n = in->left < most ? in->left : most;

	if (n)
		memcpy(out, in->at, n);
	in->at += n;
	in->left -= n;
	return n;
}

/* ---- the shelf --------------------------------------------------------------------------- */

static struct shelf *shelf;
static struct shelf_task *janitor;
static char name[TEST_NAME_SIZE];

static void remove_shelf(void)
{
	shelf_remove(name, NULL);
}

struct shelf *fuzz_shelf(void)
{
	const struct shelf_options options = {.size = SHELF_BYTES};
	const struct shelf_cred root = {.caps = SHELF_CAP_ALL};
	char why[SHELF_WHY];

	if (shelf)
		return shelf;
	if (shelf_create(fresh_name(name), &options, &shelf, why)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	atexit(remove_shelf);
	CHECK(!shelf_task_create(shelf, &root, &janitor));
	return shelf;
}

struct shelf_task *fuzz_task(void)
{
	const struct shelf_cred root = {.caps = SHELF_CAP_ALL};
	struct shelf_task *t;

	CHECK(!shelf_task_create(fuzz_shelf(), &root, &t));
	return t;
}

/* struct linux_dirent64 */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

static void empty_dir(int dirfd, unsigned depth);

static void remove_entry(int dirfd, const char *entry, unsigned depth)
{
	int err = shelf_unlinkat(janitor, dirfd, entry, 0), fd;

	if (err == -EISDIR || err == -EPERM) {
		fd = shelf_openat(janitor, dirfd, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		CHECK(fd >= 0);
		empty_dir(fd, depth + 1);
		shelf_close(janitor, fd);
		err = shelf_unlinkat(janitor, dirfd, entry, AT_REMOVEDIR);
	}
	CHECK(!err);
}

static void empty_dir(int dirfd, unsigned depth)
{
	_Alignas(8) char list[1024];
	ssize_t n;

	CHECK(depth < DEPTH_MAX);
	while ((n = shelf_getdents64(janitor, dirfd, list, sizeof(list))) > 0)
		for (char *p = list; p < list + n; p += ((struct entry *)(void *)p)->reclen) {
			const char *entry = ((struct entry *)(void *)p)->name;

			if (strcmp(entry, ".") && strcmp(entry, ".."))
				remove_entry(dirfd, entry, depth);
		}
	CHECK(!n);
}

void fuzz_empty(void)
{
	int fd;

	fuzz_shelf();
	fd = shelf_open(janitor, "/", O_RDONLY | O_DIRECTORY, 0);
	CHECK(fd >= 0);
	empty_dir(fd, 0);
	shelf_close(janitor, fd);
}

static void say_fault(void *ctx, const char *fault)
{
	(void)ctx;
	fprintf(stderr, "shelf check: %s\n", fault);
}

void fuzz_settle(void)
{
	static unsigned count;
	struct shelf_counters now;

	fuzz_empty();
	CHECK(!shelf_counters(shelf, &now));
	CHECK(!now.files_open && !now.poisoned && now.tasks == 1);
	if (++count % CHECK_EVERY)
		return;
	CHECK(shelf_check(shelf, say_fault, NULL) == 0);
}

int64_t fuzz_result(int64_t ret)
{
	CHECK(ret >= -4095 && ret != -EIO);
	return ret;
}

/* ---- where a call writes ----------------------------------------------------------------- */

static unsigned char buffer[FUZZ_BUFFER + GUARD];

void *fuzz_buffer(size_t count)
{
	if (count <= FUZZ_BUFFER)
		memset(buffer + count, GUARD_BYTE, GUARD);
	return buffer;
}

void fuzz_buffer_intact(size_t count)
{
	for (size_t i = 0; count <= FUZZ_BUFFER && i < GUARD; i++)
		CHECK(buffer[count + i] == GUARD_BYTE);
}

/* SPDX-License-Identifier: MIT */
/* fixture.h - a fresh shelf and a task of root's for each test; checked for consistency when it ends. */
#ifndef TESTS_POSIX_FIXTURE_H
#define TESTS_POSIX_FIXTURE_H

#include <stdbool.h>
#include <sys/types.h>

#include "harness.h"

#include <shelf/shelf.h>

struct px {
	struct shelf *shelf;
	struct shelf_task *t; /* root, no umask to speak of (022) */
	char name[TEST_NAME_SIZE];
};

int px_setup(void **state);
int px_teardown(void **state);
#define PX_TEST(fn) cmocka_unit_test_setup_teardown(fn, px_setup, px_teardown)
struct px *px_make(uint64_t size);
void px_drop(struct px *px);

/* fork() with a task of its own for the child, as SHELF_CLONE_* says; `fn` runs with it. */
typedef int px_child_fn(struct px *px, void *arg);
pid_t px_fork(struct px *px, unsigned clone_flags, px_child_fn *fn, void *arg);

/* n threads run fn(arg, 0 .. n-1). */
typedef void px_thread_fn(struct px *px, void *arg, unsigned k);
void px_threads(struct px *px, unsigned n, px_thread_fn *fn, void *arg);

void px_become(struct shelf_task *t, uid_t uid, gid_t gid); /* without capabilities unless uid is 0 */
void px_write_file(struct shelf_task *t, const char *path, const char *text);
bool px_file_is(struct shelf_task *t, const char *path, const char *text);
int px_count_entries(struct shelf_task *t, const char *path); /* without "." and ".." */
bool px_exists(struct shelf_task *t, const char *path);
ino_t px_ino(struct shelf_task *t, const char *path);
nlink_t px_nlink(struct shelf_task *t, const char *path);

/* struct linux_dirent64 */
struct px_dirent {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

#endif

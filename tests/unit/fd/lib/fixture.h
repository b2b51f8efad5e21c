/* SPDX-License-Identifier: MIT */
/*
 * fixture.h - a fresh segment with one table for each test, and files whose release is counted.
 * The teardown closes all and fails if a file is left open or was released twice.
 */
#ifndef TESTS_FD_FIXTURE_H
#define TESTS_FD_FIXTURE_H

#include "harness.h"

#include "fd/fd_priv.h"
#include "fd/public.h"

#define TYPE_A (FD_TYPE_USER + 1)
#define TYPE_B (FD_TYPE_USER + 2)
#define NO_LIMIT FD_NUMBER_MAX

struct fixture {
	struct shelf_fdspace *space;
	struct segment *seg;
	struct slot *self;
	struct fd_table *tab;
};

/* What the files of these tests hold. */
struct payload {
	uint64_t id;
	atomic_u32 released;
};

extern atomic_u64 files_released; /* in this process, since the last setup */

int fixture_setup(void **state);
int fixture_teardown(void **state);
struct fd_file *file_make(struct fixture *f, unsigned type, uint64_t id); /* one reference, ours */
struct payload *file_payload(struct fd_file *file);
int file_open(struct fixture *f, uint64_t id, int min, uint64_t limit,
	      unsigned bits); /* make, reserve, publish; or put */
int file_close(struct fixture *f, int fd);
int64_t file_id_at(struct fixture *f, int fd); /* by borrow; -EBADF */
void drop_put(struct slot *self, void *ctx, int fd,
	      struct fd_file *file); /* *ctx counts, if given */

#define fd_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

#endif

/* SPDX-License-Identifier: MIT */
/* Races of calls with the end of what they work on.  Each test's end checks the shelf. */
#include <fcntl.h>

#include "lib/fixture.h"

/* ---- the last close, while another thread writes ----------------------------------------------------- */

static void say(void *ctx, const char *sentence)
{
	(void)ctx;
	fprintf(stderr, "%s\n", sentence);
}

static void nothing_is_left(struct px *px)
{
	struct shelf_check_options options = {.say = say};
	struct shelf_check_report report;

	assert_int_equal(shelf_verify(px->shelf, &options, &report), 0);
	assert_true(report.alone); /* else it does not know */
	assert_int_equal(report.faults, 0);
	assert_int_equal(report.left, 0);
}

static void write_and_close(struct px *px, void *arg, unsigned k)
{
	static char data[9000];
	unsigned i;

	(void)arg;
	for (i = 0; i < 30000; i++) {
		int fd = (int)(i * 7 + k) % 4;

		shelf_open(px->t, ".", O_TMPFILE | O_RDWR, 0600);
		shelf_pwrite(px->t, (fd + 1) % 4, data, 1 + i % 9000, i % 40000);
		shelf_close(px->t, fd);
	}
}

static void a_write_during_the_last_close_leaves_no_pages(void **state)
{
	struct px *px = *state;

	px_threads(px, 3, write_and_close, NULL);
	assert_int_equal(shelf_close_range(px->t, 0, ~0u, 0), 0);
	nothing_is_left(px);
}

/* The first thread puts file after file at number 0, each the end of the one before; the others write there. */
static void write_and_replace(struct px *px, void *arg, unsigned k)
{
	static char data[12000];
	unsigned long i, rounds = test_scaled(40000);
	int fd;

	(void)arg;
	for (i = 0; i < rounds; i++) {
		if (k) {
			shelf_pwrite(px->t, 0, data, 1 + i % sizeof(data), (off_t)(i * 4096 % 40000));
			continue;
		}
		fd = shelf_open(px->t, ".", O_TMPFILE | O_RDWR, 0600);
		CHECK(fd > 0 && shelf_dup2(px->t, fd, 0) == 0 && shelf_close(px->t, fd) == 0);
	}
}

static void a_write_to_a_file_that_is_replaced_meanwhile_leaves_no_pages(void **state)
{
	struct px *px = *state;

	assert_int_equal(shelf_open(px->t, ".", O_TMPFILE | O_RDWR, 0600), 0);
	px_threads(px, 3, write_and_replace, NULL);
	assert_int_equal(shelf_close_range(px->t, 0, ~0u, 0), 0);
	nothing_is_left(px);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(a_write_to_a_file_that_is_replaced_meanwhile_leaves_no_pages),
		PX_TEST(a_write_during_the_last_close_leaves_no_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

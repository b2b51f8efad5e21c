/* SPDX-License-Identifier: MIT */
/* Races of calls with the end of what they work on.  Each test's end checks the shelf. */
#include <fcntl.h>

#include "lib/fixture.h"

/* ---- the last close, while another thread writes ----------------------------------------------------- */

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
	assert_int_equal(shelf_check(px->shelf, NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(a_write_during_the_last_close_leaves_no_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
/*
 * range.c - many numbers at once: close_range, exec.
 *
 * One number at a time, each under the lock for itself, as the kernel does: others
 * may open and close in between.  Empty stretches are skipped by bitmap.
 */
#include "fd/fd_priv.h"

static int next_in(struct slot *self, struct fd_table *tab, unsigned from, unsigned last)
{
	int fd = from < FD_NUMBER_MAX ? fd_next_open(self, tab, (int)from) : -1;

	return fd >= 0 && (unsigned)fd <= last ? fd : -1;
}

/* CLOEXEC goes on top of what is there, CLOFORK stays: CAS, as fd_set_bits. */
static void add_cloexec(struct slot *self, struct fd_table *tab, int fd)
{
	int bits = fd_get_bits(self, tab, fd);
	atomic_u64 *word = fd_word_of(tab, fd);
	uint64_t old = bits < 0 ? 0 : load_acquire(word); /* pairs with fd_publish */

	while (fd_word_is_open(old))
		if (tracked_cas(word, &old, old | FD_CLOEXEC_BIT))
			return;
}

int fd_close_range(struct slot *self, struct fd_table *tab, unsigned first, unsigned last,
		   unsigned flags, fd_drop_fn *drop, void *ctx)
{
	struct fd_file *file;
	int fd;

	if (first > last || (flags & ~FD_RANGE_CLOEXEC))
		return -EINVAL;
	for (fd = next_in(self, tab, first, last); fd >= 0;
	     fd = next_in(self, tab, (unsigned)fd + 1, last)) {
		if (flags & FD_RANGE_CLOEXEC)
			add_cloexec(self, tab, fd);
		else if (!fd_remove(self, tab, fd, &file))
			drop(self, ctx, fd, file);
	}
	return 0;
}

void fd_table_exec(struct slot *self, struct fd_table *tab, fd_drop_fn *drop, void *ctx)
{
	struct fd_file *file;
	int fd;

	for (fd = fd_next_open(self, tab, 0); fd >= 0; fd = fd_next_open(self, tab, fd + 1))
		if (fd_get_bits(self, tab, fd) > 0 && fd_get_bits(self, tab, fd) & FD_CLOEXEC_BIT &&
		    !fd_remove(self, tab, fd, &file))
			drop(self, ctx, fd, file);
}

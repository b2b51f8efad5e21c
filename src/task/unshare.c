/* SPDX-License-Identifier: MIT */
/* unshare.c - a descriptor table of its own for a task that shared one. */
#include "task/task_priv.h"

/* fork's copy leaves CLOFORK descriptors out; here nothing forks, so they stay. */
static int copy_clofork(struct slot *self, struct fd_table *from, struct fd_table *to)
{
	for (int fd = fd_next_open(self, from, 0); fd >= 0; fd = fd_next_open(self, from, fd + 1)) {
		int bits = fd_get_bits(self, from, fd);
		struct fd_file *file;
		int got;

		if (bits < 0 || !(bits & FD_CLOFORK_BIT) || fd_get(self, from, fd, &file))
			continue;
		got = fd_reserve(self, to, fd, (uint64_t)fd + 1);
		if (got < 0) {
			fd_put(self, file);
			return got;
		}
		fd_publish(self, to, fd, file, (unsigned)bits);
	}
	return 0;
}

int task_unshare_files(struct slot *self, struct shelf_task *t)
{
	struct fd_table *old = load_relaxed(&t->files), *copy; /* relaxed: [q] */
	struct who w = { .self = self, .files = old, .fs = load_relaxed(&t->fs), .task = t };
	int err;

	if (load_acquire(&old->refs) == 1) /* pairs with fd_table_leave: the others have left */
		return 0;
	w.cred = &load_acquire(&t->cred)->c; /* pairs with the store in cred_set */
	err = fd_table_copy_to(self, old, &t->spare);
	if (err)
		return err;
	copy = load_relaxed(&t->spare); /* relaxed: [q], from here on too */
	err = copy_clofork(self, old, copy);
	if (err) {
		fd_table_leave_at(self, &t->spare, task_drop_file, &w);
		return err;
	}
	tracked_store(&t->leaving, old);
	tracked_store(&t->files, copy);
	tracked_store(&t->spare, (struct fd_table *)NULL);
	fd_table_leave_at(self, &t->leaving, task_drop_file, &w);
	return 0;
}

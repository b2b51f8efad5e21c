/* SPDX-License-Identifier: MIT */
/*
 * fdget_urcu.h - the table as a user of liburcu would build it: its memb flavour
 * with the read side inlined (small functions), an array under rcu_dereference, borrow within the
 * read-side section.  It works within one process only.
 * An unshared table is not told apart: liburcu's user has no such rule.
 */
#define URCU_INLINE_SMALL_FUNCTIONS
#define RCU_MEMBARRIER
#define _LGPL_SOURCE
#include <urcu.h>

struct file {
	uint64_t type;
	char rest[248];
} __attribute__((aligned(64)));

struct fdarray {
	unsigned max;
	struct file *file[64];
};

struct engine_thread {
	struct fdarray **table;
};

static struct fdarray *tables[FDGET_TABLES];

static int engine_start(int shared, int threads)
{
	int k, fd;

	for (k = 0; k < (shared ? 1 : threads); k++) {
		struct fdarray *array = calloc(1, sizeof(*array));
		struct file *files = aligned_alloc(64, (size_t)threads * sizeof(*files));

		if (!array || !files)
			return 1;
		array->max = 64;
		for (fd = 0; fd < threads; fd++) {
			files[fd].type = 1;
			rcu_assign_pointer(array->file[fd], &files[fd]);
		}
		rcu_assign_pointer(tables[k], array);
	}
	return 0;
}

static void engine_join(struct engine_thread *t, int table)
{
	rcu_register_thread();
	t->table = &tables[table];
}

static inline uint64_t engine_lookup(struct engine_thread *t, int fd)
{
	struct fdarray *array;
	struct file *file;
	uint64_t found = 0;

	rcu_read_lock();
	array = rcu_dereference(*t->table);
	if ((unsigned)fd < array->max) {
		file = rcu_dereference(array->file[fd]);
		if (file)
			found = CMM_LOAD_SHARED(file->type);
	}
	rcu_read_unlock();
	return found;
}

static void engine_leave(struct engine_thread *t)
{
	(void)t;
	rcu_unregister_thread();
}

static void engine_end(void)
{
}

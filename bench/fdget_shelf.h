/* SPDX-License-Identifier: MIT */
/* fdget_shelf.h - shelf's table, with the lookup scheme that this build has. */
#include "fd/fd.h"

#define FDGET_TYPE FD_TYPE_USER
#define FDGET_FILE_BYTES                                                                           \
	256 /* an open file's head and its neighbours, so that two files share no line */

struct engine_thread {
	struct slot *self;
	struct fd_table *tab;
};

static struct segment *seg;
static struct fd_table *tables[FDGET_TABLES];
static int is_shared;
static char seg_name[64];

static int open_files(struct slot *self, struct fd_table *tab, int files)
{
	int k;

	for (k = 0; k < files; k++) {
		struct fd_file *file = mem_alloc(self, FDGET_FILE_BYTES);
		int fd;

		if (!file || fd_file_init(self, file, FDGET_TYPE))
			return -ENOMEM;
		fd = fd_reserve(self, tab, 0, 1024);
		if (fd != k)
			return -EMFILE;
		fd_publish(self, tab, fd, file, 0);
	}
	return 0;
}

static int engine_start(int shared, int threads)
{
	struct segment_options options = {.size = 16 << 20};
	char why[256] = "no memory in the segment";
	struct slot *self;
	int err, k;

	is_shared = shared;
	snprintf(seg_name, sizeof(seg_name), "fdget-%ld", (long)getpid());
	err = segment_create(seg_name, &options, &seg, why);
	if (!err)
		segment_remove(seg_name, NULL); /* the mapping stays */
	if (!err)
		err = epoch_init(seg);
	if (!err)
		err = fd_layer_init(seg);
	if (!err)
		segment_set_ready(seg);
	self = err ? NULL : slot_self(seg);
	for (k = 0; !err && k < (shared ? 1 : threads); k++) {
		err = fd_table_create(self, &tables[k]);
		if (!err)
			err = open_files(self, tables[k], threads);
	}
	if (err)
		fprintf(stderr, "fdget: cannot set up: %s (%s)\n", why, strerror(-err));
	return err;
}

static void engine_join(struct engine_thread *t, int table)
{
	t->self = slot_self(seg);
	t->tab = tables[table];
	if (!is_shared)
		fd_table_set_users(t->self, t->tab, 1);
}

static inline uint64_t engine_lookup(struct engine_thread *t, int fd)
{
	struct fd_file *file;
	uint64_t found;

	if (fd_borrow(t->self, t->tab, fd, &file))
		return 0;
	found = file->type / FDGET_TYPE; /* a shift */
	fd_return(t->self, t->tab, file);
	return found;
}

static void engine_leave(struct engine_thread *t)
{
	(void)t; /* the slot goes with the thread */
}

static void engine_end(void)
{
	segment_detach(seg);
}

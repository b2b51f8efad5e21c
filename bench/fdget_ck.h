/* SPDX-License-Identifier: MIT */
/*
 * fdget_ck.h - the table as a user of Concurrency Kit would build it: ck_epoch
 * around the load, borrow within the section.  It works within one process only.
 */
#include <ck_epoch.h>
#include <ck_pr.h>

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
	ck_epoch_record_t *record;
};

static ck_epoch_t epoch;
static ck_epoch_record_t records[FDGET_TABLES];
static unsigned record_count;
static struct fdarray *tables[FDGET_TABLES];

static int engine_start(int shared, int threads)
{
	int k, fd;

	ck_epoch_init(&epoch);
	for (k = 0; k < (shared ? 1 : threads); k++) {
		struct fdarray *array = calloc(1, sizeof(*array));
		struct file *files = aligned_alloc(64, (size_t)threads * sizeof(*files));

		if (!array || !files)
			return 1;
		array->max = 64;
		for (fd = 0; fd < threads; fd++) {
			files[fd].type = 1;
			array->file[fd] = &files[fd];
		}
		ck_pr_fence_store();
		ck_pr_store_ptr(&tables[k], array);
	}
	return 0;
}

static void engine_join(struct engine_thread *t, int table)
{
	t->record = &records[ck_pr_faa_uint(&record_count, 1)];
	ck_epoch_register(&epoch, t->record, NULL);
	t->table = &tables[table];
}

static inline uint64_t engine_lookup(struct engine_thread *t, int fd)
{
	struct fdarray *array;
	struct file *file;
	uint64_t found = 0;

	ck_epoch_begin(t->record, NULL);
	array = ck_pr_load_ptr(t->table);
	if ((unsigned)fd < array->max) {
		file = ck_pr_load_ptr(&array->file[fd]);
		if (file)
			found = ck_pr_load_64(&file->type);
	}
	ck_epoch_end(t->record, NULL);
	return found;
}

static void engine_leave(struct engine_thread *t)
{
	ck_epoch_unregister(t->record);
}

static void engine_end(void)
{
}

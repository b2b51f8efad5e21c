// SPDX-License-Identifier: MIT
#include <sys/mman.h>

#include "torture/lib/fd_torture.h"

static struct torture_counts *counts;

static void on_release(struct shelf_file *file, void *payload)
{
	struct torture_file *p = payload;

	(void)file;
	CHECK(add_acq_rel(&p->released, 1u) == 0);
	add_acq_rel(&counts->released, 1u);
}

static void on_reclaim(void *payload)
{
	struct torture_file *p = payload;

	CHECK(p->magic == TORTURE_LIVE || (p->magic == 0 && load_acquire(&counts->killed)));
	CHECK(load_acquire(&p->released) == 1);
	p->magic = TORTURE_DEAD;
	add_acq_rel(&counts->freed, 1u);
}

static const struct shelf_file_type torture_type = {.name = "torture",
						    .release = on_release,
						    .reclaim = on_reclaim};

void torture_start(struct torture *t)
{
	char name[TEST_NAME_SIZE], why[SHELF_FD_WHY] = "";
	int err = shelf_fdspace_create(fresh_name(name), 128 << 20, &t->space, why);

	if (err)
		fprintf(stderr, "%s\n", why);
	CHECK(!err);
	shelf_fdspace_remove(name, NULL);
	shelf_file_type_register(TORTURE_TYPE, &torture_type);
	counts = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(counts != MAP_FAILED);
	t->counts = counts;
	t->seg = segment_of(t->space);
	t->seed = test_seed();
	CHECK(!fd_table_create(slot_self(t->seg), &t->tab));
}

void torture_end(struct torture *t)
{
	struct slot *self = slot_self(t->seg);

	fd_table_leave(self, t->tab, torture_drop, NULL);
	CHECK(epoch_barrier(self, INT64_C(10000000000)) == 0);
	CHECK(fd_files_open(t->seg) == 0);
	CHECK(load_acquire(&t->counts->made) == load_acquire(&t->counts->released));
	CHECK(load_acquire(&t->counts->made) == load_acquire(&t->counts->freed));
	shelf_fdspace_detach(t->space);
}

struct fd_file *torture_make(struct torture *t, struct slot *self, uint64_t generation)
{
	struct shelf_file *file;
	struct torture_file *p;

	(void)self;
	CHECK(!shelf_file_alloc(t->space, TORTURE_TYPE, sizeof(*p), &file));
	p = shelf_file_payload(file);
	p->magic = TORTURE_LIVE;
	p->generation = generation;
	add_acq_rel(&t->counts->made, 1u);
	return (struct fd_file *)file;
}

int torture_open(struct torture *t, struct slot *self, struct fd_table *tab, uint64_t generation)
{
	struct fd_file *file = torture_make(t, self, generation);
	int fd = fd_reserve(self, tab, 0, FD_NUMBER_MAX);

	CHECK(fd >= 0);
	fd_publish(self, tab, fd, file, 0);
	return fd;
}

int torture_close(struct slot *self, struct fd_table *tab, int fd)
{
	struct fd_file *file;
	int err = fd_remove(self, tab, fd, &file);

	if (!err)
		fd_put(self, file);
	return err;
}

uint64_t torture_check(struct fd_file *file)
{
	struct torture_file *p = shelf_file_payload((struct shelf_file *)file);
	uint64_t generation;

	CHECK(file->type == TORTURE_TYPE);
	CHECK(p->magic == TORTURE_LIVE);
	generation = p->generation;
	cpu_relax();
	CHECK(p->magic == TORTURE_LIVE);
	return generation;
}

void torture_drop(struct slot *self, void *ctx, int fd, struct fd_file *file)
{
	(void)ctx, (void)fd;
	fd_put(self, file);
}

void torture_threads(unsigned n, void *(*fn)(void *), void *args, size_t size)
{
	pthread_t threads[64];
	unsigned k;

	CHECK(n <= ARRAY_SIZE(threads));
	for (k = 0; k < n; k++)
		CHECK(!pthread_create(&threads[k], NULL, fn, (char *)args + k * size));
	for (k = 0; k < n; k++)
		pthread_join(threads[k], NULL);
}

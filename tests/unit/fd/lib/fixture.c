// SPDX-License-Identifier: MIT
#include "unit/fd/lib/fixture.h"

atomic_u64 files_released;

static void count_release(struct shelf_file *file, void *payload)
{
	struct payload *p = payload;

	(void)file;
	CHECK(add_acq_rel(&p->released, 1u) == 0);
	add_acq_rel(&files_released, 1u);
}

static const struct shelf_file_type counted_type = {.name = "counted", .release = count_release};

int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char name[TEST_NAME_SIZE], why[SHELF_FD_WHY];
	int err = shelf_fdspace_create(fresh_name(name), 64 << 20, &f->space, why);

	if (err) {
		fprintf(stderr, "%s (%d)\n", why, err);
		return -1;
	}
	shelf_fdspace_remove(name, NULL);
	shelf_file_type_register(TYPE_A, &counted_type);
	shelf_file_type_register(TYPE_B, &counted_type);
	store_relaxed(&files_released, 0);
	f->seg = segment_of(f->space);
	f->self = slot_self(f->seg);
	*state = f;
	return fd_table_create(f->self, &f->tab);
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	int64_t left;

	if (f->tab)
		fd_table_leave(f->self, f->tab, drop_put, NULL);
	left = fd_files_open(f->seg);
	if (left)
		fprintf(stderr, "%lld files left open\n", (long long)left);
	if (epoch_barrier(f->self, 10000000000) || segment_poisoned(f->seg)) {
		fprintf(stderr, "damaged: %s\n", f->seg->hdr->poison_reason);
		left = -1;
	}
	shelf_fdspace_detach(f->space);
	free(f);
	return left ? -1 : 0;
}

struct fd_file *file_make(struct fixture *f, unsigned type, uint64_t id)
{
	struct shelf_file *file;

	CHECK(shelf_file_alloc(f->space, type, sizeof(struct payload), &file) == 0);
	((struct payload *)shelf_file_payload(file))->id = id;
	return (struct fd_file *)file;
}

struct payload *file_payload(struct fd_file *file)
{
	return shelf_file_payload((struct shelf_file *)file);
}

int file_open(struct fixture *f, uint64_t id, int min, uint64_t limit, unsigned bits)
{
	struct fd_file *file = file_make(f, TYPE_A, id);
	int fd = fd_reserve(f->self, f->tab, min, limit);

	if (fd < 0)
		fd_put(f->self, file);
	else
		fd_publish(f->self, f->tab, fd, file, bits);
	return fd;
}

int file_close(struct fixture *f, int fd)
{
	struct fd_file *file;
	int err = fd_remove(f->self, f->tab, fd, &file);

	if (!err)
		fd_put(f->self, file);
	return err;
}

int64_t file_id_at(struct fixture *f, int fd)
{
	struct fd_file *file;
	int err = fd_borrow(f->self, f->tab, fd, &file);
	int64_t id;

	if (err)
		return err;
	CHECK(load_acquire(&file_payload(file)->released) == 0);
	id = (int64_t)file_payload(file)->id;
	fd_return(f->self, f->tab, file);
	return id;
}

void drop_put(struct slot *self, void *ctx, int fd, struct fd_file *file)
{
	(void)fd;
	if (ctx)
		++*(unsigned *)ctx;
	fd_put(self, file);
}

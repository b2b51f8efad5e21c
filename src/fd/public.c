// SPDX-License-Identifier: MIT
/*
 * public.c - <shelf/fdtable.h>: segments, kinds and files of a library user.
 * Handles are the inner structures under other names: no memory of their own.
 */
#include <string.h>

#include "fd/fd_priv.h"
#include "fd/public.h"

/* What a user's file is: the head, its size for the end, the payload. */
struct user_file {
	struct fd_file head;
	uint32_t bytes;
	_Alignas(16) unsigned char payload[];
};

static const struct shelf_file_type
	*type_of[SHELF_FILE_TYPES]; /* process-local; set before files of it exist here */

static const struct shelf_file_type *find_type(uint32_t type)
{
	return type < SHELF_FILE_TYPES ? type_of[type] : NULL;
}

static void user_reclaim(struct slot *self, struct retired *r)
{
	struct user_file *file = container_of(r, struct user_file, head.retired);
	const struct shelf_file_type *type = find_type(file->head.type);

	if (type && type->reclaim)
		type->reclaim(file->payload);
	mem_free(self, file, sizeof(*file) + file->bytes);
}

static void user_release(struct slot *self, struct fd_file *head)
{
	struct user_file *file = container_of(head, struct user_file, head);
	const struct shelf_file_type *type = find_type(head->type);

	fd_uncount(self, head); /* once: should we die in there, the file is lost */
	if (type && type->release)
		type->release((struct shelf_file *)head, file->payload);
	epoch_retire(self, &head->retired, RETIRE_USER, 0);
}

/* Every process: files of types that only others registered are freed here too. */
void fd_users_attach(void)
{
	unsigned t;

	for (t = SHELF_FILE_USER; t < SHELF_FILE_TYPES; t++)
		fd_register_type(t, user_release);
	retire_register(RETIRE_USER, user_reclaim);
}

/* ---- segments -------------------------------------------------------------------------------- */

int shelf_fdspace_create(const char *name, uint64_t bytes, struct shelf_fdspace **out, char *why)
{
	struct segment_options opt = {.size = bytes};
	struct segment *seg;
	int err = segment_create(name, &opt, &seg, why);

	if (err)
		return err;
	err = epoch_init(seg);
	if (!err)
		err = fd_layer_init(seg);
	if (err) {
		segment_detach(seg);
		segment_remove(name, NULL);
		return err;
	}
	segment_set_ready(seg);
	*out = (struct shelf_fdspace *)seg;
	return 0;
}

int shelf_fdspace_attach(const char *name, struct shelf_fdspace **out, char *why)
{
	struct segment *seg;
	int err = segment_attach(name, false, &seg, why);

	if (err)
		return err;
	err = epoch_attach(seg);
	if (!err)
		err = fd_layer_attach(seg);
	if (err) {
		segment_detach(seg);
		return err;
	}
	*out = (struct shelf_fdspace *)seg;
	return 0;
}

int shelf_fdspace_remove(const char *name, char *why)
{
	return segment_remove(name, why);
}

void shelf_fdspace_detach(struct shelf_fdspace *space)
{
	segment_detach(segment_of(space));
}

void shelf_fdspace_set_limit(struct shelf_fdspace *space, uint64_t files)
{
	fd_set_segment_limit(segment_of(space), files);
}

int64_t shelf_fdspace_files(struct shelf_fdspace *space)
{
	return fd_files_open(segment_of(space));
}

int shelf_fdspace_quiesce(struct shelf_fdspace *space, int ms)
{
	struct slot *self = slot_self_fast(segment_of(space));

	return self ? epoch_barrier(self, (int64_t)ms * 1000000) : -ENFILE;
}

int shelf_fdspace_set_anchor(struct shelf_fdspace *space, unsigned index, struct shelf_fdtable *tab)
{
	struct fd_root *root = segment_root(segment_of(space), SEG_ROOT_FD);

	if (index >= FD_ANCHORS)
		return -EINVAL;
	store_release(&root->anchor[index],
		      (uint64_t)(uintptr_t)tab); /* pairs with shelf_fdspace_anchor */
	return 0;
}

struct shelf_fdtable *shelf_fdspace_anchor(struct shelf_fdspace *space, unsigned index)
{
	struct fd_root *root = segment_root(segment_of(space), SEG_ROOT_FD);

	if (index >= FD_ANCHORS)
		return NULL;
	/* pairs with shelf_fdspace_set_anchor: the table's contents */
	return (struct shelf_fdtable *)(uintptr_t)load_acquire(&root->anchor[index]);
}

/* ---- kinds and files ----------------------------------------------------------------------------- */

int shelf_file_type_register(unsigned number, const struct shelf_file_type *type)
{
	if (number < SHELF_FILE_USER || number >= SHELF_FILE_TYPES)
		return -EINVAL;
	type_of[number] = type;
	return 0;
}

int shelf_file_alloc(struct shelf_fdspace *space, unsigned type, size_t bytes,
		     struct shelf_file **out)
{
	struct slot *self = slot_self_fast(segment_of(space));
	struct user_file *file;
	int err;

	if (type < SHELF_FILE_USER || type >= SHELF_FILE_TYPES ||
	    bytes > (PAGE_BYTES << PAGE_MAX_ORDER) - sizeof(*file))
		return -EINVAL;
	if (!self)
		return -ENFILE;
	file = mem_alloc(self, sizeof(*file) + bytes);
	if (!file)
		return -ENOMEM;
	memset(file, 0, sizeof(*file) + bytes);
	file->bytes = (uint32_t)bytes;
	err = fd_file_init(self, &file->head, type);
	if (err) {
		mem_free(self, file, sizeof(*file) + bytes);
		return err;
	}
	*out = (struct shelf_file *)&file->head;
	return 0;
}

void *shelf_file_payload(struct shelf_file *file)
{
	return ((struct user_file *)file)->payload;
}

unsigned shelf_file_type_of(const struct shelf_file *file)
{
	return ((const struct fd_file *)file)->type;
}

const void *shelf_file_operations(const struct shelf_file *file)
{
	const struct shelf_file_type *type = find_type(shelf_file_type_of(file));

	return type ? type->operations : NULL;
}

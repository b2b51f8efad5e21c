// SPDX-License-Identifier: MIT
/*
 * layer.c - what the descriptor layer has once: types, the count of open files
 * and its limit, the birth and death of a file's head.
 *
 * Each thread counts in its own slot, up for what it opens and down for what it
 * closes, so a count may be negative.  Up to a slot's share of the limit nothing
 * else is looked at; past it all are added up.  Threads that cross the limit at
 * the same moment may exceed it by as many, as the kernel's batched count does.
 */
#include "fd/fd_priv.h"
#include "segment/header.h"

#define FD_LIMIT_MIN 8192u /* as the kernel's NR_FILE */
#define FD_LIMIT_BYTES 10240u /* one file for each 10 KiB, as the kernel's default fs.file-max */

static fd_release_fn
	*release_of[FD_TYPES]; /* process-local; written before files of the type exist here */

#ifdef SHELF_SCHEME_BIGLOCK
__thread unsigned fd_big_depth;
#endif

void fd_register_type(uint32_t type, fd_release_fn *release)
{
	shelf_assert(type < FD_TYPES);
	release_of[type] = release;
}

int fd_layer_init(struct segment *seg)
{
	struct slot *self = slot_self(seg);
	struct fd_root *root = self ? page_alloc(self, 0, PAGE_TABLE, PAGE_ZERO) : NULL;

	if (!root)
		return -ENOSPC;
	store_relaxed(&root->limit, max_of(seg->size / FD_LIMIT_BYTES,
					   (uint64_t)FD_LIMIT_MIN)); /* published next */
	root->host.type = FD_TYPE_HOST;
	ref_init(&root->host.count, REF_SATURATED + (REF_DEAD - REF_SATURATED) / 2); /* published next */
	segment_set_root(seg, SEG_ROOT_FD, root);
	return fd_layer_attach(seg);
}

int fd_layer_attach(struct segment *seg)
{
	(void)seg;
	retire_register(RETIRE_FD_TABLE, fd_table_retire_fn);
	fd_recover_register();
	fd_users_attach();
	return 0;
}

int64_t fd_files_open(struct segment *seg)
{
	int64_t sum = 0;
	uint32_t id = 0;
	struct slot *s;

	while ((s = slot_each(seg, &id)))
		sum += load_relaxed(&s->files); /* a sum of moving parts is an estimate anyway */
	return sum;
}

void fd_set_segment_limit(struct segment *seg, uint64_t limit)
{
	struct fd_root *root = segment_root(seg, SEG_ROOT_FD);

	store_relaxed(&root->limit, limit); /* whoever opens next will see it */
}

bool fd_files_full(struct slot *self)
{
	int64_t limit = (int64_t)load_relaxed(&fd_root_of(self)->limit); /* a plain number */

	return fd_files_open(self->seg) > limit;
}

int fd_file_init(struct slot *self, struct fd_file *file, uint32_t type)
{
	if (!fd_file_counted(self))
		return -ENFILE;
	file->retired = (struct retired){0};
	file->type = type;
	ref_init(&file->count, 1);
	fd_note(self, file);
	return 0;
}

/* A type nobody registered here (another program's) has nothing of this process to release. */
void fd_release(struct slot *self, struct fd_file *file)
{
	fd_release_fn *release = file->type < FD_TYPES ? release_of[file->type] : NULL;

	fd_file_count(self, -1);
	if (release)
		release(self, file);
}

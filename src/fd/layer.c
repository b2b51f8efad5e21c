// SPDX-License-Identifier: MIT
/*
 * layer.c - what the descriptor layer has once: types, the count of open files
 * and its limit, the birth and death of a file's head.
 *
 * The count is kept in stripes, one line each, chosen by slot: two threads that
 * open and close meet on a line only when their slots share a stripe.  Up to a
 * stripe's share of the limit nothing else is looked at; past it all are added
 * up.  Threads that cross the limit at the same moment may exceed it by what
 * the other stripes' shares still allow, as the kernel's batched count does.
 */
#include <string.h>

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

static int64_t files_sum(struct fd_root *root)
{
	int64_t sum = 0;
	unsigned k;

	for (k = 0; k < FD_STRIPES; k++)
		sum += load_relaxed(
			&root->stripe[k].files); /* a sum of moving parts is an estimate anyway */
	return sum;
}

int64_t fd_files_open(struct segment *seg)
{
	return files_sum(segment_root(seg, SEG_ROOT_FD));
}

void fd_set_segment_limit(struct segment *seg, uint64_t limit)
{
	struct fd_root *root = segment_root(seg, SEG_ROOT_FD);

	store_relaxed(&root->limit, limit); /* whoever opens next will see it */
}

static struct fd_stripe *own_stripe(struct slot *self)
{
	return &fd_root_of(self)->stripe[self->locker.id % FD_STRIPES];
}

bool fd_file_counted(struct slot *self)
{
	struct fd_root *root = fd_root_of(self);
	int64_t mine = add_relaxed(&own_stripe(self)->files, 1) + 1;
	int64_t limit = (int64_t)load_relaxed(&root->limit); /* a plain number */

	if (likely(mine <= limit / FD_STRIPES) || files_sum(root) <= limit)
		return true;
	fd_file_uncounted(self);
	return false;
}

void fd_file_uncounted(struct slot *self)
{
	sub_relaxed(&own_stripe(self)->files, 1);
}

int fd_file_init(struct slot *self, struct fd_file *file, uint32_t type)
{
	if (!fd_file_counted(self))
		return -ENFILE;
	memset(&file->retired, 0, sizeof(file->retired));
	file->type = type;
	ref_init(&file->count, 1);
	fd_note(self, file);
	return 0;
}

/* A type nobody registered here (another program's) has nothing of this process to release. */
void fd_release(struct slot *self, struct fd_file *file)
{
	fd_release_fn *release = file->type < FD_TYPES ? release_of[file->type] : NULL;

	fd_file_uncounted(self);
	if (release)
		release(self, file);
}

/* ---- intent records ------------------------------------------------------------------------ */

bool fd_intent_begin(struct slot *self, uint32_t op, struct fd_table *tab, int fd,
		     struct fd_file *file)
{
	uint64_t args[FD_INTENT_ARGS] = {
		[FD_ARG_TABLE] = (uint64_t)(uintptr_t)tab,
		[FD_ARG_NUMBER] = (uint64_t)(unsigned)fd,
		[FD_ARG_FILE] = (uint64_t)(uintptr_t)file,
	};

	if (load_relaxed(&self->intent.op)) /* own field */
		return false;
	intent_begin(self, op, FD_INTENT_ARGS, args);
	return true;
}

void fd_intent_end(struct slot *self, bool begun)
{
	if (begun)
		intent_end(self);
}

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
#include "segment/hand.h"
#include "segment/header.h"

#define FD_LIMIT_MIN 8192u /* as the kernel's NR_FILE */
#define FD_LIMIT_BYTES 10240u /* one file for each 10 KiB, as the kernel's default fs.file-max */

static fd_release_fn
	*release_of[FD_TYPES]; /* process-local; written before files of the type exist here */
static fd_release_fn *drop_held; /* the same */

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
	retire_register_parts(RETIRE_FD_TABLE, fd_table_free_parts);
	retire_register(RETIRE_FD_TABLE, fd_table_free);
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

int fd_file_init_noted(struct slot *self, struct fd_file *file, uint32_t type, int k)
{
	file->retired = (struct retired){0};
	file->type = type;
	ref_init(&file->count, 1);
	if (!fd_file_counted(self))
		return -ENFILE;
	if (likely(k >= 0)) /* read after our death: memory until now, from now on a file */
		store_release(&self->ledger[k], FD_LEDGER ? (uint64_t)(uintptr_t)file | LEDGER_FILE : 0);
	else
		fd_note(self, file);
	return 0;
}

int fd_file_init(struct slot *self, struct fd_file *file, uint32_t type)
{
	return fd_file_init_noted(self, file, type, -1);
}

/* A type nobody registered here (another program's) has nothing of this process to release. */
void fd_release_noted(struct slot *self, struct fd_file *file)
{
	fd_release_fn *release = file->type < FD_TYPES ? release_of[file->type] : NULL;

	if (release)
		release(self, file);
	else
		fd_forget(self, file);
}

/* Its count is dead: that in the ledger is what tells a recoverer to go on with it. */
void fd_release(struct slot *self, struct fd_file *file)
{
	fd_note(self, file);
	fd_release_last(self, file);
}

void fd_release_last(struct slot *self, struct fd_file *file)
{
	fd_file_count(self, -1);
	fd_release_noted(self, file);
}

void fd_register_held(fd_release_fn *drop)
{
	drop_held = drop;
}

void fd_drop_held(struct slot *self, struct fd_file *file)
{
	if (drop_held)
		drop_held(self, file);
}

/* The bag first: a recoverer that finds the file there knows that only what it held is left (recover.c). */
void fd_retire(struct slot *self, struct fd_file *file, enum retire_type type, void *held)
{
	uint64_t entry = (uint64_t)(uintptr_t)file | LEDGER_FILE;
	int k = likely(load_relaxed(&self->ledger[0]) == entry) ? 0 : hand_find(self, file, LEDGER_FILE); /* own */

	file->retired.type = type;
	file->retired.aux = 0;
	if (unlikely(k < 0 && held))
		ledger_add(self, held, LEDGER_INODE);
	epoch_retire_swapped(self, &file->retired, k, held ? (uint64_t)(uintptr_t)held | LEDGER_INODE : 0);
}

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
static fd_held_fn *held_of; /* the same, both */
static fd_let_go_fn *let_held_go;

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
	tally_init(&root->host.tally, REF_SATURATED + (REF_DEAD - REF_SATURATED) / 2); /* published next */
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
		sum += count_read(&s->files); /* a sum of moving parts is an estimate anyway */
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
	tally_init(&file->tally, 1);
	if (unlikely(k < 0))
		k = ledger_free(self);
	if (!fd_file_counted(self, k))
		return -ENFILE;
	if (likely(k >= 0)) /* read after our death: memory until now, from now on a file */
		store_release(&self->ledger[k], FD_LEDGER ? (uint64_t)(uintptr_t)file | LEDGER_FILE : 0);
	count_done(&self->files);
	return 0;
}

int fd_file_init(struct slot *self, struct fd_file *file, uint32_t type)
{
	return fd_file_init_noted(self, file, type, -1);
}

/* A type nobody registered here (another program's) has nothing of this process to release. */
void fd_release_last(struct slot *self, struct fd_file *file)
{
	fd_release_fn *release = file->type < FD_TYPES ? release_of[file->type] : NULL;

	if (release)
		release(self, file);
	else
		fd_uncount(self, file);
}

/* That is gone from the ledger, and from the number of files with it. */
void fd_uncount(struct slot *self, struct fd_file *file)
{
	int k = fd_entry(self, file);

	count_down(&self->files, k);
	hand_forget(self, k);
	count_done(&self->files);
}

/* Its count is dead: that in the ledger is what tells a recoverer to go on with it. */
void fd_release(struct slot *self, struct fd_file *file)
{
	fd_note(self, file);
	fd_release_last(self, file);
}

void fd_register_held(fd_held_fn *held, fd_let_go_fn *let_go)
{
	held_of = held;
	let_held_go = let_go;
}

void fd_go_on_retiring(struct slot *self, struct slot *gone, int k, struct fd_file *file)
{
	void *held = held_of ? held_of(file) : NULL;

	count_down(&gone->files, k);
	store_release(&gone->ledger[k], held ? hand_entry_of(held, LEDGER_INODE) : 0); /* for whoever goes on after us */
	count_done(&gone->files);
	if (held)
		let_held_go(self, gone, k);
}

/* The bag first: a recoverer that finds the file there knows that only what it held is left (recover.c). */
void fd_retire(struct slot *self, struct fd_file *file, enum retire_type type, void *held)
{
	int k = fd_entry(self, file);

	file->retired.type = type;
	file->retired.aux = 0;
	if (unlikely(k < 0 && held))
		ledger_add(self, held, LEDGER_INODE);
	epoch_retire_swapped(self, &file->retired, k, held ? hand_entry_of(held, LEDGER_INODE) : 0, &self->files);
}

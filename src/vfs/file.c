/* SPDX-License-Identifier: MIT */
/*
 * file.c - open file objects of the tree's inodes: made by open, released by the last put.
 *
 * Data: struct file (vfs.h).  A file holds one reference on its inode.
 * Shared writes of open and close: none here but the inode's count and the segment's count of files (fd/).
 * Death: the file's reference is its table's (fd/); between file_new() and fd_publish() its maker may note
 * it in the ledger.
 */
#include "segment/hand.h"
#include "vfs/vfs_priv.h"

#include <sys/inotify.h>

_Static_assert(sizeof(struct file) <= 128, "CACHE_128");

struct file *file_new_empty(struct slot *self, uint32_t flags, int *err)
{
	int k;
	struct file *f = cache_alloc_noted(self, CACHE_128, &k);

	*err = f ? fd_file_init_noted(self, &f->head, FD_TYPE_NONE, k) : -ENOSPC;
	if (*err) {
		if (f)
			cache_free_noted(self, CACHE_128, f, k);
		return NULL;
	}
	/* Relaxed: published by fd_publish. */
	store_relaxed(&f->flags, flags);
	f->created = false;
	f->inode = NULL;
	store_relaxed(&f->pos, 0);
	store_relaxed(&f->pos_lock.word, 0);
	store_relaxed(&f->has_flocks, 0);
	f->opened_by = (uint64_t)self->locker.id;
	f->cred_id = 0;
	store_relaxed(&f->owner, 0);
	f->private_[0] = f->private_[1] = 0;
	store_relaxed(&f->opened, NULL);
	return f;
}

void file_fill(struct slot *self, struct file *f, struct inode *inode, uint32_t type)
{
	bool first = likely(load_relaxed(&self->ledger[0]) == inode_entry(inode)); /* own */
	uint32_t given = first ? 1 : hand_bit(hand_find(self, inode, LEDGER_INODE));

	/* The type makes the reference the file's. */
	f->inode = inode;
	hand_begin32(self, &f->head.type, type, given);
	f->head.type = type;
	fence_compiler();
	hand_end(self, given);
}

struct file *file_new(struct slot *self, struct inode *inode, uint32_t type, uint32_t flags, int *err)
{
	struct file *f = file_new_empty(self, flags, err);

	if (f)
		file_fill(self, f, inode, type);
	return f;
}

static void file_release(struct slot *self, struct fd_file *head)
{
	struct file *f = container_of(head, struct file, head);
	struct inode *inode = f->inode;

	notify_file(self, f, file_writable(f) ? IN_CLOSE_WRITE : IN_CLOSE_NOWRITE);
	if (unlikely(load_relaxed(&f->opened))) /* own: the last reference is ours */
		opened_drop(self, &f->opened);
	if (unlikely(load_acquire(&f->has_flocks))) /* pairs with flock.c: its locks are in the inode's list */
		flock_close_file(self, f);
	fd_retire(self, head, RETIRE_FILE, inode);
	inode_put(self, inode);
}

void file_unfill(struct slot *self, struct file *f)
{
	hand_begin_got32(self, &f->head.type, FD_TYPE_NONE, f->inode, LEDGER_INODE);
	f->head.type = FD_TYPE_NONE;
	fence_compiler();
	hand_end(self, 0);
}

/* An open that failed after file_new_empty(). */
static void file_release_empty(struct slot *self, struct fd_file *head)
{
	fd_retire(self, head, RETIRE_FILE, NULL);
}

static void file_free(struct slot *self, struct retired *r)
{
	cache_free(self, CACHE_128, container_of(container_of(r, struct fd_file, retired), struct file, head));
}

static void *file_held(struct fd_file *head)
{
	bool holds = head->type == FD_TYPE_REG || head->type == FD_TYPE_DIR || head->type == FD_TYPE_PATH ||
		     head->type == FD_TYPE_NODE || head->type == FD_TYPE_MAP;

	return holds ? container_of(head, struct file, head)->inode : NULL;
}

void file_attach(void)
{
	fd_register_held(file_held, inode_entry_gone);
	retire_register(RETIRE_FILE, file_free);
	fd_register_type(FD_TYPE_NONE, file_release_empty);
	fd_register_type(FD_TYPE_REG, file_release);
	fd_register_type(FD_TYPE_DIR, file_release);
	fd_register_type(FD_TYPE_PATH, file_release);
	fd_register_type(FD_TYPE_NODE, file_release);
}

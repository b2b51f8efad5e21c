/* SPDX-License-Identifier: MIT */
/*
 * fs.c - root, working directory and umask of a task, or of several.
 *
 * Death: a context, its users' references and those on its directories are at each moment the task's, the
 * context's, or in the ledger (segment/hand.h).  LEDGER_PLACE is one user of a context.
 */
#include "segment/hand.h"
#include "task/task_priv.h"

/* A context that is not a task's yet, and the ledger's entries for it and what it holds. */
struct fs_new {
	struct fs_context *fs;
	int k;
	uint32_t given;
};

/* In a section; *given gets its entry.  `place` may change under us: then what it held before may be dead, and we look again. */
static struct inode *place_get_epoch(struct slot *self, atomic_ptr(struct inode) *place, uint32_t *given)
{
	struct inode *inode;
	int k;

	do
		inode = load_acquire(place); /* pairs with the store in place_set */
	while (!inode_get_epoch(self, inode, &k));
	*given |= hand_bit(k);
	return inode;
}

/* With what `root` and `cwd` hold now. */
static int fs_new(struct slot *self, atomic_ptr(struct inode) *root, atomic_ptr(struct inode) *cwd, uint32_t umask,
		  struct fs_new *out)
{
	struct fs_context *fs = mem_alloc_noted(self, sizeof(*fs), &out->k);

	if (!fs)
		return -ENOSPC;
	out->fs = fs;
	out->given = hand_bit(out->k);
	store_relaxed(&fs->lock.word, 0); /* the context is published by its task */
	tally_init(&fs->users, 1);
	epoch_enter(self);
	store_relaxed(&fs->root, place_get_epoch(self, root, &out->given)); /* ours, as the next */
	store_relaxed(&fs->cwd, place_get_epoch(self, cwd, &out->given));
	epoch_exit(self);
	store_relaxed(&fs->umask, umask);
	fs->retired = (struct retired){ 0 };
	return 0;
}

/* The last user is gone: entry `k`, and with that one store what it held, are the holder's to let go. */
static void fs_take_apart(struct slot *holder, struct fs_context *fs, int k)
{
	uint64_t gone = (uint64_t)(uintptr_t)&fs->retired | LEDGER_RETIRED;
	struct inode *root = load_relaxed(&fs->root), *cwd = load_relaxed(&fs->cwd); /* relaxed, both: nobody else is left */
	int held[2];

	fs->retired.type = RETIRE_TASK;
	fs->retired.aux = TASK_OBJECT_FS;
	if (k < 0)
		return; /* the ledger is full */
	hand_begin_got2(holder, &holder->ledger[k], gone, hand_entry_of(root, LEDGER_INODE), hand_entry_of(cwd, LEDGER_INODE), held);
	tracked_store(&holder->ledger[k], gone);
	hand_end(holder, 0);
}

/* One user less, who is entry `k` of the ledger; or the last, who is counted out already. */
static void fs_put(struct slot *self, struct fs_context *fs, int k)
{
	struct inode *held[2];
	bool last;
	unsigned i;

	epoch_enter(self); /* as tally.h asks */
	last = tally_read(&fs->users) >= REF_DEAD || tally_put(self, &fs->users, k);
	epoch_exit(self);
	if (!last)
		return;
	fs_take_apart(self, fs, k);
	held[0] = load_relaxed(&fs->root); /* relaxed, both: nobody else is left */
	held[1] = load_relaxed(&fs->cwd);
	epoch_retire_noted(self, &fs->retired, k);
	for (i = 0; i < 2; i++)
		inode_put(self, held[i]);
}

/* The task's context from now on is `fs`, with the entries `given`; what it had is put. */
static void fs_swap(struct slot *self, struct shelf_task *t, struct fs_context *fs, uint32_t given)
{
	struct fs_context *old = load_relaxed(&t->fs); /* relaxed: [q] */
	int k = -1;

	if (old)
		k = hand_begin_got(self, &t->fs, (uintptr_t)fs, given, old, LEDGER_PLACE);
	else
		hand_begin(self, &t->fs, (uintptr_t)fs, given, 0);
	tracked_store(&t->fs, fs);
	hand_end(self, given);
	if (old)
		fs_put(self, old, k);
}

static int fs_new_to(struct slot *self, atomic_ptr(struct inode) *root, atomic_ptr(struct inode) *cwd, uint32_t umask,
		     struct shelf_task *t)
{
	struct fs_new new;
	int err = fs_new(self, root, cwd, umask, &new);

	if (!err)
		fs_swap(self, t, new.fs, new.given);
	return err;
}

int fs_begin(struct slot *self, struct shelf_task *t)
{
	atomic_ptr(struct inode) root = vfs_root_of(self)->root; /* never freed */

	return fs_new_to(self, &root, &root, 022, t);
}

int fs_copy_to(struct slot *self, struct fs_context *from, struct shelf_task *t)
{
	return fs_new_to(self, &from->root, &from->cwd, load_relaxed(&from->umask), t); /* relaxed: a number */
}

void fs_share_to(struct slot *self, struct fs_context *from, struct shelf_task *t)
{
	int k;

	epoch_enter(self);
	tally_get(self, &from->users, hand_entry_of(from, LEDGER_PLACE), &k); /* the caller's task has one: not dead */
	epoch_exit(self);
	fs_swap(self, t, from, hand_bit(k));
}

void fs_leave(struct slot *self, struct shelf_task *t)
{
	if (load_relaxed(&t->fs)) /* relaxed: [q] */
		fs_swap(self, t, NULL, 0);
}

void fs_slot_gone(struct slot *self, struct slot *gone)
{
	int k;

	for (k = 0; gone != self && k < (int)SLOT_LEDGER; k++) {
		uint64_t entry = load_acquire(&gone->ledger[k]); /* pairs with ledger_add, through the death */

		if ((entry & 7) == LEDGER_PLACE)
			fs_put(self, (struct fs_context *)(uintptr_t)(entry & ~UINT64_C(7)), hand_take_over(self, gone, k));
	}
}

/* `inode` is counted for the place, in entry `k` of the ledger. */
static void place_set(struct slot *self, struct fs_context *fs, atomic_ptr(struct inode) *place, struct inode *inode, int k)
{
	struct inode *old;
	int had = k;

	lock_acquire(&fs->lock, &self->locker, LOCK_LEAF);
	old = load_relaxed(place); /* relaxed: under the lock */
	if (old != inode) {
		had = hand_begin_got(self, place, (uintptr_t)inode, hand_bit(k), old, LEDGER_INODE);
		tracked_store(place, inode); /* pairs with the load in place_get_epoch and in walks */
		hand_end(self, hand_bit(k));
	}
	lock_release(&fs->lock, &self->locker, LOCK_LEAF);
	inode_put_entry(self, old, had);
}

void fs_set_cwd(struct slot *self, struct fs_context *fs, struct inode *inode, int k)
{
	place_set(self, fs, &fs->cwd, inode, k);
}

void fs_set_root(struct slot *self, struct fs_context *fs, struct inode *inode, int k)
{
	place_set(self, fs, &fs->root, inode, k);
}

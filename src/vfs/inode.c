/* SPDX-License-Identifier: MIT */
/*
 * inode.c - inodes: birth, references, death.
 *
 * Data: struct inode (vfs.h), process-local table of drop functions, the slot's private range of
 * inode numbers and its count of inodes.
 * Shared writes: get and put change inode.refs, nothing else; a birth writes none.
 * Progress: get and put lock-free, until the last, which frees the data.
 * Death: the last reference stays in the thread's ledger until its intent says that the data are freed; whoever recovers goes on.
 * Look at it: vfs_inodes().
 */
#include "vfs/vfs_priv.h"

#include <sys/inotify.h>

#include "base/clock.h"
#include "segment/count.h"
#include "segment/hand.h"
#include "segment/intent_ops.h"

_Static_assert(offsetof(struct inode, btime) + sizeof(uint64_t) <= OBJECT_LINK &&
		       offsetof(struct inode, lock) >= OBJECT_LINK + sizeof(void *), "inode_free_parts may be run again");

#define INO_RANGE 1024u /* numbers a thread takes at a time */

static inode_drop_fn *drop_fns[16]; /* set at attach; by S_IFMT >> 12 */

void inode_register_drop(uint32_t s_ifmt, inode_drop_fn *fn)
{
	drop_fns[s_ifmt > 15 ? (s_ifmt & S_IFMT) >> 12 : s_ifmt] = fn;
}

uint64_t vfs_now(void)
{
	return (uint64_t)clock_now_coarse();
}

/* The first number of a range before its end: what a death in between leaves is an empty range, for ranges only go up. */
static void ino_take_range(struct slot *self)
{
	uint64_t first = add_relaxed(&self->seg->hdr->next_ino, INO_RANGE);

	self->ino_next = max_of(first, UINT64_C(1)); /* a fresh segment: 0 is no number */
	fence_compiler();
	self->ino_end = first + INO_RANGE;
}

uint64_t inode_number(struct slot *self)
{
	if (unlikely(self->ino_next >= self->ino_end))
		ino_take_range(self);
	return self->ino_next++;
}

int64_t vfs_inodes(struct segment *seg)
{
	int64_t sum = 0;
	uint32_t id = 0;
	struct slot *s;

	while ((s = slot_each(seg, &id)))
		sum += count_read(&s->inodes);
	return sum;
}

/* Relaxed stores throughout: the inode is published by a release store into a dentry or a file. */
static void inode_set_times(struct inode *inode)
{
	uint64_t now = vfs_now();

	store_relaxed(&inode->atime, now);
	store_relaxed(&inode->mtime, now);
	store_relaxed(&inode->ctime, now);
	inode->btime = now;
}

/* The union's largest part: zero is right for all of them. */
static void inode_clear_part(struct inode *inode)
{
	store_relaxed(&inode->dir.table, NULL);
	radix_init(&inode->dir.index);
	store_relaxed(&inode->dir.next_cookie, 0);
	store_relaxed(&inode->dir.parent, NULL);
	store_relaxed(&inode->dir.name_seq.n, 0);
	store_relaxed(&inode->file.drops, 0); /* the longest part, if by a word */
}

struct inode *inode_new(struct who *w, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct inode *inode = inode_new_noted(w, mode, uid, gid);

	if (inode)
		ledger_del(w->self, inode);
	return inode;
}

struct inode *inode_new_noted(struct who *w, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct slot *self = w->self;
	int k = -1;
	struct inode *inode = page_room(self, 0, PAGE_FOR_NAMES) ? cache_alloc_noted(self, CACHE_256, &k) : NULL;
	bool is_dir = S_ISDIR(mode);

	if (!inode)
		return NULL;
	store_relaxed(&inode->mode, mode);
	store_relaxed(&inode->uid, uid);
	store_relaxed(&inode->gid, gid);
	store_relaxed(&inode->flags, 0);
	inode_clear_part(inode);
	if (is_dir)
		store_relaxed(&inode->dir.next_cookie, DIR_FIRST_COOKIE);
	store_relaxed(&inode->seq.n, 0);
	store_relaxed(&inode->nlink, 0);
	store_relaxed(&inode->size, is_dir ? DIR_EMPTY_SIZE : 0);
	inode->ino = inode_number(self);
	inode_set_times(inode);
	store_relaxed(&inode->lock.word, 0);
	tally_init(&inode->refs, 1);
	store_relaxed(&inode->alias, NULL);
	store_relaxed(&inode->xattrs, NULL);
	store_relaxed(&inode->flocks, NULL);
	store_relaxed(&inode->watches, 0);
	store_relaxed(&inode->write_denied, 0);
	store_relaxed(&inode->hints, 0);
	store_relaxed(&inode->was, NULL);
	count_up(&self->inodes, k);
	if (likely(k >= 0))
		store_release(&self->ledger[k], (uint64_t)(uintptr_t)inode | LEDGER_INODE); /* whole: a reference from here on */
	count_done(&self->inodes);
	return inode;
}

void inode_touch_locked(struct inode *inode, bool mtime)
{
	uint64_t now = vfs_now();

	if (mtime)
		seq_store(&inode->mtime, now);
	seq_store(&inode->ctime, now);
}

/* Each part may be repeated. */
static void inode_drop_contents(struct slot *self, struct inode *inode)
{
	inode_drop_fn *fn = drop_fns[inode_type(inode) >> 12];

	if (load_relaxed(&inode->xattrs)) /* relaxed: nobody changes them any more */
		xattrs_drop(self, inode);
	if (fn)
		fn(self, inode);
}

/* Once nobody can see it: what readers may still have looked at until now. */
static void inode_free_parts(struct slot *self, struct retired *r)
{
	struct inode *inode = container_of(r, struct inode, retired);

	if (unlikely(r->aux))
		inode_drop_contents(self, inode);
	if (S_ISLNK(inode_type(inode)) && inode->target)
		hand_free_from(self, (void **)&inode->target, NULL, inode->target, inode->target_len + 1);
}

/* The memory itself. */
static void inode_free(struct slot *self, struct retired *r)
{
	count_down_freeing(&self->inodes);
	cache_free(self, CACHE_256, container_of(r, struct inode, retired));
	count_done(&self->inodes);
}

/*
 * A short write holds no count, only a section and the inode's lock (ramfs/write.c).  It takes the lock, then looks
 * whether the inode is dead; we made it dead, then look at the lock: each by a locked operation before its look, so
 * one of the two sees the other.  Free here: no write comes any more.
 */
static bool inode_is_written(struct inode *inode)
{
	return S_ISREG(inode_type(inode)) && load_acquire(&inode->lock.word); /* pairs with the writer's lock_release */
}

/* intent.step; arg[0] is the inode, arg[1] the parent that a directory still has a reference on. */
enum drop_step { DROP_DATA, DROP_RETIRED, DROP_DONE };

/*
 * The data, while readers may still look.  True: not now, but with the inode.  That is so under a write, after whose section
 * it goes: a death in that leaves pages to shelf_verify().
 */
static bool inode_drop_data(struct slot *self, struct inode *inode)
{
	bool late = inode_is_written(inode);

	if (load_relaxed(&inode->flocks)) /* relaxed: nobody changes them any more */
		flocks_drop(self, inode);
	if (likely(!late))
		inode_drop_contents(self, inode);
	return late;
}

static struct inode *inode_parent(struct inode *inode)
{
	return S_ISDIR(inode_type(inode)) ? load_relaxed(&inode->dir.parent) : NULL; /* relaxed: nobody changes it any more */
}

/* Who watches is told, and its last name let go. */
static void inode_tell(struct slot *self, struct inode *inode)
{
	if (!load_relaxed(&inode->nlink)) /* relaxed, both: nobody changes it any more */
		notify(self, inode, NULL, NULL, IN_DELETE_SELF, 0);
	if (load_relaxed(&inode->was))
		opened_drop(self, &inode->was);
}

/* By a record of its own.  The entry that the parent is in from then on. */
static int inode_drop_recorded(struct slot *self, struct inode *inode, struct inode *parent, int k)
{
	uint64_t args[] = {(uintptr_t)inode, (uintptr_t)parent};
	bool late;

	intent_begin(self, INTENT_DROP, ARRAY_SIZE(args), args);
	hand_forget(self, k);
	late = inode_drop_data(self, inode);
	epoch_retire_step(self, &inode->retired, RETIRE_INODE, late, &self->intent.step, DROP_RETIRED);
	k = -1;
	if (parent)
		k = hand_begin_got32(self, &self->intent.step, DROP_DONE, parent, LEDGER_INODE);
	tracked_store(&self->intent.step, DROP_DONE); /* read after our death */
	if (parent)
		hand_end(self, 0);
	intent_end(self);
	return k;
}

/*
 * Inside another intent (a task's end) there is no room for ours: the entry says all, until the parent takes its place.  Without
 * one, in a full ledger, a death leaks it.
 */
static int inode_drop_noted(struct slot *self, struct inode *inode, struct inode *parent, int k)
{
	inode->retired.aux = inode_drop_data(self, inode);
	inode->retired.type = RETIRE_INODE;
	epoch_retire_swapped(self, &inode->retired, k, parent ? inode_entry(parent) : 0, NULL);
	return parent ? k : -1;
}

/* The reference, entry *k, was the last.  Returns the parent if we held the last reference on that too, in entry *k. */
static struct inode *inode_drop(struct slot *self, struct inode *inode, int *k)
{
	struct inode *parent = inode_parent(inode);

	if (unlikely(*k < 0))
		*k = ledger_add(self, inode, LEDGER_INODE);
	if (unlikely(load_relaxed(&inode->was) || load_relaxed(&self->seg->hdr->watchers))) /* relaxed: nobody changes it any more; as in notify() */
		inode_tell(self, inode);
	if (load_relaxed(&self->intent.op)) /* own field */
		*k = inode_drop_noted(self, inode, parent, *k);
	else
		*k = inode_drop_recorded(self, inode, parent, *k);
	return parent && inode_put_last(self, parent, *k) ? parent : NULL;
}

void inode_put_dead(struct slot *self, struct inode *inode, int k)
{
	/* A removed directory may be the last that kept its removed parent. */
	while (inode)
		inode = inode_drop(self, inode, &k);
}

/* What the step gives is the dead thread's ledger's with the store of the step: once, should we die as well. */
static void recover_drop_data(struct slot *self, struct intent *dead, struct inode *inode)
{
	struct slot *gone = intent_slot(dead);
	bool late = inode_drop_data(self, inode);

	retire_begin(gone, (char *)&dead->step + HAND_WORD32, DROP_RETIRED, 0, &inode->retired, RETIRE_INODE, late);
	tracked_store(&dead->step, DROP_RETIRED);
	hand_end(gone, 0);
}

static void recover_drop_parent(struct intent *dead, struct inode *parent)
{
	struct slot *gone = intent_slot(dead);

	if (parent)
		hand_begin_got32(gone, &dead->step, DROP_DONE, parent, LEDGER_INODE);
	tracked_store(&dead->step, DROP_DONE);
	hand_end(gone, 0);
}

static void inode_recover_drop(struct slot *self, struct intent *dead)
{
	/* All loads pair with intent_begin and intent_step, through the death. */
	struct inode *inode = (struct inode *)(uintptr_t)load_acquire(&dead->arg[0]);
	uint32_t step = load_acquire(&dead->step);

	if (hand_has(intent_slot(dead), inode, LEDGER_INODE))
		return; /* not begun: it goes from there */
	if (step == DROP_DATA && !epoch_retired_last(intent_slot(dead), &inode->retired))
		recover_drop_data(self, dead, inode);
	if (step != DROP_DONE)
		recover_drop_parent(dead, (struct inode *)(uintptr_t)load_acquire(&dead->arg[1]));
}

/* It is in its bag already (inode_drop_noted): what takes its place in the ledger. */
static void inode_go_on_dropping(struct slot *self, struct slot *gone, int k, struct inode *inode)
{
	struct inode *parent = inode_parent(inode);

	store_release(&gone->ledger[k], parent ? inode_entry(parent) : 0); /* for whoever goes on after us */
	if (parent)
		inode_entry_gone(self, gone, k);
}

/* A reference of a thread that is gone; or what it was about to drop, having put the last one. */
void inode_entry_gone(struct slot *self, struct slot *gone, int k)
{
	uint64_t entry = load_acquire(&gone->ledger[k]); /* pairs with its stores, through the death */
	struct inode *inode = (struct inode *)(uintptr_t)(entry & ~UINT64_C(7));
	bool dead = inode_gone(inode);

	if (dead && epoch_retired_last(gone, &inode->retired)) {
		inode_go_on_dropping(self, gone, k, inode);
		return;
	}
	k = hand_take_over(self, gone, k);
	if (dead)
		inode_put_dead(self, inode, k);
	else
		inode_put_entry(self, inode, k);
}

/* Counted references in the ledger of a thread that is gone. */
static void inode_slot_gone(struct slot *self, struct slot *gone)
{
	int k;

	for (k = 0; k < (int)SLOT_LEDGER; k++)
		if ((load_acquire(&gone->ledger[k]) & 7) == LEDGER_INODE) /* as in inode_entry_gone */
			inode_entry_gone(self, gone, k);
}

void inode_attach(void)
{
	retire_register_parts(RETIRE_INODE, inode_free_parts);
	retire_register(RETIRE_INODE, inode_free);
	intent_register_late(INTENT_DROP, inode_recover_drop);
	slot_register_gone(inode_slot_gone);
}

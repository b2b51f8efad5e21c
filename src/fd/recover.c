// SPDX-License-Identifier: MIT
/*
 * recover.c - finishes or undoes what a dead thread was doing to a table.
 *
 * The recovering thread has the dead one's claim on the table's lock, so the
 * words are as the dead left them, but for flags, and for numbers that were
 * published before they died.  Of near numbers a word is as the dead left it if it
 * has their id (near.c).  Each function may be run again from its start:
 * it looks at the words, and the record is cleared after it.
 *
 * It runs wherever a waiter finds the death, so perhaps under locks: nothing is dropped here.  A reference that only
 * the record knew, and a copy that nobody will use, go into the dead thread's own ledger (ledger_inherit); whoever
 * takes the slot over drops them, outside of locks.
 *
 * Counts of files come and go together with entries of the ledger (tally.h): that is settled before any record.
 * The schemes with spinning locks do not recover.
 */
#include "fd/fd_priv.h"
#include "segment/hand.h"

#if defined(SHELF_SCHEME_BIGLOCK) || defined(SHELF_SCHEME_SPINLOCK) || defined(SHELF_SCHEME_RWLOCK)

void fd_recover_register(void)
{
}

#else

static struct fd_table *arg_table(struct intent *dead, unsigned k)
{
	return (struct fd_table *)(uintptr_t)load_acquire(
		&dead->arg[k]); /* pairs with intent_set */
}

static struct fd_file *arg_file(struct intent *dead)
{
	return (struct fd_file *)(uintptr_t)load_acquire(
		&dead->arg[FD_ARG_FILE]); /* pairs with intent_set */
}

static int arg_number(struct intent *dead)
{
	return (int)(uint32_t)load_acquire(&dead->arg[FD_ARG_NUMBER]); /* pairs with intent_set */
}

static uint32_t step_of(struct intent *dead)
{
	return load_acquire(&dead->step); /* pairs with intent_step */
}

static bool in_ledger(struct slot *dead, struct fd_file *file)
{
	uint64_t entry = (uint64_t)(uintptr_t)file | LEDGER_FILE;
	unsigned k;

	for (k = 0; k < SLOT_LEDGER; k++)
		if (load_acquire(&dead->ledger[k]) == entry) /* pairs with fd_note */
			return true;
	return false;
}

LOCK_NO_ANALYSIS static void adopt(struct slot *self, struct intent *dead, struct fd_table *tab)
	LOCK_ACQUIRES(&tab->lock)
{
	lock_adopt(&tab->lock, &intent_slot(dead)->locker, &self->locker, LOCK_TABLE);
}

/* The bitmaps follow from the word. */
static void fix_bits(struct fd_table *tab, int fd)
{
	uint64_t word = fd_word_load(tab, fd);

	if (!fd_word_of(tab, fd))
		return;
	if (word)
		fd_map_mark_locked(tab, (unsigned)fd);
	else
		fd_map_clear_locked(tab, (unsigned)fd);
}

/* ---- the operations ------------------------------------------------------------------------------ */

/* install, reserve, publish, cancel, dup: a reservation goes; a counted file without its slot is dropped. */
static struct fd_file *undo_install(struct intent *dead, struct fd_table *tab, int fd)
{
	atomic_u64 *word = fd_word_of(tab, fd);
	uint64_t now = word ? load_acquire(word) : 0; /* pairs with fd_publish */
	struct fd_file *file = arg_file(dead);

	if (now == (FD_WORD_RESERVED | (uint64_t)intent_slot(dead)->locker.id << 32)) {
		store_release(word, 0); /* pairs with fd_word_load */
		return file && !in_ledger(intent_slot(dead), file) ? file : NULL;
	}
	if (fd_word_file(now) == file)
		return NULL;
	if (step_of(dead) == FD_STEP_GIVEN && !in_ledger(intent_slot(dead), file))
		return file;
	return step_of(dead) == FD_STEP_COUNTED ? file : NULL;
}

/*
 * Swapped: the replaced file is ours to drop; not swapped: the reference that was to go in.  Whichever is in the ledger
 * already is dropped from there, once.  A file put over itself: one of its references, whichever.
 */
static struct fd_file *settle_dup2(struct intent *dead, struct fd_table *tab, int fd)
{
	struct fd_file *old =
		fd_word_file(load_acquire(&dead->arg[FD_ARG_OLD])); /* pairs with intent_set */
	struct fd_file *file = arg_file(dead);

	if (step_of(dead) != FD_STEP_COUNTED)
		return NULL;
	if (fd_word_file(fd_word_load(tab, fd)) != file)
		return file;
	return old;
}

static struct fd_file *settle_close(struct intent *dead, struct fd_table *tab, int fd)
{
	struct fd_file *file = arg_file(dead);

	if (step_of(dead) != FD_STEP_BEGUN || fd_word_file(fd_word_load(tab, fd)) == file)
		return NULL;
	return in_ledger(intent_slot(dead), file) ? NULL : file;
}

typedef struct fd_file *settle_fn(struct intent *dead, struct fd_table *tab, int fd);

static void recover_one(struct slot *self, struct intent *dead, settle_fn *settle)
{
	struct fd_table *tab = arg_table(dead, FD_ARG_TABLE);
	int fd = arg_number(dead);
	struct fd_file *file = NULL;

	if (step_of(dead) == FD_STEP_HANDED)
		return; /* all was done, by the dead or by a recoverer that died since; the lock goes with the others */
	adopt(self, dead, tab);
	if (fd >= 0) {
		file = settle(dead, tab, fd);
		fix_bits(tab, fd);
	}
	if (file)
		ledger_inherit(self, intent_slot(dead), file, LEDGER_FILE);
	store_release(&dead->step, FD_STEP_HANDED); /* it is in the ledger, should we die as well */
	store_release(&dead->arg[FD_ARG_FILE], 0);
	fd_table_unlock(self, tab);
}

static void recover_install(struct slot *self, struct intent *dead)
{
	recover_one(self, dead, undo_install);
}

static void recover_dup2(struct slot *self, struct intent *dead)
{
	recover_one(self, dead, settle_dup2);
}

/* near.c's list: a word with the dead one's id goes, with the reference that only the record knew. */
static void recover_near(struct slot *self, struct intent *dead)
{
	atomic_u64 *word = fd_near_word(arg_table(dead, FD_ARG_TABLE), (unsigned)arg_number(dead));
	uint64_t now = load_acquire(word); /* pairs with the dead one's stores */
	struct fd_file *file = arg_file(dead);

	if ((now & ~(uint64_t)FD_WORD_MOVING) != (FD_WORD_RESERVED | (uint64_t)intent_slot(dead)->locker.id << 32))
		return;
	ledger_inherit(self, intent_slot(dead), file, LEDGER_FILE); /* first: once the word is gone nothing tells */
	(void)cas_acq_rel(word, &now, 0); /* without MOVING fd_cancel_dead may have been faster */
}

static void home_set(fd_table_home *home, struct fd_table *tab)
{
	if (home)
		store_release(home, tab); /* pairs with the load in fd_table_leave_at */
}

static fd_table_home *arg_home(struct intent *dead)
{
	return (fd_table_home *)(uintptr_t)load_acquire(
		&dead->arg[FD_ARG_HOME]); /* pairs with intent_set */
}

static uint32_t arg_users(struct intent *dead)
{
	return (uint32_t)load_acquire(&dead->arg[FD_ARG_OLD]); /* pairs with intent_set */
}

/* Leaving: done if the number of users went down, for it changes under the lock only. */
static void settle_leave(struct slot *self, struct intent *dead)
{
	struct fd_table *tab = arg_table(dead, FD_ARG_TABLE);
	uint32_t before = arg_users(dead);

	epoch_enter(self); /* the table may be retired, and still be locked for the dead */
	adopt(self, dead, tab);
	if (before && load_relaxed(&tab->refs) == before - 1) { /* under the lock */
		home_set(arg_home(dead), NULL);
		if (before == 1 && step_of(dead) == FD_STEP_BEGUN) {
			tab->retired.type = RETIRE_FD_TABLE;
			tab->retired.aux = 0;
			ledger_inherit(self, intent_slot(dead), &tab->retired, LEDGER_RETIRED);
			store_release(&dead->step, FD_STEP_HANDED); /* it is in the ledger, should we die as well */
		}
	}
	fd_table_unlock(self, tab);
	epoch_exit(self);
}

static void recover_close(struct slot *self, struct intent *dead)
{
	if (arg_number(dead) == FD_NO_NUMBER)
		settle_leave(self, dead);
	else
		recover_one(self, dead, settle_close);
}

/* Sharing without a home: nobody would leave for the new user.  With one: undone unless it got there. */
static void undo_share(struct slot *self, struct intent *dead, struct fd_table *tab)
{
	fd_table_home *home = arg_home(dead);
	uint32_t before = arg_users(dead);

	adopt(self, dead, tab);
	if (before && (!home || load_acquire(home) != tab)) /* pairs with home_store */
		store_relaxed(&tab->refs, before); /* under the lock */
	fd_table_unlock(self, tab);
}

/* Unless it got home nobody has seen the copy: it is left to settle_table(), with the references it has. */
static void undo_copy(struct slot *self, struct intent *dead, struct fd_table *dst)
{
	fd_table_home *home = arg_home(dead);

	if (step_of(dead) == FD_STEP_HANDED || (home && load_acquire(home) == dst)) /* pairs with home_store */
		return; /* the lock of `src` goes with the others */
	if (hand_has(intent_slot(dead), dst, LEDGER_MEM))
		return; /* nothing was copied, and it goes from there */
	if (arg_number(dead) != FD_NO_NUMBER)
		fix_bits(dst, arg_number(dead));
	ledger_inherit(self, intent_slot(dead), dst, LEDGER_TABLE);
	store_release(&dead->step, FD_STEP_HANDED); /* it is in the ledger, should we die as well */
}

static void recover_copy(struct slot *self, struct intent *dead)
{
	struct fd_table *dst = arg_table(dead, FD_ARG_TABLE);
	struct fd_table *src = arg_table(dead, FD_ARG_FILE);

	if (src == dst)
		undo_share(self, dead, dst);
	else
		undo_copy(self, dead, dst);
}

static void put_copy(struct slot *self, void *ctx, int fd, struct fd_file *file)
{
	(void)ctx, (void)fd;
	fd_put(self, file);
}

/* A copy that never got home: what it holds, then itself.  To be repeated until it is off the ledger. */
static void settle_table(struct slot *self, struct fd_table *tab, atomic_u64 *entry)
{
	fd_table_drop_all(self, tab, put_copy, NULL);
	tab->retired.type = RETIRE_FD_TABLE;
	tab->retired.aux = 0;
	store_release(entry, (uint64_t)(uintptr_t)&tab->retired | LEDGER_RETIRED); /* bags_put_noted() does the rest */
}

/* A file that the dead one had in its hands, or had let go for the last time without retiring it yet. */
static void settle_file(struct slot *self, struct slot *gone, int k, struct fd_file *file)
{
	bool dead = ref_read(&file->count) >= REF_DEAD;

	if (dead && epoch_retired_last(gone, &file->retired)) {
		fd_go_on_retiring(self, gone, k, file);
		return;
	}
	hand_take_over(self, gone, k);
	if (dead)
		fd_release_last(self, file);
	else
		fd_put(self, file);
}

/* What the dead thread had in its hands.  One that ends in order may have handed it on: only forget it. */
static void settle_ledger(struct slot *self, struct slot *gone)
{
	int k;

	for (k = 0; k < (int)SLOT_LEDGER; k++) {
		uint64_t entry = load_acquire(&gone->ledger[k]); /* pairs with fd_note */
		void *obj = (void *)(uintptr_t)(entry & ~UINT64_C(7));

		if ((entry & 7) == LEDGER_TABLE && gone != self)
			settle_table(self, obj, &gone->ledger[k]);
		if ((entry & 7) != LEDGER_FILE)
			continue;
		if (gone == self)
			store_release(&gone->ledger[k], 0); /* read after our death */
		else
			settle_file(self, gone, k, obj);
	}
}

void fd_recover_register(void)
{
	slot_register_gone(settle_ledger);
	intent_register(INTENT_FD_INSTALL, recover_install);
	intent_register(INTENT_FD_DUP2, recover_dup2);
	intent_register(INTENT_FD_CLOSE, recover_close);
	intent_register(INTENT_FD_COPY, recover_copy);
	intent_register(INTENT_FD_NEAR, recover_near);
}

#endif

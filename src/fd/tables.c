// SPDX-License-Identifier: MIT
/*
 * tables.c - whole tables: make, share, copy for fork, leave.
 *
 * A table is freed through the epoch, since `shelf fds` of another process may be
 * looking at it when its last task leaves.
 */
#include <string.h>

#include "fd/fd_priv.h"
#include "segment/hand.h"

/* In the ledger until somebody has it. */
static struct fd_table *table_make(struct slot *self, int *k)
{
	struct fd_table *tab = mem_alloc_noted(self, sizeof(*tab), k);

	if (!tab)
		return NULL;
	memset(tab, 0, sizeof(*tab));
	store_relaxed(&tab->refs, 1u); /* published by the caller */
	return tab;
}

int fd_table_create(struct slot *self, struct fd_table **out)
{
	int k;

	*out = table_make(self, &k);
	if (!*out)
		return -ENOMEM;
	hand_forget(self, k);
	return 0;
}

static void home_store(fd_table_home *home, struct fd_table *tab)
{
	if (home)
		tracked_store(home, tab); /* release: the table, to whoever looks at tasks */
}

int fd_table_create_at(struct slot *self, fd_table_home *home)
{
	int k;
	struct fd_table *tab = table_make(self, &k);

	if (!tab)
		return -ENOMEM;
	hand_begin(self, home, (uintptr_t)tab, hand_bit(k), 0);
	home_store(home, tab);
	hand_end(self, hand_bit(k));
	return 0;
}

/* Under the lock of the table whose number of users the record is to tell. */
static bool table_intent(struct slot *self, uint32_t op, struct fd_table *tab, struct fd_table *src,
			 fd_table_home *home)
{
	bool begun = fd_intent_begin(self, op, tab, FD_NO_NUMBER, (struct fd_file *)src);

	if (begun) {
		intent_set(self, FD_ARG_HOME, (uint64_t)(uintptr_t)home);
		intent_set(self, FD_ARG_OLD, load_relaxed(&tab->refs)); /* under the lock */
	}
	return begun;
}

void fd_table_share_to(struct slot *self, struct fd_table *tab, fd_table_home *home)
{
	bool begun;

	store_release(&tab->sole, 0u); /* before the second task exists; see fd_table_is_sole */
	fd_table_lock(self, tab);
	begun = table_intent(self, INTENT_FD_COPY, tab, tab, home);
	tracked_store(&tab->refs, load_relaxed(&tab->refs) + 1); /* under the lock */
	home_store(home, tab);
	fd_intent_end(self, begun);
	fd_table_unlock(self, tab);
}

void fd_table_share(struct slot *self, struct fd_table *tab)
{
	fd_table_share_to(self, tab, NULL);
}

void fd_table_set_users(struct slot *self, struct fd_table *tab, uint32_t users)
{
	bool sole = users == 1 && load_acquire(&tab->refs) == 1; /* pairs with fd_table_leave */

	store_relaxed(&tab->users, users); /* for `shelf fds` */
	/* release: what we did under `sole` before the next user exists; see fd_table_is_sole */
	store_release(&tab->sole, sole ? self->locker.id : 0u);
}

/* ---- fork ----------------------------------------------------------------------------------- */

/* 0: not for the child.  In a section: a late close (near.c) may take the table's reference away meanwhile. */
static uint64_t word_get(struct slot *self, struct fd_table *src, unsigned fd, int *k)
{
	uint64_t word;

	epoch_enter(self);
	word = fd_word_load(src, (int)fd);
	if (!fd_word_is_open(word) || word & FD_CLOFORK_BIT || !fd_ref_get(self, fd_word_file(word), k))
		word = 0;
	epoch_exit(self);
	return word;
}

/* Under the lock of `src`, its gate closed. */
static int copy_one_locked(struct slot *self, struct fd_table *src, struct fd_table *dst, unsigned fd)
{
	atomic_u64 *to;
	uint64_t word;
	int k;

	fd_intent_note(self, FD_ARG_NUMBER, fd);
	to = fd_map_word_locked(self, dst, fd);
	if (!to)
		return -ENOMEM;
	word = word_get(self, src, fd, &k);
	if (!word)
		return 0;
	hand_begin(self, to, word, hand_bit(k), 0);
	tracked_store(to, word); /* the record finds it there and drops it */
	hand_end(self, hand_bit(k));
	fd_map_mark_locked(dst, fd);
	return 0;
}

static int copy_all_locked(struct slot *self, struct fd_table *src, struct fd_table *dst)
{
	unsigned fd;
	int err = 0;

	for (fd = fd_map_next_used(src, 0); !err && fd < FD_NUMBER_MAX;
	     fd = fd_map_next_used(src, fd + 1)) {
		uint64_t word = fd_word_load(src, (int)fd);

		if (fd_word_is_open(word) && !(word & FD_CLOFORK_BIT))
			err = copy_one_locked(self, src, dst, fd);
	}
	return err;
}

static void put_dropped(struct slot *self, void *ctx, int fd, struct fd_file *file)
{
	(void)ctx, (void)fd;
	fd_put(self, file);
}

/* `k`: where the ledger has the new table. */
static int copy_to(struct slot *self, struct fd_table *src, struct fd_table *dst, int k,
		   fd_table_home *home)
{
	bool begun;
	int err;

	fd_table_lock(self, src);
	begun = table_intent(self, INTENT_FD_COPY, dst, src, home);
	hand_forget(self, k); /* the record has it now */
	fd_gate_close(self, src);
	err = copy_all_locked(self, src, dst);
	fd_gate_open(src);
	if (!err)
		home_store(home, dst);
	fd_intent_end(self, begun);
	fd_table_unlock(self, src);
	if (err)
		fd_table_leave(self, dst, put_dropped, NULL);
	return err;
}

int fd_table_copy_to(struct slot *self, struct fd_table *src, fd_table_home *home)
{
	int k;
	struct fd_table *dst = table_make(self, &k);

	return dst ? copy_to(self, src, dst, k, home) : -ENOMEM;
}

int fd_table_copy(struct slot *self, struct fd_table *src, struct fd_table **out)
{
	int k;
	struct fd_table *dst = table_make(self, &k);
	int err = dst ? copy_to(self, src, dst, k, NULL) : -ENOMEM;

	*out = err ? NULL : dst;
	return err;
}

/* ---- leave ------------------------------------------------------------------------------------ */

void fd_table_free_parts(struct slot *self, struct retired *r)
{
	fd_map_free(self, container_of(r, struct fd_table, retired));
}

void fd_table_free(struct slot *self, struct retired *r)
{
	mem_free(self, container_of(r, struct fd_table, retired), sizeof(struct fd_table));
}

/* Numbers that dead threads had reserved: free again.  The last one out need not. */
static void cancel_dead(struct slot *self, struct fd_table *tab)
{
	unsigned fd;

	for (fd = fd_map_next_used(tab, 0); fd < FD_NUMBER_MAX;
	     fd = fd_map_next_used(tab, fd + 1)) {
		uint64_t word = fd_word_load(tab, (int)fd);

		if (word & FD_WORD_RESERVED && !slot_alive(self->seg, (uint32_t)(word >> 32)))
			fd_cancel_dead(self, tab, (int)fd);
	}
}

void fd_table_drop_all(struct slot *self, struct fd_table *tab, fd_drop_fn *drop, void *ctx)
{
	struct fd_file *file;
	int fd;

	for (fd = fd_next_open(self, tab, 0); fd >= 0; fd = fd_next_open(self, tab, fd + 1))
		if (!fd_remove(self, tab, fd, &file))
			drop(self, ctx, fd, file);
}

/*
 * Takes the lock when there is a user to take away, its files gone if it is the last one.
 * False: recovery has ended the table, and the lock is not held.
 */
LOCK_NO_ANALYSIS static bool leave_lock(struct slot *self, struct fd_table *tab, fd_drop_fn *drop,
					void *ctx)
{
	for (;;) {
		uint32_t refs;

		fd_table_lock(self, tab);
		refs = load_relaxed(&tab->refs); /* under the lock */
		if (refs > 1 || (refs == 1 && fd_next_open(self, tab, 0) < 0))
			return true;
		fd_table_unlock(self, tab);
		if (refs == 0)
			return false;
		fd_table_drop_all(self, tab, drop, ctx);
	}
}

/*
 * Files first, while we still count as a user: who takes over a death in between leaves again.
 * In a section, since the table is retired before its lock is released.
 */
LOCK_NO_ANALYSIS static void leave(struct slot *self, struct fd_table *tab, fd_table_home *home,
				   fd_drop_fn *drop, void *ctx)
{
	uint32_t refs;
	bool begun;
	int k;

	if (load_acquire(&tab->refs) > 1) /* a guess; pairs with the others' stores below */
		cancel_dead(self, tab);
	if (!leave_lock(self, tab, drop, ctx))
		return;
	epoch_enter(self);
	begun = table_intent(self, INTENT_FD_CLOSE, tab, NULL, home);
	refs = load_relaxed(&tab->refs) - 1; /* under the lock */
	tracked_store(&tab->refs, refs);
	home_store(home, NULL);
	if (refs == 0) {
		k = retire_note(self, &tab->retired, RETIRE_FD_TABLE, 0);
		if (begun)
			intent_step(self, FD_STEP_HANDED);
		epoch_retire_noted(self, &tab->retired, k);
	}
	fd_intent_end(self, begun);
	fd_table_unlock(self, tab);
	epoch_exit(self);
}

void fd_table_leave(struct slot *self, struct fd_table *tab, fd_drop_fn *drop, void *ctx)
{
	leave(self, tab, NULL, drop, ctx);
}

void fd_table_leave_at(struct slot *self, fd_table_home *home, fd_drop_fn *drop, void *ctx)
{
	struct fd_table *tab = load_acquire(home); /* pairs with home_store */

	if (tab)
		leave(self, tab, home, drop, ctx);
}

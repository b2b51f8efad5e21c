// SPDX-License-Identifier: MIT
/*
 * tables.c - whole tables: make, share, copy for fork, leave.
 *
 * A table is freed through the epoch, since `shelf fds` of another process may be
 * looking at it when its last task leaves.
 */
#include <string.h>

#include "fd/fd_priv.h"

static struct fd_table *table_make(struct slot *self)
{
	struct fd_table *tab = mem_alloc(self, sizeof(*tab));

	if (!tab)
		return NULL;
	memset(tab, 0, sizeof(*tab));
	store_relaxed(&tab->refs, 1u); /* published by the caller */
	return tab;
}

int fd_table_create(struct slot *self, struct fd_table **out)
{
	*out = table_make(self);
	return *out ? 0 : -ENOMEM;
}

void fd_table_share(struct slot *self, struct fd_table *tab)
{
	(void)self;
	store_release(&tab->sole, 0u); /* before the second task exists; see fd_table_is_sole */
	add_acq_rel(&tab->refs, 1u);
}

void fd_table_set_users(struct slot *self, struct fd_table *tab, uint32_t users)
{
	bool sole = users == 1 && load_acquire(&tab->refs) == 1; /* pairs with fd_table_leave */

	store_relaxed(&tab->users, users); /* for `shelf fds` */
	/* release: what we did under `sole` before the next user exists; see fd_table_is_sole */
	store_release(&tab->sole, sole ? self->locker.id : 0u);
}

/* ---- fork ----------------------------------------------------------------------------------- */

/* Under the lock of `src`: its references keep the files alive while they are counted. */
static int copy_one_locked(struct slot *self, struct fd_table *dst, unsigned fd, uint64_t word)
{
	struct fd_file *file = fd_word_file(word);
	atomic_u64 *to;

	fd_intent_note(self, FD_ARG_NUMBER, fd);
	to = fd_map_word_locked(self, dst, fd);
	if (!to)
		return -ENOMEM;
	fd_ref_take(file);
	tracked_store(
		to,
		fd_word_make(file, (unsigned)word)); /* the record finds it there and drops it */
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
			err = copy_one_locked(self, dst, fd, word);
	}
	return err;
}

static void drop_put(struct slot *self, void *ctx, int fd, struct fd_file *file)
{
	(void)ctx, (void)fd;
	fd_put(self, file);
}

int fd_table_copy(struct slot *self, struct fd_table *src, struct fd_table **out)
{
	struct fd_table *dst = table_make(self);
	bool begun;
	int err;

	*out = NULL;
	if (!dst)
		return -ENOMEM;
	fd_table_lock(self, src);
	begun = fd_intent_begin(self, INTENT_FD_COPY, dst, -1, (struct fd_file *)src);
	err = copy_all_locked(self, src, dst);
	fd_intent_end(self, begun);
	fd_table_unlock(self, src);
	if (err)
		fd_table_leave(self, dst, drop_put, NULL);
	else
		*out = dst;
	return err;
}

/* ---- leave ------------------------------------------------------------------------------------ */

void fd_table_retire_fn(struct slot *self, struct retired *r)
{
	struct fd_table *tab = container_of(r, struct fd_table, retired);

	fd_map_free(self, tab);
	mem_free(self, tab, sizeof(*tab));
}

/* Numbers that dead threads had reserved: free again.  The last one out need not. */
static void cancel_dead(struct slot *self, struct fd_table *tab)
{
	unsigned fd;

	for (fd = fd_map_next_used(tab, 0); fd < FD_NUMBER_MAX;
	     fd = fd_map_next_used(tab, fd + 1)) {
		uint64_t word = fd_word_load(tab, (int)fd);

		if (word & FD_WORD_RESERVED && !slot_alive(self->seg, (uint32_t)(word >> 32)))
			fd_cancel(self, tab, (int)fd);
	}
}

static void drop_all(struct slot *self, struct fd_table *tab, fd_drop_fn *drop, void *ctx)
{
	struct fd_file *file;
	int fd;

	for (fd = fd_next_open(self, tab, 0); fd >= 0; fd = fd_next_open(self, tab, fd + 1))
		if (!fd_remove(self, tab, fd, &file))
			drop(self, ctx, fd, file);
}

/* One user less unless we are the last. */
static bool leave_others(struct fd_table *tab)
{
	uint32_t refs = load_acquire(&tab->refs); /* pairs with the CAS of the others that left */

	while (refs > 1)
		if (cas_acq_rel(&tab->refs, &refs, refs - 1))
			return true;
	return false;
}

/* Files first, while we still count as a user: who takes over a death in between leaves again. */
void fd_table_leave(struct slot *self, struct fd_table *tab, fd_drop_fn *drop, void *ctx)
{
	bool begun;

	if (load_acquire(&tab->refs) > 1) /* pairs with leave_others */
		cancel_dead(self, tab);
	if (leave_others(tab))
		return;
	drop_all(self, tab, drop, ctx);
	begun = fd_intent_begin(self, INTENT_FD_CLOSE, tab, -1, NULL);
	tracked_store(&tab->refs, 0u); /* what recovery looks at */
	if (begun)
		intent_step(self, FD_STEP_HANDED);
	epoch_retire(self, &tab->retired, RETIRE_FD_TABLE, 0);
	fd_intent_end(self, begun);
}

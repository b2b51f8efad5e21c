/* SPDX-License-Identifier: MIT */
/*
 * dentry.c - the entries of one directory: its hash and its index.
 *
 * Data: inode.dir (table, index, next_cookie) and struct dentry.
 * Protection: changed under the directory's lock; read in a section.
 * Shared writes of a lookup: none.
 * Progress: lookups wait-free (bounded by the chain), but for name_seq, which the callers check.
 * Growing: the new table chains the entries through the other one of their two links, so that readers of the
 * old one go on undisturbed, and is published by one store.  The link it uses was last used by the table
 * before the old one: if a reader of that may still be there (the old one is younger than a grace period) the
 * directory waits with growing, and if it has got far too small by then, it grows inside name_seq, which
 * makes such readers look again.  Chains have no cycle at any moment: new links lead to entries moved before.
 * Cookies: the index restarts when a directory gets empty, and falls back when the last entry goes, so that
 * temporary files do not make it tall.  A position means "all entries below it have been seen", so it
 * stays valid: an entry that survives keeps its cookie.
 * Limits: at most 262,140 buckets (2 MiB); beyond that chains get longer.
 */
#include "vfs/lookup.h"
#include "vfs/vfs_priv.h"

#include "base/hash.h"
#include "segment/hand.h"

/* Bytes of a table: what the allocator hands out without waste. */
static const uint32_t table_sizes[] = { 64, 192, 576, 2048, 8192, 32768, 131072, 524288, 2097152 };
#define TABLE_CLASSES ((unsigned)ARRAY_SIZE(table_sizes))
_Static_assert(sizeof(struct dir_table) == 32, "the smallest table is one line");
_Static_assert(offsetof(struct dir_table, retired) == 0, "RETIRE_MEM frees from there");
_Static_assert(offsetof(struct dentry, name) == 64, "short names fit CACHE_128");

static uint32_t table_buckets(unsigned cls)
{
	return (uint32_t)((table_sizes[cls] - sizeof(struct dir_table)) / sizeof(void *));
}

size_t dentry_table_bytes(const struct dir_table *t)
{
	size_t bytes = sizeof(*t) + (size_t)t->buckets * sizeof(void *);
	unsigned cls;

	for (cls = 0; cls < TABLE_CLASSES; cls++)
		if (table_sizes[cls] == bytes)
			return bytes;
	return 0;
}

static unsigned table_class(const struct dir_table *t)
{
	unsigned cls = 0;

	while (table_buckets(cls) != t->buckets)
		cls++;
	return cls;
}

struct dentry *dentry_find_epoch(struct inode *dir, uint32_t hash, const char *name, size_t len)
{
	struct component c = {
		.name = name,
		.len = len,
		.hash = (uint64_t)hash << 32,
		.tail = len % 8 ? hash_load_tail(name + len / 8 * 8, len % 8) : 0,
	};
	struct inode *inode;

	return dentry_find_component(dir, &c, &inode);
}

struct dentry *dentry_find_locked(struct inode *dir, uint32_t hash, const char *name, size_t len)
{
	return dentry_find_epoch(dir, hash, name, len);
}

uint32_t dentry_hash(struct slot *self, const char *name, size_t len)
{
	return (uint32_t)(name_hash(self->seg->hdr->hash_seed, name, len) >> 32);
}

uint64_t dir_entries(struct inode *dir)
{
	return (load_relaxed(&dir->size) - DIR_EMPTY_SIZE) / DIR_ENTRY_SIZE; /* relaxed: lock held, or a snapshot */
}

/* ---- memory -------------------------------------------------------------------------- */

static enum cache_id dentry_cache(size_t len)
{
	return len <= DENTRY_SHORT_NAME ? CACHE_128 : CACHE_384;
}

static void dentry_set_name(struct dentry *d, const char *name, size_t len)
{
	uint64_t *to = (uint64_t *)(void *)d->name; /* 64 bytes into an aligned object */
	size_t left = len;

	for (; left >= 8; left -= 8, name += 8)
		*to++ = hash_load8(name);
	*to = left ? hash_load_tail(name, left) : 0;
}

struct dentry *dentry_new(struct slot *self, const char *name, size_t len, uint32_t hash, int *k)
{
	struct dentry *d = cache_alloc_noted(self, dentry_cache(len), k);

	if (!d)
		return NULL;
	store_relaxed(&d->inode, NULL); /* published by chain_insert */
	d->parent = NULL;
	d->cookie = 0;
	d->hash = hash;
	d->len = (uint16_t)len;
	dentry_set_name(d, name, len);
	return d;
}

void dentry_noted(struct slot *self, int *k)
{
	hand_forget(self, *k);
	*k = -1;
}

void dentry_return(struct slot *self, struct dentry *d, int *k)
{
	*k = ledger_add(self, d, LEDGER_MEM);
	kill_point();
}

void dentry_free(struct slot *self, struct dentry *d, int k)
{
	kill_point();
	cache_free_noted(self, dentry_cache(d->len), d, k);
}

static void dentry_free_retired(struct slot *self, struct retired *r)
{
	struct dentry *d = container_of(r, struct dentry, retired);

	cache_free(self, dentry_cache(d->len), d);
}

int dentry_retire_note(struct slot *owner, struct dentry *d)
{
	return retire_note(owner, &d->retired, RETIRE_DENTRY, 0);
}

void dentry_retire_noted(struct slot *self, struct dentry *d, int k)
{
	epoch_retire_noted(self, &d->retired, k);
}

/* ---- the hash ---------------------------------------------------------------------------- */

static void chain_insert(struct dir_table *t, struct dentry *d)
{
	atomic_ptr(struct dentry) *bucket = &t->bucket[table_place(t, d->hash)];

	store_release(&d->next[t->which], load_relaxed(bucket)); /* a reader of an old table may be on it; relaxed: lock held */
	tracked_store(bucket, d); /* pairs with dentry_find_epoch */
}

static void chain_remove(struct dir_table *t, struct dentry *d)
{
	atomic_ptr(struct dentry) *at = &t->bucket[table_place(t, d->hash)];
	struct dentry *x;

	/* Relaxed: lock held. */
	for (; (x = load_relaxed(at)); at = &x->next[t->which]) {
		if (x != d)
			continue;
		tracked_store(at, load_relaxed(&d->next[t->which])); /* d keeps its link for those who stand on it */
		return;
	}
}

static uint64_t epoch_now(struct slot *self)
{
	return load_acquire(&epoch_root_of(self)->global); /* pairs with the advance: readers before it are gone */
}

/* No reader of the table before this one is left. */
static bool table_settled(struct slot *self, const struct dir_table *t)
{
	return !t || epoch_now(self) >= t->born + 2;
}

static struct dir_table *table_new(struct slot *self, unsigned cls, uint32_t which, int *k)
{
	struct dir_table *t = mem_alloc_noted(self, table_sizes[cls], k);
	uint32_t i;

	if (!t)
		return NULL;
	t->born = UINT64_MAX - 2; /* never settled, should we die before table_publish() says when */
	t->buckets = table_buckets(cls);
	t->which = which;
	for (i = 0; i < t->buckets; i++)
		store_relaxed(&t->bucket[i], NULL); /* published by table_publish */
	return t;
}

/* The new links.  Stores are releases: a reader of the table before last may be on them. */
static void table_fill(struct dir_table *t, struct dir_table *old)
{
	uint32_t i;

	for (i = 0; i < old->buckets; i++) {
		struct dentry *d = load_relaxed(&old->bucket[i]); /* relaxed: lock held */

		for (; d; d = load_relaxed(&d->next[old->which])) {
			atomic_ptr(struct dentry) *bucket = &t->bucket[table_place(t, d->hash)];

			store_release(&d->next[t->which], load_relaxed(bucket)); /* pairs with dentry_find_epoch */
			store_release(bucket, d);
		}
	}
}

/* `k`: where the ledger has the new one. */
static void table_publish(struct slot *self, struct inode *dir, struct dir_table *t, int k, struct dir_table *old)
{
	int gone = -1;

	if (old)
		gone = retire_begin(self, &dir->dir.table, (uintptr_t)t, hand_bit(k), &old->retired, RETIRE_MEM,
				    table_sizes[table_class(old)]);
	else
		hand_begin(self, &dir->dir.table, (uintptr_t)t, hand_bit(k), 0);
	/* A full exchange: the epoch is read behind it.  Pairs with dentry_find_epoch. */
	(void)xchg_acq_rel(&dir->dir.table, t);
	kill_point();
	hand_end(self, hand_bit(k));
	t->born = epoch_now(self);
	if (old)
		epoch_retire_noted(self, &old->retired, gone);
}

static bool table_resize(struct slot *self, struct inode *dir, struct dir_table *old, unsigned cls)
{
	int k;
	struct dir_table *t = table_new(self, cls, old ? !old->which : 0, &k);
	bool settled = table_settled(self, old);

	if (!t)
		return false;
	if (!settled)
		seq_write_begin(&dir->dir.name_seq); /* readers of the table before last look again */
	if (old)
		table_fill(t, old);
	table_publish(self, dir, t, k, old);
	if (!settled)
		seq_write_end(&dir->dir.name_seq);
	return true;
}

/* Room for one more.  Only the first table must be had: a small one is slow, not wrong. */
static int table_reserve(struct slot *self, struct inode *dir)
{
	struct dir_table *t = load_relaxed(&dir->dir.table); /* relaxed: lock held */
	uint64_t n = dir_entries(dir) + 1;

	if (likely(t && n <= t->buckets))
		return 0;
	if (!t)
		return table_resize(self, dir, NULL, 0) ? 0 : -ENOSPC;
	if (t->buckets != table_buckets(TABLE_CLASSES - 1) && (table_settled(self, t) || n > 4 * (uint64_t)t->buckets))
		(void)table_resize(self, dir, t, table_class(t) + 1);
	return 0;
}

bool dentry_waits_locked(struct inode *dir)
{
	struct dir_table *t = load_relaxed(&dir->dir.table); /* relaxed: lock held */
	uint64_t entries = dir_entries(dir);

	return !(entries & 15) && t && entries > t->buckets && entries % ALIGN_UP(t->buckets / 4, 16u) < 16;
}

static void table_shrink(struct slot *self, struct inode *dir, struct dir_table *t)
{
	if (t->buckets > table_buckets(1) && dir_entries(dir) * 16 < t->buckets && table_settled(self, t))
		(void)table_resize(self, dir, t, table_class(t) - 1);
}

/* ---- entries ------------------------------------------------------------------------------- */

static uint64_t dentry_place(const struct dentry *d)
{
	return d->cookie - DIR_FIRST_COOKIE;
}

int dentry_reserve_locked(struct slot *self, struct inode *dir, struct dentry *d)
{
	int err = table_reserve(self, dir);

	if (err)
		return err;
	d->parent = dir;
	d->cookie = load_relaxed(&dir->dir.next_cookie); /* relaxed: lock held */
	err = radix_store(self, &dir->dir.index, dentry_place(d), (uint64_t)d, NULL);
	if (err)
		return err;
	tracked_store(&dir->dir.next_cookie, d->cookie + 1); /* only lock holders read it */
	chain_insert(load_relaxed(&dir->dir.table), d); /* relaxed: lock held */
	return 0;
}

static void cookie_fall_back(struct inode *dir, struct dentry *d)
{
	/* Relaxed: lock held. */
	if (!load_relaxed(&dir->dir.index.root))
		tracked_store(&dir->dir.next_cookie, DIR_FIRST_COOKIE);
	else if (load_relaxed(&dir->dir.next_cookie) == d->cookie + 1)
		tracked_store(&dir->dir.next_cookie, d->cookie);
}

void dentry_detach_locked(struct slot *self, struct inode *dir, struct dentry *d)
{
	struct dir_table *t = load_relaxed(&dir->dir.table); /* relaxed: lock held */

	if (t)
		chain_remove(t, d);
	if (radix_lookup_epoch(&dir->dir.index, dentry_place(d)) == (uint64_t)d) /* not yet, if repeated */
		radix_erase(self, &dir->dir.index, dentry_place(d));
	cookie_fall_back(dir, d);
	if (t)
		table_shrink(self, dir, t);
}

/* ---- the end of a directory ---------------------------------------------------------------- */

static void dentry_drop_left(struct slot *self, void *ctx, uint64_t index, uint64_t value)
{
	(void)ctx, (void)index;
	epoch_retire(self, &((struct dentry *)value)->retired, RETIRE_DENTRY, 0); /* reserved by a thread that died */
}

static void dir_drop(struct slot *self, struct inode *dir)
{
	struct dir_table *t = xchg_acq_rel(&dir->dir.table, NULL); /* walks with a cwd here may be in it */

	radix_erase_range(self, &dir->dir.index, 0, UINT64_MAX, dentry_drop_left, NULL);
	if (t)
		epoch_retire(self, &t->retired, RETIRE_MEM, table_sizes[table_class(t)]);
}

void dentry_attach(void)
{
	retire_register(RETIRE_DENTRY, dentry_free_retired);
	inode_register_drop(S_IFDIR, dir_drop);
}

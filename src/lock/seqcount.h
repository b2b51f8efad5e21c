/* SPDX-License-Identifier: MIT */
/*
 * seqcount.h - sequence count: odd while a writer (who holds the object's lock)
 * is inside.  Readers read, then check; what they read in between may be torn
 * and must not be followed unless it is safe at any value (pages and nodes are).
 *
 * No fences, so that ThreadSanitizer sees every edge; on x86-64 each form below is a plain move.
 * What stands between begin and ok (end) must be one of two kinds:
 *
 *  words	Readers load_acquire(), writers store_release() each word (seq_load,
 *		seq_store).  A reader that sees a writer's word thereby sees
 *		the odd count stored before it, so its re-read differs; and an acquire
 *		load keeps the re-read behind it.  Right under C11.
 *  bytes	copy_bytes() and zero_bytes() of base/copy.h: assembly that the
 *		compiler keeps in its place ("memory") and sanitizers do not see.
 *		The order is the processor's: x86-64 reorders neither loads
 *		with loads nor stores with stores, `rep movsb` against
 *		other instructions included.
 *
 * A plain or relaxed access in between is a bug.
 * Progress: readers are lock-free (retry; callers take the lock after a bounded
 * number of retries), writers wait-free.  A writer that dies inside leaves the count odd: readers
 * fall back to the lock until the next writer, or seq_repair() by the recoverer, makes it even.
 */
#ifndef SHELF_LOCK_SEQCOUNT_H
#define SHELF_LOCK_SEQCOUNT_H

#include "base/atomic.h"

struct seqcount {
	atomic_u32 n;
};

#define seq_load(p) load_acquire(p) /* pairs with seq_store: new word => odd count at the re-read */
#define seq_store(p, v) store_release((p), (v)) /* pairs with seq_load */

static inline uint32_t seq_read_begin(struct seqcount *s)
{
	return load_acquire(&s->n); /* pairs with seq_write_end: its data are visible */
}

/* Was it even at the start, and is it unchanged? */
static inline bool seq_read_ok(struct seqcount *s, uint32_t begin)
{
	fence_compiler(); /* behind a copy_bytes() */
	/* Relaxed: kept behind the data by the data's own acquire loads. */
	return !(begin & 1) && load_relaxed(&s->n) == begin;
}

/* Lock held.  An odd count here was left by a dead writer: it stays odd and still changes. */
static inline void seq_write_begin(struct seqcount *s)
{
	/* Relaxed: only the lock's holder writes it, and the data's release stores keep it before them. */
	store_relaxed(&s->n, (load_relaxed(&s->n) + 1) | 1);
	fence_compiler(); /* before a copy_bytes() */
}

static inline void seq_write_end(struct seqcount *s)
{
	fence_compiler(); /* behind a copy_bytes() */
	store_release(&s->n, load_relaxed(&s->n) + 1); /* pairs with seq_read_begin */
}

/* Lock held (or the dead writer's slot claimed), data made whole again. */
static inline void seq_repair(struct seqcount *s)
{
	if (load_relaxed(&s->n) & 1) /* relaxed: no other writer */
		seq_write_end(s);
}

#endif

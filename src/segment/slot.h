/* SPDX-License-Identifier: MIT */
/*
 * slot.h - one page for each thread that runs on the segment: who it is, its
 * epoch, what it is in the middle of (intent), the references it holds (ledger),
 * its private stock of pages and objects, and its bags of retired objects.
 *
 * Protection: [o] written by the owner alone; others read.  After the owner's
 * death whoever claims `id.state` by CAS owns all of it.
 * The epoch line is the only one a reader writes.
 */
#ifndef SHELF_SEGMENT_SLOT_H
#define SHELF_SEGMENT_SLOT_H

#include "segment/segment.h"

#define SLOT_LEDGER 32
#define SLOT_PAGES 64
#define SLOT_OBJECTS 24
#define INTENT_ARGS 14

/* What a dead thread was doing: op is written last at the start and cleared last at the end. */
struct intent {
	atomic_u32 op; /* [o] enum of intent_ops.h; 0 = nothing */
	atomic_u32 step; /* [o] */
	atomic_u64 arg[INTENT_ARGS]; /* [o] */
};

/* Embedded in every object that is freed through an epoch; readers never look at it. */
struct retired {
	struct retired *next;
	uint32_t type; /* enum retire_type: which function frees it */
	uint32_t aux;
};

struct bag {
	struct retired *head;
	uint64_t epoch;
	uint64_t count;
};

struct magazine {
	uint32_t count;
	uint32_t pad;
	void *obj[SLOT_OBJECTS];
};

enum slot_state { SLOT_NONE, SLOT_LIVE, SLOT_RECOVERING, SLOT_IDLE };

struct slot {
	/* line 0: the epoch line */
	_Alignas(CACHE_LINE) atomic_u64 epoch; /* [o] 0 outside; else (global epoch << 1) | 1 */
	uint32_t nest; /* [o] */
	uint32_t pad0;

	/* line 1: who */
	_Alignas(CACHE_LINE) atomic_u32 state; /* enum slot_state, by CAS */
	uint32_t pid, tid, pad1; /* [o] */
	uint64_t start_time; /* [o] field 22 of /proc/PID/stat: tells a reused pid apart */
	struct segment *seg; /* [o] process-local */
	struct locker locker; /* [o] */
	uint64_t ino_next, ino_end; /* [o] private range of inode numbers */

	_Alignas(CACHE_LINE) struct intent intent;

	/* counted references taken on behalf of calls in progress: (object address | kind) */
	_Alignas(CACHE_LINE) atomic_u64 ledger[SLOT_LEDGER];

	_Alignas(CACHE_LINE) struct bag bags[3];
	uint32_t retired_since; /* [o] since the last try to advance */

	_Alignas(CACHE_LINE) uint32_t page_count; /* [o] */
	void *pages[SLOT_PAGES];

	_Alignas(CACHE_LINE) struct magazine mag[CACHE_IDS];
};
_Static_assert(sizeof(struct slot) <= PAGE_BYTES, "a slot is one page");

/* Warm path of slot_self. */
struct slot_tls {
	struct segment *seg;
	struct slot *slot;
};
extern __thread struct slot_tls slot_tls;

static inline struct slot *slot_self_fast(struct segment *seg)
{
	return likely(slot_tls.seg == seg) ? slot_tls.slot : slot_self_slow(seg);
}

/*
 * Multi-step updates: intent_begin, steps that may each be repeated, intent_end.
 * Steps that change shared structure store through tracked_store()/tracked_cas(),
 * so that a test build can kill the process at its n-th such store, for every n.
 */
void intent_begin(struct slot *self, uint32_t op, unsigned nargs, const uint64_t *args);
static inline void intent_set(struct slot *self, unsigned k, uint64_t v)
{
	store_release(&self->intent.arg[k], v); /* read by whoever recovers, after it saw the owner dead */
}
static inline void intent_step(struct slot *self, uint32_t step)
{
	store_release(&self->intent.step, step);
}
void intent_end(struct slot *self);
/* Upper layers register what finishes or undoes an operation; called in the process that takes over. */
typedef void intent_recover_fn(struct slot *self, struct intent *dead);
void intent_register(uint32_t op, intent_recover_fn *fn);

#ifdef SHELF_KILL_POINTS
void kill_point(void); /* counts, and raises SIGKILL at the chosen n */
#else
static inline void kill_point(void)
{
}
#endif

#define tracked_store(p, v)                                                                        \
	do {                                                                                       \
		store_release((p), (v));                                                           \
		kill_point();                                                                      \
	} while (0)
#define tracked_add(p, v)                                                                          \
	({                                                                                         \
		typeof(load_relaxed(p)) tracked_old_ = add_acq_rel((p), (v));                      \
		kill_point();                                                                      \
		tracked_old_;                                                                      \
	})
#define tracked_cas(p, expected, desired)                                                          \
	({                                                                                         \
		bool tracked_ok_ = cas_acq_rel((p), (expected), (desired));                        \
		kill_point();                                                                      \
		tracked_ok_;                                                                       \
	})

enum ledger_kind { LEDGER_FILE = 1, LEDGER_INODE = 2, LEDGER_TABLE = 3 };
/* Note a counted reference; -EAGAIN when the ledger is full (nested calls: never in practice). Returns the index. */
int ledger_add(struct slot *self, void *obj, enum ledger_kind kind);
void ledger_del(struct slot *self, void *obj);

#endif

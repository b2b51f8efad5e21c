/* SPDX-License-Identifier: MIT */
/*
 * slot.h - one page for each thread that runs on the segment: who it is, its
 * epoch, what it is in the middle of (intent), the references it holds (ledger),
 * its private stock of pages and objects, and its bags of retired objects.
 *
 * Protection: [o] written by the owner alone; others read.  After the owner's
 * death whoever holds `recovery` owns all of it.
 * The epoch line is the only one a reader writes.
 */
#ifndef SHELF_SEGMENT_SLOT_H
#define SHELF_SEGMENT_SLOT_H

#include "base/assert.h"
#include "base/points.h"
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
	struct retired *tail; /* meaningful while head is not NULL */
	uint64_t epoch;
	uint64_t count;
};

/*
 * Where a free object beyond the magazine has the next one's address.  Until it is found by that, a death has whatever frees
 * the object do so again: that must not look there.
 */
#define OBJECT_LINK 120u

static inline void **object_link(const void *obj)
{
	return (void **)((uintptr_t)obj + OBJECT_LINK);
}

struct magazine {
	atomic_u32 count; /* [o] */
	atomic_u32 more_count; /* [o] a death may leave it wrong by one */
	void *more; /* [o] free objects beyond, linked by OBJECT_LINK: magazine.c */
	void *obj[SLOT_OBJECTS];
};

/* In the low 8 bits of slot.state; SLOT_CLAIMING has the claimer's tid above them. */
enum slot_state { SLOT_NONE, SLOT_LIVE, SLOT_CLAIMING, SLOT_IDLE };

/* Objects on their way between a magazine and a slab: those in `mask` of slab `frame` - 1 are neither. */
struct slab_move {
	atomic_u64 frame; /* [o] 0: nothing on its way; set and cleared under the class's lock */
	atomic_u64 mask; /* [o] */
};

/* One store that changes whose the things in some ledger entries are: hand.h. */
struct handover {
	atomic_u64 where; /* [o] the address stored to; 0: none is under way */
	atomic_u64 word; /* [o] what is there once it is done */
	atomic_u64 entries; /* [o] bits of those that are given up with it; from bit 32 on: that are had from it on */
	atomic_u64 change; /* where it is a tally: enum hand_change, and the change's number; never reset; others set HAND_DONE: tally.h */
};

struct slot {
	/* line 0: the epoch line */
	_Alignas(CACHE_LINE) atomic_u64 epoch; /* [o] 0 outside; else (global epoch << 1) | 1 */
	uint32_t nest; /* [o] */
	uint32_t reclaiming; /* [o] inside a retire function: what it retires waits for the next batch */
	atomic_u64 passed; /* [o] outside of sections since the global epoch became this: epoch/advance.c, race H */
	atomic_u32 asleep; /* not 0: the next entry fences and clears it; set by reclaimers, race I */
	uint32_t owes; /* [o] a batch came due where nothing may be taken over, and somebody holds it up: epoch_catch_up() */

	/* line 1: who */
	_Alignas(CACHE_LINE) atomic_u32 state; /* slot_state_of() reads it; changed by CAS */
	struct lock recovery; /* whoever finishes what the dead owner left */
	atomic_u32 pid, tid; /* [o] */
	atomic_u64 start_time; /* [o] field 22 of /proc/PID/stat: tells a reused pid apart */
	atomic_u32 layers; /* [o] intents that its process knows; kept while bags are left: only who knows them all frees them */
	struct segment *seg; /* [o] process-local */
	uint64_t ino_next, ino_end; /* [o] private range of inode numbers */
	/* [o] made less freed by all owners of this slot so far: never reset; vfs and fd sum them; count.h */
	atomic_i64 inodes, files;

	_Alignas(CACHE_LINE) struct locker locker; /* [o] */

	_Alignas(CACHE_LINE) struct intent intent;

	/* what calls in progress have in their hands: (address | kind) */
	_Alignas(CACHE_LINE) atomic_u64 ledger[SLOT_LEDGER];
	struct handover hand;

	_Alignas(CACHE_LINE) struct bag bags[3];
	struct retired *freeing; /* [o] out of its bag, and not free yet */
	uint32_t retired_since; /* [o] since the last try to advance by passing */
	uint32_t retired_unmoved; /* [o] before that, since the global epoch was last seen to move */
	uint32_t batch, pass; /* [o] slot_batch(), and a part of it, when last asked; 0: not yet */

	/* The stock of pages: the owner inside `busy`, or the holder of `steal` once busy is 0. */
	_Alignas(CACHE_LINE) atomic_u64 busy; /* [o] bit 0: inside; above: the run being moved, its order in bits 1..5 */
	struct lock steal; /* somebody empties this stock: src/segment/steal.c */
	atomic_u32 page_count;
	atomic_u32 reserved; /* [o] pages promised by page_reserve() */
	uint32_t drains; /* [o] */
	void *pages[SLOT_PAGES];

	_Alignas(CACHE_LINE) struct slab_move move;

	struct magazine mag[CACHE_IDS];
};
_Static_assert(sizeof(struct slot) <= PAGE_BYTES, "a slot is one page");

static inline enum slot_state slot_state_of(struct slot *s)
{
	return (enum slot_state)(load_acquire(&s->state) & 0xff); /* pairs with the claim's store of SLOT_LIVE */
}

static inline uint32_t slot_id(const struct slot *s)
{
	return s->locker.id;
}

/*
 * How many retired objects a thread lets wait, and freed ones it keeps: SLOT_BATCH_ALL over all slots, between the two
 * bounds, and no more than a small segment bears.
 */
#define SLOT_BATCH_MIN 256u
#define SLOT_BATCH_MAX 2048u
#define SLOT_BATCH_ALL 16384u
unsigned slot_batch(struct segment *seg);

/* cache_alloc() when the magazine is empty. */
void *cache_alloc_slow(struct slot *self, enum cache_id id);

/* An object of that size, its contents undefined; NULL: full. */
static inline void *cache_alloc(struct slot *self, enum cache_id id)
{
	struct magazine *m = &self->mag[id];
	uint32_t n = load_relaxed(&m->count); /* [o] */

	if (fail_point(FAIL_ALLOC))
		return NULL;
	if (unlikely(!n))
		return cache_alloc_slow(self, id);
	store_release(&m->count, n - 1); /* read after our death */
	return m->obj[n - 1];
}

/* Is the object that `p` lies in in use, and not in the magazines of `gone`, who is dead?  Then it was in its hands. */
bool object_in_hand(struct segment *seg, struct slot *gone, const void *p);

/* Warm path of slot_self. */
struct slot_tls {
	struct segment *seg;
	struct slot *slot;
};
extern __thread struct slot_tls slot_tls __attribute__((tls_model("initial-exec")));

static inline struct slot *slot_self_fast(struct segment *seg)
{
	return likely(slot_tls.seg == seg) ? slot_tls.slot : slot_self_slow(seg);
}

/*
 * Multi-step updates: intent_begin, steps that may each be repeated, intent_end.
 * Steps that change shared structure store through tracked_store()/tracked_cas(),
 * so that a test build can kill the process at its n-th such store, for every n.
 */
static inline_always void intent_begin(struct slot *self, uint32_t op, unsigned nargs, const uint64_t *args);
static inline void intent_set(struct slot *self, unsigned k, uint64_t v)
{
	store_release(&self->intent.arg[k], v); /* read by whoever recovers, after it saw the owner dead */
}
static inline void intent_step(struct slot *self, uint32_t step)
{
	store_release(&self->intent.step, step);
}
static inline void intent_end(struct slot *self);
/* Upper layers register what finishes or undoes an operation; called in the process that takes over. */
typedef void intent_recover_fn(struct slot *self, struct intent *dead);
void intent_register(uint32_t op, intent_recover_fn *fn);
/* One that holds no lock and whose recovery takes locks or drops references: run by slot_takeover() only. */
void intent_register_late(uint32_t op, intent_recover_fn *fn);
void slot_note_layers(struct slot *self);
/* The slots of this process may be older than what it has registered since. */
void slots_note_layers(struct segment *seg);
/* Does this process know all that the owner of `s` could have been doing? */
bool slot_layers_known(struct slot *s);
static inline struct slot *intent_slot(struct intent *i)
{
	return container_of(i, struct slot, intent); /* the dead thread's slot, for lock_adopt() */
}

/*
 * A dead thread's slot is taken over in two parts.  slot_recover(): allocator repaired, intent finished
 * or undone, locks released; runs wherever a waiter finds the death, so perhaps under locks.  An intent
 * must have been begun after its locks were taken and ended before they are released; then its recovery
 * meets nobody, and gets each of them with lock_adopt().
 * slot_reap(): for every dead slot the rest too, and the slot is free again: functions given to
 * slot_register_gone() (ledger, bags), then stock and magazines.  The caller holds no lock and is
 * in no section.  Returns how many slots were freed.
 */
unsigned slot_reap(struct slot *self);
/* The same for threads whose number the kernel does not know any more: cheap, misses zombies.  For attach. */
unsigned slot_reap_quick(struct slot *self);
/* The same for the threads of one process. */
void slot_reap_process(struct slot *self, uint32_t pid);
/*
 * Like slot_reap() for one slot.  False: it is alive, or not in use, or its process knew layers that this one does not
 * (a process that attached for descriptor tables alone): then it is left to one that does.  Until that comes the
 * dead thread's inodes stay locked and its epoch stays; but locks that this process can wait for are taken from it.
 */
bool slot_takeover(struct slot *self, uint32_t id);
/* Called in the reverse order of registration, upper layers first.  gone == self at a thread's orderly exit. */
typedef void slot_gone_fn(struct slot *self, struct slot *gone);
void slot_register_gone(slot_gone_fn *fn);

#ifdef SHELF_KILL_POINTS
void kill_point(void); /* counts, and raises SIGKILL at the chosen n */
/* From now on, die at the n-th; 0: never.  At the start n is $SHELF_KILL_AT. */
void kill_point_arm(uint64_t n);
uint64_t kill_point_count(void); /* since the last kill_point_arm() */
#else
static inline void kill_point(void)
{
}
#endif

/* [o]; published by op */
static inline_always void intent_arg_first(struct slot *self, unsigned nargs, const uint64_t *args, unsigned k)
{
	if (k < nargs)
		store_relaxed(&self->intent.arg[k], args[k]);
}

/* Inlined and unrolled: with a constant `nargs` the arguments go from registers to the record. */
static inline_always void intent_begin(struct slot *self, uint32_t op, unsigned nargs, const uint64_t *args)
{
	shelf_assert(load_relaxed(&self->intent.op) == 0); /* [o]: updates do not nest */
	shelf_assert(nargs <= INTENT_ARGS);
	intent_arg_first(self, nargs, args, 0);
	intent_arg_first(self, nargs, args, 1);
	intent_arg_first(self, nargs, args, 2);
	intent_arg_first(self, nargs, args, 3);
	intent_arg_first(self, nargs, args, 4);
	intent_arg_first(self, nargs, args, 5);
	intent_arg_first(self, nargs, args, 6);
	intent_arg_first(self, nargs, args, 7);
	intent_arg_first(self, nargs, args, 8);
	intent_arg_first(self, nargs, args, 9);
	intent_arg_first(self, nargs, args, 10);
	intent_arg_first(self, nargs, args, 11);
	intent_arg_first(self, nargs, args, 12);
	intent_arg_first(self, nargs, args, 13);
	_Static_assert(INTENT_ARGS == 14, "one line for each above");
	store_relaxed(&self->intent.step, 0); /* published by op */
	store_release(&self->intent.op, op); /* pairs with recover_intent, through our death */
	kill_point();
}

static inline void intent_end(struct slot *self)
{
	kill_point();
	store_release(&self->intent.op, 0); /* the update is whole before the record goes */
}

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

/*
 * The first three and LEDGER_PLACE are counted references; LEDGER_MEM and LEDGER_PAGE: an object or a run of pages of
 * nobody else's (a page that was freed may be a slab by now: so they are told apart); LEDGER_RETIRED: to be retired.
 */
enum ledger_kind { LEDGER_FILE = 1, LEDGER_INODE, LEDGER_TABLE, LEDGER_MEM, LEDGER_PAGE, LEDGER_RETIRED, LEDGER_PLACE };
/* Note it; -EAGAIN when the ledger is full (nested calls: never in practice). Returns the index. */
/* An entry that is free; -EAGAIN: none. */
int ledger_free(struct slot *self);
int ledger_add_slow(struct slot *self, void *obj, enum ledger_kind kind);
void ledger_del_slow(struct slot *self, void *obj);

static inline int ledger_add(struct slot *self, void *obj, enum ledger_kind kind)
{
	if (unlikely(load_relaxed(&self->ledger[0]))) /* [o] */
		return ledger_add_slow(self, obj, kind);
	store_release(&self->ledger[0], (uint64_t)(uintptr_t)obj | kind); /* read after our death */
	return 0;
}

/* Recovery: `dead` is to owe it, unless it does already; whoever takes the slot over pays. */
void ledger_inherit(struct slot *self, struct slot *dead, void *obj, enum ledger_kind kind);

/* Objects are 64-byte aligned.  Of two equal entries either will do. */
static inline void ledger_del(struct slot *self, void *obj)
{
	if (likely((load_relaxed(&self->ledger[0]) & ~UINT64_C(7)) == (uintptr_t)obj)) /* [o] */
		store_release(&self->ledger[0], 0); /* read after our death */
	else
		ledger_del_slow(self, obj);
}

#endif

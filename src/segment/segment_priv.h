/* SPDX-License-Identifier: MIT */
/*
 * segment_priv.h - what the files of this folder share.
 *
 * Primary state is in the frames: one word says what a page is, and it
 * changes in one store.  Free lists, lists of slabs and all counters can be
 * recomputed from the frames when a process died while it held a lock.
 *
 * Legend: [P] alloc.lock, [G] alloc.grow, [C] the class's lock, [o] owner of the slot,
 * [1] set before publication.  Order: grow, then lock (both LOCK_LEAF, by address);
 * a class's lock is never held together with either.
 */
#ifndef SHELF_SEGMENT_SEGMENT_PRIV_H
#define SHELF_SEGMENT_SEGMENT_PRIV_H

#include "base/bits.h"
#include "segment/header.h"
#include "segment/slot.h"

#define SEG_CHUNK_PAGES (SEG_CHUNK / PAGE_BYTES)
#define SEG_MIN_SIZE (4UL << 20)
#define SEG_SLOTS_DEFAULT 4096u
#define SEG_SLOTS_MAX 65000u
#define SEG_SLOTS_SPARE 4u /* slot.c: for claimers when all slots are taken */
#define SEG_NAME_MAX 200u
#define SEG_DIR_MAX 256u
#define SEG_PATH_MAX (SEG_DIR_MAX + SEG_NAME_MAX + 16)
#define SEG_WHY_MAX 256u

/* ---- shared state ---------------------------------------------------------------------- */

/* word: kind in bits 0..7, order 8..15, class + 1 16..23, owner's slot id 32..63 */
struct frame {
	atomic_u64 word; /* of a run's first page: [P] free, [o] cached, else whoever has the run */
	atomic_u64 map; /* [C] slab: bit n = object n is free */
	uint32_t next, prev; /* index + 1: free runs [P], slabs with free objects [C] */
	atomic_u32 link; /* of a page in use: its user's own, see page_link() */
	uint32_t pad;
};
_Static_assert(sizeof(struct frame) == 32, "two frames a line");
#define FRAMES_A_PAGE (PAGE_BYTES / sizeof(struct frame))

struct chunk_info {
	atomic_u32 committed; /* [G] pages from the chunk's start that have memory */
	uint32_t freed_at; /* [P] seconds; when the whole chunk became free */
	uint64_t stamp; /* [P] page_hooks.now() at that time */
};
#define INFOS_A_PAGE (PAGE_BYTES / sizeof(struct chunk_info))

struct run_list {
	uint32_t head, tail; /* index + 1; 0: none */
};

struct slab_class {
	_Alignas(CACHE_LINE) struct lock lock;
	struct run_list partial; /* [C] slabs with a free object, wholly free ones at the tail */
	uint32_t empties; /* [C] wholly free ones */
	uint32_t slabs; /* [C] */
};

struct alloc_state {
	/* read by all, seldom written */
	_Alignas(CACHE_LINE) atomic_u32 pressure; /* memory ran out: stocks stay small */
	atomic_u32 need_fence; /* sticky: a process could not register for membarrier */
	atomic_u32 slots_made; /* slots with memory: ids 1..slots_made */
	atomic_u32 chunks_made; /* [G] one past the highest chunk ever committed */
	atomic_u32 spares_made; /* spare slots with memory */
	atomic_u32 gate; /* alone.c */

	_Alignas(CACHE_LINE) struct lock grow;
	uint32_t first_partial; /* [G] no chunk below has uncommitted pages */
	atomic_u32 infos_made; /* [G] chunk_infos with memory */
	atomic_u64 committed; /* [G] pages */

	_Alignas(CACHE_LINE) struct lock lock;
	uint32_t whole; /* [P] free runs of a whole chunk */
	atomic_u64 free_pages; /* [P] in `runs` */
	struct run_list runs[PAGE_MAX_ORDER + 1]; /* [P] */

	struct slab_class classes[CACHE_IDS];
};
_Static_assert(sizeof(struct alloc_state) <= sizeof(((struct seg_header *)0)->alloc_state), "room in the header");
_Static_assert(offsetof(struct alloc_state, grow) < offsetof(struct alloc_state, lock), "lock order is by address");

/* ---- process-local state ----------------------------------------------------------------- */

struct seg_local {
	struct segment pub;
	struct alloc_state *alloc;
	struct frame *frames;
	struct chunk_info *infos;
	char *chunks;
	uint64_t pages; /* in the chunk area */
	unsigned stock; /* a thread's stock of pages holds at most this many */
	unsigned magazine[CACHE_IDS]; /* and its magazines this many objects */
	unsigned refs; /* attached so often in this process */
	bool attached;
	atomic_u64 *touched; /* touch.c */
	atomic_u32 huge_misses; /* commit_huge(): how often in a row there was no huge page */
	char dir[SEG_DIR_MAX];
	struct seg_local *next;
};

static inline struct seg_local *seg_local(const struct segment *seg)
{
	return container_of((struct segment *)(uintptr_t)seg, struct seg_local, pub);
}

static inline struct seg_local *slot_local(const struct slot *self)
{
	return seg_local(self->seg);
}

#define FRAME_NONE UINT32_MAX

static inline bool frame_has(const struct seg_local *sl, const void *p)
{
	return (uintptr_t)p - (uintptr_t)sl->chunks < sl->pages << PAGE_SHIFT;
}

static inline uint32_t frame_index(const struct seg_local *sl, const void *page)
{
	return (uint32_t)((uintptr_t)((const char *)page - sl->chunks) >> PAGE_SHIFT);
}

static inline void *frame_page(const struct seg_local *sl, uint32_t i)
{
	return sl->chunks + ((uint64_t)i << PAGE_SHIFT);
}

static inline uint64_t frame_word(enum page_kind kind, unsigned order, uint32_t owner)
{
	return (uint64_t)owner << 32 | order << 8 | kind;
}

static inline uint64_t frame_slab_word(enum cache_id id)
{
	return (uint64_t)(id + 1) << 16 | PAGE_SLAB;
}

static inline enum page_kind frame_kind(uint64_t word)
{
	return (enum page_kind)(word & 0xff);
}

static inline unsigned frame_order(uint64_t word)
{
	return word >> 8 & 0xff;
}

static inline uint32_t frame_owner(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static inline uint64_t frame_cached(const struct slot *owner)
{
	return frame_word(PAGE_CACHED, 0, owner->locker.id);
}

/* Lists of frames, linked by index; a torn list is rebuilt, never repaired. */
void run_push(struct seg_local *sl, struct run_list *l, uint32_t i);
void run_push_tail(struct seg_local *sl, struct run_list *l, uint32_t i);
void run_remove(struct seg_local *sl, struct run_list *l, uint32_t i);

/* buddy.c: all with alloc.lock held */
/* The frame gets `word`; with `noted` what it is goes into the ledger first.  FRAME_NONE: nothing. */
struct page_note {
	struct slot *self;
	int *k;
};
uint32_t buddy_take_locked(struct seg_local *sl, unsigned order, uint64_t word, const struct page_note *noted);
unsigned buddy_best_locked(struct seg_local *sl, unsigned wanted, bool *found);
void buddy_give_locked(struct seg_local *sl, uint32_t i, unsigned order);
void buddy_take_whole_locked(struct seg_local *sl, uint32_t i); /* a free run of a whole chunk off its list */
void buddy_rebuild_locked(struct seg_local *sl);

/* commit.c: memory behind addresses.  0 or -ENOSPC with nothing changed. */
int commit_open(struct seg_local *sl); /* the segment's file, by its name; -errno */
int commit_range(struct seg_local *sl, uint64_t offset, uint64_t bytes);
bool commit_huge(struct seg_local *sl, uint64_t offset); /* a whole chunk as one huge page; false: use commit_range() */
void commit_undo(struct seg_local *sl, uint64_t offset, uint64_t bytes);

/* grow.c */
uint64_t grow_stamp(struct segment *seg); /* page_hooks.now() */
bool grow_stamp_is_safe(struct segment *seg, uint64_t stamp);
uint64_t grow_reclaim(struct slot *self); /* page_hooks.reclaim() */
void grow_slot_claimed(struct slot *slot); /* page_hooks.claimed() */
bool grow_for(struct slot *self, unsigned order); /* true: try again, there may be memory now */

/* trim.c */
void trim_policy(struct slot *self);

/* touch.c: this process's page tables */
void *touch_map(uint64_t pages); /* one bit for each 64 KiB; NULL: none, so nothing is touched ahead */
void touch_unmap(struct seg_local *sl);
void touch_run(struct seg_local *sl, uint32_t i, uint32_t pages);
void touch_done(struct seg_local *sl, uint32_t i, uint32_t pages);

/* stock.c: the thread's pages */
void stock_enter_slow(struct slot *self);
/* Takes the lock, then enters. */
void stock_enter_locked(struct slot *self, struct lock *l) LOCK_ACQUIRES(l);
void stock_push_inside(struct slot *self, void *page);
bool stock_fill(struct slot *self); /* pages.c: at least one page beyond the reserve */
bool stock_refill(struct slot *self, unsigned want);
void stock_drain(struct slot *self, unsigned keep);
void *stock_pop_inside(struct slot *self); /* inside; left as CACHED and noted in busy */
void stock_takeover(struct slot *self, struct slot *gone);
void stock_recover_locked(struct seg_local *sl, struct slot *dead); /* alloc.lock held */

/* steal.c */
uint64_t steal_stocks(struct slot *self);
bool pages_scarce(struct slot *self, unsigned order); /* true: something was freed */

/* slab.c, magazine.c */
extern const uint16_t slab_sizes[CACHE_IDS];
unsigned slab_objects(enum cache_id id);
unsigned magazine_limit(const struct seg_local *sl, enum cache_id id);
unsigned slab_take(struct slot *self, enum cache_id id, unsigned want);
void slab_give(struct slot *self, enum cache_id id, struct magazine *m, unsigned keep);
uint64_t slab_release_empties(struct slot *self, enum cache_id id, unsigned keep);
uint64_t slab_full_map(enum cache_id id);
/* Objects in use that are nobody's: those in `mask` of slab i are free again. */
void slab_give_back(struct slot *self, enum cache_id id, uint32_t i, uint64_t mask);
void slab_rebuild_locked(struct seg_local *sl, enum cache_id id);
void slab_move_forget_locked(struct seg_local *sl, enum cache_id id, struct slot *dead, struct slot *of);
void slab_move_undo_locked(struct seg_local *sl, enum cache_id id, struct slot *dead);
void magazine_takeover(struct slot *self, struct slot *gone);
bool slab_class_at(struct seg_local *sl, const void *p, enum cache_id *id);
void magazine_make_room(struct slot *self, const void *obj);
void magazine_put_back(struct slot *self, struct slot *gone, enum cache_id id, void *obj);
void magazines_flush(struct slot *self);
void magazine_remove(struct slot *s, enum cache_id id, const void *obj);

/* takeover.c */
extern const struct lock_hooks slot_lock_hooks;
void slot_gone_run(struct slot *self, struct slot *gone);

/* identity.c */
uint32_t slot_gettid(void);
uint32_t slot_getpid(void);
bool slot_number_in_use(uint32_t pid, uint32_t tid, uint64_t start_time);
bool slot_thread_exists(uint32_t pid, uint32_t tid, uint64_t start_time);
bool slot_tid_exists(uint32_t tid);
bool slot_process_exists(uint32_t pid, uint64_t start_time);
void identity_after_fork(void);

/* alone.c */
bool gate_shut(struct segment *seg); /* somebody wants to be alone */
void gate_wait(struct segment *seg);

/* slot.c */
void slot_forget(struct slot *s); /* but for its bags it is empty from now on */
bool slot_unclaim_dead(struct segment *seg, struct slot *s);
/* Whose slot it is that the claimer of `s`, if that is dead, has itself and nobody took over; 0: nobody's. */
uint32_t slot_unsettled_claimer(struct segment *seg, struct slot *s);
/* Slots that are somebody's, and the segment says that it has fewer: damage, for a slot is counted before it is claimed. */
struct slots_hidden {
	uint32_t last; /* of the ordinary ones; 0: none */
	bool spare;
	bool alive; /* and one of them may be a living thread's */
};
void slots_look_hidden(struct slot *self, struct slots_hidden *out);
void slots_make_known(struct segment *seg, const struct slots_hidden *hidden);
void slots_detach(struct segment *seg);
void slots_disown(struct segment *seg); /* those of this process's image before exec are nobody's */
void slots_setup(void);

/* attach.c */
void membarrier_register(struct seg_local *sl);

/* local.c: the handles of this process */
struct seg_local *local_new(const char *name); /* NULL: no memory */
void local_bind(struct seg_local *sl, struct seg_header *hdr);
struct seg_local *local_find(uint64_t dev, uint64_t ino);
void local_add(struct seg_local *sl);
void local_remove(struct seg_local *sl);
void local_lock(void);
void local_unlock(void);
void local_after_fork(void);
int local_path(char *buf, size_t size, const char *dir, const char *name);
const char *local_dir(void);

/* layout.c: page 0 */
void layout_fill(struct seg_header *h, uint64_t size, uint32_t max_slots);
void layout_seal(struct seg_header *h);
bool layout_sum_ok(const struct seg_header *h);
bool layout_ok(const struct seg_header *h);
bool layout_roots_ok(const struct seg_header *h); /* once `ready` */
uint32_t layout_build(void);
uint64_t layout_size(uint64_t size); /* as asked for to as made; 0: too small or too large */

/* base.c */
void *base_map(int fd, uint64_t base, uint64_t size, int prot); /* NULL: range taken, or no address space */
uint64_t base_choose(const char *name, unsigned attempt);
bool base_usable(uint64_t base, uint64_t size); /* by this build */

/* refuse.c: one sentence into `why`; returns -err */
int refuse(char *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int refuse_name(const char *name, char *why); /* 0: the name is fine */
int refuse_place(const char *dir, char *why); /* 0: a segment may be made there */

/* open.c: everything about a file that may be a segment, before it is mapped.  0 or -errno, with its reason. */
int open_segment(const char *path, char *why); /* a descriptor */
int open_read_header(int fd, const char *path, struct seg_header *h, char *why);
int open_wait_ready(struct seg_header *h, const char *path, char *why);

static inline uint64_t layout_bytes(const struct seg_header *h)
{
	return h->chunks_at + h->size; /* the file's length */
}

/* The owner comes in and goes out; pairs with steal.c as Dekker's two flags do. */
static inline void stock_enter(struct slot *self)
{
	struct seg_local *sl = slot_local(self);

	store_relaxed(&self->busy, 1); /* ordered by the fence below */
	if (unlikely(load_relaxed(&sl->alloc->need_fence)))
		fence_full(); /* busy before the look at steal; pairs with the fence in steal_fence */
	else
		fence_compiler(); /* the same; pairs with membarrier() in steal_fence */
	if (unlikely(load_acquire(&self->steal.word))) /* pairs with lock_release by the thief */
		stock_enter_slow(self);
}

static inline void stock_leave(struct slot *self)
{
	store_release(&self->busy, 0); /* the stock as it is now; pairs with the thief's load in steal_wait */
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * segment.h - the shared memory: creation, attaching, growth, thread slots,
 * pages, objects, intent records.
 *
 * A segment is the file /dev/shm/shelf.NAME, mode 0600, sparse, mapped
 * MAP_SHARED at the base address in its header in every process, so pointers
 * inside it are plain pointers.  No descriptor stays open.
 *
 * Layout (docs/segment-format.md):
 *	page 0			struct seg_header
 *	SEG_SLOTS_AT		thread slots, one page each, committed when claimed
 *	hdr->frames		struct frame per 4 KiB page of the chunk area
 *	hdr->chunks		2 MiB chunks, committed by fallocate + MADV_POPULATE_WRITE
 */
#ifndef SHELF_SEGMENT_SEGMENT_H
#define SHELF_SEGMENT_SEGMENT_H

#include <sys/types.h>

#include "base/base.h"
#include "lock/lock.h"

struct seg_header;
struct slot;

/* Process-local handle.  Lives in memory mapped at attach, never in malloc. */
struct segment {
	struct seg_header *hdr; /* == base address */
	uint64_t size;
	bool read_only; /* attached for reading: only the own slot page is writable */
	bool membarrier; /* GLOBAL_EXPEDITED registered */
	bool for_check; /* attached although it may be damaged */
	bool copied; /* mapped privately: nobody else sees it (tests) */
	bool hands_off; /* a check found what is not to be touched: not even what our threads have is given back */
	char name[256];
	uint64_t file_dev, file_ino; /* growth refuses another file under the name */
};

struct segment_options {
	uint64_t size; /* 0: half of RAM.  Rounded up to 2 MiB; minimum 4 MiB. */
	uint64_t base; /* 0: chosen, and free in this process */
	uint32_t max_slots; /* 0: 4096 threads */
};

/* All: 0 or -errno.  `why` (may be NULL, else 256 bytes) gets one sentence: file, reason, what to do. */
int segment_create(const char *name, const struct segment_options *opt, struct segment **out, char *why);
enum segment_how { SEGMENT_USE, SEGMENT_READ, SEGMENT_CHECK };
int segment_attach(const char *name, enum segment_how how, struct segment **out, char *why);
/* Asked for a descriptor of the segment's file by an attach that may not open it: who gives one answers for its owner.  -errno. */
void segment_register_opener(long (*fn)(void));
int segment_remove(const char *name, char *why);
/* Its file is there, but was never said to be ready.  Whoever asks knows that nobody is making it now. */
bool segment_is_unfinished(const char *name);
/* The calling process's slots are given back.  No other thread of it may be using the segment. */
void segment_detach(struct segment *seg);
/* Creator, once the layers above have made their roots: lets others attach. */
void segment_set_ready(struct segment *seg);

/* Damage found: calls return -EIO from now on; the first reason is kept for `shelf stat`. */
void segment_poison(struct segment *seg, const char *reason);
void segment_unpoison(struct segment *seg); /* all of it was looked at, and is good */
bool segment_poisoned(const struct segment *seg);

struct segment_space {
	uint64_t total_pages, free_pages, committed_pages, kept_pages; /* free = not used, committed or not; kept: of these not for data */
};
void segment_space(struct segment *seg, struct segment_space *out);

/* Root objects of upper layers, found again by every process.  Set once by the creator. */
enum seg_root { SEG_ROOT_EPOCH, SEG_ROOT_VFS, SEG_ROOT_TASKS, SEG_ROOT_FD, SEG_ROOT_SPECIAL, SEG_ROOTS };
void *segment_root(const struct segment *seg, enum seg_root which);
void segment_set_root(struct segment *seg, enum seg_root which, void *obj);

/* ---- thread slots ------------------------------------------------------------------- */

/*
 * The calling thread's slot in `seg`, claimed at first use, kept in thread-local
 * storage, given back at thread exit (pthread key) and dropped in a fork's child
 * (pthread_atfork), which claims its own.  NULL only when all slots are taken by
 * live threads.  Cost when warm: two thread-local loads and a compare.
 */
struct slot *slot_self(struct segment *seg);
struct slot *slot_self_slow(struct segment *seg);
void slot_release(struct slot *self);
bool slot_alive(struct segment *seg, uint32_t id); /* pid exists and start time agrees; a stopped process is alive */
struct slot *slot_by_id(struct segment *seg, uint32_t id); /* NULL: no such slot yet */
/* Ids in use run from 1 to this.  It grows: whoever must see every reader reads it after its fence. */
uint32_t slot_limit(const struct segment *seg);
/* All slots with memory, the spare ones too (slot.c): the one behind *id, which moves on; NULL: that was the last.  From 0. */
struct slot *slot_each(struct segment *seg, uint32_t *id);
/* In the child of a fork that ran no atfork handlers: the parent's slots are not ours. */
void slot_after_fork(void);
/* A child that ran on this thread's slots (vfork) died in the middle of something: they are a dead thread's from now on. */
void slot_tls_disown(void);
/* Identity of the calling process as slots record it. */
uint64_t slot_start_time(void);
uint64_t slot_start_time_of(uint32_t pid); /* of another process; 1: cannot tell */

/* ---- pages --------------------------------------------------------------------------- */

enum page_kind { PAGE_FREE, PAGE_CACHED, PAGE_DATA, PAGE_SLAB, PAGE_TABLE, PAGE_SPECIAL, PAGE_KINDS };
#define PAGE_MAX_ORDER 9 /* a run of 2^9 pages is a whole chunk */
#define PAGE_ZERO 1u

/*
 * A run of 2^order pages, aligned to its size, warm where possible.  NULL: the
 * segment or /dev/shm is full.  Contents are undefined unless PAGE_ZERO.
 * Order 0 comes from the thread's own cache: no shared store.
 */
void *page_alloc(struct slot *self, unsigned order, enum page_kind kind, unsigned flags);
/* Usable again at once: readers that may still look re-check a sequence count. */
void page_free(struct slot *self, void *page, unsigned order);
/*
 * Reserve: later page_alloc(order 0) calls of this thread cannot fail for `n` pages (at most
 * PAGE_RESERVE_MAX).  The last call counts; 0 gives the rest back.  Objects (cache_alloc) do not draw on it.
 * 0 or -ENOSPC.
 */
#define PAGE_RESERVE_MAX 48u
int page_reserve(struct slot *self, unsigned n);
/*
 * May contents (data pages) or names (new inodes) have 2^order more pages?  A full segment keeps back 1/64 of its
 * pages, 256 at most: the last of them are for what others need to go on - open files, tables, tasks - and
 * half of them for names, so that a full shelf refuses its writer and nobody else.
 */
enum page_use { PAGE_FOR_DATA, PAGE_FOR_NAMES };
bool page_room(struct slot *self, unsigned order, enum page_use use);
bool page_is_inside(const struct segment *seg, const void *p);
/* The segment's file, for reading and writing, close-on-exec; and where it ends.  -errno */
int segment_open_file(const struct segment *seg);
uint64_t segment_file_bytes(const struct segment *seg);
/* Give cached and long-free memory back to the system (MADV_REMOVE); pages returned. */
uint64_t pages_trim(struct slot *self);
/*
 * From the epoch layer, per process.  now(): a stamp for memory freed at this moment; safe(): memory
 * stamped below this is seen by no reader, so it may be punched out; reclaim(): free what waits for an
 * epoch, called when the segment is full (the caller may hold locks or be in a section: then it returns 0);
 * claimed(): a slot has a new owner, who does not use it yet.
 */
struct page_hooks {
	uint64_t (*now)(struct segment *seg);
	uint64_t (*safe)(struct segment *seg);
	uint64_t (*reclaim)(struct slot *self);
	void (*claimed)(struct slot *slot);
};
void page_register_hooks(const struct page_hooks *hooks);

/* ---- objects --------------------------------------------------------------------------- */

/* Object caches: slabs of one page (or a small run); sizes are multiples of 64 unless noted. */
enum cache_id {
	CACHE_64,
	CACHE_128, /* dentries with short names */
	CACHE_192,
	CACHE_256, /* inodes */
	CACHE_384, /* dentries with long names */
	CACHE_576, /* radix nodes */
	CACHE_1024,
	CACHE_2048,
	CACHE_IDS
};

/* cache_alloc(): slot.h */
void cache_free(struct slot *self, enum cache_id id, void *obj);
/* By size, up to PAGE_BYTES << PAGE_MAX_ORDER: the smallest class or page run that holds it. */
void *mem_alloc(struct slot *self, size_t bytes);
void mem_free(struct slot *self, void *p, size_t bytes); /* the same size */
size_t mem_room(size_t bytes); /* what mem_alloc() takes for it; 0: too large */

/* ---- consistency --------------------------------------------------------------------------- */

/* What the allocator's primary state adds up to.  Exact while no thread allocates or frees. */
struct segment_counts {
	uint64_t committed; /* pages; the sum of the next three */
	uint64_t free; /* in free runs */
	uint64_t cached; /* in threads' stocks */
	uint64_t used; /* handed out, slabs included */
	uint64_t kind[PAGE_KINDS]; /* used, by kind */
	uint64_t objects[CACHE_IDS]; /* handed out or in magazines */
	uint64_t magazine[CACHE_IDS]; /* of these, in magazines */
	uint64_t errors, error_at; /* at: the number that the first one is about */
	uint64_t list_errors, list_error_at; /* in what could be made anew from the frames; of errors if there are no others */
	char first_error[128], first_list_error[128];
};
/* 0, or -EIO when something does not add up.  Takes the allocator's locks one after another. */
int segment_check(struct slot *self, struct segment_counts *out);

#endif

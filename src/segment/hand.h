/* SPDX-License-Identifier: MIT */
/*
 * hand.h - what a thread has in its hands between the allocator and the structure that it is for.
 *
 * Memory is in the thread's ledger from before it leaves the allocator until one store makes it a structure's; and
 * what one store takes out of a structure is in the ledger from before that until it is retired or free.
 * For the moment around such a store slot.hand tells by which word in memory it can be seen whether it was done.  So at
 * each instant a thing is the allocator's, or the ledger's, or the structure's, and a death loses none of it.
 *
 *	p = mem_alloc_noted(self, bytes, &k);
 *	... lock ...
 *	hand_begin(self, &s->where, (uintptr_t)p, hand_bit(k), 0);
 *	tracked_store(&s->where, p);
 *	hand_end(self, hand_bit(k));
 *
 * The word must not change by others' doing between a death and its recovery: it is under a lock that the thread
 * holds (recovery looks at it before it gives that away), or in what is the thread's alone.
 * Cost: stores to the own slot.  A full ledger (32 entries) notes nothing: a death then leaks, nothing else.
 */
#ifndef SHELF_SEGMENT_HAND_H
#define SHELF_SEGMENT_HAND_H

#include "base/bits.h"
#include "segment/slot.h"

static inline uint32_t hand_bit(int k)
{
	return k < 0 ? 0 : 1u << k;
}

static inline void hand_forget(struct slot *self, int k)
{
	if (likely(k >= 0))
		store_release(&self->ledger[k], 0); /* read after our death */
}

/* As cache_alloc, mem_alloc, page_alloc; *k is the entry of the ledger, to be forgotten or given. */
void *cache_alloc_noted(struct slot *self, enum cache_id id, int *k);
void *mem_alloc_noted(struct slot *self, size_t bytes, int *k);
void *page_alloc_noted(struct slot *self, unsigned order, enum page_kind kind, unsigned flags, int *k);
/* Free, and off the ledger. */
void cache_free_noted(struct slot *self, enum cache_id id, void *obj, int k);
void mem_free_noted(struct slot *self, void *p, size_t bytes, int k);
void page_free_noted(struct slot *self, void *page, unsigned order, int k);

/* Before `obj`, the caller's alone, is freed: that will be one store to the magazine; true: to a frame, which names us now. */
bool mem_make_room(struct slot *self, const void *obj);
/* Was it in the dead one's hands after that, and not free yet?  `page`: what that returned. */
bool mem_in_hand(struct segment *seg, struct slot *gone, const void *obj, bool page);

/*
 * Around the one store: `given` are bits of entries that are the structure's from it on, `got` of such that are ours.
 * The second is for one that is got: its entry is written once the record tells that it is not ours yet.
 */
static inline void hand_begin(struct slot *self, const volatile void *where, uint64_t word, uint32_t given, uint32_t got)
{
	store_release(&self->hand.word, word); /* all three are read after our death, in this order */
	store_release(&self->hand.entries, given | (uint64_t)got << 32);
	store_release(&self->hand.where, (uint64_t)(uintptr_t)where);
	fence_compiler(); /* before what it announces, which may be a plain store */
}

#define HAND_WORD32 1u /* in hand.where: the word there has 32 bits */
#define HAND_TALLY 2u /* a struct tally is there, and hand.change tells the rest */

/* In hand.change. */
enum hand_change {
	HAND_NO_ENTRY = 63, /* else the entry that comes or goes */
	HAND_COMES = 64,
	HAND_DONE = 128, /* set by whoever writes over the tally's word */
	HAND_NUMBER = 16 /* where the change's number begins */
};

static inline int hand_begin_got(struct slot *self, const volatile void *where, uint64_t word, uint32_t given, void *obj,
				 enum ledger_kind kind)
{
	int k = ledger_free(self);

	hand_begin(self, where, word, given, hand_bit(k));
	if (likely(k >= 0))
		store_release(&self->ledger[k], (uint64_t)(uintptr_t)obj | kind); /* read after our death */
	fence_compiler(); /* as in hand_begin */
	return k;
}

static inline uint64_t hand_entry_of(const void *obj, enum ledger_kind kind)
{
	return (uint64_t)(uintptr_t)obj | kind;
}

/* The same for two things; k: where they are, -1 both: there is no room for them. */
void hand_begin_got2(struct slot *self, const volatile void *where, uint64_t word, uint64_t a, uint64_t b, int k[2]);

/* The same where the word has 32 bits. */
static inline void hand_begin32(struct slot *self, const volatile void *where, uint32_t word, uint32_t given)
{
	hand_begin(self, (const volatile char *)where + HAND_WORD32, word, given, 0);
}

static inline int hand_begin_got32(struct slot *self, const volatile void *where, uint32_t word, void *obj, enum ledger_kind kind)
{
	return hand_begin_got(self, (const volatile char *)where + HAND_WORD32, word, 0, obj, kind);
}

static inline void hand_end(struct slot *self, uint32_t given)
{
	for (; given; given &= given - 1)
		hand_forget(self, (int)bits_first_one(given));
	store_release(&self->hand.where, 0); /* read after our death */
}

/* `p`, which only its owner and *where name, goes: *where becomes `next`.  May be repeated by whoever finds it half done. */
void hand_free_from(struct slot *self, void **where, void *next, void *p, size_t bytes);

int hand_find(struct slot *s, const void *obj, enum ledger_kind kind); /* the entry, -1: none */
static inline int hand_entry(struct slot *self, const void *obj)
{
	int k = hand_find(self, obj, LEDGER_MEM);

	return k < 0 ? hand_find(self, obj, LEDGER_PAGE) : k;
}
/* mem_free_noted() for what is handed from function to function. */
static inline void mem_free_held(struct slot *self, void *p, size_t bytes)
{
	mem_free_noted(self, p, bytes, hand_entry(self, p));
}
static inline bool hand_has(struct slot *dead, const void *obj, enum ledger_kind kind)
{
	return hand_find(dead, obj, kind) >= 0;
}

/* Recovery: entry `k` of the dead one's becomes ours; which.  -1: there is no room, and it is the caller's alone. */
int hand_take_over(struct slot *self, struct slot *gone, int k);
void tally_settle_dead(struct slot *dead); /* tally.c: hand_settle() where the word is a tally */
/* Recovery: before the dead one's intent and locks. */
void hand_settle(struct slot *dead);
/* Recovery: memory that was in the dead one's hand goes to its own magazines and the free pages. */
void hand_take_back(struct slot *self, struct slot *gone);

#endif

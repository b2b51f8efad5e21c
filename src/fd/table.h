/* SPDX-License-Identifier: MIT */
/*
 * table.h - the layout of a descriptor table, and the way from a number to its word.
 *
 * Data: one 64-bit word for each number: the file's address and its flags, so
 * that both change in one store.  The words of 0..63, the near numbers, lie in the
 * head; others in pages of 512 that are made when a number in them is first used and
 * never move or go away before the table does.  So growing copies nothing, a lookup
 * never waits for it, and one huge number costs a fixed 12 KiB:
 *
 *	number			way to the word			loads
 *	0 .. 63			head.near			1
 *	64 .. 8191		head.page -> page		2
 *	8192 .. 16,777,215	head.far -> node -> page	4
 *
 * Protection, by letter:
 *	[a] atomic: any thread of the table may change it; a page's address is set once
 *	[l] the table's lock (of the scheme, see lookup.h); relaxed atomic for readers
 *	    that only want a snapshot
 *	[s] written by the table's only user, read by all
 * The bitmaps say which words of the far numbers are not empty.  They follow from the
 * words, so recovery makes them anew from there.  The near numbers have none: their
 * words are looked at themselves (near.c says why), and neighbours lie on different
 * lines, so that two threads that open and close beside each other share none.
 *
 * Memory: a fresh table is one object of 1 KiB, so fork of a small task copies
 * no page.  A million open files: 2048 pages and maps, 8.6 MB.
 * Limits: FD_NUMBER_MAX is 16 times the kernel's default fs.nr_open; the caller's
 * RLIMIT_NOFILE comes first.
 */
#ifndef SHELF_FD_TABLE_H
#define SHELF_FD_TABLE_H

#include "fd/file.h"
#include "fd/spin.h"

#define FD_NEAR 64u
#define FD_PAGE_SHIFT 9
#define FD_PAGE_WORDS (1u << FD_PAGE_SHIFT)
#define FD_DIR 16u
#define FD_NODE_SHIFT 7
#define FD_NODE (1u << FD_NODE_SHIFT)
#define FD_FAR 256u
#define FD_NUMBER_MAX (FD_FAR * FD_NODE * FD_PAGE_WORDS) /* numbers end below this */
#define FD_MAP_WORDS (FD_PAGE_WORDS / 64)

/*
 * A slot's word: 0 free; FD_WORD_RESERVED | id << 32 of the reserving thread; or file | OPEN | flags.
 * MOVING goes with RESERVED: the thread has a record of what it does to this word, and ends it by itself.
 */
#define FD_WORD_OPEN 4u
#define FD_WORD_RESERVED 8u
#define FD_WORD_FLAGS 15u
#define FD_WORD_MOVING 16u
#define FD_WORD_BITS (FD_CLOEXEC_BIT | FD_CLOFORK_BIT)

struct fd_page {
	atomic_u64 word[FD_PAGE_WORDS]; /* [a] */
};

struct fd_map {
	atomic_u64 used[FD_MAP_WORDS]; /* [l] */
};

struct fd_node {
	atomic_ptr(struct fd_page) page[FD_NODE]; /* [a] set once */
	atomic_ptr(struct fd_map) map[FD_NODE]; /* [a] set once, before its page */
	atomic_u64 full[FD_NODE / 64]; /* [l] */
};

struct fd_far {
	atomic_ptr(struct fd_node) node[FD_FAR]; /* [a] set once */
	atomic_u64 full[FD_FAR / 64]; /* [l] */
};

struct fd_table {
	/* line 0: what a lookup reads beside the word; stored to when users come and go */
	_Alignas(CACHE_LINE) atomic_u32 sole; /* [s] id of the only user's slot; 0: shared */
	atomic_u32 gate; /* [l] not 0: near words change under the lock only; near.c */
	atomic_ptr(struct fd_far) far; /* [a] set once */
	struct retired retired;
	_Alignas(CACHE_LINE) atomic_u64 near[FD_NEAR]; /* [a] see fd_near_word */
	_Alignas(CACHE_LINE) atomic_ptr(struct fd_page) page[FD_DIR]; /* [a] set once */
	atomic_ptr(struct fd_map) map[FD_DIR]; /* [a] set once, before its page */
	/* what stores to far numbers, and to tables as a whole, go to */
	_Alignas(CACHE_LINE) struct lock lock;
	atomic_u32 refs; /* [a] tasks */
	atomic_u32 users; /* [a] threads, as told; 0: unknown, which counts as many */
	atomic_u64 full; /* [l] of page */
	/* of the scheme; on its own line so that it disturbs no word */
	_Alignas(CACHE_LINE) struct fd_spin spin;
};
_Static_assert(sizeof(struct fd_table) <= 1024, "a fresh table is one small object");
_Static_assert(sizeof(struct fd_map) == 64, "a map is the smallest object");
_Static_assert(sizeof(struct fd_page) == PAGE_BYTES, "a page of words is a page");

static inline struct fd_file *fd_word_file(uint64_t word)
{
	return (struct fd_file *)(uintptr_t)(word & ~(uint64_t)FD_WORD_FLAGS);
}

static inline uint64_t fd_word_make(struct fd_file *file, unsigned bits)
{
	return (uint64_t)(uintptr_t)file | FD_WORD_OPEN | (bits & FD_WORD_BITS);
}

/* Eight neighbours, eight lines. */
static inline atomic_u64 *fd_near_word(struct fd_table *tab, unsigned fd)
{
	return &tab->near[(fd << 3 | fd >> 3) & (FD_NEAR - 1)];
}

/* Numbers from 8192 on: map.c.  NULL: no page there. */
struct fd_page *fd_page_far(struct fd_table *tab, unsigned fd);

/* The word of a number; NULL where no page was made yet and for negative numbers. */
static inline atomic_u64 *fd_word_of(struct fd_table *tab, int number)
{
	unsigned fd = (unsigned)number;
	struct fd_page *page;

	if (likely(fd < FD_NEAR))
		return fd_near_word(tab, fd);
	if (likely(fd < FD_DIR << FD_PAGE_SHIFT))
		page = load_acquire(
			&tab->page[fd >> FD_PAGE_SHIFT]); /* pairs with fd_page_ensure */
	else
		page = fd_page_far(tab, fd);
	return page ? &page->word[fd & (FD_PAGE_WORDS - 1)] : NULL;
}

/* 0 for a number without a page.  acquire: the file's contents; pairs with fd_publish and fd_word_swap. */
static inline uint64_t fd_word_load(struct fd_table *tab, int fd)
{
	atomic_u64 *word = fd_word_of(tab, fd);

	return likely(word != NULL) ? load_acquire(word) : 0;
}

/*
 * The single-user borrow (fget_light's rule).  `sole` names the one thread that
 * may look up without section, lock or count.  It holds because:
 *   1. only that thread puts its own id there (fd_table_set_users(.., 1), between
 *      calls), and nobody else uses the table while it stands there;
 *   2. only that thread takes it away: a second user can come only by its doing
 *      (clone, share), and never between its borrow and its return;
 *   3. so between its borrow and its return `sole` does not change, and nobody
 *      can close the number: the table's own reference keeps the file.
 * A thread that leaves a shared table does not make the last one sole: that one
 * does it itself when it next tells its number of users.
 */
static inline bool fd_table_is_sole(struct slot *self, struct fd_table *tab)
{
	return load_relaxed(&tab->sole) == self->locker.id; /* ours only if we wrote it ourselves */
}

#endif

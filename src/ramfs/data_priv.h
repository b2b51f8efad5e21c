/* SPDX-License-Identifier: MIT */
/*
 * data_priv.h - what the files about file data share: data.c (reads), write.c,
 * publish.c, resize.c, fallocate.c, shift.c, seek.c, copy.c, data_recover.c.
 *
 * An entry of file.pages is a page's address with DATA_UNWRITTEN in bit 0 when the
 * page was made by fallocate and nothing has been written to it: it reads as zeros
 * like any other, but SEEK_DATA passes over it, as tmpfs does.  The entry of page 0
 * may be the radix root itself, which has no room for that bit: page 0's
 * bit is in file.data_flags.
 */
#ifndef SHELF_RAMFS_DATA_PRIV_H
#define SHELF_RAMFS_DATA_PRIV_H

#include "base/bits.h"
#include "base/copy.h"
#include "ramfs/data_inline.h"
#include "segment/intent_ops.h"

#define DATA_UNWRITTEN UINT64_C(1)
#define DATA_ZERO_UNWRITTEN UINT64_C(1) /* in file.data_flags */

/* Pages that a piece of DATA_ATOMIC bytes can touch. */
#define DATA_PIECE_PAGES (DATA_ATOMIC / PAGE_BYTES + 1)

/* One past the last page of `bytes` bytes. */
static inline uint64_t data_pages_of(uint64_t bytes)
{
	return (bytes >> PAGE_SHIFT) + !!(bytes & PAGE_MASK);
}

/* With the unwritten bit of page 0 where the other pages have it. */
static inline uint64_t data_entry_epoch(struct inode *inode, uint64_t index)
{
	uint64_t entry = radix_lookup_epoch(&inode->file.pages, index);

	if (!index && entry && (seq_load(&inode->file.data_flags) & DATA_ZERO_UNWRITTEN))
		entry |= DATA_UNWRITTEN;
	return entry;
}

/* ---- where bytes come from and go to --------------------------------------------------- */

/* A place in the caller's iovec, or (from) in another file whose lock is held. */
struct data_cursor {
	const struct iovec *iov;
	size_t skip; /* bytes of *iov that are done */
	struct inode *from;
	uint64_t from_pos;
};

/* Bytes copied: less than n only when the caller's memory faulted. */
size_t cursor_put(struct data_cursor *c, const char *src, size_t n);
size_t cursor_take(struct data_cursor *c, char *dst, size_t n);
void cursor_skip(struct data_cursor *c, size_t n);

/* ---- changes, all with the inode's lock held -------------------------------------------- */

static inline uint64_t data_size(struct inode *inode)
{
	return load_relaxed(&inode->size); /* lock held: nobody else writes it */
}

/* Inside seq: times, and setuid and setgid bits taken away. */
void data_changed_locked(struct who *w, struct inode *inode, uint64_t now);
/* Bytes [from, to) of the page in which `from` lies read as zeros; a hole needs nothing.  seq is the caller's affair. */
void data_zero_in_page(struct inode *inode, uint64_t from, uint64_t to);
/* Before the size grows from `size` to `end`: what an earlier shrink or crash left behind the end. */
void data_zero_tail(struct inode *inode, uint64_t size, uint64_t end);

/*
 * publish.c: fresh pages on their way into a file: at most DATA_FRESH runs, each 2^order pages for
 * consecutive holes from `index` on, listed in the intent so that none is lost.
 */
#define DATA_FRESH DATA_PIECE_PAGES
struct fresh_run {
	char *page;
	uint64_t index;
	unsigned order;
};
struct fresh {
	unsigned count;
	struct fresh_run run[DATA_FRESH];
};
static inline void fresh_want(struct fresh *f, uint64_t index, unsigned order)
{
	f->run[f->count++] = (struct fresh_run){NULL, index, order};
}
/*
 * Begins INTENT_EXTEND: a change of pages [first, end) that moves the size from `size` to `new_size`; and takes
 * the pages wanted.  False: not all were to be had, f->count says how many runs were.
 */
bool fresh_begin(struct slot *self, struct inode *inode, struct fresh *f, uint64_t first, uint64_t end,
		 uint64_t size, uint64_t new_size);
/* INTENT_EXTEND for bytes in place: should we die, seq is made even again.  intent_end() ends it. */
static inline void data_repair_begin(struct slot *self, struct inode *inode)
{
	uint64_t arg = (uintptr_t)inode;

	intent_begin(self, INTENT_EXTEND, 1, &arg);
}
/* Inside seq: the first `pages` pages of the run go into the file; how many did (then the segment is full). */
uint64_t fresh_publish(struct slot *self, struct inode *inode, const struct fresh_run *r, uint64_t pages,
		       uint64_t bits);
/* After seq: pages of the runs from `end` on did not go in and are freed.  Ends the intent. */
void fresh_end(struct slot *self, const struct fresh *f, uint64_t end);
void extend_recover(struct slot *self, struct intent *dead);

/* erase.c: frees the pages of [from, end) in `pages`, a tree of the inode's; seq is odd, or nobody can read there.  How many. */
uint64_t data_erase_range(struct slot *self, struct inode *inode, struct radix *pages, uint64_t from, uint64_t end);
uint64_t data_count_pages(struct radix *pages, uint64_t from, uint64_t end);
void data_recount_locked(struct inode *inode);
#define DATA_INDEX_END UINT64_MAX

/* write.c: the locked heart of write and copy_range. */
struct data_write {
	struct who *w;
	struct inode *inode;
	struct data_cursor src;
	uint64_t pos;
	uint64_t now;
};
ssize_t data_write_locked(struct data_write *d, size_t total);
/* Does [pos, pos + *total) fit below RLIMIT_FSIZE and MAX_FILE_BYTES?  Shortens *total, or -EFBIG. */
int data_write_limit(const struct who *w, uint64_t pos, size_t *total);

/* map.c: pages that leave a file which somebody maps.  drop: the last reference is gone, nobody maps it. */
static inline bool data_is_mapped(struct inode *inode)
{
	return unlikely(load_relaxed(&inode->file.maps) != 0); /* lock held: who maps from now on sees the pages gone */
}
void data_keep_page(struct slot *self, struct inode *inode, char *page);
void data_kept_pages(struct slot *self, struct inode *inode); /* such were kept: those who map it are to look */
void data_free_kept_locked(struct slot *self, struct inode *inode);
void data_drop_kept(struct slot *self, struct inode *inode);
/* fallocate.c: the beginning of a hole is filled with unwritten pages: how many, 0: full.  And: written they are. */
uint64_t data_fill_hole_locked(struct slot *self, struct inode *inode, uint64_t first, uint64_t end, bool run);
void data_mark_written_locked(struct slot *self, struct inode *inode, uint64_t first, uint64_t end);
void data_map_attach(void);

/* fallocate.c, shift.c, map.c: what INTENT_FALLOCATE's second argument says */
enum fallocate_kind { FALLOCATE_PUNCH, FALLOCATE_ZERO, FALLOCATE_SHIFT, FALLOCATE_KEPT };
int shift_collapse(struct who *w, struct inode *inode, uint64_t off, uint64_t len);
int shift_insert(struct who *w, struct inode *inode, uint64_t off, uint64_t len);
void shift_recover(struct slot *self, struct inode *inode, struct intent *dead);

/* What recovery repeats. */
void punch_locked(struct slot *self, struct inode *inode, uint64_t off, uint64_t end);
void zero_locked(struct inode *inode, uint64_t off, uint64_t end);
void truncate_tail_locked(struct slot *self, struct inode *inode, uint64_t length);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * map.h - files of the shelf in a process's memory: what the map_*.c files share.
 *
 * Data owned: map_table, this process's maps of shelf files, sorted by address; memory of the process's own, which fork copies.
 * Protection: its lock, held inside a call, so no handler of the program's runs meanwhile.  Order: it, then an inode's.
 * A fault inside a call may find either held by its own thread or by one that waits for it: there both are only tried.
 *
 * A page of a region is in one of two states, which the kernel's page tables know and nobody else:
 *	present		the segment's own page (shared, or private and copied when written to), or a page of memory of the
 *			process's own (a private copy)
 *	absent		a part of the segment's file beyond its end: whoever touches it gets SIGBUS, which map_fault() answers by
 *			making it present, unless it is beyond the end of the file, where SIGBUS is the answer
 * Both kinds are made by mremap() of what is mapped already, with an old size of 0, which makes a second map of the same
 * pages: one system call, no descriptor, and at once for all threads.
 */
#ifndef SHELF_RUN_PRELOAD_MAP_H
#define SHELF_RUN_PRELOAD_MAP_H

#include <sys/mman.h>

#include "run/preload/serve.h"

#define ADVICE_POPULATE_READ 22 /* Linux 5.14 */
#define ADVICE_POPULATE_WRITE 23

enum map_kind {
	MAP_KIND_SHARED,
	MAP_KIND_PRIVATE, /* the segment's pages, copied by the kernel when they are written to */
	MAP_KIND_COPY, /* copied already */
};

/* One map, or what munmap, mprotect and mremap left of it. */
struct map_region {
	uintptr_t start, end;
	uint64_t index; /* of the page at `start` in the file */
	uint32_t file; /* in map_table.files */
	uint8_t kind, prot;
	bool may_write; /* a shared one: opened for writing, too */
};

/* An open file of which there are regions. */
struct map_file {
	struct inode *inode; /* kept by `fd` */
	const void *open; /* which one: kept by `held` */
	int fd, held;
	uint32_t users; /* regions; 0: free */
	uint32_t drops; /* ramfs_map_drops() when its regions were looked at last */
};

struct map_table {
	atomic_u32 lock;
	atomic_u32 count; /* regions; read without the lock as a hint that there are any */
	uint32_t room, file_count, file_room;
	struct map_region *region;
	struct map_file *file;
	uintptr_t absent; /* a page beyond the segment's end, to make others like it from */
	atomic_u32 drops; /* the segment's map_drops when all was looked at */
	uint32_t placed; /* maps made since the last map_evict() */
};

extern struct map_table map_table;

/* A hint: our own maps we know of. */
static inline bool map_any(void)
{
	return load_relaxed(&map_table.count) != 0;
}

/* ---- map_table.c ------------------------------------------------------------------------------ */

void map_lock(void);
bool map_trylock(void);
void map_unlock(void);
/* Room for `n` more regions and a file.  0 or -ENOMEM */
int map_room(uint32_t n);
/* The first region that ends above `addr`; count: none. */
uint32_t map_first(uintptr_t addr);
struct map_region *map_find(uintptr_t addr); /* the one that has it, NULL: none */
bool map_overlaps(uintptr_t start, uintptr_t end);
/* A region ends and another one begins at `addr`, should it lie within one.  There is room. */
void map_split(uintptr_t addr);
void map_insert(const struct map_region *r); /* there is room; r->file's users are counted here */
void map_forget(uintptr_t start, uintptr_t end); /* there is room for one more */
/* The file of descriptor `fd` for a region: its place in the table, or -errno. */
int map_file_get(int fd, struct api_map *how);
void map_file_put(uint32_t file); /* a region less */

static inline struct segment *segment_here(void)
{
	return (struct segment *)(void *)load_acquire(&runtime.shelf); /* pairs with attach_now */
}

static inline struct inode *map_inode(const struct map_region *r)
{
	return map_table.file[r->file].inode;
}

static inline uint64_t map_index(const struct map_region *r, uintptr_t addr)
{
	return r->index + ((addr - r->start) >> PAGE_SHIFT);
}

/* ---- map_pages.c: the lock is held ---------------------------------------------------------------- */

long map_absent(uintptr_t addr, size_t len, int prot);
/* What is there and was written, shared, from `addr` up to `end`: at most `runs` maps.  `flags`: MAP_MAKE ... of ramfs.h */
long map_present(const struct map_region *r, uintptr_t addr, uintptr_t end, unsigned runs, unsigned flags);
/* All pages of a new private region.  It may become a copy. */
long map_fill_private(struct map_region *r);
/* Those of a copy in [addr, end) once more. */
long map_copy_again(const struct map_region *r, uintptr_t addr, uintptr_t end);
/* One page of a private region that was absent. */
long map_copy_page(const struct map_region *r, uintptr_t addr, unsigned flags);
void map_evict(void); /* all shared regions absent */
bool map_readable(uintptr_t addr); /* whether the kernel can read there */
bool map_is_error(long at);

/* ---- map_fault.c ------------------------------------------------------------------------------------ */

/* The page at `addr` present.  False: there is no region, or nothing to be had. */
bool map_resolve(uintptr_t addr, bool write);
/* All of [start, end) that can be. */
void map_populate(uintptr_t start, uintptr_t end, bool write);
void serve_map_change_init(void); /* map_change.c */
void serve_map_fault_init(void);

#endif

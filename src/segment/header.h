/* SPDX-License-Identifier: MIT */
/* header.h - page 0 of a segment.  docs/segment-format.md explains each field. */
#ifndef SHELF_SEGMENT_HEADER_H
#define SHELF_SEGMENT_HEADER_H

#include "segment/segment.h"

#define SEG_MAGIC 0x31666c656873c0deULL
#define SEG_VERSION 4u
#define SEG_CHUNK (2UL << 20)

struct epoch_root;

struct seg_header {
	/* fixed once made; covered by `sum` */
	uint64_t magic;
	uint32_t version;
	uint32_t build; /* build options that change the layout or the protocol */
	uint64_t base, size;
	uint64_t infos_at, slots_at, frames_at, chunks_at; /* offsets */
	uint32_t max_slots;
	uint32_t owner_uid;
	uint64_t chunk_count; /* chunks that fit */
	uint64_t hash_seed; /* names are hashed with it */
	uint64_t created_ns;
	uint32_t creator_pid, pad;
	uint64_t creator_start; /* whose death before `ready` makes the segment useless */
	uint64_t sum;

	/* roots, written by the creator before `ready` */
	_Alignas(CACHE_LINE) struct epoch_root *epoch;
	void *root[SEG_ROOTS];
	uint64_t roots_sum; /* of the two above */
	atomic_u32 ready; /* release by the creator; attachers wait for it */
	atomic_u32 poison;
	char poison_reason[128];
	atomic_u64 calls_past; /* system calls that `shelf run --strict` saw go past the shelf: statistics */

	/* numbers handed out in ranges */
	_Alignas(CACHE_LINE) atomic_u64 next_ino;

	/* what nobody-is-watching costs: one load of this line, written when watches come and go */
	_Alignas(CACHE_LINE) atomic_u32 watchers;
	atomic_u32 map_drops; /* how often pages left a file that somebody maps: ramfs/map.c */

	/* the page allocator and the object caches: private to src/segment */
	_Alignas(CACHE_LINE) unsigned char alloc_state[1024];
};
_Static_assert(sizeof(struct seg_header) <= PAGE_BYTES, "the header is one page");

#endif

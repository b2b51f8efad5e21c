/* SPDX-License-Identifier: MIT */
/*
 * layout.c - page 0: where everything is, how it is recognised, roots, poison.
 *
 * The fixed part of the header is covered by a checksum and never changes once
 * the segment is ready.  docs/segment-format.md describes each field.
 */
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/syscall.h"
#include "segment/segment_priv.h"

/* A build whose bits differ does other things to the same bytes. */
enum layout_build_bit {
	BUILD_TSAN = 1u << 0, /* can only map certain ranges */
};

#if defined(__SANITIZE_THREAD__)
#define LAYOUT_TSAN BUILD_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LAYOUT_TSAN BUILD_TSAN
#endif
#endif
#ifndef LAYOUT_TSAN
#define LAYOUT_TSAN 0u
#endif

uint32_t layout_build(void)
{
	return LAYOUT_TSAN;
}

uint64_t layout_size(uint64_t size)
{
	if (size > (UINT64_C(1) << 43))
		return 0;
	return max_of(ALIGN_UP(size, SEG_CHUNK), (uint64_t)SEG_MIN_SIZE);
}

/* Offsets follow from size and max_slots alone. */
static void layout_place(struct seg_header *h)
{
	uint64_t chunks = h->size / SEG_CHUNK;

	h->infos_at = PAGE_BYTES;
	h->slots_at = h->infos_at + ALIGN_UP(chunks * sizeof(struct chunk_info), PAGE_BYTES);
	h->frames_at = h->slots_at + ((uint64_t)h->max_slots + SEG_SLOTS_SPARE) * PAGE_BYTES;
	h->chunks_at = ALIGN_UP(h->frames_at + chunks * SEG_CHUNK_PAGES * sizeof(struct frame), SEG_CHUNK);
	h->chunk_count = chunks;
}

/* `size` is what files may fill; the mapping is larger by the metadata. */
void layout_fill(struct seg_header *h, uint64_t size, uint32_t max_slots)
{
	h->magic = SEG_MAGIC;
	h->version = SEG_VERSION;
	h->build = layout_build();
	h->size = size;
	h->max_slots = max_slots;
	layout_place(h);
}

static uint64_t layout_sum(const struct seg_header *h)
{
	return name_hash(SEG_MAGIC, (const char *)h, offsetof(struct seg_header, sum));
}

void layout_seal(struct seg_header *h)
{
	h->sum = layout_sum(h);
}

bool layout_sum_ok(const struct seg_header *h)
{
	return h->sum == layout_sum(h);
}

bool layout_ok(const struct seg_header *h)
{
	struct seg_header want = {.size = h->size, .max_slots = h->max_slots};

	if (!h->size || layout_size(h->size) != h->size || !h->max_slots || h->max_slots > SEG_SLOTS_MAX)
		return false;
	layout_place(&want);
	return h->infos_at == want.infos_at && h->slots_at == want.slots_at && h->frames_at == want.frames_at &&
	       h->chunks_at == want.chunks_at && h->chunk_count == want.chunk_count &&
	       !(h->base & (SEG_CHUNK - 1));
}

/* ---- roots, poison ------------------------------------------------------------------------- */

void *segment_root(const struct segment *seg, enum seg_root which)
{
	return seg->hdr->root[which];
}

/* A reader follows them without asking again, so that a damaged one must be found while attaching. */
static uint64_t layout_roots_sum(const struct seg_header *h)
{
	const size_t from = offsetof(struct seg_header, epoch), to = offsetof(struct seg_header, roots_sum);

	/* The base too: at another one every pointer of the segment is wrong. */
	return name_hash(SEG_MAGIC ^ h->base, (const char *)h + from, to - from);
}

static bool layout_root_inside(const struct seg_header *h, const void *root)
{
	return !root || ((uintptr_t)root >= h->base + h->chunks_at && (uintptr_t)root < h->base + layout_bytes(h));
}

bool layout_roots_ok(const struct seg_header *h)
{
	unsigned k;

	for (k = 0; k < SEG_ROOTS; k++)
		if (!layout_root_inside(h, h->root[k]))
			return false;
	return layout_root_inside(h, h->epoch) && h->roots_sum == layout_roots_sum(h);
}

void segment_set_root(struct segment *seg, enum seg_root which, void *obj)
{
	seg->hdr->root[which] = obj; /* published by segment_set_ready */
	if (which == SEG_ROOT_EPOCH)
		seg->hdr->epoch = obj;
	seg->hdr->roots_sum = layout_roots_sum(seg->hdr);
}

void segment_set_ready(struct segment *seg)
{
	seg->hdr->roots_sum = layout_roots_sum(seg->hdr);
	store_release(&seg->hdr->ready, 1); /* the roots and all below them; pairs with open_wait_ready */
}

enum { POISON_NONE, POISON_WRITING, POISON_SET };

void segment_poison(struct segment *seg, const char *reason)
{
	struct seg_header *h = seg->hdr;
	uint32_t none = POISON_NONE;

	if (seg->read_only || !cas_acq_rel(&h->poison, &none, POISON_WRITING))
		return;
	strncpy(h->poison_reason, reason, sizeof(h->poison_reason) - 1);
	store_release(&h->poison, POISON_SET); /* the reason; pairs with segment_attach */
}

void segment_unpoison(struct segment *seg)
{
	store_release(&seg->hdr->poison, POISON_NONE); /* what was repaired; pairs with who looks at the flag */
}

bool segment_poisoned(const struct segment *seg)
{
	return load_relaxed(&seg->hdr->poison) != POISON_NONE; /* nothing is read on its account */
}

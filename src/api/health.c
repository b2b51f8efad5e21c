/* SPDX-License-Identifier: MIT */
/* health.c - how a shelf is doing: counters, read without locks. */
#include <string.h>

#include "api/api.h"

static uint64_t threads_live(struct segment *seg)
{
	uint32_t limit = slot_limit(seg);
	uint64_t n = 0;

	for (uint32_t id = 1; id <= limit; id++) {
		struct slot *s = slot_by_id(seg, id);

		n += s && slot_state_of(s) == SLOT_LIVE;
	}
	return n;
}

int shelf_counters(struct shelf *shelf, struct shelf_counters *out)
{
	struct segment *seg = (struct segment *)(void *)shelf;
	struct slot *self = slot_self(seg);
	struct segment_space space;

	if (!self)
		return -ENOMEM;
	if (!out)
		return -EFAULT;
	memset(out, 0, sizeof(*out));
	segment_space(seg, &space);
	out->size_pages = space.total_pages;
	out->used_pages = space.total_pages - space.free_pages;
	out->committed_pages = space.committed_pages;
	out->inodes = (uint64_t)vfs_inodes(seg);
	out->files_open = (uint64_t)fd_files_open(seg);
	out->threads = threads_live(seg);
	out->epoch = load_relaxed(&epoch_root_of(self)->global); /* relaxed, both: statistics */
	out->retired_waiting = load_relaxed(&epoch_root_of(self)->waiting);
	out->calls_past = load_relaxed(&seg->hdr->calls_past); /* statistics */
	out->poisoned = load_acquire(&seg->hdr->poison); /* pairs with segment_poison: the reason is there */
	if (out->poisoned)
		memcpy(out->poison_reason, seg->hdr->poison_reason, sizeof(out->poison_reason) - 1);
	else
		out->tasks = task_count(self); /* of a damaged one the list may lead anywhere */
	return 0;
}

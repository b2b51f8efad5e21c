/* SPDX-License-Identifier: MIT */
/* check_seen.c - the check's own tables: what is counted, and directories to visit. */
#include <string.h>

#include <sys/mman.h>

#include "api/check_priv.h"
#include "base/syscall.h"

static void *map_zeroed(size_t bytes)
{
	long at = sys_call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at < 0 && at > -4096 ? NULL : (void *)at;
}

static void unmap(void *at, size_t bytes)
{
	if (at)
		sys_call3(SYS_munmap, (long)at, (long)bytes, 0);
}

/* ---- what is counted ------------------------------------------------------------------------------ */

static struct seen *seen_place(struct seen *table, uint64_t mask, const void *obj)
{
	uint64_t at = ((uintptr_t)obj >> 6) * 0x9e3779b97f4a7c15ULL >> 20;

	while (table[at & mask].obj && table[at & mask].obj != obj)
		at++;
	return &table[at & mask];
}

static bool seen_grow(struct check *c)
{
	uint64_t mask = c->seen_mask * 2 + 1, i;
	struct seen *table = map_zeroed((mask + 1) * sizeof(*table));

	if (!table)
		return false;
	for (i = 0; i <= c->seen_mask; i++)
		if (c->seen[i].obj)
			*seen_place(table, mask, c->seen[i].obj) = c->seen[i];
	unmap(c->seen, (c->seen_mask + 1) * sizeof(*table));
	c->seen = table;
	c->seen_mask = mask;
	return true;
}

struct seen *check_known(struct check *c, const void *obj, enum seen_kind kind)
{
	struct seen *s = seen_place(c->seen, c->seen_mask, obj);

	return obj && s->obj && s->kind == kind ? s : NULL;
}

struct seen *check_seen(struct check *c, void *obj, enum seen_kind kind, enum mark mark)
{
	struct seen *s = check_known(c, obj, kind);

	if (s || mark != MARK_NEW)
		return mark == MARK_BAD ? NULL : s;

	if (c->seen_count * 3 > c->seen_mask * 2 && !seen_grow(c)) {
		c->grew = true;
		return NULL;
	}
	s = seen_place(c->seen, c->seen_mask, obj);
	s->obj = obj;
	s->kind = (uint8_t)kind;
	c->seen_count++;
	return s;
}

bool check_first(struct check *c, void *obj, enum seen_kind kind, size_t bytes)
{
	enum mark mark = marks_add_exact(&c->marks, obj, bytes);

	return mark == MARK_NEW && check_seen(c, obj, kind, mark);
}

struct seen *check_seen_at(struct check *c, uint64_t n)
{
	return c->seen[n].obj ? &c->seen[n] : NULL;
}

int check_seen_begin(struct check *c, uint64_t expected)
{
	c->seen_mask = 1023;
	while (c->seen_mask < expected * 2)
		c->seen_mask = c->seen_mask * 2 + 1;
	c->seen = map_zeroed((c->seen_mask + 1) * sizeof(c->seen[0]));
	return c->seen ? 0 : -ENOMEM;
}

void check_seen_end(struct check *c)
{
	unmap(c->seen, (c->seen_mask + 1) * sizeof(c->seen[0]));
	unmap(c->queue, c->queue_room * sizeof(c->queue[0]));
}

/* ---- directories ------------------------------------------------------------------------------------- */

static bool queue_grow(struct check *c)
{
	uint64_t room = c->queue_room ? c->queue_room * 2 : 1024;
	struct inode **queue = map_zeroed(room * sizeof(*queue));

	if (!queue)
		return false;
	if (c->queue)
		memcpy(queue, c->queue, c->tail * sizeof(*queue));
	unmap(c->queue, c->queue_room * sizeof(*queue));
	c->queue = queue;
	c->queue_room = room;
	return true;
}

/* A directory to visit: kept by a reference, unless nobody else is there. */
bool check_queue(struct check *c, struct inode *dir)
{
	bool got = c->alone;
	int k;

	if (c->tail == c->queue_room && !queue_grow(c)) {
		c->grew = true;
		return false;
	}
	if (!got) {
		epoch_enter(c->self);
		got = inode_get_epoch(c->self, dir, &k);
		if (got)
			hand_forget(c->self, k); /* more than the ledger holds */
		epoch_exit(c->self);
	}
	if (got)
		c->queue[c->tail++] = dir;
	return got;
}

/* SPDX-License-Identifier: MIT */
/*
 * check.c - shelf_check: walk all that can be reached and compare what is stored twice.
 *
 * Data: private tables of this call, mapped for its time: inodes seen (with the number of their names), a
 * queue of directories, a bitmap of data pages.  Each directory is looked at under its lock, so its
 * own entries are judged at one moment; link counts and page totals are exact for a shelf at rest,
 * and may be reported falsely for one that is being changed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "api/api.h"
#include "api/check_priv.h"
#include "base/syscall.h"

#define BARRIER_NS 1000000000L

void check_fault(struct check *c, const char *format, ...)
{
	char text[200];
	va_list args;

	c->faults++;
	if (!c->say)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	c->say(c->ctx, text);
}

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

/* ---- what was seen ------------------------------------------------------------------------------ */

/* NULL: the table is full, since the shelf grew meanwhile. */
struct seen *check_seen(struct check *c, struct inode *inode)
{
	uint64_t at = ((uintptr_t)inode >> 6) * 0x9e3779b97f4a7c15ULL >> 20;

	for (uint64_t tries = 0; tries <= c->mask; tries++, at++) {
		struct seen *s = &c->seen[at & c->mask];

		if (!s->inode)
			s->inode = inode;
		if (s->inode == inode)
			return s;
	}
	c->overflow = true;
	return NULL;
}

/* A directory to visit: kept by a reference. */
static void queue_add(struct check *c, struct inode *dir)
{
	bool got;

	if (c->tail > c->mask) {
		c->overflow = true;
		return;
	}
	epoch_enter(c->self);
	got = inode_get_epoch(dir);
	epoch_exit(c->self);
	if (got)
		c->queue[c->tail++] = dir;
}

/* ---- directories ---------------------------------------------------------------------------------- */

static bool inode_plausible(struct check *c, struct inode *inode)
{
	switch (page_is_inside(c->self->seg, inode) ? inode_type(inode) : 0) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		return true;
	default:
		return false;
	}
}

static bool name_plausible(const struct dentry *d)
{
	return d->len && d->len <= NAME_LIMIT && !d->name[d->len] && !memchr(d->name, '/', d->len) &&
	       strlen(d->name) == d->len;
}

static void check_entry_locked(struct check *c, struct inode *dir, struct dentry *d, uint64_t place)
{
	unsigned long long ino = dir->ino;

	if (d->parent != dir)
		check_fault(c, "directory %llu: entry %.64s says it belongs elsewhere", ino, d->name);
	if (d->cookie != place + DIR_FIRST_COOKIE)
		check_fault(c, "directory %llu: entry %.64s stands at a wrong place", ino, d->name);
	if (!name_plausible(d))
		check_fault(c, "directory %llu: a damaged name", ino);
	else if (dentry_find_locked(dir, dentry_hash(c->self, d->name, d->len), d->name, d->len) != d)
		check_fault(c, "directory %llu: %.64s is listed but cannot be found", ino, d->name);
}

/* One entry's inode: counts the name, queues a subdirectory. */
static void check_target_locked(struct check *c, struct inode *dir, struct dentry *d, struct inode *inode,
				uint64_t *subdirs)
{
	struct seen *s;

	if (!inode_plausible(c, inode)) {
		check_fault(c, "directory %llu: %.64s leads to no inode", (unsigned long long)dir->ino, d->name);
		return;
	}
	s = check_seen(c, inode);
	if (!s)
		return;
	s->names++;
	if (inode_type(inode) != S_IFDIR)
		return;
	++*subdirs;
	if (load_acquire(&inode->dir.parent) != dir) /* pairs with rename's store; the lock keeps it */
		check_fault(c, "directory %llu: %.64s has another parent", (unsigned long long)dir->ino, d->name);
	if (s->names == 1)
		queue_add(c, inode);
	else
		check_fault(c, "directory %llu has %u names", (unsigned long long)inode->ino, s->names);
}

static void check_totals_locked(struct check *c, struct inode *dir, uint64_t entries, uint64_t subdirs)
{
	uint32_t nlink = load_relaxed(&dir->nlink); /* relaxed, both: under the lock */
	uint64_t size = load_relaxed(&dir->size);

	if (nlink != subdirs + 2)
		check_fault(c, "directory %llu has %u links, should have %llu", (unsigned long long)dir->ino, nlink,
			    (unsigned long long)subdirs + 2);
	if (size != DIR_EMPTY_SIZE + entries * DIR_ENTRY_SIZE)
		check_fault(c, "directory %llu says %llu bytes for %llu entries", (unsigned long long)dir->ino,
			    (unsigned long long)size, (unsigned long long)entries);
}

static void check_dir_locked(struct check *c, struct inode *dir)
{
	uint64_t place = 0, entries = 0, subdirs = 0, word;

	for (; (word = radix_next_epoch(&dir->dir.index, &place, UINT64_MAX)); place++) {
		struct dentry *d = (struct dentry *)(uintptr_t)word;
		struct inode *inode = page_is_inside(c->self->seg, d) ? load_relaxed(&d->inode) : NULL; /* locked */

		if (!inode)
			continue; /* on its way in or out */
		entries++;
		check_entry_locked(c, dir, d, place);
		check_target_locked(c, dir, d, inode, &subdirs);
	}
	check_totals_locked(c, dir, entries, subdirs);
}

static void check_tree(struct check *c)
{
	struct inode *root = vfs_root_of(c->self)->root;
	struct seen *s = check_seen(c, root);

	s->names = 1;
	queue_add(c, root);
	for (uint64_t head = 0; head < c->tail; head++) {
		struct inode *dir = c->queue[head];

		lock_acquire(&dir->lock, &c->self->locker, LOCK_DIR);
		if (!(load_relaxed(&dir->flags) & INODE_DEAD)) /* under the lock */
			check_dir_locked(c, dir);
		lock_release(&dir->lock, &c->self->locker, LOCK_DIR);
		inode_put(c->self, dir);
	}
}

/* ---- the whole --------------------------------------------------------------------------------------- */

static int check_begin(struct check *c)
{
	uint64_t inodes = (uint64_t)max_of(vfs_inodes(c->self->seg), (int64_t)0);
	struct segment_space space;

	segment_space(c->self->seg, &space);
	c->mask = 1023;
	while (c->mask < inodes * 2)
		c->mask = c->mask * 2 + 1;
	c->seen_bytes = (c->mask + 1) * sizeof(c->seen[0]);
	c->queue_bytes = (c->mask + 1) * sizeof(c->queue[0]);
	c->pages_bytes = c->self->seg->size / PAGE_BYTES / 8 + 1;
	c->seen = map_zeroed(c->seen_bytes);
	c->queue = map_zeroed(c->queue_bytes);
	c->pages = map_zeroed(c->pages_bytes);
	return c->seen && c->queue && c->pages ? 0 : -ENOMEM;
}

static void check_end(struct check *c)
{
	unmap(c->seen, c->seen_bytes);
	unmap(c->queue, c->queue_bytes);
	unmap(c->pages, c->pages_bytes);
}

static void check_allocator(struct check *c)
{
	struct segment_counts counts;

	if (segment_check(c->self, &counts))
		check_fault(c, "allocator: %s", counts.first_error);
	if (counts.kind[PAGE_DATA] > c->data_pages)
		check_fault(c, "%llu data pages belong to no file",
			    (unsigned long long)(counts.kind[PAGE_DATA] - c->data_pages));
}

int64_t shelf_check(struct shelf *shelf, void (*say)(void *ctx, const char *fault), void *ctx)
{
	struct segment *seg = (struct segment *)(void *)shelf;
	struct check c = { .self = slot_self(seg), .say = say, .ctx = ctx };
	int err;

	if (!c.self)
		return -ENOMEM;
	if (seg->read_only)
		return -EROFS;
	slot_reap(c.self);
	task_sweep(c.self);
	epoch_barrier(c.self, BARRIER_NS);
	err = check_begin(&c);
	if (!err) {
		check_tree(&c);
		check_open_files(&c);
		check_inodes(&c);
		check_allocator(&c);
		if (c.overflow)
			err = -EAGAIN;
	}
	check_end(&c);
	return err ? err : c.faults;
}

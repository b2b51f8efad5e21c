/* SPDX-License-Identifier: MIT */
/*
 * The order of locks, in one list: a thread may take a lock only of a class
 * that stands below every class it holds.  Two of one class: lower address
 * first (lock_acquire_pair), or parent directory before child.
 */
#ifndef SHELF_LOCK_LOCK_ORDER_H
#define SHELF_LOCK_LOCK_ORDER_H

enum lock_class {
	LOCK_RECOVERY, /* a dead thread's slot; taken with lock_try only, so at any time */
	LOCK_BIG, /* biglock scheme only */
	LOCK_TASKS, /* list of tasks, fork's copy */
	LOCK_RENAME, /* one in a segment: moves of directories between directories */
	LOCK_DIR, /* a directory's entries (inode.lock of a directory) */
	LOCK_FILEPOS, /* an open file's offset */
	LOCK_INODE, /* data and attributes of a non-directory (inode.lock) */
	LOCK_FLOCKS, /* record locks of one inode / the deadlock graph */
	LOCK_TABLE, /* a descriptor table */
	LOCK_WAITQ, /* wait queues, watches */
	LOCK_STEAL, /* another thread's stock of pages, when memory is scarce; taken with lock_try by thieves */
	LOCK_LEAF, /* page allocator, object caches, slots: held for a bounded time, never waited under */
	LOCK_CLASSES
};

#endif

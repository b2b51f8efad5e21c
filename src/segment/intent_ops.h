/* SPDX-License-Identifier: MIT */
/* Every multi-step update that leaves an intent record, by layer. */
#ifndef SHELF_SEGMENT_INTENT_OPS_H
#define SHELF_SEGMENT_INTENT_OPS_H

enum intent_op {
	INTENT_NONE,
	/* segment */
	INTENT_GROW,
	INTENT_PAGE_RUN,
	INTENT_SLAB,
	/* fd */
	INTENT_FD_INSTALL,
	INTENT_FD_DUP2,
	INTENT_FD_CLOSE,
	INTENT_FD_COPY,
	INTENT_FD_NEAR, /* a near number, without the table's lock */
	/* vfs, ramfs */
	INTENT_CREATE,
	INTENT_LINK,
	INTENT_UNLINK,
	INTENT_RMDIR,
	INTENT_RENAME,
	INTENT_EXCHANGE,
	INTENT_DROP, /* the last reference of an inode is gone: its data are being freed */
	INTENT_EXTEND,
	INTENT_TRUNCATE,
	INTENT_FALLOCATE,
	INTENT_ATTR, /* mode, owner, times, ACLs, xattrs of one inode */
	/* task */
	INTENT_FORK,
	INTENT_EXIT,
	INTENT_OPS
};

#endif

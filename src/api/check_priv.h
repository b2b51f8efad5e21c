/* SPDX-License-Identifier: MIT */
/* check_priv.h - what the two halves of shelf_check share. */
#ifndef SHELF_API_CHECK_PRIV_H
#define SHELF_API_CHECK_PRIV_H

#include "api/api.h"

struct seen {
	struct inode *inode;
	uint32_t names; /* found in directories */
	uint32_t open; /* found in descriptor tables, or as somebody's place */
};

struct check {
	struct slot *self;
	void (*say)(void *ctx, const char *fault);
	void *ctx;
	int64_t faults;
	bool overflow; /* more inodes than there were at the start */
	struct seen *seen; /* open addressing */
	uint64_t mask;
	struct inode **queue;
	uint64_t tail;
	unsigned char *pages; /* a bit for each page of the segment: a file has it */
	uint64_t data_pages;
	size_t seen_bytes, queue_bytes, pages_bytes;
};

__attribute__((format(printf, 2, 3))) void check_fault(struct check *c, const char *format, ...);
struct seen *check_seen(struct check *c, struct inode *inode);
/* check_files.c */
void check_open_files(struct check *c);
void check_inodes(struct check *c);

#endif

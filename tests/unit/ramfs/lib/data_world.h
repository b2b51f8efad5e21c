/* SPDX-License-Identifier: MIT */
/* data_world.h - a fresh segment with a root directory's worth of file system in it, for tests of file data. */
#ifndef TESTS_RAMFS_DATA_WORLD_H
#define TESTS_RAMFS_DATA_WORLD_H

#include "harness.h"

#include "ramfs/data_priv.h"
#include "segment/owned.h"

struct data_world {
	char name[TEST_NAME_SIZE];
	struct segment *seg;
	struct slot *self;
	struct shelf_cred cred;
	struct who w;
};

/* size 0: 64 MiB */
void world_open(struct data_world *world, uint64_t size);
void world_close(struct data_world *world);
/* The calling thread's own view of the world. */
struct who world_who(struct data_world *world);

struct inode *world_file(struct who *w); /* a regular file without a name, one reference */
ssize_t world_pwrite(struct who *w, struct inode *inode, const void *buf, size_t n, uint64_t pos);
ssize_t world_append(struct who *w, struct inode *inode, const void *buf, size_t n);
/* As pread does it: in a section, else slow. */
ssize_t world_pread(struct who *w, struct inode *inode, void *buf, size_t n, uint64_t pos);
int64_t world_seek(struct who *w, struct inode *inode, uint64_t off, int whence);
uint64_t world_size(struct inode *inode);
uint64_t world_pages(struct inode *inode);
/* Data pages in use in the whole segment, after everything retired is freed.  Fails if the segment does not add up. */
uint64_t world_data_pages(struct data_world *world);
uint64_t world_nodes(struct data_world *world); /* radix nodes in use, in the whole segment */

#endif

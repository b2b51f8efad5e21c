/* SPDX-License-Identifier: MIT */
#include "data_world.h"

#include "vfs/vfs.h"

void world_open(struct data_world *world, uint64_t size)
{
	struct segment_options opt = {.size = size ? size : 64UL << 20, .max_slots = 64};
	char why[256] = "";

	memset(world, 0, sizeof(*world));
	if (segment_create(fresh_name(world->name), &opt, &world->seg, why) != 0)
		fprintf(stderr, "%s\n", why);
	CHECK(world->seg);
	CHECK(epoch_init(world->seg) == 0);
	CHECK(epoch_attach(world->seg) == 0);
	CHECK(vfs_attach(world->seg) == 0);
	CHECK(ramfs_data_attach(world->seg) == 0);
	world->self = slot_self(world->seg);
	CHECK(world->self);
	CHECK(vfs_init(world->self, 0755, 0, 0) == 0);
	segment_set_ready(world->seg);
	world->cred.caps = SHELF_CAP_ALL;
	world->w = world_who(world);
}

void world_close(struct data_world *world)
{
	CHECK(!segment_poisoned(world->seg));
	segment_remove(world->name, NULL);
	segment_detach(world->seg);
}

struct who world_who(struct data_world *world)
{
	return (struct who){.self = slot_self(world->seg), .cred = &world->cred};
}

struct inode *world_file(struct who *w)
{
	return inode_new(w, S_IFREG | 0644, 0, 0);
}

ssize_t world_pwrite(struct who *w, struct inode *inode, const void *buf, size_t n, uint64_t pos)
{
	struct iovec iov = {(void *)(uintptr_t)buf, n};

	return ramfs_write(w, inode, &iov, 1, &pos, n, 0);
}

ssize_t world_append(struct who *w, struct inode *inode, const void *buf, size_t n)
{
	struct iovec iov = {(void *)(uintptr_t)buf, n};
	uint64_t pos = 0;

	return ramfs_write(w, inode, &iov, 1, &pos, n, WRITE_APPEND);
}

ssize_t world_pread(struct who *w, struct inode *inode, void *buf, size_t n, uint64_t pos)
{
	struct iovec iov = {buf, n};
	ssize_t got;

	epoch_enter(w->self);
	got = ramfs_pread_epoch(w->self, inode, buf, n, pos);
	epoch_exit(w->self);
	return got == DATA_AGAIN ? ramfs_read_slow(w->self, inode, &iov, 1, pos, n) : got;
}

int64_t world_seek(struct who *w, struct inode *inode, uint64_t off, int whence)
{
	int64_t at;

	epoch_enter(w->self);
	at = ramfs_seek_epoch(w->self, inode, off, whence);
	epoch_exit(w->self);
	return at;
}

uint64_t world_size(struct inode *inode)
{
	return load_acquire(&inode->size);
}

uint64_t world_pages(struct inode *inode)
{
	return load_acquire(&inode->file.page_count);
}

static struct segment_counts world_counts(struct data_world *world)
{
	struct segment_counts c;

	epoch_barrier(world->self, 1000000000);
	if (segment_check(world->self, &c) != 0)
		fprintf(stderr, "segment: %s\n", c.first_error);
	CHECK(!c.errors);
	return c;
}

uint64_t world_data_pages(struct data_world *world)
{
	return world_counts(world).kind[PAGE_DATA];
}

uint64_t world_nodes(struct data_world *world)
{
	struct segment_counts c = world_counts(world);

	return c.objects[CACHE_576] - c.magazine[CACHE_576];
}

/* SPDX-License-Identifier: MIT */
/* seek.c - the offset of an open file. */
#include <unistd.h>

#include "api/api.h"

static int64_t seek_regular(struct use *u, uint64_t pos, int64_t offset, int whence)
{
	int64_t size = (int64_t)load_acquire(&u->f->inode->size); /* pairs with the writer's store */

	switch (whence) {
	case SEEK_SET:
		break;
	case SEEK_CUR:
		offset = (int64_t)((uint64_t)offset + pos);
		break;
	case SEEK_END:
		offset = (int64_t)((uint64_t)offset + (uint64_t)size);
		break;
	case SEEK_DATA:
	case SEEK_HOLE:
		if (offset < 0)
			return -ENXIO;
		epoch_enter(u->w.self);
		offset = ramfs_seek_epoch(u->w.self, u->f->inode, (uint64_t)offset, whence);
		epoch_exit(u->w.self);
		return offset;
	default:
		return -EINVAL;
	}
	return offset < 0 ? -EINVAL : offset;
}

/* Positions in a directory are cookies: what d_off said. */
static int64_t seek_directory(uint64_t pos, int64_t offset, int whence)
{
	if (whence == SEEK_CUR)
		offset = (int64_t)((uint64_t)offset + pos);
	else if (whence != SEEK_SET)
		return -EINVAL;
	return offset < 0 ? -EINVAL : offset;
}

static int64_t seek_once(struct use *u, off_t offset, int whence)
{
	uint64_t pos;
	int64_t to;
	int err;

	if (!file_has_inode(u->f))
		return -ESPIPE;
	err = use_pos_lock(u);
	if (err)
		return err;
	pos = load_relaxed(&u->f->pos); /* relaxed: [p] */
	to = u->f->head.type == FD_TYPE_DIR ? seek_directory(pos, offset, whence) :
					      seek_regular(u, pos, offset, whence);
	if (to >= 0)
		store_relaxed(&u->f->pos, (uint64_t)to);
	use_pos_unlock(u);
	return to;
}

off_t shelf_lseek(struct shelf_task *t, int fd, off_t offset, int whence)
{
	struct use u;
	int64_t r;

	do {
		r = use_begin(&u, t, fd, false);
		if (r)
			return r;
		r = u.w.self->seg->read_only ? -EROFS : seek_once(&u, offset, whence);
		use_end(&u);
	} while (r == USE_AGAIN);
	return r;
}

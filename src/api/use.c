/* SPDX-License-Identifier: MIT */
/* use.c - the slow half of a descriptor in use: counting it, waiting for its offset. */
#include "api/api.h"

int use_pin(struct use *u)
{
	struct slot *self = u->w.self;
	struct fd_file *head = &u->f->head;
	int k;

	if (u->pinned)
		return 0;
	if (!fd_ref_get(self, head, &k)) /* closed for good since we borrowed it */
		return USE_AGAIN;
	fd_return_epoch(self, u->w.files, head);
	epoch_exit(self);
	u->pinned = true;
	return 0;
}

int use_begin_pinned(struct use *u, struct shelf_task *t, int fd, bool raw)
{
	struct fd_file *head;
	int err = who_init(&u->w, t);

	if (err)
		return err;
	err = fd_get(u->w.self, u->w.files, fd, &head);
	if (err)
		return err;
	u->f = file_of(head);
	u->pinned = true;
	u->pos_locked = false;
	if (use_takes(head->type, raw))
		return 0;
	fd_put(u->w.self, head);
	return -EBADF;
}

int use_begin_change(struct use *u, struct shelf_task *t, int fd, bool raw)
{
	struct who w;
	int err = who_change(&w, t);

	return err ? err : use_begin_pinned(u, t, fd, raw);
}

LOCK_NO_ANALYSIS int use_pos_lock_slow(struct use *u)
{
	int err;

	if (u->w.self->seg->read_only)
		return -EROFS;
	err = use_pin(u);
	if (err)
		return err;
	lock_acquire(&u->f->pos_lock, &u->w.self->locker, LOCK_FILEPOS);
	u->pos_locked = true;
	return 0;
}

int use_changed(struct use *u, int err, uint32_t event)
{
	if (!err && event)
		notify_file(u->w.self, u->f, event);
	use_end(u);
	return err;
}

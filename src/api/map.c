/* SPDX-License-Identifier: MIT */
/*
 * map.c - what the runtime behind `shelf run` needs in order to map files.
 *
 * A map keeps its file by a descriptor of its own (FD_TYPE_MAP) beyond all numbers that a program sees: copied by
 * fork, closed by exec, swept after a death.  By another one it holds the open file that it was made of, as the last of those who have it
 * closes it: that is when its flock ends and inotify tells of it.
 */
#include "api/api.h"

/* The inode, counted, in the ledger; a file that is open cannot lose it. */
static struct file *map_file_new(struct slot *self, struct inode *inode, int *err)
{
	struct file *f;
	int k;

	epoch_enter(self);
	inode_get_epoch(self, inode, &k);
	epoch_exit(self);
	ramfs_map_get(inode);
	f = file_new(self, inode, FD_TYPE_MAP, O_RDONLY, err);
	if (f)
		return f;
	ramfs_map_put(self, inode); /* the ledger still has the inode */
	inode_put(self, inode);
	return NULL;
}

static int map_open(struct use *u, int min, struct api_map *out)
{
	struct slot *self = u->w.self;
	struct file *f;
	int fd, err;

	if (u->f->head.type != FD_TYPE_REG)
		return -ENODEV;
	f = map_file_new(self, u->f->inode, &err);
	if (!f)
		return err;
	*out = (struct api_map){ .inode = f->inode, .readable = file_readable(u->f), .writable = file_writable(u->f) };
	fd = fd_reserve(self, u->w.files, min, FD_NUMBER_MAX);
	if (fd < 0)
		fd_put(self, &f->head);
	else
		fd_publish(self, u->w.files, fd, &f->head, FD_CLOEXEC_BIT);
	return fd;
}

int api_map_open(struct shelf_task *t, int fd, int min, struct api_map *out)
{
	struct use u;
	int err = use_begin_change(&u, t, fd, false);

	if (err)
		return err;
	err = map_open(&u, min, out);
	use_end(&u);
	return err;
}

int api_map_hold(struct shelf_task *t, int fd, int min, const void **which)
{
	struct fd_file *head;
	struct who w;
	int at, err = who_change(&w, t);

	if (!err)
		err = fd_get(w.self, w.files, fd, &head);
	if (err)
		return err;
	at = fd_reserve(w.self, w.files, min, FD_NUMBER_MAX);
	if (at < 0) {
		fd_put(w.self, head);
		return at;
	}
	*which = head;
	fd_publish(w.self, w.files, at, head, FD_CLOEXEC_BIT);
	return at;
}

/* Not as close(): record locks stay. */
void api_map_close(struct shelf_task *t, int fd)
{
	struct fd_file *head;
	struct who w;

	if (!who_change(&w, t) && !fd_remove(w.self, w.files, fd, &head))
		fd_put(w.self, head);
}

void api_map_settle(struct shelf_task *t, int fd, uint32_t drops)
{
	struct fd_file *head;
	struct who w;

	if (who_change(&w, t) || fd_get(w.self, w.files, fd, &head))
		return;
	if (ref_read(&head->count) == 2) /* this table's, and ours: no child has it */
		ramfs_map_settle(w.self, file_of(head)->inode, drops);
	fd_put(w.self, head);
}

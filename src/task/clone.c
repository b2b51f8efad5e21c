/* SPDX-License-Identifier: MIT */
/* clone.c - the public calls on tasks: what fork, exec, exit do to files. */
#include <string.h>
#include <sys/resource.h>

#include "base/syscall.h"
#include "task/task_priv.h"

#define NO_LIMIT_GIVEN 1024

static uint64_t limit_of_process(int resource, uint64_t otherwise)
{
	struct rlimit r;

	/* prlimit64(0, ...): as getrlimit, and never a call that is ours */
	if (sys_call6(SYS_prlimit64, 0, resource, 0, (long)&r, 0, 0))
		return otherwise;
	return r.rlim_cur;
}

static int task_fill_fresh(struct slot *self, struct shelf_task *t, const struct shelf_cred *c)
{
	int err = cred_set(self, t, c);

	if (!err)
		err = fs_begin(self, t);
	return err ? err : fd_table_create_at(self, &t->files);
}

static int task_finish(struct slot *self, struct shelf_task *t, int err, struct shelf_task **out)
{
	uint64_t stuck;

	if (err) {
		task_claim(self, t, load_relaxed(&t->owner), &stuck); /* nobody else has heard of it */
		task_release(self, t);
		return err;
	}
	task_start(t);
	*out = t;
	return 0;
}

int shelf_task_create(struct shelf *shelf, const struct shelf_cred *cred, struct shelf_task **out)
{
	struct slot *self = slot_self(shelf_segment(shelf));
	struct shelf_cred mine;
	struct shelf_task *t;
	int err;

	if (!self)
		return -ENOMEM;
	if (segment_poisoned(self->seg))
		return -EIO;
	err = cred ? 0 : cred_of_process(&mine);
	if (err)
		return err;
	if (self->seg->read_only)
		return task_private_new(self, cred ? cred : &mine, out);
	t = task_new(self);
	if (!t)
		return -ENOSPC;
	store_relaxed(&t->nofile, limit_of_process(RLIMIT_NOFILE, NO_LIMIT_GIVEN)); /* nobody uses it yet */
	store_relaxed(&t->fsize_not, ~limit_of_process(RLIMIT_FSIZE, UINT64_MAX)); /* the same */
	return task_finish(self, t, task_fill_fresh(self, t, cred ? cred : &mine), out);
}

static int clone_fs(struct slot *self, struct shelf_task *parent, struct shelf_task *t, unsigned flags)
{
	struct fs_context *fs = load_relaxed(&parent->fs); /* relaxed: [q] */

	if (!(flags & SHELF_CLONE_FS))
		return fs_copy_to(self, fs, t);
	fs_share_to(self, fs, t);
	return 0;
}

static int clone_files(struct slot *self, struct shelf_task *parent, struct shelf_task *t, unsigned flags)
{
	struct fd_table *files = load_relaxed(&parent->files); /* relaxed: [q] */

	if (!(flags & SHELF_CLONE_FILES))
		return fd_table_copy_to(self, files, &t->files);
	fd_table_share_to(self, files, &t->files);
	return 0;
}

int shelf_task_fork(struct shelf_task *parent, unsigned clone_flags, struct shelf_task **out)
{
	struct who w;
	struct shelf_task *t;
	int err = who_init(&w, parent);

	if (err)
		return err;
	if (clone_flags & ~(SHELF_CLONE_FILES | SHELF_CLONE_FS))
		return -EINVAL;
	if (w.self->seg->read_only)
		return -EROFS;
	t = task_new(w.self);
	if (!t)
		return -ENOSPC;
	store_relaxed(&t->nofile, load_relaxed(&parent->nofile)); /* a number */
	store_relaxed(&t->fsize_not, load_relaxed(&parent->fsize_not)); /* a number */
	err = cred_set(w.self, t, w.cred);
	if (!err)
		err = clone_fs(w.self, parent, t, clone_flags);
	if (!err)
		err = clone_files(w.self, parent, t, clone_flags);
	return task_finish(w.self, t, err, out);
}

int shelf_task_adopt(struct shelf_task *t)
{
	struct slot *self = task_slot(t);

	if (!self)
		return -ENOMEM;
	if (t->private_)
		return 0;
	if (self->seg->read_only)
		return -EROFS;
	task_adopt_by(self, t);
	return task_claim_settled(self, t) ? 0 : -ESRCH; /* whoever made it died before this, and a sweeper was here first */
}

int shelf_task_exec(struct shelf_task *t)
{
	struct who w;
	int err = who_init(&w, t);

	if (err || t->private_)
		return err;
	if (w.self->seg->read_only)
		return -EROFS;
	err = task_unshare_files(w.self, t);
	if (err)
		return err;
	w.files = load_relaxed(&t->files); /* relaxed: [q] */
	fd_table_exec(w.self, w.files, task_drop_file, &w);
	return 0;
}

static int unshare_fs(struct slot *self, struct shelf_task *t)
{
	struct fs_context *old = load_relaxed(&t->fs); /* relaxed: [q] */

	return tally_read(&old->users) == 1 ? 0 : fs_copy_to(self, old, t);
}

int shelf_task_unshare(struct shelf_task *t, unsigned clone_flags)
{
	struct who w;
	int err = who_init(&w, t);

	if (err)
		return err;
	if (clone_flags & ~(SHELF_CLONE_FILES | SHELF_CLONE_FS))
		return -EINVAL;
	if (w.self->seg->read_only)
		return t->private_ ? 0 : -EROFS;
	if (clone_flags & SHELF_CLONE_FS)
		err = unshare_fs(w.self, t);
	if (!err && (clone_flags & SHELF_CLONE_FILES))
		err = task_unshare_files(w.self, t);
	return err;
}

int shelf_task_exit(struct shelf_task *t)
{
	struct slot *self = task_slot(t);
	uint64_t stuck;

	if (!self)
		return -ENOMEM;
	if (t->private_) {
		task_private_free(t);
		return 0;
	}
	if (self->seg->read_only)
		return -EROFS;
	while (!task_claim(self, t, load_relaxed(&t->owner), &stuck)) /* relaxed: whoever it is, the caller speaks for it */
		if (!task_settle_releaser(self, stuck))
			return -ESRCH; /* somebody else takes it apart */
	task_release(self, t);
	return 0;
}

int shelf_task_find(struct shelf *shelf, pid_t pid, struct shelf_task **out)
{
	struct slot *self = slot_self(shelf_segment(shelf));
	struct shelf_task *t = NULL;

	if (!self)
		return -ENOMEM;
	epoch_enter(self);
	while ((t = task_next_epoch(self, t)))
		if (task_owner_pid(load_relaxed(&t->owner)) == (uint32_t)pid && load_acquire(&t->state) == TASK_LIVE)
			break; /* acquire: pairs with task_start, the task is whole */
	epoch_exit(self);
	*out = t;
	return t ? 0 : -ESRCH;
}

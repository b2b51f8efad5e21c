/* SPDX-License-Identifier: MIT */
/*
 * host.c - what the runtime behind `shelf run` needs to know of a task beside the public calls.
 *
 * Numbers of the kernel's own descriptors are marked in the task's table, so that the lowest free number is
 * free in both.  Marks are copied by fork, and taken away before exec: the new image learns them again.
 */
#include "task/task_priv.h"

int task_mark_host(struct shelf_task *t, int fd)
{
	struct fd_file *replaced;
	struct who w;
	int err = who_init(&w, t);

	if (err)
		return err;
	err = fd_mark_host(w.self, w.files, fd, &replaced);
	if (replaced)
		task_drop_file(w.self, &w, fd, replaced);
	return err;
}

int task_mark_free(struct shelf_task *t, int fd)
{
	struct who w;
	int err = who_init(&w, t);

	return err ? err : fd_mark_free(w.self, w.files, fd);
}

void task_unmark_host(struct shelf_task *t, int fd)
{
	struct fd_file *head;
	struct who w;

	if (!who_init(&w, t) && !fd_remove_host(w.self, w.files, fd, &head))
		task_drop_file(w.self, &w, fd, head);
}

int task_close_parking(struct shelf_task *t, int fd, atomic_u64 *parked)
{
	struct fd_file *head;
	struct who w;
	int err = who_init(&w, t);

	if (!err)
		err = fd_remove_parking(w.self, w.files, fd, parked, &head);
	if (!err)
		task_drop_file(w.self, &w, fd, head);
	return err;
}

enum fd_number task_number_kind(struct shelf_task *t, int fd)
{
	struct who w;

	return who_init(&w, t) ? FD_NUMBER_NONE : fd_number_kind(w.self, w.files, fd);
}

int task_next_number(struct shelf_task *t, int fd)
{
	struct who w;

	return who_init(&w, t) ? -1 : fd_next_open(w.self, w.files, fd);
}

int task_give(struct shelf_task *from, int fd, struct shelf_task *to, int min)
{
	struct fd_file *file;
	struct who w;
	int n = who_init(&w, from);

	if (n)
		return n;
	n = fd_get(w.self, w.files, fd, &file);
	if (n)
		return n;
	n = fd_reserve(w.self, load_relaxed(&to->files), min, FD_NUMBER_MAX); /* as in who_init */
	if (n < 0)
		fd_put(w.self, file);
	else
		fd_publish(w.self, load_relaxed(&to->files), n, file, 0);
	return n;
}

void task_take_back(struct shelf_task *t, int fd)
{
	struct fd_file *head;
	struct who w;

	if (!who_init(&w, t) && !fd_remove(w.self, w.files, fd, &head))
		task_drop_file(w.self, &w, fd, head);
}

int task_adopt_as(struct shelf_task *t, uint32_t pid, uint64_t start_time)
{
	struct slot *self = task_slot(t);

	/* As task_adopt_by and shelf_task_adopt. */
	(void)xchg_acq_rel(&t->owner, task_owner_word(pid, start_time));
	kill_point();
	return self && task_claim_settled(self, t) ? 0 : -ESRCH;
}

/* The task may be gone by now, and another of ours be in its memory. */
void task_hand_over(struct shelf *shelf, struct shelf_task *t, uint64_t cred_id, uint32_t pid, uint64_t start_time)
{
	struct slot *self = slot_self(shelf_segment(shelf));
	uint64_t ours;

	if (!self)
		return;
	ours = task_owner_word(load_relaxed(&self->pid), load_relaxed(&self->start_time)); /* our slot's */
	epoch_enter(self);
	if (task_is_listed(self, t) && load_relaxed(&t->cred_id) == cred_id) /* another's number is another */
		tracked_cas(&t->owner, &ours, task_owner_word(pid, start_time)); /* as the exchange in task_adopt_by */
	epoch_exit(self);
}

int task_refresh_cred(struct shelf_task *t)
{
	struct shelf_cred c;
	int err = cred_of_process(&c);

	return err ? err : shelf_task_setcred(t, &c);
}

/* In a section. */
static struct shelf_task *find_pid(struct slot *self, uint32_t pid, uint64_t *owner)
{
	struct shelf_task *t = NULL;

	while ((t = task_next_epoch(self, t))) {
		*owner = load_acquire(&t->owner); /* pairs with task_adopt_by */
		if (task_owner_pid(*owner) == pid)
			return t;
	}
	return NULL;
}

void task_reap(struct slot *self, uint32_t pid)
{
	struct shelf_task *t;
	uint64_t owner, stuck;
	bool mine, gone;

	epoch_enter(self);
	t = find_pid(self, pid, &owner);
	gone = t && process_gone(pid, task_owner_start(owner));
	epoch_exit(self);
	if (!gone)
		return;
	slot_reap_process(self, pid); /* its threads first: what they had in hand may be the task's */
	do {
		stuck = 0;
		epoch_enter(self);
		t = find_pid(self, pid, &owner);
		mine = t && process_gone(pid, task_owner_start(owner)) && task_claim(self, t, owner, &stuck);
		epoch_exit(self);
	} while (task_settle_releaser(self, stuck));
	if (mine)
		task_release(self, t);
}

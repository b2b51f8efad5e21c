/* SPDX-License-Identifier: MIT */
/* task.c - the list of tasks: making, starting, taking apart. */
#include <string.h>

#include "base/syscall.h"
#include "segment/hand.h"
#include "task/task_priv.h"

struct task_root *task_root_of(struct slot *self)
{
	return segment_root(self->seg, SEG_ROOT_TASKS);
}

static void task_free(struct slot *self, struct retired *r)
{
	switch (r->aux) {
	case TASK_OBJECT_TASK:
		mem_free(self, container_of(r, struct shelf_task, retired), sizeof(struct shelf_task));
		break;
	case TASK_OBJECT_FS:
		mem_free(self, container_of(r, struct fs_context, retired), sizeof(struct fs_context));
		break;
	default:
		mem_free(self, container_of(r, struct cred, retired), sizeof(struct cred));
	}
}

/* The credentials go with what names them. */
static void task_free_parts(struct slot *self, struct retired *r)
{
	if (r->aux == TASK_OBJECT_TASK)
		cred_free_older(self, &container_of(r, struct shelf_task, retired)->creds);
	else if (r->aux == TASK_OBJECT_CRED)
		cred_free_older(self, &container_of(r, struct cred, retired)->older);
}

/* A lock names a process that is dead: its task, and with it what it had open, goes. */
static void reap_process(struct slot *self, uint32_t pid, uint64_t start_time)
{
	(void)pid, (void)start_time;
	task_sweep(self);
}

int task_layer_attach(struct segment *seg)
{
	(void)seg;
	retire_register_parts(RETIRE_TASK, task_free_parts);
	retire_register(RETIRE_TASK, task_free);
	slot_register_gone(fs_slot_gone);
	flock_register_reap(reap_process);
	return 0;
}

int task_layer_init(struct slot *self)
{
	struct task_root *root = mem_alloc(self, sizeof(*root));

	if (!root)
		return -ENOSPC;
	memset(root, 0, sizeof(*root));
	int err = fd_table_create(self, &root->no_files);

	if (!err)
		segment_set_root(self->seg, SEG_ROOT_TASKS, root);
	return err;
}

struct slot *task_slot_slow(const struct shelf_task *t)
{
	struct segment *seg = attached_segment(t->hdr);

	return seg ? slot_self(seg) : NULL;
}

void task_adopt_by(struct slot *self, struct shelf_task *t)
{
	/* A full exchange: before the look at `releaser` in shelf_task_adopt.  The slot is ours. */
	(void)xchg_acq_rel(&t->owner, task_owner_word(load_relaxed(&self->pid), load_relaxed(&self->start_time)));
	kill_point();
}

/* Linked before it owns anything: if we die, a sweeper finds what it got so far. */
struct shelf_task *task_new(struct slot *self)
{
	struct task_root *root = task_root_of(self);
	int k;
	struct shelf_task *t = mem_alloc_noted(self, sizeof(*t), &k);

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->hdr = self->seg->hdr;
	task_adopt_by(self, t);
	lock_acquire(&root->lock, &self->locker, LOCK_TASKS);
	store_relaxed(&t->next, load_relaxed(&root->head)); /* published by the next store */
	hand_begin(self, &root->head, (uintptr_t)t, hand_bit(k), 0);
	tracked_store(&root->head, t); /* pairs with the load in task_next_epoch */
	hand_end(self, hand_bit(k));
	lock_release(&root->lock, &self->locker, LOCK_TASKS);
	return t;
}

void task_start(struct shelf_task *t)
{
	tracked_store(&t->state, TASK_LIVE);
}

struct shelf_task *task_next_epoch(struct slot *self, struct shelf_task *t)
{
	return load_acquire(t ? &t->next : &task_root_of(self)->head); /* pairs with the store in task_new */
}

uint64_t task_count(struct slot *self)
{
	struct shelf_task *t = NULL;
	uint64_t n = 0;

	epoch_enter(self);
	while ((t = task_next_epoch(self, t)) && page_is_inside(self->seg, t) && n < self->seg->size / sizeof(*t))
		n++; /* nobody has checked the list when a shelf is listed */
	epoch_exit(self);
	return n;
}

/* A thread in its slot.  Slot numbers alone are used again: by the next thread, which would look like the sweeper. */
static uint64_t releaser_word(uint32_t id, struct slot *s)
{
	_Static_assert(TASK_PID_BITS + 16 < 64, "slot number, tid, and some of the start time");
	return id | (uint64_t)load_relaxed(&s->tid) << 16 | load_relaxed(&s->start_time) << (16 + TASK_PID_BITS);
}

static bool releaser_alive(struct slot *self, uint64_t has)
{
	uint32_t id = has & 0xffff;
	struct slot *s = slot_by_id(self->seg, id);

	return s && slot_alive(self->seg, id) && releaser_word(id, s) == has;
}

/*
 * Nobody takes it apart, and what a dead one had of it in its ledger is where it belongs.  A slot that its image disowned by
 * exec has no start time any more, and its ledger still.
 */
static bool releaser_settled(struct slot *self, uint64_t has)
{
	struct slot *s = slot_by_id(self->seg, has & 0xffff);
	uint64_t now, disowned;

	if (!s || slot_state_of(s) != SLOT_LIVE)
		return true;
	now = releaser_word(has & 0xffff, s);
	disowned = has & ((UINT64_C(1) << (16 + TASK_PID_BITS)) - 1);
	return now != has && now != disowned;
}

bool task_is_listed(struct slot *self, const struct shelf_task *t)
{
	struct shelf_task *at = NULL;

	epoch_enter(self);
	do
		at = task_next_epoch(self, at);
	while (at && at != t);
	epoch_exit(self);
	return at != NULL;
}

bool task_settle_releaser(struct slot *self, uint64_t has)
{
	if (!has)
		return false;
	slot_takeover(self, has & 0xffff);
	return releaser_settled(self, has);
}

bool task_claim(struct slot *self, struct shelf_task *t, uint64_t owner, uint64_t *stuck)
{
	uint64_t has = load_relaxed(&t->releaser); /* relaxed: the CAS decides */

	*stuck = 0;
	/* A dead one may have had it off the list before it could say so: then it is the epoch's. */
	if (has && releaser_settled(self, has) && !task_is_listed(self, t))
		return false;
	if (has && !releaser_settled(self, has)) {
		*stuck = releaser_alive(self, has) ? 0 : has;
		return false;
	}
	if (!tracked_cas(&t->releaser, &has, releaser_word(slot_id(self), self)))
		return false;
	/*
	 * Found in a section long ago, and another has been done with it and ended since?  Pairs with the store
	 * in task_unlink, through that thread's end.
	 */
	if (load_acquire(&t->state) == TASK_GONE)
		return false;
	/* Adopted by another process since we asked about its owner?  Pairs with the exchange in task_adopt_by. */
	if (load_acquire(&t->owner) != owner) {
		tracked_store(&t->releaser, 0);
		return false;
	}
	tracked_store(&t->state, TASK_EXITING);
	return true;
}

/*
 * A sweeper that claimed it for its last owner's death looks at the owner next, and gives way to us or not: wait until it
 * has.  Pairs with the CAS in task_claim.
 */
bool task_claim_settled(struct slot *self, struct shelf_task *t)
{
	uint64_t has;

	while ((has = load_acquire(&t->releaser))) {
		if (load_acquire(&t->state) >= TASK_EXITING) /* pairs with task_claim */
			return false;
		if (releaser_alive(self, has))
			sys_call3(SYS_sched_yield, 0, 0, 0);
		else
			tracked_cas(&t->releaser, &has, 0);
	}
	return load_acquire(&t->state) < TASK_EXITING;
}

/* Off the list, and then retired: the ledger has it in between. */
static void task_unlink(struct slot *self, struct shelf_task *t)
{
	struct task_root *root = task_root_of(self);
	atomic_ptr(struct shelf_task) *at = &root->head;
	bool listed;
	int k;

	lock_acquire(&root->lock, &self->locker, LOCK_TASKS);
	while (load_relaxed(at) && load_relaxed(at) != t) /* relaxed: under the lock */
		at = &load_relaxed(at)->next;
	listed = load_relaxed(at) != NULL;
	if (listed) {
		k = retire_begin(self, at, (uintptr_t)load_relaxed(&t->next), 0, &t->retired, RETIRE_TASK, TASK_OBJECT_TASK);
		tracked_store(at, load_relaxed(&t->next));
		hand_end(self, 0);
	}
	tracked_store(&t->state, TASK_GONE); /* for whoever found it in the list long ago */
	lock_release(&root->lock, &self->locker, LOCK_TASKS);
	if (listed) /* else it went from the ledger of whoever took it off */
		epoch_retire_noted(self, &t->retired, k);
}

void task_drop_file(struct slot *self, void *ctx, int fd, struct fd_file *file)
{
	struct who *w = ctx;

	(void)fd;
	if (file->type == FD_TYPE_REG || file->type == FD_TYPE_DIR)
		flock_close_posix(w, container_of(file, struct file, head)->inode);
	fd_put(self, file);
}

/* Each table once: of the three fields two may name the same one after a death in task_unshare_files(). */
static void task_leave_files(struct slot *self, struct shelf_task *t)
{
	struct fd_table *files = load_relaxed(&t->files); /* relaxed: [q] */
	struct who w = { .self = self, .files = files, .fs = load_relaxed(&t->fs), .task = t };

	w.cred = load_relaxed(&t->cred) ? &load_relaxed(&t->cred)->c : NULL;
	if (load_relaxed(&t->spare) == files)
		tracked_store(&t->spare, (struct fd_table *)NULL);
	if (load_relaxed(&t->leaving) == files)
		tracked_store(&t->leaving, (struct fd_table *)NULL);
	fd_table_leave_at(self, &t->spare, task_drop_file, &w);
	fd_table_leave_at(self, &t->leaving, task_drop_file, &w);
	fd_table_leave_at(self, &t->files, task_drop_file, &w);
}

void task_release(struct slot *self, struct shelf_task *t)
{
	task_leave_files(self, t);
	fs_leave(self, t);
	task_unlink(self, t);
}

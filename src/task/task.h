/* SPDX-License-Identifier: MIT */
/*
 * task.h - processes as the shelf sees them, for the public calls.
 *
 * Data: one struct shelf_task per process (SEG_ROOT_TASKS holds their list): its
 * credentials, its file-system context (shared under CLONE_FS), its descriptor
 * table (shared under CLONE_FILES), its limit of descriptors.
 * What protects it:
 *	[c]  constant while the task is linked
 *	[a]  atomic by itself
 *	[l]  the list's lock, LOCK_TASKS; read in a section
 *	[q]  changed by exec, unshare and exit only: no other call of the task may run meanwhile
 * Fast path: a call reads line 0 of its task and writes none of it.
 * Progress: who_init() is wait-free; what takes LOCK_TASKS blocks.
 * Look at it: shelf_counters().tasks; task_next_epoch() for listings.
 * Death: a task is keyed by its process's pid and start time.  task_sweep() finds those whose process
 * is gone and closes what they had; who releases one is named by slot and thread, so it outlives its own sweeper,
 * and whoever has the sweeper's slot next.
 * Limits: credentials a task once had stay until it exits unless it said it has one thread, for a
 * call that waits keeps the pointer; equal ones are kept once.
 */
#ifndef SHELF_TASK_TASK_H
#define SHELF_TASK_TASK_H

#include "segment/header.h"
#include "vfs/vfs.h"

enum task_state {
	TASK_STARTING, /* being put together */
	TASK_LIVE,
	TASK_EXITING, /* being taken apart by the thread that `releaser` names */
	TASK_GONE, /* taken apart and off the list: whoever still looks at it has no business with it */
};

struct shelf_task {
	/* line 0: read by every call */
	_Alignas(CACHE_LINE) struct seg_header *hdr; /* [c] of its segment: tells several attached ones apart */
	atomic_ptr(struct cred) cred; /* [a] */
	atomic_ptr(struct fs_context) fs; /* [q] */
	fd_table_home files; /* [q] */
	atomic_u64 nofile; /* [a] RLIMIT_NOFILE, soft */
	atomic_u64 fsize_not; /* [a] RLIMIT_FSIZE, soft, complemented: 0 is no limit, which the common write asks for */
	atomic_u64 cred_id; /* [a] another after each setcred: linkat asks whether a file was opened under this one */
	atomic_u32 threads; /* [a] 1: single; 0: many */
	bool private_; /* [c] not in the segment: task of a read-only process */

	/* line 1: who it is */
	_Alignas(CACHE_LINE) atomic_ptr(struct shelf_task) next; /* [l] */
	atomic_u32 state; /* [a] enum task_state */
	atomic_u64 releaser; /* [a] who takes it apart: releaser_word() of its slot */
	atomic_u64 owner; /* [a] the process: pid and start time in one word, so that no sweeper sees half of each */
	fd_table_home spare, leaving; /* [q] while unsharing: the copy, and the table left; may equal `files` for a moment */
	cred_link creds; /* [l] all it ever had, the youngest first */
	struct retired retired;
};

#define TASK_PID_BITS 24 /* Linux has 22 */

static inline uint64_t task_owner_word(uint32_t pid, uint64_t start_time)
{
	return start_time << TASK_PID_BITS | pid;
}

static inline uint32_t task_owner_pid(uint64_t owner)
{
	return (uint32_t)(owner & ((1u << TASK_PID_BITS) - 1));
}

static inline uint64_t task_owner_start(uint64_t owner)
{
	return owner >> TASK_PID_BITS;
}

/* SEG_ROOT_TASKS */
struct task_root {
	struct lock lock; /* LOCK_TASKS */
	atomic_ptr(struct shelf_task) head; /* [l] */
	atomic_u64 cred_ids; /* [l] handed out */
	struct fd_table *no_files; /* [c] empty for ever: of tasks of read-only processes */
};

int task_layer_init(struct slot *self); /* creator */
int task_layer_attach(struct segment *seg); /* every process */
struct task_root *task_root_of(struct slot *self);

/* The calling thread's slot in the task's segment; NULL: no slot free, or not attached. */
struct slot *task_slot_slow(const struct shelf_task *t);
static inline struct slot *task_slot(const struct shelf_task *t)
{
	struct segment *seg = slot_tls.seg;

	return likely(seg && seg->hdr == t->hdr) ? slot_tls.slot : task_slot_slow(t);
}

/* Who asks, for a call on `t`: 0, -ENOMEM (no slot), -EIO (damaged segment). */
static inline int who_init(struct who *w, struct shelf_task *t)
{
	struct slot *self = task_slot(t);

	if (unlikely(!self))
		return -ENOMEM;
	if (unlikely(load_relaxed(&t->hdr->poison))) /* relaxed: a flag */
		return -EIO;
	w->self = self;
	w->cred = &load_acquire(&t->cred)->c; /* pairs with the store in cred_set */
	w->fs = load_relaxed(&t->fs); /* relaxed: changes only while no call runs */
	w->files = load_relaxed(&t->files); /* the same */
	w->task = t;
	w->fsize_not = load_relaxed(&t->fsize_not); /* a number */
	return 0;
}

/* cred.c */
int cred_of_process(struct shelf_cred *out); /* the calling process's, as the kernel has it */
int cred_set(struct slot *self, struct shelf_task *t, const struct shelf_cred *c);

/* fs.c: each swaps with a reference on `inode` that it takes over, entry `k` of the ledger, and drops the old one. */
void fs_set_cwd(struct slot *self, struct fs_context *fs, struct inode *inode, int k);
void fs_set_root(struct slot *self, struct fs_context *fs, struct inode *inode, int k);

/* Everything a close owes besides the reference: record locks.  Then the reference.  `ctx`: struct who. */
void task_drop_file(struct slot *self, void *ctx, int fd, struct fd_file *file);
/* Take the descriptor table for this task alone (close_range's UNSHARE, exec, unshare). */
int task_unshare_files(struct slot *self, struct shelf_task *t);

/* host.c: numbers that the kernel's own table has (shelf run), and a child that runs in its parent's memory. */
int task_mark_host(struct shelf_task *t, int fd); /* what stood there is closed */
int task_mark_free(struct shelf_task *t, int fd); /* if it is free */
void task_unmark_host(struct shelf_task *t, int fd); /* if it is marked */
/* close() of a file's number, whose bit in `parked` is set before it is free.  -EBADF also for a mark. */
int task_close_parking(struct shelf_task *t, int fd, atomic_u64 *parked);
enum fd_number task_number_kind(struct shelf_task *t, int fd);
/* The lowest number from `fd` on that is not free, -1: none. */
int task_next_number(struct shelf_task *t, int fd);
/* The file at `fd` of `from` gets a number of `to` too, the lowest free one from `min` on; whoever calls must keep both tasks. */
int task_give(struct shelf_task *from, int fd, struct shelf_task *to, int min);
void task_take_back(struct shelf_task *t, int fd); /* closes a number that was given */
/* As shelf_task_adopt(), for process `pid`, which may use the calling thread's slot. */
int task_adopt_as(struct shelf_task *t, uint32_t pid, uint64_t start_time);

/*
 * The task that we made for process `pid` is its from now on, if it has not taken it over itself.  `cred_id` is what the task
 * had when it was made: it may be gone by now.
 */
void task_hand_over(struct shelf *shelf, struct shelf_task *t, uint64_t cred_id, uint32_t pid, uint64_t start_time);

/* The process's credentials have changed. */
int task_refresh_cred(struct shelf_task *t);
/* Process `pid` has been waited for: what it left is taken apart. */
void task_reap(struct slot *self, uint32_t pid);

/* In a section: the task after `t` (NULL: the first). */
struct shelf_task *task_next_epoch(struct slot *self, struct shelf_task *t);
uint64_t task_count(struct slot *self);
/* Close what tasks of dead processes had; how many there were. */
unsigned task_sweep(struct slot *self);
bool task_unsettled(const struct shelf_task *task); /* its process is gone, or was when it was half made */
unsigned task_sweep_quick(struct slot *self); /* without a look at /proc for each live one: misses zombies */

#endif

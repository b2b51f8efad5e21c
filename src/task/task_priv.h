/* SPDX-License-Identifier: MIT */
/* task_priv.h - what the files of src/task share. */
#ifndef SHELF_TASK_TASK_PRIV_H
#define SHELF_TASK_TASK_PRIV_H

#include "task/task.h"

/* How RETIRE_TASK objects are freed: aux of their struct retired. */
enum task_object { TASK_OBJECT_TASK, TASK_OBJECT_FS, TASK_OBJECT_CRED };

/* Linked, TASK_STARTING, with nothing but its owner. */
struct shelf_task *task_new(struct slot *self);
void task_start(struct shelf_task *t);
/* Is it in the list?  In a section: then its memory is a task's until the section ends. */
bool task_is_listed(struct slot *self, const struct shelf_task *t);
/* Claim the right to take the task of `owner` apart: false if a live thread has it, it has another owner, or is gone. */
/* *stuck, if not 0: it was being taken apart by a thread that is dead, for task_settle_releaser(). */
bool task_claim(struct slot *self, struct shelf_task *t, uint64_t owner, uint64_t *stuck);
/* In no section, no lock held.  True: claim again. */
bool task_settle_releaser(struct slot *self, uint64_t stuck);
/* Adopted a moment ago: is it ours, and no sweeper's? */
bool task_claim_settled(struct slot *self, struct shelf_task *t);
/* Claimed: close, drop, unlink, retire.  May be run again by another after a death inside. */
void task_release(struct slot *self, struct shelf_task *t);
void task_adopt_by(struct slot *self, struct shelf_task *t);
/* A process without write access: the task lives in private memory. */
int task_private_new(struct slot *self, const struct shelf_cred *c, struct shelf_task **out);
void task_private_free(struct shelf_task *t);

/* Credentials that nobody looks at any more, all from *at on. */
void cred_free_older(struct slot *self, cred_link *at);

/*
 * fs.c: a task's context changes: to a new one (of the segment's root), to a copy of `from`, to `from` itself with one
 * user more, to none.  What it had before is given up.
 */
int fs_begin(struct slot *self, struct shelf_task *t);
int fs_copy_to(struct slot *self, struct fs_context *from, struct shelf_task *t);
void fs_share_to(struct slot *self, struct fs_context *from, struct shelf_task *t);
void fs_leave(struct slot *self, struct shelf_task *t);
void fs_slot_gone(struct slot *self, struct slot *gone);
/* Is the process gone?  A zombie whose threads have all ended is. */
bool process_gone(uint32_t pid, uint64_t start_time);

/* shelf.c: the segments this process has attached. */
struct segment *attached_segment(const struct seg_header *hdr);

static inline struct segment *shelf_segment(struct shelf *shelf)
{
	return (struct segment *)(void *)shelf;
}

#endif

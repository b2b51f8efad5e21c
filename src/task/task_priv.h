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
/* Claim the right to take the task of `owner` apart: false if a live thread has it, it has another owner, or is gone. */
bool task_claim(struct slot *self, struct shelf_task *t, uint64_t owner);
/* Adopted a moment ago: is it ours, and no sweeper's? */
bool task_claim_settled(struct slot *self, struct shelf_task *t);
/* Claimed: close, drop, unlink, retire.  May be run again by another after a death inside. */
void task_release(struct slot *self, struct shelf_task *t);
void task_adopt_by(struct slot *self, struct shelf_task *t);
/* A process without write access: the task lives in private memory. */
int task_private_new(struct slot *self, const struct shelf_cred *c, struct shelf_task **out);
void task_private_free(struct shelf_task *t);

void cred_drop_all(struct slot *self, struct shelf_task *t);
/* Is the process gone?  A zombie whose threads have all ended is. */
bool process_gone(uint32_t pid, uint64_t start_time);

/* shelf.c: the segments this process has attached. */
struct segment *attached_segment(const struct seg_header *hdr);

static inline struct segment *shelf_segment(struct shelf *shelf)
{
	return (struct segment *)(void *)shelf;
}

#endif

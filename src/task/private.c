/* SPDX-License-Identifier: MIT */
/*
 * private.c - tasks of a process that has the segment mapped for reading only.
 *
 * Such a task lies in the process's own memory: it counts nothing in the segment (the shelf's root is
 * never freed, so standing there needs no reference), has no descriptors, and cannot leave the root.
 */
#include <sys/mman.h>

#include "base/syscall.h"
#include "task/task_priv.h"

struct private_task {
	struct shelf_task task;
	struct fs_context fs;
	struct cred cred;
};

int task_private_new(struct slot *self, const struct shelf_cred *c, struct shelf_task **out)
{
	long at = sys_call6(SYS_mmap, 0, sizeof(struct private_task), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct inode *root = vfs_root_of(self)->root;
	struct private_task *p = (struct private_task *)at;

	if (at < 0 && at > -4096)
		return -ENOMEM;
	p->cred.c = *c;
	store_relaxed(&p->fs.root, root); /* relaxed, all: nobody else has the task */
	store_relaxed(&p->fs.cwd, root);
	store_relaxed(&p->fs.umask, 022);
	p->task.hdr = self->seg->hdr;
	p->task.private_ = true;
	store_relaxed(&p->task.cred, &p->cred);
	store_relaxed(&p->task.fs, &p->fs);
	store_relaxed(&p->task.files, task_root_of(self)->no_files);
	store_relaxed(&p->task.owner, task_owner_word(load_relaxed(&self->pid), load_relaxed(&self->start_time)));
	store_relaxed(&p->task.state, TASK_LIVE);
	*out = &p->task;
	return 0;
}

void task_private_free(struct shelf_task *t)
{
	sys_call3(SYS_munmap, (long)container_of(t, struct private_task, task), sizeof(struct private_task), 0);
}

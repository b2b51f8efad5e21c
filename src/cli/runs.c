/* SPDX-License-Identifier: MIT */
/* runs.c - see runs.h.  By raw system calls, as `shelf` has no libc (front/). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/dir_each.h"
#include "base/syscall.h"
#include "nodes.h"
#include "run/promise.h"
#include "runs.h"
#include "task/task.h"

/* Nobody has it, or it was never finished. */
static bool is_deserted(const char *name)
{
	struct shelf_counters c;
	struct shelf *shelf;
	struct slot *self;
	bool none;
	int err;

	if (segment_is_unfinished(name))
		return true;
	err = shelf_attach(name, 0, &shelf, NULL);
	if (err)
		return err == -ENOENT;
	self = slot_self((struct segment *)(void *)shelf);
	if (self)
		task_sweep(self);
	none = self && !shelf_counters(shelf, &c) && !c.tasks && c.threads <= 1; /* ours */
	shelf_detach(shelf);
	return none;
}

/* FD is the promise, and nobody holds or makes what it promises. */
static void clear(const char *dir, long fd, const char *name)
{
	char path[PROMISE_PATH_MAX];
	struct stat st;

	if (sys_call3(SYS_fstat, fd, (long)&st, 0) || !st.st_nlink || !S_ISREG(st.st_mode) ||
	    st.st_uid != (uint64_t)sys_call3(SYS_geteuid, 0, 0, 0) || !is_deserted(name))
		return;
	cli_remove_shelf(name, NULL);
	if (promise_path(path, dir, name) < PROMISE_PATH_MAX)
		sys_call3(SYS_unlink, (long)path, 0, 0); /* last: who is killed here leaves it to the next */
}

static void look_at(const char *dir, const char *name)
{
	char path[PROMISE_PATH_MAX];
	long fd;

	if (promise_path(path, dir, name) >= PROMISE_PATH_MAX)
		return;
	fd = sys_call3(SYS_open, (long)path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (!promise_hold(fd) && !sys_call3(SYS_flock, fd, LOCK_EX | LOCK_NB, 0))
		clear(dir, fd, name);
	sys_call3(SYS_flock, fd, LOCK_UN, 0);
	sys_call3(SYS_close, fd, 0, 0);
}

static bool look_if_promise(void *ctx, long dir, const char *name)
{
	static const char start[] = PROMISE_START;

	(void)dir;
	if (!strncmp(name, start, sizeof(start) - 1))
		look_at(ctx, name + sizeof(start) - 1);
	return true;
}

void cli_clear_dead_runs(const char *dir)
{
	dir_each_in(promise_dir(dir), look_if_promise, (void *)(uintptr_t)dir);
}

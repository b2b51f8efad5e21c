/* SPDX-License-Identifier: MIT */
/* sweep.c - tasks whose process is gone. */
#include <fcntl.h>
#include <string.h>

#include "base/syscall.h"
#include "task/task_priv.h"

#define SWEEP_BATCH 16

/* Decimal number at *p, which moves behind it and one blank. */
static uint64_t take_number(const char **p)
{
	uint64_t n = 0;

	while (**p >= '0' && **p <= '9')
		n = n * 10 + (uint64_t)(*(*p)++ - '0');
	if (**p == ' ')
		(*p)++;
	return n;
}

static void skip_field(const char **p)
{
	while (**p && **p != ' ')
		(*p)++;
	if (**p == ' ')
		(*p)++;
}

/* The text of /proc/PID/stat behind the name: field 3 on.  False: no such process. */
static bool stat_read(uint32_t pid, char *buf, size_t size, const char **fields)
{
	char path[32] = "/proc/";
	char digits[12];
	unsigned n = 0, at = 6;
	long fd, got;

	do
		digits[n++] = (char)('0' + pid % 10);
	while (pid /= 10);
	while (n)
		path[at++] = digits[--n];
	memcpy(path + at, "/stat", 6);
	fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd != -ENOENT; /* no /proc: everybody is alive */
	got = sys_call3(SYS_read, fd, (long)buf, (long)size - 1);
	sys_call3(SYS_close, fd, 0, 0);
	buf[got > 0 ? got : 0] = '\0';
	*fields = strrchr(buf, ')');
	if (*fields)
		*fields += 2;
	return got != -ESRCH;
}

bool process_gone(uint32_t pid, uint64_t start_time)
{
	char buf[1024];
	const char *p = NULL;
	uint64_t threads;
	bool zombie;

	if (!stat_read(pid, buf, sizeof(buf), &p))
		return true;
	if (!p)
		return false; /* cannot tell */
	zombie = *p == 'Z' || *p == 'X';
	for (int field = 3; field < 20; field++)
		skip_field(&p);
	threads = take_number(&p);
	skip_field(&p);
	return take_number(&p) != start_time || (zombie && threads <= 1);
}

/* Quick: the number is unknown to the kernel; a zombie or a number in use again is left for a thorough sweep. */
static bool gone(uint32_t pid, uint64_t start_time, bool quick)
{
	if (quick && sys_call3(SYS_kill, (long)pid, 0, 0) != -ESRCH)
		return false;
	return process_gone(pid, start_time);
}

bool task_unsettled(const struct shelf_task *task)
{
	struct shelf_task *t = (struct shelf_task *)(uintptr_t)task;
	uint64_t owner = load_acquire(&t->owner); /* pairs with task_adopt_by */

	return load_acquire(&t->state) != TASK_LIVE || /* pairs with task_start */
	       process_gone(task_owner_pid(owner), task_owner_start(owner));
}

/* In a section: tasks to look at, at most `max`, from *at on. */
static unsigned list_tasks_epoch(struct slot *self, struct shelf_task **out, unsigned max, uint64_t skip)
{
	struct shelf_task *t = NULL;
	unsigned n = 0;

	while (n < max && (t = task_next_epoch(self, t)))
		if (skip)
			skip--;
		else
			out[n++] = t;
	return n;
}

/* The owner of the next task whose process is gone; 0: *skip has moved on.  The section keeps the tasks' memory. */
static uint64_t find_gone(struct slot *self, bool quick, uint64_t *skip)
{
	struct shelf_task *batch[SWEEP_BATCH];
	uint64_t owner = 0;
	unsigned n;

	epoch_enter(self);
	n = list_tasks_epoch(self, batch, SWEEP_BATCH, *skip);
	for (unsigned i = 0; i < n && !owner; i++) {
		owner = load_acquire(&batch[i]->owner); /* pairs with task_adopt_by */
		if (!gone(task_owner_pid(owner), task_owner_start(owner), quick)) {
			owner = 0;
			++*skip;
		}
	}
	epoch_exit(self);
	if (!n)
		*skip = UINT64_MAX;
	return owner;
}

/* A task of that owner, claimed; NULL: others have them. */
static struct shelf_task *claim_of(struct slot *self, uint64_t owner)
{
	struct shelf_task *t;
	uint64_t stuck;

	do {
		stuck = 0;
		epoch_enter(self);
		for (t = NULL; !stuck && (t = task_next_epoch(self, t));)
			if (load_acquire(&t->owner) == owner && task_claim(self, t, owner, &stuck)) /* pairs with task_adopt_by */
				break;
		epoch_exit(self);
	} while (stuck && task_settle_releaser(self, stuck));
	return stuck ? NULL : t;
}

/*
 * First what the process's threads were in the middle of: a fork that was recorded and not done names a table by the
 * task's field, and would be taken for undone once that task is taken apart.
 */
static unsigned sweep(struct slot *self, bool quick)
{
	struct shelf_task *t;
	unsigned swept = 0;
	uint64_t skip = 0, owner;

	while (skip != UINT64_MAX) {
		owner = find_gone(self, quick, &skip);
		if (!owner)
			continue;
		slot_reap_process(self, task_owner_pid(owner));
		t = claim_of(self, owner);
		if (!t) {
			skip++;
			continue;
		}
		task_release(self, t);
		swept++;
	}
	return swept;
}

unsigned task_sweep(struct slot *self)
{
	return sweep(self, false);
}

unsigned task_sweep_quick(struct slot *self)
{
	return sweep(self, true);
}

/* SPDX-License-Identifier: MIT */
/*
 * check_trial.c - what the dead left is cleared away on a copy, by a child, before it is done for good.
 *
 * Why: whoever finishes what a dead thread was doing goes by its record, its ledger and its bags, and through all
 * structures that those name.  If they are damaged it may fall, or never come to an end.  The child has the segment mapped
 * privately, so the kernel copies what it writes to; it is this thread, with its slot, and nobody else is there.
 * Cost: a fork, and only where something was left.  Where the segment's file cannot be opened any more (its name is
 * gone) there is no trial.
 * Other processes see nothing of it: a futex in private memory is another futex.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "api/check_priv.h"
#include "base/clock.h"
#include "base/syscall.h"
#include "segment/judge.h"
#include "special/inotify.h"

#define TRIAL_NS 5000000000L /* and as much again for each GiB of its size */
#define NS_A_MS INT64_C(1000000)
#define GIB_PAGES (UINT64_C(1) << 18)

int64_t check_trial_ns = TRIAL_NS;

/* A task of a process that is gone, or a list that cannot be followed. */
static bool tasks_unsettled(struct check *c)
{
	struct task_root *root = segment_root(c->self->seg, SEG_ROOT_TASKS);
	struct shelf_task *t = root ? load_acquire(&root->head) : NULL; /* pairs with task_new, as below */
	struct seg_marks marks;
	bool odd = false;

	if (marks_begin(c->self, &marks))
		return true;
	for (; t && !odd; t = odd ? NULL : load_acquire(&t->next))
		odd = marks_add(&marks, t, sizeof(*t)) != MARK_NEW || task_unsettled(t);
	marks_end(&marks);
	return odd;
}

static bool anything_left(struct check *c)
{
	return slots_unsettled(c->self) || tasks_unsettled(c) || inotify_unsettled(c->self);
}

/* ---- the child ------------------------------------------------------------------------------- */

static bool map_copy(struct segment *seg)
{
	long at;
	int fd;

	if (seg->copied)
		return true;
	fd = segment_open_file(seg);
	if (fd < 0)
		return false;
	at = sys_call6(SYS_mmap, (long)seg->hdr, (long)segment_file_bytes(seg), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		       fd, 0);
	sys_call3(SYS_close, fd, 0, 0);
	return at == (long)seg->hdr;
}

static void default_signal(int signal)
{
	const struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = {SIG_DFL, 0, NULL, 0};

	sys_call6(SYS_rt_sigaction, signal, (long)&action, 0, sizeof(action.mask), 0, 0);
}

/* It may fall, and that is nobody else's affair. */
static void be_quiet(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
	unsigned k;

	for (k = 0; k < ARRAY_SIZE(signals); k++)
		default_signal(signals[k]);
	sys_call3(SYS_prctl, PR_SET_DUMPABLE, 0, 0);
	sys_call3(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
	sys_call3(SYS_close, 2, 0, 0);
}

static void child(struct check *c)
{
	be_quiet();
	sys_call3(SYS_exit_group, map_copy(c->self->seg) && check_settle(c) == 0 ? 0 : 1, 0, 0);
}

/* ---- the parent -------------------------------------------------------------------------------- */

/* It has its time. */
static void watch_child(struct check *c, long pid)
{
	struct segment_space space;
	struct pollfd end = {.events = POLLIN};
	int64_t ms, left = 0, until;
	long got = 0;

	segment_space(c->self->seg, &space);
	ms = check_trial_ns / NS_A_MS * (int64_t)(1 + space.total_pages / GIB_PAGES);
	until = clock_now_monotonic() + ms * NS_A_MS;
	end.fd = (int)sys_call3(SYS_pidfd_open, pid, 0, 0);
	while (end.fd >= 0 && !(got > 0) && (left = (until - clock_now_monotonic()) / NS_A_MS) > 0)
		got = sys_call3(SYS_poll, (long)&end, 1, min_of(left, (int64_t)INT_MAX)); /* a signal wakes us, too */
	if (got <= 0)
		sys_call3(SYS_kill, pid, SIGKILL, 0);
	if (end.fd >= 0)
		sys_call3(SYS_close, end.fd, 0, 0);
}

static bool wait_for(struct check *c, long pid)
{
	int status = 0;
	long got;

	watch_child(c, pid);
	do
		got = sys_call6(SYS_wait4, pid, (long)&status, __WALL, 0, 0, 0);
	while (got == -EINTR);
	return got == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

bool check_trial(struct check *c)
{
	int fd = c->self->seg->copied ? -1 : segment_open_file(c->self->seg);
	long pid;

	if (fd >= 0)
		sys_call3(SYS_close, fd, 0, 0);
	if ((fd < 0 && !c->self->seg->copied) || !anything_left(c))
		return true;
	pid = sys_call6(SYS_clone, 0, 0, 0, 0, 0, 0); /* no signal at its end: it is no child that the process knows of */
	if (!pid)
		child(c);
	return pid < 0 || wait_for(c, pid);
}

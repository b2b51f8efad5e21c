/* SPDX-License-Identifier: MIT */
/*
 * fork.c - fork, vfork, clone, clone3; the end of threads and processes; who a process is.
 *
 * A child has a task of its own, made by the parent before the call (shelf_task_fork) and adopted by the child when it
 * returns.  spawn.S lets both returns come through after_spawn().  A parent that has nothing of the shelf which a child
 * could inherit makes none: the child has one when it first uses the shelf, as any other process, and most never do.
 *
 * From before the call until after_spawn() is done no handler runs, on either side: it would act as somebody else.
 *
 * A vfork's child runs in its parent's memory, on the parent's thread-local variables and slot, while that thread
 * waits in the kernel.  What the child may change is in its own run_proc, in the parent's list `spawn`: run_thread.proc says
 * that it is the one.  If it dies in the middle of a shelf call, `in_call` is left set: the parent gives the slot up as a
 * dead thread's, so that recovery finishes what was begun, and takes another.
 * A chain of vforks in vforks' children is a stack; each process knows its entry by its pid.
 */
#include <linux/sched.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "run/preload/map.h"

extern const char run_spawn_raw[];
__thread long run_spawn_result;

static uint32_t pid_now(void)
{
	return (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
}

/* ---- before --------------------------------------------------------------------------------- */

static struct run_spawn *spawn_push(void)
{
	struct run_thread *me = &run_thread;
	long at;

	if (!me->spawn) {
		at = sys_call6(SYS_mmap, 0, sizeof(struct run_spawn) * SPAWN_DEPTH, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at < 0 && at > -4096)
			return NULL;
		me->spawn = (struct run_spawn *)at;
	}
	return me->depth < SPAWN_DEPTH ? &me->spawn[me->depth++] : NULL;
}

static unsigned shared_parts(uint64_t flags)
{
	return (flags & CLONE_FILES ? SHELF_CLONE_FILES : 0u) | (flags & CLONE_FS ? SHELF_CLONE_FS : 0u);
}

bool run_has_nothing(void)
{
	struct run_proc *p = proc_here();

	return !p->task || (!runtime.exe && !p->cwd_in && !map_any() && load_relaxed(&runtime.threads) == 1 && /* only we exist */
			    !numbers_any_ours());
}

/* The child as we leave it to it. */
static long spawn_fill(struct run_spawn *s, const struct run_regs *r, uint64_t flags)
{
	struct run_proc *p = proc_here();
	long err = 0;

	s->raw = r->raw;
	s->pid = pid_now();
	s->shares_memory = flags & CLONE_VM;
	s->room_used = run_thread.room_used;
	s->before = run_thread.proc;
	if (s->shares_memory)
		memcpy(&s->child, p, sizeof(s->child));
	store_relaxed(&s->child.moving, 0u); /* nobody sees it yet */
	s->child.task = NULL;
	s->child.rooms = NULL;
	s->child.borrowed = s->shares_memory;
	s->child.adopted = false;
	if (shared_parts(flags) ? p->task != NULL : !run_has_nothing())
		err = SERVED(shelf_task_fork(p->task, shared_parts(flags), &s->child.task));
	if (s->child.task)
		s->cred_id = load_relaxed(&s->child.task->cred_id); /* ours, until a child has it */
	return err;
}

/* -EAGAIN is what fork says when there is no room. */
static long spawn(struct run_regs *r, uint64_t flags)
{
	struct run_spawn *s;
	long err;

	/* A child in our memory must not be the one who attaches: the slot would be its own, and ours when it is gone. */
	if (flags & CLONE_VM && !attached() && !proc_here()->borrowed)
		run_attach_try(); /* or it uses nothing of the shelf, or ends when it does */
	s = spawn_push();
	map_fork_begin(flags & CLONE_VM);
	err = s ? spawn_fill(s, r, flags) : -EAGAIN;
	if (err) {
		map_fork_end();
		if (s)
			run_thread.depth--;
		return err == -ENOSPC || err == -ENOMEM ? -EAGAIN : err;
	}
	r->raw = (uint64_t)(uintptr_t)run_spawn_raw;
	s->mask = signals_hold(); /* until after_spawn() is done, on either side, it is not said who we are */
	return run_pass(r);
}

static void second_thread(void)
{
	if (load_relaxed(&runtime.threads) != 1) /* only we could change it: there is no other thread */
		return;
	store_relaxed(&runtime.threads, 0u);
	if (attached())
		SERVED(shelf_task_set_threads(task_here(), 0));
}

/* What shares memory and does not make us wait is a thread, or taken for one (serve.h). */
static long clone_by_flags(struct run_regs *r, uint64_t flags)
{
	if (flags & CLONE_THREAD || (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM) {
		second_thread();
		return runtime.thread_begin ? runtime.thread_begin(r) : run_pass(r);
	}
	return spawn(r, flags);
}

static long serve_fork(struct run_regs *r)
{
	return spawn(r, 0);
}

static long serve_vfork(struct run_regs *r)
{
	return spawn(r, CLONE_VM | CLONE_VFORK);
}

static long serve_clone(struct run_regs *r)
{
	return clone_by_flags(r, r->di);
}

static long serve_clone3(struct run_regs *r)
{
	uint64_t flags;

	if (r->si < sizeof(flags) || copy_from_user(&flags, (const void *)r->di, sizeof(flags)))
		return run_pass(r);
	return clone_by_flags(r, flags);
}

/* ---- after ------------------------------------------------------------------------------------ */

static void child_of_fork(struct run_spawn *s)
{
	struct run_thread *me = &run_thread;
	struct run_proc *p = proc_here();
	bool threads;

	slot_after_fork();
	if (runtime.thread_forked)
		runtime.thread_forked();
	me->depth = 0;
	map_after_fork();
	me->in_call = 0;
	run_attach_after_fork();
	route_rooms_after_fork();
	p->borrowed = false;
	p->task = s->child.task;
	p->pid = pid_now();
	store_release(&p->sig.lock, 0u); /* another thread of the parent's may have held it */
	store_release(&p->moving, 0u); /* the same */
	threads = load_relaxed(&runtime.threads) != 1; /* only we exist */
	store_relaxed(&runtime.threads, 1u);
	if (!p->task) {
		numbers_release();
		return;
	}
	call_enter();
	if (shelf_task_adopt(p->task))
		run_die("the shelf gave this process up before it ran");
	shelf_task_set_threads(p->task, 1);
	call_leave();
	if (threads)
		numbers_after_fork();
}

static void child_of_vfork(struct run_spawn *s)
{
	struct run_proc *p = &s->child;

	run_thread.proc = p;
	p->pid = pid_now();
	if (!p->task)
		numbers_release();
	if (p->task)
		SERVED(task_adopt_as(p->task, p->pid, slot_start_time_of(p->pid)));
	if (p->task && load_relaxed(&runtime.threads) != 1) /* the parent's, which waits for us */
		numbers_after_fork();
	p->adopted = true;
}

/* The child ended in the middle of a call. */
static void give_up_slot(void)
{
	struct run_thread *me = &run_thread;

	me->in_call = 0;
	me->pending = 0;
	me->keeping = 0;
	me->fault[0].si_signo = me->fault[1].si_signo = 0;
	me->beyond_limit = 0;
	slot_tls_disown();
}

/*
 * Until a fork's child has taken its task over it is ours, and who sweeps after us would take it for what we left: so it is
 * handed over at once, as we may end or be killed before the child runs.
 */
static void hand_over(struct run_spawn *s, uint32_t pid)
{
	call_enter();
	task_hand_over(load_relaxed(&runtime.shelf), s->child.task, s->cred_id, pid, slot_start_time_of(pid)); /* attached */
	call_leave();
}

static void parent_after(struct run_spawn *s, long result)
{
	struct run_thread *me = &run_thread;

	me->proc = s->before;
	map_fork_end();
	if (s->shares_memory) {
		if (me->in_call)
			give_up_slot();
		me->room_used = s->room_used;
		rooms_left_by(&s->child);
	}
	if (s->child.task && (result < 0 || (s->shares_memory && !s->child.adopted)))
		SERVED(shelf_task_exit(s->child.task));
	else if (s->child.task && !s->shares_memory)
		hand_over(s, (uint32_t)result);
}

/* The entry of this process: those above it are of children that are gone. */
static struct run_spawn *spawn_pop(void)
{
	struct run_thread *me = &run_thread;
	uint32_t pid = pid_now();

	while (me->depth && me->spawn[me->depth - 1].pid != pid)
		me->depth--;
	return me->depth ? &me->spawn[--me->depth] : NULL;
}

static long after_spawn(struct run_regs *r)
{
	struct run_thread *me = &run_thread;
	long result = run_spawn_result;
	struct run_spawn *s;
	uint64_t mask;

	if (r->raw != (uint64_t)(uintptr_t)run_spawn_raw) /* or a program tries numbers */
		return runtime.thread_after ? runtime.thread_after(r) : run_pass(r);
	s = result ? spawn_pop() : &me->spawn[me->depth - 1];
	if (!s)
		run_die("a fork returned to nobody");
	r->raw = s->raw;
	mask = s->mask;
	if (result)
		parent_after(s, result);
	else if (s->shares_memory)
		child_of_vfork(s);
	else
		child_of_fork(s);
	signals_let_in(mask);
	return result;
}

/* ---- the end --------------------------------------------------------------------------------------- */

static long serve_exit_group(struct run_regs *r)
{
	struct run_proc *p = proc_here();

	/* Other threads may be in calls: then whoever waits for us takes the task apart. */
	if (p->task && (p->borrowed || load_relaxed(&runtime.threads) == 1)) {
		call_enter();
		shelf_task_exit(p->task);
		p->task = NULL;
		if (!p->borrowed)
			run_thread_ends();
		run_thread.in_call--; /* no handler may run any more: there is no task */
	}
	return run_pass(r);
}

void run_thread_ends(void)
{
	if (slot_tls.slot)
		slot_release(slot_tls.slot);
}

/* Of one thread.  The last one's is the process's. */
static long serve_exit(struct run_regs *r)
{
	if (load_relaxed(&runtime.threads) == 1 || run_thread.proc)
		return serve_exit_group(r);
	call_enter();
	run_thread_ends();
	route_room_leave();
	run_thread.in_call--;
	return run_pass(r);
}

/* A child was waited for: if it was killed, what it had open is still there. */
static void reaped(long pid)
{
	struct slot *self;

	if (pid <= 0 || !attached())
		return;
	call_enter();
	self = task_slot(task_here());
	if (self)
		task_reap(self, (uint32_t)pid);
	call_leave();
}

static long serve_wait4(struct run_regs *r)
{
	uint64_t a[6];
	long pid;

	if (!attached())
		return run_pass(r);
	regs_args(r, a);
	pid = host_call(SYS_wait4, a);
	reaped(pid);
	return pid;
}

static long serve_waitid(struct run_regs *r)
{
	siginfo_t info = {0};
	uint64_t a[6];
	long err;

	if (!attached())
		return run_pass(r);
	regs_args(r, a);
	err = host_call(SYS_waitid, a);
	if (!err && a[2] && !(a[3] & WNOWAIT) && !copy_from_user(&info, (void *)a[2], sizeof(info)))
		reaped(info.si_pid);
	return err;
}

/* ---- who the process is ------------------------------------------------------------------------------- */

static long serve_ids(struct run_regs *r)
{
	uint64_t a[6];
	long err;

	if (!attached())
		return run_pass(r);
	regs_args(r, a);
	err = host_call((long)r->nr, a);
	if (err >= 0)
		SERVED(task_refresh_cred(task_here()));
	return err;
}

static long serve_limits(struct run_regs *r)
{
	uint64_t a[6], now[2];
	long err;

	if (!attached())
		return run_pass(r);
	regs_args(r, a);
	err = host_call((long)r->nr, a);
	if (!err && !sys_call6(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, (long)now, 0, 0))
		SERVED(shelf_task_setrlimit_nofile(task_here(), now[0]));
	if (!err && !sys_call6(SYS_prlimit64, 0, 1 /* RLIMIT_FSIZE */, 0, (long)now, 0, 0))
		SERVED(shelf_task_setrlimit_fsize(task_here(), now[0]));
	return err;
}

static long serve_unshare(struct run_regs *r)
{
	uint64_t a[6];
	long err;

	if (!attached())
		return run_pass(r);
	regs_args(r, a);
	err = host_call(SYS_unshare, a);
	if (!err && shared_parts(r->di))
		err = SERVED(shelf_task_unshare(task_here(), shared_parts(r->di)));
	return err;
}


AT_START void serve_process_init(void)
{
	static const uint16_t ids[] = {
		SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
		SYS_setfsuid, SYS_setfsgid, SYS_setgroups, SYS_capset,
	};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		serve_table[ids[i]] = serve_ids;
	serve_table[SYS_fork] = serve_fork;
	serve_table[SYS_vfork] = serve_vfork;
	serve_table[SYS_clone] = serve_clone;
	serve_table[SYS_clone3] = serve_clone3;
	serve_table[RUN_AFTER_SPAWN] = after_spawn;
	serve_table[SYS_exit] = serve_exit;
	serve_table[SYS_exit_group] = serve_exit_group;
	serve_table[SYS_prlimit64] = serve_limits;
	serve_table[SYS_setrlimit] = serve_limits;
	serve_table[SYS_wait4] = serve_wait4;
	serve_table[SYS_waitid] = serve_waitid;
	serve_table[SYS_unshare] = serve_unshare;
	serve_exec_init();
}

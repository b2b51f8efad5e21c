/* SPDX-License-Identifier: MIT */
/*
 * signal.c - signals wait for the end of a shelf call, as they wait for the end of a system call.
 *
 * The kernel gets our handler in place of each of the program's.  It runs the program's unless a shelf call is under
 * way in this thread: then the signal is kept, all others are blocked in the interrupted context, and call_leave()
 * sends it to the thread again and unblocks.  So one kept signal a thread is enough, and one of each fault that somebody sent, as these
 * are never blocked; the order is the kernel's, and a handler never sees, leaves by longjmp, or unwinds a half-done call.  Faults are for us first: a bad buffer of the
 * program's becomes EFAULT.
 *
 * Data: the process's sig_table, under its lock, which is held for a few stores inside a call.  A vfork's
 * child has its own.
 * SIGSEGV and SIGBUS are never blocked, and only seem to be: a page of a map, or a bad buffer, may be met at any time.
 * Limits: so one of them that another process sends is not held back.
 */
#include <string.h>
#include <ucontext.h>

#include "base/fault.h"
#include "run/preload/serve.h"
#include "vfs/waitq.h"

#define SA_RESTORER_ 0x04000000
#define KERNEL_SIGSET 8
#define FAULTS (1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1)) /* ours to answer: never blocked */

extern const char user_fault[];
void signal_restore(void); /* user.S's kin: rt_sigreturn, for our own handlers */

__asm__(".text\n"
	".hidden signal_restore\n"
	".globl signal_restore\n"
	".type signal_restore, @function\n"
	"	nop\n" /* unwinders look one byte before a return address */
	"signal_restore:\n"
	"	mov	$15, %eax\n"
	"	syscall\n"
	".size signal_restore, . - signal_restore\n");

bool user_fixup(uintptr_t *ip)
{
	if (*ip < (uintptr_t)user_strnlen || *ip >= (uintptr_t)user_fault)
		return false;
	*ip = (uintptr_t)user_fault;
	return true;
}

/* ---- the table ----------------------------------------------------------------------------- */

static void table_lock(struct sig_table *t)
{
	uint32_t none = 0;

	call_enter();
	while (!cas_acq_rel(&t->lock, &none, 1u)) { /* pairs with table_unlock */
		none = 0;
		sys_call3(SYS_sched_yield, 0, 0, 0);
	}
}

static void table_unlock(struct sig_table *t)
{
	store_release(&t->lock, 0u); /* pairs with table_lock */
	call_leave();
}

static bool is_ours(const struct sig_table *t, int sig)
{
	return t->ours >> (sig - 1) & 1;
}

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

static bool has_handler(const struct sig_action *a)
{
	return a->handler > 1; /* neither SIG_DFL nor SIG_IGN */
}

static long kernel_sigaction(int sig, const struct sig_action *new, struct sig_action *old)
{
	return sys_call6(SYS_rt_sigaction, sig, (long)new, (long)old, KERNEL_SIGSET, 0, 0);
}

/* ---- a signal arrives ------------------------------------------------------------------------ */

static void default_action(int sig)
{
	struct sig_action dfl = {.flags = SA_RESTORER_, .restorer = (uintptr_t)signal_restore};

	kernel_sigaction(sig, &dfl, NULL);
}

static void send_again(const siginfo_t *info)
{
	sys_call6(SYS_rt_tgsigqueueinfo, sys_call3(SYS_getpid, 0, 0, 0), sys_call3(SYS_gettid, 0, 0, 0), info->si_signo, (long)info, 0, 0);
}

/* A fault that somebody sent when another signal was kept already; a second one is lost, as in the kernel. */
static void keep_fault(struct run_thread *me, int sig, const siginfo_t *info)
{
	siginfo_t *room = &me->fault[sig == SIGBUS];

	if (!room->si_signo)
		*room = *info;
}

/*
 * Kept for the end of the call; nothing more comes until then, but faults that somebody sends, and what comes before this returns: that
 * goes back to the kernel, which keeps it blocked.  A handler's mask has all of what it interrupted, and more: the program's is what is in
 * each of them.
 */
static void keep(int sig, const siginfo_t *info, ucontext_t *uc)
{
	struct run_thread *me = &run_thread;
	uint64_t all = ~FAULTS, mask;
	bool first = !me->keeping++;

	fence_compiler();
	memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
	mask &= ~FAULTS;
	if (first && !me->pending) {
		me->restart = proc_here()->sig.action[sig].flags & SA_RESTART; /* a hint; the kernel's half of it is done */
		me->info = *info;
		me->mask = mask;
		fence_compiler();
		me->pending = (uint32_t)sig;
	} else {
		me->mask &= mask; /* or the first one stores it yet */
		if (is_fault(sig)) {
			keep_fault(me, sig, info);
		} else {
			sys_call6(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, 0, KERNEL_SIGSET, 0, 0);
			send_again(info);
		}
	}
	memcpy(&uc->uc_sigmask, &all, sizeof(all));
	fence_compiler();
	me->keeping--;
}

static void to_self(int sig)
{
	sys_call3(SYS_tgkill, sys_call3(SYS_getpid, 0, 0, 0), sys_call3(SYS_gettid, 0, 0, 0), sig);
}

static void note_beyond_limit(void)
{
	run_thread.beyond_limit = 1;
}

/* The program's mask is back in force: its handlers run now. */
static void deliver_faults(struct run_thread *me)
{
	for (int k = 0; k < 2; k++) {
		siginfo_t info = me->fault[k];

		me->fault[k].si_signo = 0;
		if (info.si_signo)
			send_again(&info);
	}
}

void call_deliver(void)
{
	struct run_thread *me = &run_thread;
	siginfo_t info = me->info;
	uint64_t mask = me->mask;

	if (me->beyond_limit) {
		me->beyond_limit = 0;
		to_self(SIGXFSZ);
	}
	if (!me->pending)
		return;
	info.si_signo = (int)me->pending;
	me->pending = 0;
	if (!is_fault(info.si_signo))
		send_again(&info);
	sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SIGSET, 0, 0);
	if (is_fault(info.si_signo))
		send_again(&info);
	deliver_faults(me);
}

/* The program's action for it; a handler for once is gone after this. */
static struct sig_action action_of(int sig)
{
	struct sig_table *t = &proc_here()->sig;
	struct sig_action a;

	table_lock(t);
	a = t->action[sig];
	if (a.flags & SA_RESETHAND && has_handler(&a))
		t->action[sig].handler = 0;
	table_unlock(t);
	return a;
}

/* The program has no handler for a fault: it happens again, and the kernel does what it does. */
static void no_handler(int sig, const siginfo_t *info, const struct sig_action *a)
{
	if (info->si_code <= 0 && a->handler == (uintptr_t)SIG_IGN)
		return;
	default_action(sig);
	if (info->si_code <= 0)
		to_self(sig);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uintptr_t ip = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
	struct sig_action a;

	if (is_fault(sig) && info->si_code > 0) {
		if (map_fault((uintptr_t)info->si_addr, uc->uc_mcontext.gregs[REG_ERR], sig, info))
			return;
		if (fault_fixup(&ip) || user_fixup(&ip)) {
			uc->uc_mcontext.gregs[REG_RIP] = (greg_t)ip;
			return;
		}
	} else if (run_thread.in_call) {
		keep(sig, info, uc);
		return;
	}
	a = action_of(sig);
	if (!has_handler(&a))
		no_handler(sig, info, &a);
	else if (a.flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))a.handler)(sig, info, context);
	else
		((void (*)(int))a.handler)(sig);
}

/* ---- sigaction ----------------------------------------------------------------------------------- */

static struct sig_action ours_for(const struct sig_action *a)
{
	return (struct sig_action){
		.handler = (uintptr_t)on_signal,
		.flags = a->flags | SA_SIGINFO | SA_RESTORER_,
		.restorer = a->flags & SA_RESTORER_ && !runtime.strict ? a->restorer : (uintptr_t)signal_restore,
		.mask = a->mask & ~(runtime.strict ? FAULTS | 1ULL << (SIGSYS - 1) : FAULTS), /* a page of a map may be touched in it */
	};
}

/* Table locked.  OLD: what the kernel had. */
static long set_action(struct sig_table *t, int sig, const struct sig_action *new, struct sig_action *old)
{
	struct sig_action mine = *new;
	bool take = has_handler(new) || is_fault(sig);
	long err;

	if (take)
		mine = ours_for(new);
	if (is_fault(sig) && !has_handler(new)) {
		mine.flags = (mine.flags & ~(uint64_t)SA_RESETHAND) | SA_NODEFER | SA_ONSTACK;
		mine.mask = 0;
	}
	/* Before the kernel has it: our handler may run at once. */
	if (take)
		t->action[sig] = *new;
	err = kernel_sigaction(sig, &mine, old);
	if (err)
		return err;
	t->ours = take ? t->ours | 1ULL << (sig - 1) : t->ours & ~(1ULL << (sig - 1));
	return 0;
}

static AT_START long change_action(int sig, const struct sig_action *new, struct sig_action *old)
{
	struct sig_table *t = &proc_here()->sig;
	struct sig_action kernels;
	bool ours;
	long err;

	table_lock(t);
	ours = is_ours(t, sig);
	if (ours)
		*old = t->action[sig];
	err = new ? set_action(t, sig, new, &kernels) : kernel_sigaction(sig, NULL, &kernels);
	if (!ours)
		*old = kernels;
	table_unlock(t);
	return err;
}

static long serve_sigaction(struct run_regs *r)
{
	struct sig_action new, old;
	int sig = (int)r->di;
	long err;

	if (sig < 1 || sig >= SIG_NUMBERS || r->r10 != KERNEL_SIGSET || sig == SIGKILL || sig == SIGSTOP)
		return run_pass(r);
	if (runtime.strict && sig == SIGSYS)
		return 0; /* ours */
	if (r->si && copy_from_user(&new, (void *)r->si, sizeof(new)))
		return -EFAULT;
	err = change_action(sig, r->si ? &new : NULL, &old);
	if (!err && r->dx && copy_to_user((void *)r->dx, &old, sizeof(old)))
		return -EFAULT;
	return err;
}

/* ---- sigprocmask -------------------------------------------------------------------------------- */

/* What the program believes of the two. */
static void faults_note(int how, uint64_t set)
{
	uint64_t *blocked = &run_thread.faults_blocked;

	if (how == SIG_BLOCK)
		*blocked |= set & FAULTS;
	else if (how == SIG_UNBLOCK)
		*blocked &= ~set;
	else
		*blocked = set & FAULTS;
}

/* Faults stay unblocked, and only seem blocked. */
static long serve_sigprocmask(struct run_regs *r)
{
	uint64_t set = 0, old, believed = run_thread.faults_blocked;
	int how = (int)r->di;
	long err;

	if (r->r10 != KERNEL_SIGSET || (r->si && copy_from_user(&set, (void *)r->si, sizeof(set))))
		return run_pass(r); /* the kernel says what is wrong */
	if (!believed && (!r->si || how == SIG_UNBLOCK || !(set & FAULTS)))
		return run_pass(r);
	if (r->si && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)
		return -EINVAL;
	if (r->si)
		faults_note(how, set);
	set &= ~FAULTS;
	err = sys_call6(SYS_rt_sigprocmask, how, r->si ? (long)&set : 0, (long)&old, KERNEL_SIGSET, 0, 0);
	old |= believed;
	if (!err && r->dx && copy_to_user((void *)r->dx, &old, sizeof(old)))
		return -EFAULT;
	return err;
}

/* ---- none for a while ---------------------------------------------------------------------------- */

uint64_t signals_hold(void)
{
	uint64_t all = ~(FAULTS | 1ULL << (SIGSYS - 1)), old = 0;

	sys_call6(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&old, KERNEL_SIGSET, 0, 0);
	return old;
}

void signals_let_in(uint64_t mask)
{
	sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SIGSET, 0, 0);
}

/* A sleeper in the shelf: the call ends with EINTR, is left, and is made again if the action says so. */
static bool sleep_interrupted(struct slot *self)
{
	(void)self;
	return run_thread.pending != 0;
}

void signal_attach(void)
{
	wait_register_pending(sleep_interrupted);
	vfs_register_beyond_limit(note_beyond_limit);
}

AT_START void serve_signal_init(void)
{
	static const struct sig_action none;

	serve_table[SYS_rt_sigaction] = serve_sigaction;
	serve_table[SYS_rt_sigprocmask] = serve_sigprocmask;
	change_action(SIGSEGV, &none, &(struct sig_action){0});
	change_action(SIGBUS, &none, &(struct sig_action){0});
}

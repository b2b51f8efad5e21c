/* SPDX-License-Identifier: MIT */
/*
 * strict.c - reports system calls that reach the kernel past the dispatcher and concern the shelf.
 *
 * The kernel's Syscall User Dispatch sends SIGSYS for each call made from outside this library's text, which holds the
 * slots. Such a call is looked at, told of on descriptor 2 if a path or a number of the shelf's is among its
 * arguments, and made. Once for each place and number: a loop would say the same for ever.
 *
 * Data: `allow`, one byte a thread, which the kernel reads at each call; `told`, places already told, by relaxed
 * exchanges: two threads at once may tell one twice.
 * Calls whose return is not to the handler (clone, vfork, rt_sigreturn) are made again where they stand, with
 * dispatch off until the thread's next call that comes by the dispatcher.
 * Limits: for debugging: each thread asks for its id at each call. SIGSYS is not the program's. Slots mapped near
 * an image, outside our text, count as the image's own calls and are told.
 */
#include <link.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "run/attach.h"
#include "run/image.h"
#include "run/preload/calls.h"
#include "run/preload/strict.h"
#include "segment/header.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#endif
#define ALLOW 0
#define BLOCK 1
#define SA_RESTORER_ 0x04000000
#define TOLD 256u

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
void signal_restore(void); /* signal.c */

static struct run_image own;
static atomic_u64 told[TOLD];
static __thread char allow __attribute__((tls_model("initial-exec")));
static __thread int armed __attribute__((tls_model("initial-exec"))); /* the thread whose dispatch is on; a child's is not */

static long arm(void)
{
	return sys_call6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, (long)(own.bias + own.text),
			 own.text_len, (long)&allow, 0);
}

/* A blocked SIGSYS would end the process. */
static void unblock(void)
{
	uint64_t sigsys = 1ULL << (SIGSYS - 1);

	sys_call6(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&sigsys, 0, sizeof(sigsys), 0, 0);
}

static serve_fn *serve_mask_else; /* signal.c's */

static long serve_mask(struct run_regs *r)
{
	uint64_t a[6];
	long err = serve_mask_else(r);

	if (r->pass) {
		r->pass = 0;
		regs_args(r, a);
		err = host_call(SYS_rt_sigprocmask, a);
	}
	unblock();
	return err;
}

void strict_call(void)
{
	int tid = (int)sys_call3(SYS_gettid, 0, 0, 0);

	if (!own.text_len) /* strict_start is yet to come: audit.c */
		return;
	if (armed != tid && !arm())
		armed = tid;
	if (allow == ALLOW) {
		unblock();
		allow = BLOCK;
	}
}

static bool first_time(uint64_t addr, long nr)
{
	uint64_t key = addr << 9 | (uint64_t)nr;

	return xchg_acq_rel(&told[(key ^ key >> 17) % TOLD], key) != key; /* atomic; orders nothing */
}

/* The image that is loaded last before ADDR, from the list that the loader keeps for debuggers. */
static const struct link_map *image_of(uint64_t addr)
{
	const struct link_map *best = NULL;

	for (const struct link_map *lm = run_images(); lm; lm = lm->l_next)
		if (lm->l_addr <= addr && (!best || lm->l_addr >= best->l_addr))
			best = lm;
	return best;
}

static void tell(const struct call_info *call, uint64_t addr)
{
	const struct link_map *lm = image_of(addr);

	run_say("shelf run --strict: %s at 0x%lx (%s+0x%lx) went past the shelf\n", call->name, (unsigned long)addr,
		lm && *lm->l_name ? lm->l_name : "the program", (unsigned long)(addr - (lm ? lm->l_addr : 0)));
}

/* For `shelf stat`: what is told may have gone to a descriptor 2 that nobody reads. */
static void count(void)
{
	struct segment *seg = (struct segment *)load_acquire(&runtime.shelf); /* pairs with the attach */

	if (seg)
		add_relaxed(&seg->hdr->calls_past, 1);
}

static bool returns_elsewhere(long nr)
{
	return nr == SYS_rt_sigreturn || nr == SYS_clone || nr == SYS_clone3 || nr == SYS_fork || nr == SYS_vfork;
}

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint64_t a[6] = {(uint64_t)g[REG_RDI], (uint64_t)g[REG_RSI], (uint64_t)g[REG_RDX],
			       (uint64_t)g[REG_R10], (uint64_t)g[REG_R8],  (uint64_t)g[REG_R9]};
	const struct call_info *call = call_info(info->si_syscall);
	uint64_t addr = (uint64_t)(uintptr_t)info->si_call_addr - 2;

	(void)sig;
	if (call && attached() && call_concerns_shelf(call, a)) {
		count();
		if (first_time(addr, info->si_syscall))
			tell(call, addr);
	}
	if (returns_elsewhere(info->si_syscall)) {
		allow = ALLOW;
		g[REG_RIP] = (greg_t)addr;
		g[REG_RAX] = info->si_syscall;
		return;
	}
	g[REG_RAX] = host_call(info->si_syscall, a);
}

void strict_start(void)
{
	struct sig_action sa = {(uintptr_t)on_sigsys, SA_SIGINFO | SA_NODEFER | SA_RESTORER_, (uintptr_t)signal_restore, 0};
	long err;

	image_at(&own, __ehdr_start);
	serve_mask_else = serve_table[SYS_rt_sigprocmask];
	serve_table[SYS_rt_sigprocmask] = serve_mask;
	sys_call6(SYS_rt_sigaction, SIGSYS, (long)&sa, 0, 8, 0, 0);
	err = arm();
	if (err)
		run_die("--strict wants Syscall User Dispatch, which this kernel refuses (%d)", (int)-err);
	run_attach_shelf(); /* a program's first use of it may be the one that goes past */
	strict_call();
}

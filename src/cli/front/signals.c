/* SPDX-License-Identifier: MIT */
/*
 * signals.c - what is sent to `shelf run` while its program runs is passed on to the program, as if nobody were in between.
 *
 * Only what the program has not got of itself: keys and hang-ups of a terminal go to the whole process group, and so does `kill 0` of the
 * program or one of its children.  What another process sends to the group by kill() looks like any other signal,
 * and arrives twice.
 *
 * All of them are held from before the program starts, and let in only where we wait, so that no handler meets a program
 * that is not there yet, or a pid that is somebody else's by now.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/syscall.h"
#include "front.h"

#define SA_RESTORER_ 0x04000000
#define BIT(sig) (1UL << ((sig)-1))

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM};

static volatile long program;
static uint64_t callers_mask;

/* As the kernel has it. */
struct kernel_action {
	unsigned long handler, flags, restorer, mask;
};

void front_restore(void);

__asm__(".text\n"
	".hidden front_restore\n"
	".globl front_restore\n"
	".type front_restore, @function\n"
	"	nop\n" /* unwinders look one byte before a return address */
	"front_restore:\n"
	"	mov	$15, %eax\n"
	"	syscall\n"
	".size front_restore, . - front_restore\n");

static uint64_t set_mask(int how, uint64_t set)
{
	uint64_t old = 0;

	sys_call6(SYS_rt_sigprocmask, how, (long)&set, (long)&old, sizeof(set), 0, 0);
	return old;
}

static uintptr_t set_action(int sig, const struct kernel_action *action)
{
	struct kernel_action old = {0};

	sys_call6(SYS_rt_sigaction, sig, (long)action, (long)&old, sizeof(action->mask), 0, 0);
	return old.handler;
}

uintptr_t front_set_signal(int sig, uintptr_t handler)
{
	struct kernel_action action = {.handler = handler};

	return set_action(sig, &action);
}

/* ---- which ones ------------------------------------------------------------------------------------ */

/* 0: it cannot be told. */
static long parent_of(long pid)
{
	char path[32], stat[256], *end;
	long fd, n, parent = 0;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	n = sys_call3(SYS_read, fd, (long)stat, sizeof(stat) - 1);
	sys_call3(SYS_close, fd, 0, 0);
	stat[n > 0 ? n : 0] = '\0';
	end = strrchr(stat, ')'); /* of the name; then a space, a letter, a space */
	if (!end || strlen(end) < 5)
		return 0;
	for (end += 4; *end >= '0' && *end <= '9'; end++)
		parent = parent * 10 + (*end - '0');
	return parent;
}

static bool is_of_program(long pid)
{
	for (; pid > 1; pid = parent_of(pid))
		if (pid == program)
			return true;
	return false;
}

/* A hang-up is told to the leader of the session alone, and a timer is a process's own. */
static bool is_from_kernel_to_us(int sig)
{
	return sig == SIGALRM || (sig == SIGHUP && sys_call3(SYS_getsid, 0, 0, 0) == sys_call3(SYS_getpid, 0, 0, 0));
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (program && (info->si_code > 0 ? is_from_kernel_to_us(sig) : !is_of_program(info->si_pid)))
		sys_call3(SYS_kill, program, sig, 0);
}

/* ---- when -------------------------------------------------------------------------------------------- */

static uint64_t mask_of_passed_on(void)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(passed_on); i++)
		mask |= BIT(passed_on[i]);
	return mask;
}

void front_hold_signals(void)
{
	callers_mask = set_mask(SIG_BLOCK, mask_of_passed_on());
}

void front_give_mask_back(void)
{
	set_mask(SIG_SETMASK, callers_mask);
}

/* Even those that were ignored: the program may have come to want them. */
void front_pass_signals_to(long pid)
{
	struct kernel_action action = {
		.handler = (uintptr_t)on_signal,
		.flags = SA_SIGINFO | SA_RESTART | SA_RESTORER_,
		.restorer = (uintptr_t)front_restore,
		.mask = mask_of_passed_on(),
	};

	program = pid;
	for (unsigned i = 0; i < ARRAY_SIZE(passed_on); i++)
		set_action(passed_on[i], &action);
}

uint64_t front_waiting_mask(void)
{
	return callers_mask & ~mask_of_passed_on();
}

void front_let_signals_in(void)
{
	set_mask(SIG_SETMASK, front_waiting_mask());
}

void front_keep_signals_out(void)
{
	program = 0;
	set_mask(SIG_BLOCK, mask_of_passed_on());
}

void front_end_by(int sig)
{
	front_set_signal(sig, (uintptr_t)SIG_DFL);
	sys_call3(SYS_kill, sys_call3(SYS_getpid, 0, 0, 0), sig, 0);
	set_mask(SIG_UNBLOCK, BIT(sig));
}

/* SPDX-License-Identifier: MIT */
#include "step.h"

#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#define BREAKPOINT 0xccL

/* Not inlined: their addresses bound what is counted. */
static __attribute__((noinline)) void step_mark(void)
{
	raise(SIGSTOP);
}

static _Noreturn void step_child(const struct step_job *job)
{
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	job->prepare(job->arg);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(TEST_SKIP);
	step_mark();
	job->run(job->arg);
	_exit(0);
}

static unsigned long step_ip(pid_t pid)
{
	errno = 0;
	unsigned long ip = (unsigned long)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), NULL);

	CHECK(!errno);
	return ip;
}

/* Stopped again: true; ended: false. */
static bool step_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	if (WIFSTOPPED(status))
		return true;
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return false;
}

/* At a repeated string instruction that has done its first turn: on to its end. */
static bool step_over_repeat(pid_t pid, unsigned long ip)
{
	unsigned long code = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, ip, NULL);
	unsigned long next = ip + ((code >> 8 & 0xff) == 0x48 ? 3 : 2);
	unsigned long saved = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, next, NULL);

	if ((code & 0xff) != 0xf3)
		return true; /* a jump to itself */
	CHECK(!ptrace(PTRACE_POKETEXT, pid, next, (saved & ~0xffUL) | BREAKPOINT));
	CHECK(!ptrace(PTRACE_CONT, pid, NULL, NULL));
	if (!step_wait(pid))
		return false;
	CHECK(!ptrace(PTRACE_POKETEXT, pid, next, saved));
	CHECK(!ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rip), next));
	return true;
}

static bool step_on(pid_t pid, bool *repeating)
{
	unsigned long ip = step_ip(pid);

	if (*repeating) {
		*repeating = false;
		return step_over_repeat(pid, ip);
	}
	CHECK(!ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
	if (!step_wait(pid))
		return false;
	*repeating = step_ip(pid) == ip;
	return true;
}

unsigned long step_last;
extern const char __executable_start;

bool step_kill(const struct step_job *job, unsigned long n)
{
	bool repeating = false;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		step_child(job);
	if (!step_wait(pid))
		return false;
	while (n--)
		if (!step_on(pid, &repeating))
			return false;
	step_last = step_ip(pid) - (unsigned long)&__executable_start;
	CHECK(!kill(pid, SIGKILL));
	CHECK(test_wait(pid) == 128 + SIGKILL);
	return true;
}

static void step_nothing(void *arg)
{
	(void)arg;
}

bool step_possible(void)
{
	struct step_job job = {step_nothing, step_nothing, NULL};
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		step_child(&job);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (!WIFSTOPPED(status))
		return false;
	status = (int)ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
	kill(pid, SIGKILL);
	test_wait(pid);
	return status == 0;
}

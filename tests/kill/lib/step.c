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

/* Runs until it is about to do the instruction at IP; false: it ended before. */
static bool step_run_to(pid_t pid, unsigned long ip)
{
	unsigned long saved = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, ip, NULL);

	CHECK(!ptrace(PTRACE_POKETEXT, pid, ip, (saved & ~0xffUL) | BREAKPOINT));
	CHECK(!ptrace(PTRACE_CONT, pid, NULL, NULL));
	if (!step_wait(pid))
		return false;
	CHECK(step_ip(pid) == ip + 1);
	CHECK(!ptrace(PTRACE_POKETEXT, pid, ip, saved));
	CHECK(!ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rip), ip));
	return true;
}

/* At a repeated string instruction that has done its first turn: on to its end. */
static bool step_over_repeat(pid_t pid, unsigned long ip)
{
	unsigned long code = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, ip, NULL);

	if ((code & 0xff) != 0xf3)
		return true; /* a jump to itself */
	return step_run_to(pid, ip + ((code >> 8 & 0xff) == 0x48 ? 3 : 2));
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

/* ---- the way, as others went it ---------------------------------------------------------------- */

#define TURN 4UL /* steps, for what it costs to go on at a breakpoint */

static void path_add(struct step_path *p, unsigned long ip)
{
	struct step_place here = {.ip = ip};
	unsigned long k = p->n;

	while (k && p->at[k - 1].ip != ip)
		k--;
	if (k) /* the rest of a repeated instruction is no turn of its own */
		here.turn = p->at[k - 1].turn + (k < p->n);
	if (p->n == p->room) {
		p->room = p->room ? 2 * p->room : 4096;
		p->at = realloc(p->at, p->room * sizeof(*p->at));
		CHECK(p->at);
	}
	p->at[p->n++] = here;
}

void step_path_end(struct step_path *p)
{
	free(p->at);
	*p = (struct step_path){0};
}

static bool path_repeats(const struct step_path *p, unsigned long k)
{
	return p->at[k].ip == p->at[k - 1].ip || p->at[k].ip == p->at[k + 1].ip;
}

/* The place from which it is least to go to step N; 0: from the start.  What comes after the last place is not known yet. */
static unsigned long path_near(const struct step_path *p, unsigned long n)
{
	unsigned long best = 0, least = n, k, way;

	for (k = p->n < 2 ? 0 : n < p->n - 2 ? n : p->n - 2; k && n - k < least; k--) {
		way = n - k + TURN * (1 + p->at[k].turn);
		if (way < least && !path_repeats(p, k)) {
			best = k;
			least = way;
		}
	}
	return best;
}

/* False: it ended before. */
static bool step_run_ahead(pid_t pid, const struct step_place *to)
{
	for (unsigned long turn = 0;; turn++) {
		bool repeating = false;

		if (!step_run_to(pid, to->ip))
			return false;
		if (turn == to->turn)
			return true;
		if (!step_on(pid, &repeating) || (repeating && !step_on(pid, &repeating)))
			return false;
	}
}

/* The first N steps; false: it ended before. */
static bool step_all(pid_t pid, struct step_path *path, unsigned long n)
{
	unsigned long k = path_near(path, n);
	bool repeating = false;

	if (k && !step_run_ahead(pid, &path->at[k])) {
		path->n = 0; /* another way this time */
		return false;
	}
	for (; k < n; k++) {
		if (k == path->n)
			path_add(path, step_ip(pid));
		if (!step_on(pid, &repeating))
			return false;
	}
	return true;
}

unsigned long step_last;
extern const char __executable_start;

bool step_kill(const struct step_job *job, struct step_path *path, unsigned long n)
{
	unsigned long known = path->n;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		step_child(job);
	if (!step_wait(pid))
		return false;
	if (!step_all(pid, path, n))
		return path->n < known;
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

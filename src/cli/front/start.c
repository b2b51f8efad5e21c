/* SPDX-License-Identifier: MIT */
/* start.c - the program that is run: found, started, waited for. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/syscall.h"
#include "front.h"

#define CHILD_STACK 8192

long front_find(const char *name, const char *dirs, char path[PATH_MAX])
{
	long err = -ENOENT;
	const char *end;

	if (strchr(name, '/') || !*name)
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? 0 : -ENAMETOOLONG;
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; *dirs; dirs = *end ? end + 1 : end) {
		struct stat st;
		size_t n;

		for (end = dirs; *end && *end != ':'; end++)
			;
		n = (size_t)(end - dirs);
		if (n + strlen(name) + 3 > PATH_MAX)
			continue;
		memcpy(path, dirs, n);
		snprintf(path + n, PATH_MAX - n, "%s%s", n ? "/" : "./", name);
		if (sys_call3(SYS_stat, (long)path, (long)&st, 0))
			continue;
		if (S_ISREG(st.st_mode) && !sys_call3(SYS_access, (long)path, 1 /* X_OK */, 0))
			return 0;
		err = -EACCES;
	}
	return err;
}

/* What the child does, in our memory, while we wait for its exec. */
struct child {
	const char *path;
	char **argv, **envp;
	char **shell; /* the same for a script without "#!", as execvp() starts it */
	bool ignores_children; /* SIGCHLD was ignored when we started */
	volatile long err;
};

static void child_main(struct child *c)
{
	if (c->ignores_children)
		front_set_signal(SIGCHLD, (uintptr_t)SIG_IGN); /* its actions are its own */
	front_give_mask_back();
	c->err = sys_call3(SYS_execve, (long)c->path, (long)c->argv, (long)c->envp);
	if (c->err != -ENOEXEC)
		return;
	c->err = 0; /* an exec that succeeds leaves what is here */
	c->err = sys_call3(SYS_execve, (long)c->shell[0], (long)c->shell, (long)c->envp);
}

/* A child with a stack of its own, so that it may return from nothing of ours. */
static long child_clone(char *stack_end, struct child *c)
{
	long pid;

	stack_end -= 16;
	*(struct child **)(void *)stack_end = c;
	__asm__ volatile("syscall\n"
			 "	test	%%rax, %%rax\n"
			 "	jnz	1f\n"
			 "	xor	%%ebp, %%ebp\n"
			 "	mov	(%%rsp), %%rdi\n"
			 "	call	*%[child]\n"
			 "	mov	$127, %%edi\n"
			 "	mov	%[exit], %%eax\n"
			 "	syscall\n"
			 "	hlt\n"
			 "1:\n"
			 : "=a"(pid)
			 : "a"(SYS_clone), "D"(CLONE_VM | CLONE_VFORK | SIGCHLD), "S"(stack_end), [child] "b"(child_main),
			   [exit] "i"(SYS_exit_group), "d"(0)
			 : "rcx", "r11", "memory", "cc");
	return pid;
}

static int reap(long pid)
{
	int status = 0;
	long got;

	while ((got = sys_call6(SYS_wait4, pid, (long)&status, 0, 0, 0, 0)) == -EINTR)
		;
	return got < 0 ? W_EXITCODE(EXIT_FAILED, 0) : status;
}

/* Not fork(): a copy of our page tables would cost more than all else here. */
long front_start(char **argv, char **envp, const char *path)
{
	static _Alignas(16) char stack[CHILD_STACK];
	unsigned n = 0;
	long pid;

	while (argv[n])
		n++;
	{
		char *shell[n + 2];
		struct child c = {path, argv, envp, shell, false, 0};

		/* Ignored, it would take the program's status from us. */
		c.ignores_children = front_set_signal(SIGCHLD, (uintptr_t)SIG_DFL) == (uintptr_t)SIG_IGN;
		front_hold_signals();

		shell[0] = (char *)(uintptr_t)"/bin/sh";
		shell[1] = (char *)(uintptr_t)path;
		for (unsigned i = 1; i <= n; i++)
			shell[i + 1] = argv[i]; /* and the NULL */
		pid = child_clone(stack + sizeof(stack), &c);
		if (pid < 0 || !c.err)
			return pid;
		reap(pid);
		return c.err;
	}
}

/* Its pid is its own until it is reaped: nothing is passed on behind its end. */
int front_wait(long pid)
{
	front_let_signals_in();
	while (sys_call6(SYS_waitid, P_PID, pid, 0, WEXITED | WNOWAIT, 0, 0) == -EINTR)
		;
	front_keep_signals_out();
	return reap(pid);
}

int front_pass_on(int status)
{
	struct rlimit none = {0, 0};

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	sys_call6(SYS_prlimit64, 0, RLIMIT_CORE, (long)&none, 0, 0, 0);
	front_end_by(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

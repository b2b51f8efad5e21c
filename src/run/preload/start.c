/* SPDX-License-Identifier: MIT */
/*
 * start.c - what the preloaded library does when a process starts: for now it attaches, and passes
 * every call to the kernel.
 *
 *   SHELF_RUN_TABLES   folder of site tables; without it each start scans
 *
 * Linked with -z initfirst, so this constructor runs before those of all other libraries, libc's
 * own included: no libc call here, and no thread yet.
 */
#include "base/syscall.h"
#include "run/attach.h"
#include "run/numbers.h"

long run_syscall(struct run_regs *regs)
{
	return run_pass(regs);
}

/* The value of NAME in the environment ENVP, or NULL. */
static const char *env_value(char **envp, const char *name)
{
	for (; envp && *envp; envp++) {
		const char *at = *envp, *want = name;

		while (*want && *at == *want) {
			at++;
			want++;
		}
		if (!*want && *at == '=')
			return at + 1;
	}
	return NULL;
}

static _Noreturn void leave(const char *text, size_t len)
{
	sys_call3(SYS_write, 2, (long)text, (long)len);
	for (;;)
		sys_call3(SYS_exit_group, 1, 0, 0);
}

__attribute__((constructor)) static void run_start(int argc, char **argv, char **envp)
{
	static const char message[] = "shelf run: cannot patch libc's system calls\n";
	struct attach_result result;
	int rc;

	(void)argc;
	(void)argv;
	run_numbers_of_files(run_wanted);
	rc = run_attach(env_value(envp, "SHELF_RUN_TABLES"), run_wanted, &result);
	if (rc || result.count.left)
		leave(message, sizeof(message) - 1);
}

// SPDX-License-Identifier: MIT
/*
 * Preloaded by run_passthrough: patches this process and then answers its calls in one of a few ways.
 *
 *   RUN_BENCH=filter   the dispatcher's table says that the number is not wanted
 *   RUN_BENCH=pass     the handler in C has the kernel make the call
 *   RUN_BENCH=serve    the handler in C answers
 *   RUN_BENCH=files    only sites that concern files are patched, as `shelf run` does
 *   RUN_BENCH_TABLES   folder of site tables
 */
#include <time.h>

#include "base/syscall.h"
#include "run/attach.h"
#include "run/numbers.h"

/* For the program: how long attaching took, and what it did. */
__attribute__((visibility("default"))) uint64_t run_bench_attach_ns;
__attribute__((visibility("default"))) uint32_t run_bench_sites, run_bench_patched;

static bool serve;

__attribute__((target("general-regs-only"))) long run_syscall(struct run_regs *regs)
{
	return serve && (uint32_t)regs->nr == SYS_getppid ? -4711 : run_pass(regs);
}

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

static uint64_t now(void)
{
	struct timespec ts;

	sys_call3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
	const char *mode = env_value(envp, "RUN_BENCH");
	static uint8_t wanted[RUN_NUMBERS];
	struct attach_result result;
	uint64_t from;

	(void)argc;
	(void)argv;
	if (!mode)
		return;
	serve = *mode == 's';
	run_numbers_of_files(wanted);
	if (mode[3] != 'e') /* all but "files" */
		wanted[SYS_getppid] = 1;
	if (*mode == 'p' || *mode == 's')
		run_wanted[SYS_getppid] = 1;
	from = now();
	if (run_attach(env_value(envp, "RUN_BENCH_TABLES"), wanted, &result) == 0) {
		run_bench_attach_ns = now() - from;
		run_bench_sites = result.count.sites;
		run_bench_patched = result.count.patched;
	}
}

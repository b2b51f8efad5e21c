/* SPDX-License-Identifier: MIT */
/*
 * audit.c - what the loader calls in its auditor, which we are for some programs (run/library.h), and what this library has in place of libc.
 *
 * An auditor (LD_AUDIT) is loaded before everything else, into a list of libraries of its own, and told when the program's
 * libraries are there.  So the loader's own calls are served from the first library on: what a program is linked to may
 * lie in the shelf.  No libc is loaded beside us: there is none in our list.
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <time.h>

#include "run/attach.h"
#include "run/preload/serve.h"
#include "run/preload/strict.h"
#include "run/vdso.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED unsigned la_version(unsigned version);
EXPORTED void la_activity(uintptr_t *cookie, unsigned what);
EXPORTED void la_preinit(uintptr_t *cookie);

AT_START unsigned la_version(unsigned version)
{
	return runtime.prefix ? version : 0; /* 0: not started by `shelf run`; we are let go */
}

static AT_START bool has_libc(const struct link_map *lm)
{
	static const char name[] = "/libc.so.6";

	for (; lm; lm = lm->l_next) {
		size_t n = strlen(lm->l_name);

		if (n >= sizeof(name) - 1 && !strcmp(lm->l_name + n - (sizeof(name) - 1), name))
			return true;
	}
	return false;
}

/* A cookie is the list's first library until somebody changes it, and we do not. */
AT_START void la_activity(uintptr_t *cookie, unsigned what)
{
	static bool done; /* the only thread */
	const struct link_map *first = (const struct link_map *)*cookie;

	if (what != LA_ACT_CONSISTENT || done || !has_libc(first))
		return;
	done = true;
	run_images_are(first);
	run_start_libraries();
}

/* The loader is done.  Before, it makes calls that are not rewritten on purpose, which are no news. */
AT_START void la_preinit(uintptr_t *cookie)
{
	(void)cookie;
	if (runtime.strict)
		strict_start();
}

/* ---- the clock ---------------------------------------------------------------------------------- */

typedef int clock_fn(clockid_t clock, struct timespec *ts);

static int clock_by_call(clockid_t clock, struct timespec *ts)
{
	return (int)sys_call3(SYS_clock_gettime, clock, (long)ts, 0);
}

static clock_fn *clock_now_fn = clock_by_call;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	return clock_now_fn(clock, ts);
}

AT_START void run_clock_init(const Elf64_Ehdr *page)
{
	const void *fn = vdso_find(page, "__vdso_clock_gettime");

	if (fn)
		clock_now_fn = (clock_fn *)(uintptr_t)fn; /* or the system call will do */
}

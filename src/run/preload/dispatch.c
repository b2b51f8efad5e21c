/* SPDX-License-Identifier: MIT */
/* dispatch.c - from a system call's number to its handler. */
#include "run/preload/map.h"
#include "run/preload/strict.h"

struct runtime runtime;
__thread struct run_thread run_thread;
serve_fn *serve_table[RUN_NUMBERS];
uint8_t path_index[RUN_NUMBERS];
struct map_table map_table; /* here, where each call looks */

long run_syscall(struct run_regs *r)
{
	serve_fn *serve = serve_table[(uint32_t)r->nr]; /* entry.S let only numbers below RUN_NUMBERS through */
	long n;

	if (unlikely(runtime.strict))
		strict_call();
	n = likely(serve != NULL) ? serve(r) : run_pass(r);
	return likely(!map_any()) ? n : map_after(r, n);
}

AT_START void serve_init(void)
{
	serve_refuse_init();
	serve_io_init();
	serve_numbers_init();
	serve_paths_init();
	serve_process_init();
	serve_wait_init();
	serve_map_init();
	serve_aio_init();
	serve_watch_init();
	serve_signal_init();
	for (unsigned nr = 0; nr < RUN_NUMBERS; nr++)
		run_wanted[nr] = serve_table[nr] != NULL;
}

// SPDX-License-Identifier: MIT
/* The handler that the library wants; a test that needs another sets test_handler. */
#include "unit/run/lib/handler.h"

long (*test_handler)(struct run_regs *regs);

__attribute__((target("general-regs-only"))) long run_syscall(struct run_regs *regs)
{
	return test_handler ? test_handler(regs) : run_pass(regs);
}

/* SPDX-License-Identifier: MIT */
#ifndef TESTS_RUN_HANDLER_H
#define TESTS_RUN_HANDLER_H

#include "run/regs.h"

/* General registers only.  NULL: every call passes. */
extern long (*test_handler)(struct run_regs *regs);

#endif

/* SPDX-License-Identifier: MIT */
/* wanted.c - the dispatcher's own table; see regs.h. */
#include "run/regs.h"

uint8_t run_wanted[RUN_NUMBERS];

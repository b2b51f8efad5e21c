/* SPDX-License-Identifier: MIT */
/* numbers.h - which system calls concern files, descriptors and processes. */
#ifndef SHELF_RUN_NUMBERS_H
#define SHELF_RUN_NUMBERS_H

#include "run/regs.h"

/* Sets WANTED[nr] to 1 for each call that takes a path or a descriptor, makes descriptors, maps or
 * unmaps memory, starts, replaces or ends a process or thread, or changes who may do what. */
void run_numbers_of_files(uint8_t wanted[RUN_NUMBERS]);

#endif

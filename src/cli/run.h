/* SPDX-License-Identifier: MIT */
/* run.h - what `shelf run` and `shelf doctor` both look for. */
#ifndef SHELF_CLI_RUN_H
#define SHELF_CLI_RUN_H

#include <limits.h>
#include <stdbool.h>

/* The preloaded library.  False after a message. */
bool run_find_library(char library[PATH_MAX]);
/* The folder of site tables, made if it can be; "": none. */
void run_find_tables(char tables[PATH_MAX]);

#endif

/* SPDX-License-Identifier: MIT */
/* runs.h - what is left of a `shelf run` that was killed: its promise, its scratch shelf (run/promise.h). */
#ifndef SHELF_CLI_RUNS_H
#define SHELF_CLI_RUNS_H

/* Of this user, in DIR (NULL or "": the usual one).  A shelf that a process still uses stays until it does not. */
void cli_clear_dead_runs(const char *dir);

#endif

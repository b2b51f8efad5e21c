/* SPDX-License-Identifier: MIT */
/* libc.h - the little that libc.c gives beside libc's own names. */
#ifndef SHELF_RUN_PRELOAD_LIBC_H
#define SHELF_RUN_PRELOAD_LIBC_H

/* The value of NAME in ENVP, or NULL. */
const char *libc_env(char **envp, const char *name);

#endif

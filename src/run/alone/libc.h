/* SPDX-License-Identifier: MIT */
/* libc.h - the little that is given beside libc's own names (env.c). */
#ifndef SHELF_RUN_ALONE_LIBC_H
#define SHELF_RUN_ALONE_LIBC_H

/* The value of NAME in ENVP, or NULL. */
const char *libc_env(char **envp, const char *name);

#endif

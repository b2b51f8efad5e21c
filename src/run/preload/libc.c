/* SPDX-License-Identifier: MIT */
/*
 * libc.c - what the preloaded library's layers want of libc and the process has: the rest is in alone/libc.c.
 *
 * Code behind a patched site may not touch vector registers, allocate, or take a lock of libc, and may run before
 * libc is set up; libc's own memcpy and snprintf do all of these.
 */
#include <stdlib.h>

#include "run/preload/serve.h"

/* Only SHELF_SHM_DIR is ever asked for, and the program's own is not what counts: start.c. */
char *secure_getenv(const char *name)
{
	(void)name;
	return (char *)(uintptr_t)runtime.shm_dir;
}

/* SPDX-License-Identifier: MIT */
/* paths.h - calls with one path, and those with a place or two: paths.c, places.c. */
#ifndef SHELF_RUN_PRELOAD_PATHS_H
#define SHELF_RUN_PRELOAD_PATHS_H

#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "run/preload/serve.h"

#define NONE (-1)
#define NR_fchmodat2 452 /* newer than the headers of Debian 12 */

enum path_kind { PLAIN, GIVES_NUMBER, FILLS_STAT, FILLS_STATX, READS_LINK };

struct path_call {
	uint16_t nr;
	int8_t dirfd, path; /* which arguments they are; dirfd may be NONE */
	enum route_last (*last)(const uint64_t a[6]);
	long (*shelf)(struct shelf_task *t, const uint64_t a[6], const struct route *rt);
	uint8_t kind; /* enum path_kind */
	uint8_t arg; /* open's flags (0: none to look at), stat's result */
};

long path_call(const struct path_call *pc, const uint64_t a[6]);
void serve_places_init(void);
/* What the shelf says of itself, as a program is told it. */
long statfs_give(struct statfs *fs, struct statfs *user);

#endif

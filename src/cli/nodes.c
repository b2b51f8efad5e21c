/* SPDX-License-Identifier: MIT */
/* nodes.c - see nodes.h. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <shelf/shelf.h>

#include "base/dir_each.h"
#include "base/syscall.h"
#include "nodes.h"

#define SOCKET_ROOM 40 /* as the runtime of `shelf run` has it */

/* What shelf NAME has beside it. */
struct beside {
	char dir[PATH_MAX]; /* where that is */
	char folder[PATH_MAX];
	char tokens[64]; /* how the names of inotify's tokens begin */
};

/* False: no such shelf. */
static bool find_beside(const char *name, struct beside *b)
{
	const char *shm = secure_getenv("SHELF_SHM_DIR");
	struct stat st;

	shm = shm && *shm ? shm : "/dev/shm";
	snprintf(b->dir, sizeof(b->dir), "%s/shelf.%s", shm, name);
	if (strchr(name, '/') || sys_call3(SYS_stat, (long)b->dir, (long)&st, 0))
		return false;
	snprintf(b->dir, sizeof(b->dir), "%s", strlen(shm) > SOCKET_ROOM ? "/tmp" : shm);
	snprintf(b->folder, sizeof(b->folder), "%.4000s/shelf-nodes.%lx", b->dir, (unsigned long)st.st_ino);
	snprintf(b->tokens, sizeof(b->tokens), "shelf-wake.%lx.", (unsigned long)st.st_ino);
	return true;
}

/* One that begins with the text CTX. */
static bool remove_listed(void *ctx, long dir, const char *name)
{
	if (!strncmp(name, ctx, strlen(ctx)))
		sys_call3(SYS_unlinkat, dir, (long)name, 0);
	return true;
}

/* All that begin with START.  False: there is no such folder. */
static bool remove_nodes(const char *folder, const char *start)
{
	return dir_each_in(folder, remove_listed, (void *)(uintptr_t)start) >= 0;
}

void cli_remove_carriers(const char *name)
{
	struct beside b;
	char start[32];

	snprintf(start, sizeof(start), "c-%ld-", sys_call3(SYS_getpid, 0, 0, 0));
	if (find_beside(name, &b))
		remove_nodes(b.folder, start);
}

int cli_remove_shelf(const char *name, char *why)
{
	struct beside b;
	bool found = find_beside(name, &b);
	int err = shelf_remove(name, why);

	if (err || !found)
		return err;
	if (remove_nodes(b.folder, ""))
		sys_call3(SYS_rmdir, (long)b.folder, 0, 0);
	remove_nodes(b.dir, b.tokens);
	remove_nodes("/tmp", b.tokens); /* of who could make none there */
	return 0;
}

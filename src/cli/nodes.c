/* SPDX-License-Identifier: MIT */
/* nodes.c - see nodes.h. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <shelf/shelf.h>

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

static void remove_listed(long dir, const char *list, long n, const char *start)
{
	for (long at = 0; at < n;) {
		const struct dirent64 *e = (const struct dirent64 *)(list + at);

		at += e->d_reclen;
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !strncmp(e->d_name, start, strlen(start)))
			sys_call3(SYS_unlinkat, dir, (long)e->d_name, 0);
	}
}

/* All that begin with START.  False: there is no such folder. */
static bool remove_nodes(const char *folder, const char *start)
{
	_Alignas(8) char list[4096];
	long n, dir = sys_call3(SYS_open, (long)folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (dir < 0)
		return false;
	while ((n = sys_call3(SYS_getdents64, dir, (long)list, sizeof(list))) > 0)
		remove_listed(dir, list, n, start);
	sys_call3(SYS_close, dir, 0, 0);
	return true;
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

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

/* The folder for shelf NAME.  False: no such shelf. */
static bool find_nodes(const char *name, char *path, size_t size)
{
	const char *shm = secure_getenv("SHELF_SHM_DIR");
	struct stat st;

	shm = shm && *shm ? shm : "/dev/shm";
	snprintf(path, size, "%s/shelf.%s", shm, name);
	if (strchr(name, '/') || sys_call3(SYS_stat, (long)path, (long)&st, 0))
		return false;
	snprintf(path, size, "%s/shelf-nodes.%lx", strlen(shm) > SOCKET_ROOM ? "/tmp" : shm, (unsigned long)st.st_ino);
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
	char folder[PATH_MAX], start[32];

	snprintf(start, sizeof(start), "c-%ld-", sys_call3(SYS_getpid, 0, 0, 0));
	if (find_nodes(name, folder, sizeof(folder)))
		remove_nodes(folder, start);
}

int cli_remove_shelf(const char *name, char *why)
{
	char folder[PATH_MAX];
	bool nodes = find_nodes(name, folder, sizeof(folder));
	int err = shelf_remove(name, why);

	if (!err && nodes && remove_nodes(folder, ""))
		sys_call3(SYS_rmdir, (long)folder, 0, 0);
	return err;
}

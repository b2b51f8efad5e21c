/* SPDX-License-Identifier: MIT */
/* places.c - see places.h.  By raw system calls, as `shelf` has no libc (front/). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/syscall.h"
#include "places.h"
#include "run/alone/libc.h"

#define LIBRARY "libshelf-run.so"

/* Where the link leads, NUL behind it.  False: nowhere. */
static bool link_text(const char *link, char path[PATH_MAX])
{
	long n = sys_call3(SYS_readlink, (long)link, (long)path, PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool place_of(const char *file, char path[PATH_MAX])
{
	long fd = sys_call3(SYS_open, (long)file, O_RDONLY | O_CLOEXEC, 0);
	char link[64];
	bool found;

	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%ld", fd);
	found = link_text(link, path) && *path == '/';
	sys_call3(SYS_close, fd, 0, 0);
	return found;
}

void place_here(char folder[PATH_MAX])
{
	char *slash;

	link_text("/proc/self/exe", folder);
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
}

bool place_beside(const char *folder, const char *const *beside, unsigned count, char path[PATH_MAX])
{
	char file[PATH_MAX + 64];

	for (unsigned i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "%s%s", folder, beside[i]);
		if (place_of(file, path))
			return true;
	}
	return false;
}

/* The command is in bin/, the commands in libexec/shelf/; both in src/cli/ of a build tree. */
bool place_library(char library[PATH_MAX])
{
	static const char *const beside[] = {
		"/../run/" LIBRARY,
		"/../lib/" LIBRARY,
		"/../lib/x86_64-linux-gnu/" LIBRARY,
		"/../lib64/" LIBRARY,
		"/../../lib/" LIBRARY,
		"/../../lib/x86_64-linux-gnu/" LIBRARY,
		"/../../lib64/" LIBRARY,
	};
	char here[PATH_MAX];

	place_here(here);
	return place_beside(here, beside, sizeof(beside) / sizeof(beside[0]), library) && !strchr(library, ':') && !strchr(library, ' ');
}

/* DIR/shelf or DIR/MIDDLE/shelf, made with the folder above it. */
static void make_tables(char tables[PATH_MAX], const char *dir, const char *middle)
{
	char *slash;

	if (snprintf(tables, PATH_MAX, "%s%s/shelf", dir, middle) >= PATH_MAX) {
		*tables = '\0';
		return;
	}
	if (sys_call3(SYS_mkdir, (long)tables, 0700, 0) != -ENOENT)
		return;
	slash = strrchr(tables, '/');
	*slash = '\0';
	sys_call3(SYS_mkdir, (long)tables, 0700, 0);
	*slash = '/';
	sys_call3(SYS_mkdir, (long)tables, 0700, 0);
}

/* A folder of our own; without one each start is slower, no more. */
void place_tables(char **envp, char tables[PATH_MAX])
{
	const char *cache = libc_env(envp, "XDG_CACHE_HOME"), *home = libc_env(envp, "HOME"),
		   *given = libc_env(envp, "SHELF_RUN_TABLES");

	*tables = '\0';
	if (given)
		snprintf(tables, PATH_MAX, "%s", given);
	else if (cache && *cache == '/')
		make_tables(tables, cache, "");
	else if (home && *home == '/')
		make_tables(tables, home, "/.cache");
}

/* SPDX-License-Identifier: MIT */
/*
 * door.c - put and get, in the `shelf` that people start: a program of its own does them.
 *
 * libarchive brings a dozen libraries, which take longer to load than `shelf run` takes for all it does; so what
 * needs it is in shelf-archive, which lies beside this program or in libexec/.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define PROGRAM "shelf-archive"

static int door(int argc, char **argv)
{
	static const char *const beside[] = {"/" PROGRAM, "/../libexec/shelf/" PROGRAM};
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char **args = calloc((size_t)argc + 2, sizeof(*args));

	self[n > 0 ? n : 0] = '\0';
	if (!args || !strrchr(self, '/'))
		return EXIT_FAILED;
	*strrchr(self, '/') = '\0';
	args[0] = (char *)(uintptr_t)PROGRAM;
	memcpy(args + 1, argv, (size_t)argc * sizeof(*args));
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", self, beside[i]);
		execv(path, args);
	}
	cli_error("%s is not installed beside %s (%s)", PROGRAM, self, strerror(errno));
	free(args);
	return EXIT_FAILED;
}

/* No usage: they say it themselves. */
const struct command command_put = {.name = "put", .summary = "copy a directory or an archive into a shelf", .run = door};
const struct command command_get = {.name = "get", .summary = "copy a shelf into a directory or an archive", .run = door};

/* SPDX-License-Identifier: MIT */
/* main.c - shelf-archive: `shelf put` and `shelf get`, which door.c starts with the same arguments. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"

static const struct command *find(const char *name)
{
	return !strcmp(name, "put") ? &command_put : !strcmp(name, "get") ? &command_get : NULL;
}

static int run(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(cli_current->usage, stdout);
			return EXIT_OK;
		}
	return cli_current->run(argc, argv);
}

int main(int argc, char **argv)
{
	int status;

	cli_current = argc > 1 ? find(argv[1]) : NULL;
	if (!cli_current) {
		cli_error("shelf-archive is a part of shelf: use `shelf put` and `shelf get`");
		return EXIT_USAGE;
	}
	status = run(argc - 1, argv + 1);
	errno = 0;
	if (fflush(stdout) || ferror(stdout)) {
		cli_error("standard output: write: %s", errno ? strerror(errno) : "failed");
		return EXIT_FAILED;
	}
	return status;
}

/* SPDX-License-Identifier: MIT */
/* manage.c - create, rm: shelves come and go. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <shelf/shelf.h>

#include "cli.h"
#include "nodes.h"
#include "runs.h"

static int create_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"size", required_argument, NULL, 's'},
		{"mode", required_argument, NULL, 'm'},
		{NULL, 0, NULL, 0},
	};
	struct shelf_options o = {.uid = (uint32_t)-1, .gid = (uint32_t)-1};
	char why[SHELF_WHY], *end;
	struct shelf *shelf;
	unsigned long mode;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			if (!cli_parse_size(optarg, &o.size))
				return cli_usage(
					"--size '%s': a size such as 512M, 4G or 25%% is wanted",
					optarg);
			break;
		case 'm':
			mode = strtoul(optarg, &end, 8);
			o.mode = (uint32_t)mode;
			if (*end || end == optarg || mode > 07777 || !mode)
				return cli_usage(
					"--mode '%s': an octal mode from 1 to 7777 is wanted",
					optarg);
			break;
		default:
			return cli_bad_option(argc, argv);
		}
	}
	if (optind + 1 != argc)
		return cli_usage(optind == argc ? "a name is wanted" : "one name at a time");
	if (shelf_create(argv[optind], &o, &shelf, why) < 0) {
		cli_error("%s", why);
		return EXIT_FAILED;
	}
	shelf_detach(shelf);
	return EXIT_OK;
}

const struct command command_create = {
	.name = "create",
	.summary = "make a named shelf",
	.run = create_command,
	.usage =
		"usage: shelf create [--size SIZE] [--mode MODE] NAME\n"
		"\n"
		"Makes the shelf NAME: the file /dev/shm/shelf.NAME, mode 0600. Memory is taken as it is used.\n"
		"\n"
		"  --size SIZE   the limit: bytes, or with K, M, G, T, or a percentage of RAM (50%)\n"
		"  --mode MODE   permissions of the root directory, octal (1777)\n"
		"\n"
		"Exit status: 0, 1 it could not be made, 2 usage.\n",
};

static int rm_command(int argc, char **argv)
{
	static const struct option options[] = {{"force", no_argument, NULL, 'f'},
						{NULL, 0, NULL, 0}};
	char why[SHELF_WHY];
	bool force = false;
	int c, err, status = EXIT_OK;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "f", options, NULL)) != -1) {
		if (c != 'f')
			return cli_bad_option(argc, argv);
		force = true;
	}
	if (optind == argc)
		return cli_usage("a name is wanted");
	for (; optind < argc; optind++) {
		err = cli_remove_shelf(argv[optind], why);
		if (err < 0 && !(force && err == -ENOENT)) {
			cli_error("%s", why);
			status = EXIT_FAILED;
		}
	}
	cli_clear_dead_runs(cli_shm_dir());
	return status;
}

const struct command command_rm = {
	.name = "rm",
	.summary = "remove shelves",
	.run = rm_command,
	.usage =
		"usage: shelf rm [-f] NAME...\n"
		"\n"
		"Removes each shelf. Processes that have it attached keep it until they detach or end, as with an\n"
		"unlinked file; its memory is free after that.\n"
		"\n"
		"  -f, --force   a shelf that does not exist is no error\n"
		"\n"
		"Exit status: 0, 1 one could not be removed, 2 usage.\n",
};

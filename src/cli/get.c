/* SPDX-License-Identifier: MIT */
/* get.c - `shelf get`: a shelf's files into a directory or an archive. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "copy.h"

static int open_target(const char *path, struct place *to)
{
	static char label[PATH_MAX];
	int err;

	to->calls = &host_calls;
	to->label = label;
	snprintf(label, sizeof(label), "%.4000s%s", path,
		 path[0] && path[strlen(path) - 1] == '/' ? "" : "/");
	err = place_open(to, path, true);
	if (err >= 0)
		return EXIT_OK;
	cli_error("%s: open directory: %s", path, strerror(-err));
	return EXIT_FAILED;
}

static int get_tree(struct session *session, const struct place *to)
{
	struct tree_sink *sink = tree_sink_open(&session->copy, to);

	if (!sink)
		return copy_fail(&session->copy, "", to->label, "write", -ENOMEM);
	tree_read(&session->copy, &session->place);
	tree_sink_close(sink);
	return 0;
}

static int get_stream(struct session *session, enum stream_filter filter)
{
	struct stream_sink *sink = stream_sink_open(&session->copy, STDOUT_FILENO, filter);

	if (!sink)
		return copy_fail(&session->copy, "", "standard output", "write", -ENOMEM);
	tree_read(&session->copy, &session->place);
	stream_sink_close(sink);
	return 0;
}

static int run(const char *path, const struct session_options *options, enum stream_filter filter)
{
	static struct session session;
	struct place to = {0};
	bool stream = !strcmp(path, "-");
	mode_t mask = umask(0);
	int status;

	umask(mask);
	status = session_open(&session, options);
	if (status)
		return status;
	umask(mask);
	status = stream ? 0 : open_target(path, &to);
	umask(0);
	if (!status) {
		cli_catch_interrupts();
		if (stream)
			get_stream(&session, filter);
		else
			get_tree(&session, &to);
		status = copy_end(&session.copy, "copied");
	}
	session_close(&session);
	return status;
}

static int get_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"from", required_argument, NULL, 'f'},
		{"gzip", no_argument, NULL, 'g'},
		{"zstd", no_argument, NULL, 'z'},
		{"no-owner", no_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	enum stream_filter filter = STREAM_PLAIN;
	struct session_options o = {0};
	const char *path;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'f' && *optarg)
			o.dir = optarg;
		else if (c == 'f')
			return cli_usage("--from: a directory is wanted");
		else if (c == 'g' || c == 'z')
			filter = c == 'g' ? STREAM_GZIP : STREAM_ZSTD;
		else if (c == 'o')
			o.no_owner = true;
		else
			return cli_bad_option(argc, argv);
	}
	if (optind == argc || optind + 2 < argc)
		return cli_usage(optind == argc ? "a name is wanted" : "one target at a time");
	o.name = argv[optind];
	path = optind + 1 < argc ? argv[optind + 1] : ".";
	if (filter != STREAM_PLAIN && strcmp(path, "-"))
		return cli_usage("--gzip and --zstd are for an archive: give - as the target");
	if (!strcmp(path, "-") && isatty(STDOUT_FILENO))
		return cli_usage(
			"standard output is a terminal; send the archive to a file or a pipe");
	return run(path, &o, filter);
}

const struct command command_get = {
	.name = "get",
	.summary = "copy a shelf into a directory or an archive",
	.run = get_command,
	.usage =
		"usage: shelf get [OPTION...] NAME [DEST]\n"
		"\n"
		"Copies what is in the shelf NAME into the directory DEST (default: .), which is made if it is missing;\n"
		"- writes a pax archive (tar) to standard output. Kept are modes, times to the nanosecond, links of both\n"
		"kinds, extended attributes, access lists, holes, FIFOs, devices, and for root the owners. A file that\n"
		"is there already is replaced; other files stay.\n"
		"\n"
		"  --from DIR        only what is in this directory of the shelf\n"
		"  --gzip, --zstd    compress the archive\n"
		"  --no-owner        files belong to the caller even if root copies them\n"
		"\n"
		"Exit status: 0, 1 something could not be copied (it is named, the rest is there), 2 usage,\n"
		"129, 130 or 143 ended by SIGHUP, SIGINT or SIGTERM.\n",
};

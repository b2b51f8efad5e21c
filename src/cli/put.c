/* SPDX-License-Identifier: MIT */
/* put.c - `shelf put`: a directory or an archive into a shelf. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "copy.h"

struct put_source {
	int fd;
	bool archive;
	char label[PATH_MAX];
};

static int open_source(const char *path, struct put_source *out)
{
	bool standard = !strcmp(path, "-");
	struct stat st;

	if (standard && isatty(STDIN_FILENO))
		return cli_usage("standard input is a terminal, and an archive is wanted there");
	out->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (out->fd < 0 || fstat(out->fd, &st)) {
		cli_error("%s: open: %s", path, strerror(errno));
		return EXIT_FAILED;
	}
	out->archive = standard || S_ISREG(st.st_mode);
	if (!out->archive && !S_ISDIR(st.st_mode)) {
		cli_error("%s: is neither a directory nor an archive; a stream is read with `-`",
			  path);
		return EXIT_FAILED;
	}
	if (standard)
		path = "standard input";
	snprintf(out->label, sizeof(out->label), "%.4000s%s", path,
		 out->archive || path[strlen(path) - 1] == '/' ? "" : "/");
	return EXIT_OK;
}

static void copy_all(struct session *session, struct put_source *source)
{
	const struct place from = {
		.calls = &host_calls, .root = source->fd, .label = source->label};
	struct tree_sink *sink = tree_sink_open(&session->copy, &session->place);

	if (!sink) {
		copy_fail(&session->copy, session->label, "", "write", -ENOMEM);
		return;
	}
	if (source->archive)
		stream_read(&session->copy, source->fd, source->label);
	else
		tree_read(&session->copy, &from);
	tree_sink_close(sink);
}

static int run(const char *path, const struct session_options *options)
{
	static struct put_source source;
	static struct session session;
	int status = open_source(path, &source);

	if (!status)
		status = session_open(&session, options);
	if (status)
		return status;
	cli_catch_interrupts();
	copy_all(&session, &source);
	status = copy_end(&session.copy, "put");
	session_close(&session);
	return status;
}

static int put_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"to", required_argument, NULL, 't'},
		{"create", no_argument, NULL, 'c'},
		{"size", required_argument, NULL, 's'},
		{"no-owner", no_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	struct session_options o = {.to_shelf = true};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't' && *optarg)
			o.dir = optarg;
		else if (c == 't')
			return cli_usage("--to: a directory is wanted");
		else if (c == 'c')
			o.create = true;
		else if (c == 'o')
			o.no_owner = true;
		else if (c != 's')
			return cli_bad_option(argc, argv);
		else if (!cli_parse_size(optarg, &o.size))
			return cli_usage("--size '%s': a size such as 512M, 4G or 25%% is wanted",
					 optarg);
	}
	if (optind == argc || optind + 2 < argc)
		return cli_usage(optind == argc ? "a name is wanted" : "one source at a time");
	if (o.size && !o.create)
		return cli_usage("--size is of a shelf that --create makes");
	o.name = argv[optind];
	return run(optind + 1 < argc ? argv[optind + 1] : ".", &o);
}

const struct command command_put = {
	.name = "put",
	.summary = "copy a directory or an archive into a shelf",
	.run = put_command,
	.usage =
		"usage: shelf put [OPTION...] NAME [PATH]\n"
		"\n"
		"Copies what is in the directory PATH (default: .), or in the archive PATH, into the shelf NAME; - reads\n"
		"an archive from standard input: tar, cpio, zip and others, also compressed. Kept are modes, times to\n"
		"the nanosecond, links of both kinds, extended attributes, access lists, holes, FIFOs, devices, and for\n"
		"root the owners. A file that is there already is replaced; other files stay.\n"
		"\n"
		"  --to DIR      into this directory of the shelf, made if missing (the root)\n"
		"  --create      make the shelf if there is none\n"
		"  --size SIZE   its limit then: bytes, or with K, M, G, T, or a percentage of RAM (50%)\n"
		"  --no-owner    files belong to the caller even if root copies them\n"
		"\n"
		"Exit status: 0, 1 something could not be copied (it is named, the rest is there), 2 usage,\n"
		"129, 130 or 143 ended by SIGHUP, SIGINT or SIGTERM.\n",
};

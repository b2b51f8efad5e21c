/* SPDX-License-Identifier: MIT */
/* main.c - the `shelf` command: finds the subcommand and answers --help and --version. */
#include <getopt.h>
#include <string.h>

#include "cli.h"

#define SHELF_VERSION "0.1.0"

static const struct command *const commands[] = {
	&command_create, &command_rm,  &command_ls,  &command_df,    &command_stat,
	&command_check,	 &command_put, &command_get, &command_bench,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *to)
{
	fputs("usage: shelf COMMAND [OPTION...] [ARGUMENT...]\n\n"
	      "Files in shared memory, without system calls.\n\n",
	      to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n`shelf COMMAND --help` explains a command; `man shelf` the whole.\n", to);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

static int finish(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		cli_error("standard output: write failed");
		return EXIT_FAILED;
	}
	return status;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		command = argc > 2 ? find(argv[2]) : NULL;
		if (command)
			fputs(command->usage, stdout);
		else
			print_help(stdout);
		return finish(EXIT_OK);
	}
	if (!strcmp(argv[1], "--version")) {
		puts("shelf " SHELF_VERSION);
		return finish(EXIT_OK);
	}
	command = find(argv[1]);
	if (!command) {
		fprintf(stderr, "shelf: there is no command '%s'; `shelf --help` lists them\n",
			argv[1]);
		return EXIT_USAGE;
	}
	cli_current = command;
	if (wants_help(argc - 1, argv + 1)) {
		fputs(command->usage, stdout);
		return finish(EXIT_OK);
	}
	return finish(command->run(argc - 1, argv + 1));
}

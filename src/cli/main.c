/* SPDX-License-Identifier: MIT */
/* main.c - the `shelf` command: finds the subcommand and answers --help and --version. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const struct command *const commands[] = {
	&command_create, &command_rm,  &command_ls,  &command_df,    &command_stat,
	&command_check,	 &command_put, &command_get, &command_bench,
	&command_run,	 &command_fds, &command_doctor,
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
	errno = 0;
	if (fflush(stdout) || ferror(stdout)) {
		cli_error("standard output: write: %s", errno ? strerror(errno) : "failed");
		return EXIT_FAILED;
	}
	return status;
}

/* A shelf's file must not become descriptor 1: what is printed would go into it. */
static void hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY); /* fails when used */
}

static int unknown_command(const char *name)
{
	cli_error("there is no command '%s'; `shelf --help` lists them", name);
	return EXIT_USAGE;
}

/* A command that another program does says it itself. */
static int usage_of(const struct command *command)
{
	char *ask[] = {(char *)(uintptr_t)command->name, (char *)(uintptr_t)"--help", NULL};

	if (!command->usage)
		return command->run(2, ask);
	fputs(command->usage, stdout);
	return finish(EXIT_OK);
}

static int help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 3) {
		print_help(stdout);
		return finish(EXIT_OK);
	}
	command = find(argv[2]);
	if (!command)
		return unknown_command(argv[2]);
	return usage_of(command);
}

int main(int argc, char **argv)
{
	const struct command *command;

	hold_standard_descriptors();
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(argc, argv);
	if (!strcmp(argv[1], "--version")) {
		puts("shelf " SHELF_VERSION);
		return finish(EXIT_OK);
	}
	command = find(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	cli_current = command;
	if (wants_help(argc - 1, argv + 1))
		return usage_of(command);
	return finish(command->run(argc - 1, argv + 1));
}

/* SPDX-License-Identifier: MIT */
/* run.c - what the commands know of `shelf run`: how it is used.  It is done by the program that people start (front/). */
#include "cli.h"

static int run_command(int argc, char **argv)
{
	(void)argc, (void)argv;
	cli_error("shelf-commands is a part of shelf: use `shelf run`");
	return EXIT_USAGE;
}

const struct command command_run = {
	.name = "run",
	.summary = "run a program on a shelf",
	.run = run_command,
	.usage =
		"usage: shelf run [--name NAME] [--size SIZE] [--at DIR] [--strict] [--] PROGRAM [ARGUMENT...]\n"
		"\n"
		"Runs PROGRAM with a shelf in place of the empty directory DIR. The program and its children use the files\n"
		"there without system calls; all other files are the kernel's as before.\n"
		"\n"
		"  --name NAME   a shelf that stays, made if it does not exist; without it a fresh one, removed at the end\n"
		"  --size SIZE   of a shelf that is made: bytes, or with K, M, G, T, or a percentage of RAM (50%)\n"
		"  --at DIR      where programs see it (/shelf); an empty directory, made if it can be\n"
		"  --strict      for debugging: tell of each system call that reaches the kernel past the shelf and\n"
		"                concerns it; slow\n"
		"\n"
		"Programs with other rights than their caller's are not started, nor statically linked ones that do not\n"
		"tell where their functions are (no .eh_frame; Go's).\n"
		"\n"
		"Exit status: the program's own, or its signal; 2 usage, 126 it or the shelf could not be had, 127 no such\n"
		"program.\n",
};

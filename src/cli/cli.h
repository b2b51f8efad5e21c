/* SPDX-License-Identifier: MIT */
/*
 * cli.h - what the commands of `shelf` share, all but `run`, which front/ does: the table of commands, messages,
 * progress, clean interruption.  Exit status: 0, 1 (what was asked failed), 2 (usage).
 */
#ifndef SHELF_CLI_CLI_H
#define SHELF_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <shelf/shelf.h>

#include "size.h"

#define EXIT_OK 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2

struct command {
	const char *name;
	const char *summary; /* one line for `shelf --help` */
	const char *usage; /* the whole text of `shelf NAME --help` */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

extern const struct command command_create, command_rm, command_ls, command_df, command_stat;
extern const struct command command_check, command_put, command_get, command_bench, command_run;
extern const struct command command_doctor, command_fds;

/* "shelf NAME: message" on stderr. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, then how to get help; returns EXIT_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* After getopt_long returned '?' or ':'. */
int cli_bad_option(int argc, char **argv);
extern const struct command *cli_current;

bool cli_parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *out);
void cli_format_size(uint64_t bytes, char out[16]);

/* Work that takes more than a second shows a line on a terminal, and nothing elsewhere. */
void progress_show(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_clear(void);

/* SIGINT, SIGTERM and SIGHUP set a flag; long work asks, cleans up and ends with cli_interrupted_status(). */
void cli_catch_interrupts(void);
bool cli_interrupted(void);
int cli_interrupted_status(void);

/* shelf_attach(), which says it better where the program itself is run on that shelf. */
int cli_attach(const char *name, unsigned flags, struct shelf **out, char why[SHELF_WHY]);

/* Where the segments lie. */
const char *cli_shm_dir(void);

/* All shelves of this machine in order of names (report.c).  False: one, or their directory, could not be looked at. */
bool cli_each_shelf(bool (*look_at)(const char *name, void *ctx), void *ctx);

/* A JSON string, quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void json_string(FILE *to, const char *text);

#endif

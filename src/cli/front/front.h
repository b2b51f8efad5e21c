/* SPDX-License-Identifier: MIT */
/*
 * front.h - the program `shelf`: it runs programs on a shelf itself, and leaves all other commands to shelf-commands.
 *
 * `shelf run` is started as often as what it runs, so this program has no libc behind it (run/alone/start.c says why): it is
 * made of the layers, raw system calls, and the little of run/alone/.  Where that cannot be had (sanitizers), the same
 * sources are an ordinary program.
 */
#ifndef SHELF_CLI_FRONT_FRONT_H
#define SHELF_CLI_FRONT_FRONT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <shelf/shelf.h>

#include "run/key.h"

#define EXIT_OK 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_NOT_STARTED 126
#define EXIT_NOT_FOUND 127

struct run {
	const char *name;
	const char *at;
	struct shelf_options options;
	bool keep; /* --name: the shelf stays */
	bool strict;
	bool promised; /* the shelf is made by who first needs it: run/promise.h */
	bool early; /* run/library.h */
	long static_fd; /* of a statically linked program; -1: it is none */
	char **argv; /* of the program */
	char **envp; /* ours */
	char scratch[64];
	char prefix[PATH_MAX];
	char library[PATH_MAX];
	char tables[PATH_MAX];
	char key[RUN_KEY + 1];
};

/* say.c: "shelf run: message" on standard error. */
void front_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, then how to get help; returns EXIT_USAGE. */
int front_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What is said of an error. */
const char *front_reason(long err);

/* options.c: ARGV is "run", its options, the program.  EXIT_OK, or another status after a message. */
int front_options(struct run *r, char **argv);

/* run.c: the whole of `shelf run`.  Its exit status. */
int front_run(struct run *r);
/* Makes the shelf that was promised, if nobody has. */
void front_make(const struct run *r);

/* start.c: the program as execvp() would start it, with ENVP.  Its pid, or -errno. */
long front_start(char **argv, char **envp, const char *path);
/* The file that execvp() takes for NAME.  -ENOENT, -EACCES. */
long front_find(const char *name, const char *dirs, char path[PATH_MAX]);
/* How the process ended: a wait status. */
int front_wait(long pid);
/* keep.c: where programs of other users ask for the segment, and the key to it; -1 and "": nobody can. */
long front_listen(char key[RUN_KEY + 1]);
/* front_wait(), answering them meanwhile.  Closes `listener`. */
int front_keep(long pid, long listener, const struct run *r, const char *segment);
/* STATUS as ours: what ended the program ends us, without another core file. */
int front_pass_on(int status);

/* signals.c: those that are passed on to the program are held from before it starts... */
void front_hold_signals(void);
/* ...but in itself, */
void front_give_mask_back(void);
/* have somebody to go to once it is there, */
void front_pass_signals_to(long pid);
/* come in where we wait, by this mask or from here on, */
uint64_t front_waiting_mask(void);
void front_let_signals_in(void);
/* and are of no use after its end. */
void front_keep_signals_out(void);
/* The action, and what it was. */
uintptr_t front_set_signal(int sig, uintptr_t handler);
/* Comes back if the signal ends nobody. */
void front_end_by(int sig);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * library.h - how the runtime gets into a program: which of the loader's two doors, and the environment that says so.
 *
 * Preloaded, the runtime is loaded after all that the program is linked to, which is early enough for all that a program does,
 * but not for a library of the program's that lies in the shelf.  As an auditor it is loaded before, but then the loader has
 * little room for the thread-local data of the program's libraries (it must be told to keep some), and debuggers show
 * us in a list of libraries of our own.  So it is an auditor only where the program may want a library of the shelf's.
 */
#ifndef SHELF_RUN_LIBRARY_H
#define SHELF_RUN_LIBRARY_H

#include <stdbool.h>

#include "run/program.h"

struct library_place {
	const char *prefix; /* of the shelf */
	bool here; /* the working directory lies in it */
	bool origin; /* and the program itself */
};

/* May a library be looked for in the shelf, by one of the folders in LIST ("a:b", as in LD_LIBRARY_PATH and DT_RUNPATH)?  NULL: no. */
bool library_list_reaches(const struct library_place *place, const char *list);
/* The same of the folders that an ELF program names. */
bool library_program_reaches(const struct library_place *place, const struct program_file *f, const struct program_head *head);

/* What stands in the environment, beside the program's own: each NULL (nothing) or to be written as NAME=FIRST:THEIRS. */
struct library_env {
	const char *library; /* the runtime's file */
	const char *preload, *audit, *tunables; /* the program's, without ours */
	bool early; /* as an auditor */
};

/* Statically linked programs: what is started in their place, beside the library, and N:PATH for it. */
#define STATIC_PROGRAM "shelf-static"
#define STATIC_VARIABLE "SHELF_RUN_STATIC"

#define LIBRARY_ENV 3 /* variables at most: LD_PRELOAD, LD_AUDIT, GLIBC_TUNABLES */
#define LIBRARY_TLS "glibc.rtld.optional_static_tls=8192"

/* ENVP as the program made it, perhaps with ours in it from an image before. */
void library_env_take(struct library_env *e, char **envp, const char *library, bool early);
/* Room for all of it. */
size_t library_env_size(const struct library_env *e);
/* The variables, in BUF of that size; those that are not set are NULL. */
void library_env_write(const struct library_env *e, char *buf, char *out[LIBRARY_ENV]);
/* Where STATIC_PROGRAM lies; -ENAMETOOLONG, or -ENOENT: it is not there (STATIC_MISSING says so). */
#define STATIC_MISSING "is statically linked, and " STATIC_PROGRAM ", which loads such programs, is not beside the library: not started"
long library_static_program(char *buf, size_t size, const char *library);
/* Is it one of these variables? */
bool library_env_is(const char *entry);

#endif

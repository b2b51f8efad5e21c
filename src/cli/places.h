/* SPDX-License-Identifier: MIT */
/* places.h - where the parts of shelf are: in a build tree or installed, from this program's own place. */
#ifndef SHELF_CLI_PLACES_H
#define SHELF_CLI_PLACES_H

#include <limits.h>
#include <stdbool.h>

/* A file's canonical path, if it is there and can be read. */
bool place_of(const char *file, char path[PATH_MAX]);
/* This program's folder; "" if it cannot be had. */
void place_here(char folder[PATH_MAX]);
/* The first file at one of COUNT places BESIDE the folder. */
bool place_beside(const char *folder, const char *const *beside, unsigned count, char path[PATH_MAX]);

/* The preloaded library, for LD_PRELOAD: a path without ':' and ' '.  False: there is none. */
bool place_library(char library[PATH_MAX]);
/* The folder of site tables, made if it can be; "": none.  ENVP: the environment. */
void place_tables(char **envp, char tables[PATH_MAX]);

#endif

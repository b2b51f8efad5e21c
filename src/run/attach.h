/* SPDX-License-Identifier: MIT */
/*
 * attach.h - finds the images of this process and patches them, from tables or by scanning.
 *
 * For the first constructor of a process (-z initfirst), before any other code of a library has
 * run.  No libc call.
 */
#ifndef SHELF_RUN_ATTACH_H
#define SHELF_RUN_ATTACH_H

#include <link.h>
#include <stdbool.h>

#include "run/patch.h"

struct attach_result {
	struct patch_count count; /* of all images */
	uint32_t images, scanned, ready; /* patched; those of them that had no table; that a ready copy stands for */
};

/*
 * Patches libc and the loader, or maps ready copies of them (ready.h).  Tables and copies are read from DIR, and written
 * there for an image that has none; NULL: scan, keep nothing.  0, or the first error: -EBUSY if the process has other threads,
 * -ENOENT if libc was not found, else as patch_image.  Images before the one that failed stay
 * patched.
 */
int run_attach(const char *dir, const uint8_t *wanted, struct attach_result *result);

/* The same in two steps, for the loader's auditor: the loader before it has loaded a library, all else before any code of it ran. */
int run_attach_loader(const void *base, const char *dir, const uint8_t *wanted, struct attach_result *result);
int run_attach_libraries(const char *dir, const uint8_t *wanted, struct attach_result *result);

/* Undoes it.  The same conditions; -ENOTSUP: a ready copy was mapped, and the original is gone. */
int run_detach(void);

/* One image, whatever it is; the caller answers for threads and signals as patch.h says. */
int run_attach_image(const struct run_image *im, const char *dir, const uint8_t *wanted,
		     struct attach_result *result);

/* The same of a program that lies in memory, with its table of functions; by tables alone. */
int run_attach_program(const struct run_image *im, const char *dir, const uint8_t *wanted, struct attach_result *result);

/*
 * An auditor does not see the loader's list of the program's libraries: run_images_seen() is false, and who is told the
 * first of them tells us.
 */
bool run_images_seen(void);
void run_images_are(const struct link_map *first);
const struct link_map *run_images(void);

/* The image of this process that was loaded from a file called NAME ("libc.so.6").  -ENOENT. */
int run_find_image(const char *name, struct run_image *im);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * scheme_fileref.h - as Linux since 6.13 (file_ref_t): a read section, and a
 * count taken by unconditional add, with the slot checked again.
 * Shared stores of a lookup: the file's count, up and down: 2 atomics.
 * The single user takes neither (fget_light).
 */
#ifndef SHELF_FD_SCHEME_FILEREF_H
#define SHELF_FD_SCHEME_FILEREF_H

#include "fd/scheme_section.h"

#define FD_SCHEME_NAME "fileref"

static inline int fd_get(struct slot *self, struct fd_table *tab, int fd, struct fd_file **out)
{
	return fd_section_get(self, tab, fd, out);
}

static inline void fd_put(struct slot *self, struct fd_file *file)
{
	fd_section_put(self, file);
}

#include "fd/scheme_counted.h"

#endif

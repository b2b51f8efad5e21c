/* SPDX-License-Identifier: MIT */
/* copy_dirs.h - directories whose modes, times and owners are set when all their contents are there. */
#ifndef SHELF_CLI_COPY_DIRS_H
#define SHELF_CLI_COPY_DIRS_H

#include "copy.h"

struct later {
	char *path;
	size_t order;
	struct stat st;
	struct xattrs xattrs;
};

struct later_list {
	struct later *dir;
	size_t count, room;
};

int later_add(struct later_list *list, const struct item *item); /* 0 or -ENOMEM */
/* Contents before what holds them; of two entries for one directory the last alone is left. */
void later_sort(struct later_list *list);
void later_free(struct later_list *list);

#endif

/* SPDX-License-Identifier: MIT */
/* copy_links.h - which inode was copied under which path: further names become hard links. */
#ifndef SHELF_CLI_COPY_LINKS_H
#define SHELF_CLI_COPY_LINKS_H

#include <stddef.h>
#include <sys/stat.h>

struct links {
	struct link_seen *slot;
	size_t used, room; /* room is a power of two, never more than half used */
};

/* The path it was copied to before, or NULL. */
const char *links_find(const struct links *links, const struct stat *st);
/* 0 or -ENOMEM. */
int links_add(struct links *links, const struct stat *st, const char *path);
void links_free(struct links *links);

#endif

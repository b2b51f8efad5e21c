/* SPDX-License-Identifier: MIT */
/* copy_write.h - a tree that items are written to: its state, and setting their attributes. */
#ifndef SHELF_CLI_COPY_WRITE_H
#define SHELF_CLI_COPY_WRITE_H

#include "copy.h"
#include "copy_dirs.h"

struct tree_sink {
	struct copy_sink base;
	const struct place *to;
	char parent[PATH_MAX]; /* the one that is open */
	int parent_fd; /* the root's, or our own */
	bool inherits; /* files made there get an ACL or a group of its own accord */
	struct later_list later;
};

#define CALLS(s) ((s)->to->calls)
#define TASK(s) ((s)->to->task)

/* copy_attrs.c: 0, or -errno after it was told; what can be set is set. */
bool attrs_ours(const struct copy *copy,
		const struct stat *st); /* a new file has the right owner anyway */
/* With `exact` the file was just made with mode `made` and has nothing that it inherited. */
int attrs_by_fd(struct tree_sink *s, int fd, const char *path, const struct stat *st,
		const struct xattrs *x, bool exact, mode_t made);
/* Of a name in s->parent_fd that cannot be opened. */
int attrs_by_name(struct tree_sink *s, const struct item *item, const char *name);

#endif

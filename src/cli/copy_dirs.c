/* SPDX-License-Identifier: MIT */
/* copy_dirs.c - the list of directories to finish: see copy_dirs.h. */
#include "copy_dirs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int later_add(struct later_list *list, const struct item *item)
{
	struct later *d;

	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 256;
		struct later *more = realloc(list->dir, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		list->dir = more;
		list->room = room;
	}
	d = &list->dir[list->count];
	memset(d, 0, sizeof(*d));
	d->path = strdup(item->path);
	d->order = list->count;
	d->st = item->st;
	if (item->xattrs.used) {
		d->xattrs.buf = malloc(item->xattrs.used);
		if (d->xattrs.buf)
			memcpy(d->xattrs.buf, item->xattrs.buf, item->xattrs.used);
		d->xattrs.used = item->xattrs.used;
	}
	if (!d->path || (item->xattrs.used && !d->xattrs.buf)) {
		free(d->path);
		return -ENOMEM;
	}
	list->count++;
	return 0;
}

/* "a/b" before "a" before ".": a longer path sorts behind its beginning, and the order is reversed. */
static int deepest_first(const void *a, const void *b)
{
	const struct later *x = a, *y = b;
	bool top_x = !strcmp(x->path, "."), top_y = !strcmp(y->path, ".");
	int order = top_x != top_y ? top_x - top_y : strcmp(y->path, x->path);

	return order ? order : x->order < y->order ? 1 : -1;
}

void later_sort(struct later_list *list)
{
	size_t kept = 0;

	if (list->count)
		qsort(list->dir, list->count, sizeof(*list->dir), deepest_first);
	for (size_t i = 0; i < list->count; i++) {
		if (kept && !strcmp(list->dir[kept - 1].path, list->dir[i].path)) {
			free(list->dir[i].path);
			free(list->dir[i].xattrs.buf);
		} else {
			list->dir[kept++] = list->dir[i];
		}
	}
	list->count = kept;
}

void later_free(struct later_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->dir[i].path);
		free(list->dir[i].xattrs.buf);
	}
	free(list->dir);
	memset(list, 0, sizeof(*list));
}

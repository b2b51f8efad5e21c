/* SPDX-License-Identifier: MIT */
/* copy_links.c - a hash table of (device, inode) with open addressing: see copy_links.h. */
#include "copy_links.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct link_seen {
	dev_t dev;
	ino_t ino;
	char *path; /* NULL: free */
};

static struct link_seen *slot_of(const struct links *l, dev_t dev, ino_t ino)
{
	size_t i = (size_t)((ino ^ ((uint64_t)dev << 32)) * 0x9e3779b97f4a7c15ull >> 16);

	for (;; i++) {
		struct link_seen *s = &l->slot[i & (l->room - 1)];

		if (!s->path || (s->dev == dev && s->ino == ino))
			return s;
	}
}

const char *links_find(const struct links *l, const struct stat *st)
{
	return l->room ? slot_of(l, st->st_dev, st->st_ino)->path : NULL;
}

static int grow(struct links *l)
{
	struct links bigger = {.used = l->used, .room = l->room ? l->room * 2 : 256};

	bigger.slot = calloc(bigger.room, sizeof(*bigger.slot));
	if (!bigger.slot)
		return -ENOMEM;
	for (size_t i = 0; i < l->room; i++)
		if (l->slot[i].path)
			*slot_of(&bigger, l->slot[i].dev, l->slot[i].ino) = l->slot[i];
	free(l->slot);
	*l = bigger;
	return 0;
}

int links_add(struct links *l, const struct stat *st, const char *path)
{
	struct link_seen *s;

	if (l->used * 2 >= l->room && grow(l) < 0)
		return -ENOMEM;
	s = slot_of(l, st->st_dev, st->st_ino);
	if (s->path)
		return 0;
	s->path = strdup(path);
	if (!s->path)
		return -ENOMEM;
	s->dev = st->st_dev;
	s->ino = st->st_ino;
	l->used++;
	return 0;
}

void links_free(struct links *l)
{
	for (size_t i = 0; i < l->room; i++)
		free(l->slot[i].path);
	free(l->slot);
	memset(l, 0, sizeof(*l));
}

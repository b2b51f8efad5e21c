/* SPDX-License-Identifier: MIT */
/*
 * walk_border.c - what a walk leaves behind when it goes out of the shelf's tree.
 *
 * Data: the calling thread's border, which it set itself.  Called inside read sections: no lock, no shared store.
 */
#include <string.h>

#include "vfs/vfs.h"

__thread struct walk_border *walk_border;

const char *walk_border_inside(const char *path)
{
	size_t n = walk_border->prefix_len;

	if (strncmp(path, walk_border->prefix, n) || (path[n] && path[n] != '/'))
		return NULL;
	return path + n;
}

static bool append(size_t *at, const char *text, size_t len)
{
	if (*at + len >= PATH_LIMIT)
		return false;
	memcpy(walk_border->left + *at, text, len);
	*at += len;
	return true;
}

/* `text` as more components. */
static bool append_path(size_t *at, const char *text)
{
	return !*text || (append(at, "/", 1) && append(at, text, strlen(text)));
}

/* The directory that the prefix is an entry of: "/" is said as "". */
static size_t parent_length(void)
{
	size_t n = walk_border->prefix_len;

	while (n && walk_border->prefix[n - 1] != '/')
		n--;
	return n ? n - 1 : 0;
}

int walk_border_leave(const char *first, const char *rest, const char *const *behind, unsigned depth, bool directory)
{
	size_t at = 0;
	bool fits = first ? append(&at, first, strlen(first)) : append(&at, walk_border->prefix, parent_length());

	fits = fits && append_path(&at, rest);
	while (fits && depth)
		fits = append_path(&at, behind[--depth]);
	if (fits && (directory || !at))
		fits = append(&at, "/", 1);
	if (!fits)
		return -ENAMETOOLONG;
	walk_border->left[at] = '\0';
	return WALK_LEFT;
}

/* SPDX-License-Identifier: MIT */
/*
 * cursor.c - walking through a caller's iovec, or through another file's pages.
 *
 * No state.  Copies are fault.h's, so a bad buffer ends them early; file to
 * file they are copy.h's, with both inodes' locks held.
 */
#include "ramfs/data_priv.h"

/* The caller's memory at the cursor, and how much of it in one piece (at most n). */
static inline char *cursor_at(struct data_cursor *c, size_t *n)
{
	while (c->skip >= c->iov->iov_len) {
		c->skip -= c->iov->iov_len;
		c->iov++;
	}
	*n = min_of(*n, c->iov->iov_len - c->skip);
	return (char *)c->iov->iov_base + c->skip;
}

size_t cursor_put(struct data_cursor *c, const char *src, size_t n)
{
	size_t done = 0;

	while (done < n) {
		size_t part = n - done;
		char *user = cursor_at(c, &part);
		size_t left = fault_copy(user, src + done, part);

		done += part - left;
		c->skip += part - left;
		if (unlikely(left))
			break;
	}
	return done;
}

/* In step with the pages of the other file: each call stays within one of its pages at a time. */
static size_t cursor_take_file(struct data_cursor *c, char *dst, size_t n)
{
	size_t done = 0;

	while (done < n) {
		size_t in_page = c->from_pos & PAGE_MASK;
		size_t part = min_of(n - done, PAGE_BYTES - in_page);
		const char *page = data_page_epoch(c->from, data_index(c->from_pos)); /* lock held */

		if (page)
			move_bytes(dst + done, page + in_page, part); /* one page may be both */
		else
			zero_bytes(dst + done, part);
		done += part;
		c->from_pos += part;
	}
	return done;
}

size_t cursor_take(struct data_cursor *c, char *dst, size_t n)
{
	size_t done = 0;

	if (unlikely(c->from != NULL))
		return cursor_take_file(c, dst, n);
	while (done < n) {
		size_t part = n - done;
		const char *user = cursor_at(c, &part);
		size_t left = fault_copy(dst + done, user, part);

		done += part - left;
		c->skip += part - left;
		if (unlikely(left))
			break;
	}
	return done;
}

void cursor_skip(struct data_cursor *c, size_t n)
{
	if (c->from)
		c->from_pos += n;
	else
		c->skip += n; /* cursor_at() moves on to the right element */
}

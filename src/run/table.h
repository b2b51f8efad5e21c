/* SPDX-License-Identifier: MIT */
/*
 * table.h - the sites of one build of a library, as bytes: made once, read at each start.
 *
 * A table is data from outside.  table_open refuses one that is cut off, damaged, out of order,
 * for another build or another text, and one whose windows are not what it says; every site that
 * it hands out is a run of whole, movable instructions around a syscall inside the text.  What it
 * cannot prove is that no branch leads into a window, so the file must belong to the user or to
 * root and be writable by nobody else: table_load checks that.
 *
 * Form, little-endian: the header below, then for each site
 *     u32 at; s16 nr; u8 before; u8 len; u8 why; u8 bytes[len]
 */
#ifndef SHELF_RUN_TABLE_H
#define SHELF_RUN_TABLE_H

#include "run/scan.h"

#define TABLE_MAGIC 0x53544953464c4853ull /* "SHLFSITS" */

enum {
	TABLE_VERSION = 2,
	TABLE_SITES_MAX = 1 << 16,
	SITE_HEAD = 9, /* bytes of a site before its window */
};

struct table_header {
	uint64_t magic;
	uint64_t sum; /* of all that follows this field */
	uint32_t version;
	uint32_t size; /* of the whole table */
	uint32_t text, text_len; /* of the image */
	uint32_t count;
	uint32_t id_len;
	uint8_t id[BUILD_ID_MAX];
};

struct table_cursor {
	const uint8_t *at, *end;
	uint32_t left; /* sites */
	uint32_t floor; /* where the window before ended */
	uint32_t text, text_end;
};

/* Bytes that table_write needs. */
size_t table_size(const struct run_sites *sites);
void table_write(const struct run_image *im, const struct run_sites *sites, void *buf);
uint64_t table_sum_of(const uint8_t *p, size_t len);
/* Puts size and sum into a table of SIZE bytes that is complete otherwise. */
void table_seal(void *buf, size_t size);

/* Checks the header and the sum.  -EBADMSG: damaged; -ESTALE: another build, text or version. */
int table_open(const struct run_image *im, const void *buf, size_t size, struct table_cursor *c);
/* The next site: 1; the end: 0; -EBADMSG: what follows is not a site.  Its bytes lie in the table. */
int table_next(struct table_cursor *c, struct run_site *site);
/* The same, without decoding the window: for a caller that does so itself, or has done it. */
int table_read(struct table_cursor *c, struct run_site *site);

/* The file of IM's build in folder DIR.  PATH holds PATH_MAX bytes. -ENAMETOOLONG. */
int table_path(const struct run_image *im, const char *dir, char *path);
/* Maps the table of IM from DIR.  *size is what table_unload wants. */
int table_load(const struct run_image *im, const char *dir, const void **buf, size_t *size);
void table_unload(const void *buf, size_t size);
/* Writes it, under a name of its own first. */
int table_save(const struct run_image *im, const struct run_sites *sites, const char *dir);

#endif

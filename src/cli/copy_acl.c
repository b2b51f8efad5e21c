/* SPDX-License-Identifier: MIT */
/*
 * copy_acl.c - access control lists between two forms: the kernel's attribute (a version, then tag,
 * permissions and id for each line, little endian, ordered by tag and id) and libarchive's entries.
 */
#include <archive.h>
#include <archive_entry.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "copy.h"

#define ACL_VERSION 2u
#define ACL_LINES 1024 /* a list in an archive that is longer is refused */

struct acl_line {
	uint16_t tag, perm;
	uint32_t id;
};

static const struct {
	uint16_t tag;
	int archive_tag;
} tags[] = {
	{0x01, ARCHIVE_ENTRY_ACL_USER_OBJ},  {0x02, ARCHIVE_ENTRY_ACL_USER},
	{0x04, ARCHIVE_ENTRY_ACL_GROUP_OBJ}, {0x08, ARCHIVE_ENTRY_ACL_GROUP},
	{0x10, ARCHIVE_ENTRY_ACL_MASK},	     {0x20, ARCHIVE_ENTRY_ACL_OTHER},
};

#define TAGS (sizeof(tags) / sizeof(tags[0]))
#define NAMED(tag) ((tag) == 0x02 || (tag) == 0x08)

static int type_of(bool is_default)
{
	return is_default ? ARCHIVE_ENTRY_ACL_TYPE_DEFAULT : ARCHIVE_ENTRY_ACL_TYPE_ACCESS;
}

int acl_to_entry(struct archive_entry *entry, bool is_default, const void *value, size_t size)
{
	const char *at = value;
	struct acl_line line;
	uint32_t version;

	if (size < 4 || (size - 4) % sizeof(line))
		return -EINVAL;
	memcpy(&version, at, 4);
	if (le32toh(version) != ACL_VERSION)
		return -EINVAL;
	for (at += 4; at < (const char *)value + size; at += sizeof(line)) {
		size_t i = 0;

		memcpy(&line, at, sizeof(line));
		while (i < TAGS && tags[i].tag != le16toh(line.tag))
			i++;
		if (i == TAGS)
			return -EINVAL;
		archive_entry_acl_add_entry(entry, type_of(is_default), le16toh(line.perm) & 7,
					    tags[i].archive_tag,
					    NAMED(tags[i].tag) ? (int)le32toh(line.id) : -1, NULL);
	}
	return 0;
}

static int by_tag(const void *a, const void *b)
{
	const struct acl_line *x = a, *y = b;

	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int add_attribute(struct acl_line *line, size_t lines, bool is_default, struct xattrs *out)
{
	uint32_t version = htole32(ACL_VERSION);
	char *room =
		xattrs_add(out, is_default ? ACL_DEFAULT : ACL_ACCESS, 4 + lines * sizeof(*line));

	if (!room)
		return -ENOMEM;
	qsort(line, lines, sizeof(*line), by_tag);
	for (size_t i = 0; i < lines; i++) {
		line[i].tag = htole16(line[i].tag);
		line[i].perm = htole16(line[i].perm);
		line[i].id = htole32(line[i].id);
	}
	memcpy(room, &version, 4);
	memcpy(room + 4, line, lines * sizeof(*line));
	return 0;
}

int acl_from_entry(struct archive_entry *entry, bool is_default, struct xattrs *out)
{
	struct acl_line line[ACL_LINES];
	int type, perm, tag, id;
	size_t lines = 0;
	const char *name;

	if (!(archive_entry_acl_types(entry) & type_of(is_default)))
		return 0;
	archive_entry_acl_reset(entry, type_of(is_default));
	while (archive_entry_acl_next(entry, type_of(is_default), &type, &perm, &tag, &id, &name) ==
	       ARCHIVE_OK) {
		size_t i = 0;

		while (i < TAGS && tags[i].archive_tag != tag)
			i++;
		if (i == TAGS || lines == ACL_LINES)
			return -EINVAL;
		line[lines++] = (struct acl_line){tags[i].tag, (uint16_t)(perm & 7),
						  NAMED(tags[i].tag) ? (uint32_t)id : UINT32_MAX};
	}
	return lines ? add_attribute(line, lines, is_default, out) : 0;
}

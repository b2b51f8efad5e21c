/* SPDX-License-Identifier: MIT */
/* copy.c - what sources and sinks share: telling, counting, paths, extended attributes. */
#include "copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* A shelf below its limit wants memory of its directory, which has none. */
static bool below_limit(const struct copy *copy)
{
	struct shelf_counters c;

	return copy->shelf && !shelf_counters(copy->shelf, &c) && c.committed_pages < c.size_pages;
}

static void tell_full(const struct copy *copy)
{
	if (!copy->to_shelf)
		cli_error("there is no space left there: free some, or name another directory; "
			  "what was copied stays");
	else if (below_limit(copy))
		cli_error("there is no memory left in %s, the shelf %s is not at its limit: free some there; "
			  "what was copied stays",
			  cli_shm_dir(), copy->name);
	else
		cli_error("the shelf %s is full: remove files from it, or make a larger one with "
			  "`shelf create --size`; what was copied stays",
			  copy->name);
}

int copy_fail(struct copy *copy, const char *label, const char *path, const char *what, int err)
{
	cli_error("%s%s: %s: %s", label, path, what, strerror(-err));
	copy->failed++;
	if ((err == -ENOSPC || err == -EDQUOT) && strcmp(what, "set attribute")) {
		tell_full(copy);
		copy->stop = true;
	}
	return err;
}

bool copy_stopped(const struct copy *copy)
{
	return copy->stop || cli_interrupted();
}

void copy_progress(const struct copy *copy, const char *path)
{
	char size[16];
	size_t n = strlen(path);

	cli_format_size(copy->bytes, size);
	progress_show("%llu files, %s, %s%s", (unsigned long long)copy->files, size,
		      n > 50 ? "..." : "", n > 50 ? path + n - 50 : path);
}

int copy_end(const struct copy *copy, const char *verb)
{
	char size[16];

	progress_clear();
	cli_format_size(copy->bytes, size);
	if (cli_interrupted()) {
		cli_error("%llu files, %s were %s and stay", (unsigned long long)copy->files, size,
			  verb);
		return cli_interrupted_status();
	}
	if (copy->failed)
		cli_error("%llu could not be %s; %llu were (%s)", (unsigned long long)copy->failed,
			  verb, (unsigned long long)copy->files, size);
	return copy->failed ? EXIT_FAILED : EXIT_OK;
}

mode_t copy_mode(const struct copy *copy, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777;

	if (copy->keep_owner)
		return mode;
	if (st->st_uid != copy->uid)
		mode &= ~(mode_t)S_ISUID;
	if (st->st_gid != copy->gid && !S_ISDIR(st->st_mode))
		mode &= ~(mode_t)S_ISGID;
	return mode;
}

bool copy_clean_path(const char *path, char out[PATH_MAX], const char **why)
{
	size_t used = 0;

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && !memcmp(path, "..", 2)) {
			*why = "has '..' in it and could lead outside: left out";
			return false;
		}
		if (n > NAME_MAX || used + n + 2 > PATH_MAX) {
			*why = n > NAME_MAX ? "a name in it is longer than 255 bytes: left out" :
					      "is longer than 4095 bytes: left out";
			return false;
		}
		if (n && !(n == 1 && *path == '.')) {
			if (used)
				out[used++] = '/';
			memcpy(out + used, path, n);
			used += n;
		}
		path += n + (path[n] == '/');
	}
	if (!used)
		out[used++] = '.';
	out[used] = 0;
	return true;
}

/* ---- extended attributes -------------------------------------------------------------- */

struct xattr_head {
	uint32_t name, value; /* sizes; the name's with its NUL */
};

void *xattrs_add(struct xattrs *x, const char *name, size_t size)
{
	struct xattr_head head = {(uint32_t)strlen(name) + 1, (uint32_t)size};
	size_t need = x->used + sizeof(head) + head.name + size;
	char *at;

	if (need > x->room) {
		char *bigger = realloc(x->buf, need * 2);

		if (!bigger)
			return NULL;
		x->buf = bigger;
		x->room = need * 2;
	}
	at = x->buf + x->used;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), name, head.name);
	x->used = need;
	return at + sizeof(head) + head.name;
}

bool xattrs_next(const struct xattrs *x, size_t *at, const char **name, const void **value,
		 size_t *size)
{
	struct xattr_head head;

	if (*at >= x->used)
		return false;
	memcpy(&head, x->buf + *at, sizeof(head));
	*name = x->buf + *at + sizeof(head);
	*value = *name + head.name;
	*size = head.value;
	*at += sizeof(head) + head.name + head.value;
	return true;
}

/* Labels of security modules and attributes of one file system mean nothing in the other place. */
static bool worth_copying(const char *name)
{
	return !strncmp(name, "user.", 5) || !strncmp(name, "trusted.", 8) ||
	       !strcmp(name, "security.capability") || !strcmp(name, ACL_ACCESS) ||
	       !strcmp(name, ACL_DEFAULT);
}

static ssize_t value_of(const struct place *p, int fd, const char *name, const char *attr,
			void *value, size_t size)
{
	return name ? p->calls->getxattrat(p->task, fd, name, attr, value, size) :
		      p->calls->fgetxattr(p->task, fd, attr, value, size);
}

static int add_value(const struct place *p, int fd, const char *name, const char *attr,
		     struct xattrs *out)
{
	ssize_t n = value_of(p, fd, name, attr, NULL, 0);
	size_t before = out->used;
	void *room;

	if (n == -ENODATA)
		return 0; /* gone since it was listed */
	if (n < 0)
		return (int)n;
	room = xattrs_add(out, attr, (size_t)n);
	if (!room)
		return -ENOMEM;
	if (n && value_of(p, fd, name, attr, room, (size_t)n) != n)
		out->used = before; /* changed meanwhile: as if removed */
	return 0;
}

static int add_list(const struct place *p, int fd, const char *name, struct xattrs *out)
{
	char list[XATTR_LIST_MAX];
	ssize_t n = name ? p->calls->listxattrat(p->task, fd, name, list, sizeof(list)) :
			   p->calls->flistxattr(p->task, fd, list, sizeof(list));
	int err = 0;

	out->used = 0;
	if (n == -EOPNOTSUPP || n == -ENOSYS)
		return 0;
	for (char *attr = list; n > 0 && attr < list + n && !err; attr += strlen(attr) + 1)
		if (worth_copying(attr))
			err = add_value(p, fd, name, attr, out);
	return n < 0 ? (int)n : err;
}

int xattrs_of_fd(const struct place *p, int fd, struct xattrs *out)
{
	return add_list(p, fd, NULL, out);
}

int xattrs_of_name(const struct place *p, int dirfd, const char *name, struct xattrs *out)
{
	return add_list(p, dirfd, name, out);
}

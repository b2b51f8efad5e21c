/* SPDX-License-Identifier: MIT */
/*
 * copy_attrs.c - owner, mode, extended attributes and times of what was written, in this order: a change of
 * owner takes set-ID bits and capabilities away, and any change of the others moves no time that we set.
 */
#include <string.h>

#include "cli.h"
#include "copy_write.h"

static int set_xattr(struct tree_sink *s, int fd, const char *name, const char *attr,
		     const void *value, size_t size)
{
	return name ? CALLS(s)->setxattrat(TASK(s), fd, name, attr, value, size) :
		      CALLS(s)->fsetxattr(TASK(s), fd, attr, value, size, 0);
}

/* Of fd, or of `name` in the directory fd. */
static int set_xattrs(struct tree_sink *s, int fd, const char *name, const char *path,
		      const struct xattrs *x, bool inherits)
{
	const char *attr;
	const void *value;
	size_t at = 0, size;
	bool acl = false;
	int err, first = 0;

	while (xattrs_next(x, &at, &attr, &value, &size)) {
		acl |= !strcmp(attr, ACL_ACCESS);
		err = set_xattr(s, fd, name, attr, value, size);
		if (err < 0 && !first) {
			cli_error("%s%s: attribute %s: %s", s->to->label, path, attr,
				  strerror(-err));
			first = err;
		}
	}
	if (inherits && !acl && !name)
		CALLS(s)->fremovexattr(TASK(s), fd, ACL_ACCESS);
	else if (inherits && !acl)
		CALLS(s)->removexattrat(TASK(s), fd, name, ACL_ACCESS);
	if (first)
		s->base.copy->failed++;
	return first;
}

bool attrs_ours(const struct copy *copy, const struct stat *st)
{
	return !copy->keep_owner || (st->st_uid == copy->uid && st->st_gid == copy->gid);
}

/* `made` is the mode it was made with, when that is known to be what it has. */
int attrs_by_fd(struct tree_sink *s, int fd, const char *path, const struct stat *st,
		const struct xattrs *x, bool exact, mode_t made)
{
	const struct copy *copy = s->base.copy;
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	mode_t mode = copy_mode(copy, st);
	const char *what = "chown";
	int err = 0;

	if (copy->keep_owner && !(exact && attrs_ours(copy, st)))
		err = CALLS(s)->fchown(TASK(s), fd, st->st_uid, st->st_gid);
	if (err >= 0 && !(exact && mode == made)) {
		what = "chmod";
		err = CALLS(s)->fchmod(TASK(s), fd, mode);
	}
	if (x->used || !exact)
		set_xattrs(s, fd, NULL, path, x, !exact);
	if (err >= 0) {
		what = "set times";
		err = CALLS(s)->futimens(TASK(s), fd, times);
	}
	return err < 0 ? copy_fail(s->base.copy, s->to->label, path, what, err) : 0;
}

int attrs_by_name(struct tree_sink *s, const struct item *item, const char *name)
{
	const struct copy *copy = s->base.copy;
	struct timespec times[2] = {item->st.st_atim, item->st.st_mtim};
	bool link = S_ISLNK(item->st.st_mode);
	const char *what = "chown";
	int err = 0;

	if (copy->keep_owner)
		err = CALLS(s)->fchownat(TASK(s), s->parent_fd, name, item->st.st_uid,
					 item->st.st_gid, AT_SYMLINK_NOFOLLOW);
	if (err >= 0 && !link) {
		what = "chmod";
		err = CALLS(s)->fchmodat(TASK(s), s->parent_fd, name, copy_mode(copy, &item->st));
	}
	set_xattrs(s, s->parent_fd, name, item->path, &item->xattrs, s->inherits && !link);
	if (err >= 0) {
		what = "set times";
		err = CALLS(s)->utimensat(TASK(s), s->parent_fd, name, times, AT_SYMLINK_NOFOLLOW);
	}
	return err < 0 ? copy_fail(s->base.copy, s->to->label, item->path, what, err) : 0;
}

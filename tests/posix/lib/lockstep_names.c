/* SPDX-License-Identifier: MIT */
/* lockstep_names.c - operations on names. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lockstep_ops.h"

static mode_t dir_mode(uint32_t r)
{
	static const mode_t modes[] = { 0755, 0777, 0700, 01777, 02775, 0, 0500, 07777, 0300, 0444, 0755, 0777 };

	return modes[r % 12];
}

void ls_do_mkdir(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_mkdirat(s->task, o->at, o->path, dir_mode(o->r[0])),
			 KERNEL3(SYS_mkdirat, o->at, o->path, dir_mode(o->r[0])));
}

void ls_do_rmdir(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_rmdir(s->task, o->path), KERNEL1(SYS_rmdir, o->path));
}

void ls_do_unlink(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_unlink(s->task, o->path), KERNEL1(SYS_unlink, o->path));
}

void ls_do_unlinkat(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = ls_unlinkat(s, o->at, o->path, o->r[0] % 2 ? AT_REMOVEDIR : o->r[0] % 32 ? 0 : 0x40);
}

void ls_do_rename(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	static const unsigned odd[] = { 1, 2, 1, 2, 3, 8, 6 };
	unsigned flags = o->r[0] % 3 ? 0 : odd[o->r[0] / 3 % (o->r[1] % 8 ? 4 : 7)];

	r->ret = LS_CALL(s, shelf_renameat2(s->task, o->at, o->path, o->at2, o->path2, flags),
			 KERNEL5(SYS_renameat2, o->at, o->path, o->at2, o->path2, flags));
}

void ls_do_link(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	int flags = (o->r[0] % 3 ? 0 : AT_SYMLINK_FOLLOW) | (o->r[0] / 3 % 32 ? 0 : 0x100);

	r->ret = LS_CALL(s, shelf_linkat(s->task, o->at, o->path, o->at2, o->path2, flags),
			 KERNEL5(SYS_linkat, o->at, o->path, o->at2, o->path2, flags));
}

void ls_do_link_fd(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_linkat(s->task, o->fd, "", o->at2, o->path2, AT_EMPTY_PATH),
			 KERNEL5(SYS_linkat, o->fd, "", o->at2, o->path2, AT_EMPTY_PATH));
}

void ls_do_symlink(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_symlinkat(s->task, o->path2, o->at, o->path),
			 KERNEL3(SYS_symlinkat, o->path2, o->at, o->path));
}

void ls_do_readlink(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	size_t size = o->r[0] % 8 ? LS_PATH : o->r[0] / 8 % 5;

	r->ret = ls_readlinkat(s, o->at, o->path, (char *)s->buf, size);
	if (r->ret > 0)
		r->hash = ls_hash(1, s->buf, (size_t)r->ret);
}

/* No fifos and devices: to open one is another matter there. */
void ls_do_mknod(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	static const mode_t types[] = { S_IFREG, S_IFSOCK, 0, S_IFSOCK, S_IFDIR, S_IFLNK, 0150000 };
	mode_t mode = types[o->r[0] % 7] | (o->r[1] % 010000);

	r->ret = LS_CALL(s, shelf_mknodat(s->task, o->at, o->path, mode, 0),
			 KERNEL4(SYS_mknodat, o->at, o->path, mode, 0));
}

/* ---- where we stand ------------------------------------------------------------------------------------- */

/* Home again now and then: a removed or forbidden place is no place for long. */
void ls_do_chdir(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	const char *path = o->r[0] % 3 ? o->path : "/";

	r->ret = LS_CALL(s, shelf_chdir(s->task, path), KERNEL1(SYS_chdir, path));
}

void ls_do_fchdir(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_fchdir(s->task, o->fd), KERNEL1(SYS_fchdir, o->fd));
}

void ls_do_getcwd(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	size_t size = o->r[0] % 4 ? LS_PATH : o->r[0] / 4 % 10;

	r->ret = LS_CALL(s, shelf_getcwd(s->task, (char *)s->buf, size), KERNEL2(SYS_getcwd, s->buf, size));
	if (r->ret > 0)
		snprintf(r->text, sizeof(r->text), "%.230s", (char *)s->buf);
}

/* Through a buffer that holds one entry or many, or none. */
void ls_do_list(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	static const unsigned sizes[] = { 4096, 280, 300, 1000, 65536, 20 };
	unsigned size = sizes[o->r[0] % (o->r[1] % 16 ? 5 : 6)];
	int64_t fd = o->r[2] % 2 ? o->fd : ls_openat(s, o->at, o->path, O_RDONLY | O_DIRECTORY, 0);

	r->ret = fd < 0 ? fd : ls_list(s, (int)fd, size, &r->hash);
	if (!(o->r[2] % 2) && fd >= 0)
		ls_close(s, (int)fd);
}

/* ---- the larger steps -------------------------------------------------------------------------------------- */

void ls_do_ids(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = ls_setids(s, o->r[0] % 2 ? 0 : o->r[1] % 4);
}

void ls_do_remove_tree(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	unsigned ids = ls_ids(s);

	ls_setids(s, 0);
	ls_setlimit(s, LS_NOFILE_DUMP);
	r->ret = ls_tree_remove(s, AT_FDCWD, o->path);
	ls_setlimit(s, LS_NOFILE);
	ls_setids(s, ids);
}

void ls_do_tree(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	(void)o;
	r->ret = ls_tree_hash(s, &r->hash, r->text, sizeof(r->text));
}

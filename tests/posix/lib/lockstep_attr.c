/* SPDX-License-Identifier: MIT */
/* lockstep_attr.c - operations on attributes and extended attributes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "lockstep_ops.h"

#define SYS_fchmodat2_ 452 /* Linux 6.6 */

static int at_flags(uint32_t r)
{
	return (r % 3 ? 0 : AT_SYMLINK_NOFOLLOW) | (r / 3 % 10 ? 0 : AT_EMPTY_PATH) | (r / 30 % 50 ? 0 : 0x10000);
}

/* ---- looking --------------------------------------------------------------------------------------- */

void ls_do_fstatat(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct stat st;

	r->ret = ls_fstatat(s, o->at, o->path, &st, at_flags(o->r[0]));
	if (!r->ret)
		ls_stat_text(&st, r->text, sizeof(r->text));
}

void ls_do_fstat(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct stat st;

	r->ret = LS_CALL(s, shelf_fstat(s->task, o->fd, &st), KERNEL2(SYS_fstat, o->fd, &st));
	if (!r->ret)
		ls_stat_text(&st, r->text, sizeof(r->text));
}

void ls_do_statx(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	unsigned mask = o->r[1] % 16 ? 0xfff : 0x80000000u;
	struct statx x;

	memset(&x, 0, sizeof(x));
	r->ret = LS_CALL(s, shelf_statx(s->task, o->at, o->path, at_flags(o->r[0]), mask, &x),
			 KERNEL5(SYS_statx, o->at, o->path, at_flags(o->r[0]), mask, &x));
	if (!r->ret)
		snprintf(r->text, sizeof(r->text), "mask %x mode %o nlink %u ids %u %u size %llu blocks %llu of %u",
			 x.stx_mask & 0xfff, x.stx_mode, x.stx_nlink, x.stx_uid, x.stx_gid,
			 (unsigned long long)x.stx_size, (unsigned long long)x.stx_blocks, x.stx_blksize);
}

void ls_do_access(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	int mode = (int)(o->r[0] % 9), flags = at_flags(o->r[1]) | (o->r[2] % 2 ? AT_EACCESS : 0);

	r->ret = LS_CALL(s, shelf_faccessat2(s->task, o->at, o->path, mode, flags),
			 KERNEL4(SYS_faccessat2, o->at, o->path, mode, flags));
}

/* Do two names mean one file? */
void ls_do_same_inode(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct stat a, b;

	r->ret = ls_fstatat(s, o->at, o->path, &a, 0);
	if (!r->ret)
		r->ret = ls_fstatat(s, o->at2, o->path2, &b, 0);
	if (!r->ret)
		r->ret = a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* ---- mode, owner, times ------------------------------------------------------------------------------ */

static mode_t some_mode(uint32_t r)
{
	return r % 3 ? r / 3 % 010000 : 0777 & (r / 3 % 2 ? 0755 : 0700);
}

void ls_do_chmod(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	int flags = o->r[1] % 2 ? 0 : at_flags(o->r[1] / 2);

	r->ret = LS_CALL(s, shelf_fchmodat2(s->task, o->at, o->path, some_mode(o->r[0]), flags),
			 KERNEL4(SYS_fchmodat2_, o->at, o->path, some_mode(o->r[0]), flags));
}

void ls_do_fchmod(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_fchmod(s->task, o->fd, some_mode(o->r[0])),
			 KERNEL2(SYS_fchmod, o->fd, some_mode(o->r[0])));
}

static uint32_t some_id(const struct ls_side *s, uint32_t r)
{
	static const uint32_t ids[] = { (uint32_t)-1, 0, 1000, 1001, 1002, 100, 1000 };

	return s->many_ids ? ids[r % 7] : r % 2 ? 0 : (uint32_t)-1;
}

void ls_do_chown(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	uid_t uid = some_id(s, o->r[0]);
	gid_t gid = some_id(s, o->r[1]);

	r->ret = LS_CALL(s, shelf_fchownat(s->task, o->at, o->path, uid, gid, at_flags(o->r[2])),
			 KERNEL5(SYS_fchownat, o->at, o->path, uid, gid, at_flags(o->r[2])));
}

void ls_do_fchown(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	uid_t uid = some_id(s, o->r[0]);
	gid_t gid = some_id(s, o->r[1]);

	r->ret = LS_CALL(s, shelf_fchown(s->task, o->fd, uid, gid), KERNEL3(SYS_fchown, o->fd, uid, gid));
}

static void some_time(uint32_t r, uint32_t q, struct timespec *t)
{
	t->tv_sec = q % 1000000;
	t->tv_nsec = r % 8 == 0 ? UTIME_NOW : r % 8 == 1 ? UTIME_OMIT : r % 64 == 2 ? 1000000000 : (long)(q % 1000000000);
}

void ls_do_utimens(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct timespec times[2], *given = o->r[4] % 8 ? times : NULL;

	some_time(o->r[0], o->r[1], &times[0]);
	some_time(o->r[2], o->r[3], &times[1]);
	r->ret = LS_CALL(s, shelf_utimensat(s->task, o->at, o->path, given, at_flags(o->r[5])),
			 KERNEL4(SYS_utimensat, o->at, o->path, given, at_flags(o->r[5])));
}

void ls_do_futimens(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	struct timespec times[2], *given = o->r[4] % 8 ? times : NULL;

	some_time(o->r[0], o->r[1], &times[0]);
	some_time(o->r[2], o->r[3], &times[1]);
	if (o->fd == AT_FDCWD)
		return;
	r->ret = LS_CALL(s, shelf_futimens(s->task, o->fd, given), KERNEL4(SYS_utimensat, o->fd, NULL, given, 0));
}

void ls_do_umask(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	static const mode_t masks[] = { 022, 0, 077, 027, 0777, 07022 };

	r->ret = LS_CALL(s, shelf_umask(s->task, masks[o->r[0] % 6]), KERNEL1(SYS_umask, masks[o->r[0] % 6]));
}

/* ---- extended attributes -------------------------------------------------------------------------------- */

static const char *some_name(uint32_t r)
{
	static const char *const names[] = { "user.a", "user.b", "user.c", "user.a-longer-name-with-more-letters",
					     "trusted.t", "security.s", "user.", "user", "nonsense.x", "",
					     "system.other", "trusted.", "system.posix_acl_access" };

	return names[r % 8 ? r % 5 : r / 8 % 13];
}

static size_t some_size(const struct ls_op *o)
{
	return o->r[1] % 20 ? o->r[1] / 20 % 100 : o->r[1] % 3 ? o->r[1] / 20 % 5000 : (size_t)(o->r[1] / 20 % 70000);
}

static int set_flags(const struct ls_op *o)
{
	return (int)(o->r[2] % 4 ? 0 : o->r[2] / 4 % 5);
}

static void fill_value(struct ls_side *s, const struct ls_op *o)
{
	memset(s->buf, (int)(o->seed & 0xff), LS_BUFFER);
}

void ls_do_setxattr(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	const char *name = some_name(o->r[0]);

	fill_value(s, o);
	if (o->r[3] % 4)
		r->ret = LS_CALL(s, shelf_setxattr(s->task, o->path, name, s->buf, some_size(o), set_flags(o)),
				 KERNEL5(SYS_setxattr, o->path, name, s->buf, some_size(o), set_flags(o)));
	else
		r->ret = LS_CALL(s, shelf_lsetxattr(s->task, o->path, name, s->buf, some_size(o), set_flags(o)),
				 KERNEL5(SYS_lsetxattr, o->path, name, s->buf, some_size(o), set_flags(o)));
}

void ls_do_fsetxattr(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	const char *name = some_name(o->r[0]);

	fill_value(s, o);
	r->ret = LS_CALL(s, shelf_fsetxattr(s->task, o->fd, name, s->buf, some_size(o), set_flags(o)),
			 KERNEL5(SYS_fsetxattr, o->fd, name, s->buf, some_size(o), set_flags(o)));
}

static size_t get_size(const struct ls_op *o)
{
	return o->r[1] % 4 == 0 ? 0 : o->r[1] % 4 == 1 ? o->r[1] / 4 % 50 : 69000;
}

static void hash_value(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	if (r->ret > 0 && get_size(o))
		r->hash = ls_hash(1, s->buf, (size_t)r->ret);
}

void ls_do_getxattr(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	const char *name = some_name(o->r[0]);

	if (o->r[3] % 4)
		r->ret = LS_CALL(s, shelf_getxattr(s->task, o->path, name, s->buf, get_size(o)),
				 KERNEL4(SYS_getxattr, o->path, name, s->buf, get_size(o)));
	else
		r->ret = LS_CALL(s, shelf_lgetxattr(s->task, o->path, name, s->buf, get_size(o)),
				 KERNEL4(SYS_lgetxattr, o->path, name, s->buf, get_size(o)));
	hash_value(s, o, r);
}

void ls_do_fgetxattr(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	const char *name = some_name(o->r[0]);

	r->ret = LS_CALL(s, shelf_fgetxattr(s->task, o->fd, name, s->buf, get_size(o)),
			 KERNEL4(SYS_fgetxattr, o->fd, name, s->buf, get_size(o)));
	hash_value(s, o, r);
}

/* Names in any order. */
static void hash_list(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	for (int64_t at = 0; get_size(o) && at < r->ret; at += (int64_t)strlen((char *)s->buf + at) + 1)
		r->hash += ls_hash(1, s->buf + at, strlen((char *)s->buf + at));
}

void ls_do_listxattr(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	char *list = (char *)s->buf;

	if (o->r[3] % 4)
		r->ret = LS_CALL(s, shelf_listxattr(s->task, o->path, list, get_size(o)),
				 KERNEL3(SYS_listxattr, o->path, list, get_size(o)));
	else
		r->ret = LS_CALL(s, shelf_llistxattr(s->task, o->path, list, get_size(o)),
				 KERNEL3(SYS_llistxattr, o->path, list, get_size(o)));
	hash_list(s, o, r);
}

void ls_do_flistxattr(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	r->ret = LS_CALL(s, shelf_flistxattr(s->task, o->fd, (char *)s->buf, get_size(o)),
			 KERNEL3(SYS_flistxattr, o->fd, s->buf, get_size(o)));
	hash_list(s, o, r);
}

void ls_do_removexattr(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	const char *name = some_name(o->r[0]);

	if (o->r[3] % 4)
		r->ret = LS_CALL(s, shelf_removexattr(s->task, o->path, name), KERNEL2(SYS_removexattr, o->path, name));
	else
		r->ret = LS_CALL(s, shelf_lremovexattr(s->task, o->path, name),
				 KERNEL2(SYS_lremovexattr, o->path, name));
}

void ls_do_fremovexattr(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	const char *name = some_name(o->r[0]);

	r->ret = LS_CALL(s, shelf_fremovexattr(s->task, o->fd, name), KERNEL2(SYS_fremovexattr, o->fd, name));
}

/* POSIX ACLs as the kernel stores them: version 2, entries of tag, perm, id. */
struct acl_entry {
	uint16_t tag, perm;
	uint32_t id;
};

static size_t make_acl(struct ls_side *s, const struct ls_op *o)
{
	static const uint32_t ids[] = { 1000, 1001, 1002 };
	static const uint32_t groups[] = { 100, 1000, 1002 };
	struct acl_entry e[8];
	uint32_t version = o->r[1] % 32 ? 2 : 1;
	size_t n = 0;

	e[n++] = (struct acl_entry){ 1, o->r[2] % 8, ~0u };
	if (o->r[3] % 2)
		e[n++] = (struct acl_entry){ 2, o->r[3] / 2 % 8, s->many_ids ? ids[o->r[3] / 16 % 3] : 0 };
	e[n++] = (struct acl_entry){ 4, o->r[4] % 8, ~0u };
	if (o->r[5] % 2)
		e[n++] = (struct acl_entry){ 8, o->r[5] / 2 % 8, s->many_ids ? groups[o->r[5] / 16 % 3] : 0 };
	if (n > 2 || o->r[6] % 4 == 0)
		e[n++] = (struct acl_entry){ 0x10, o->r[6] / 4 % 8, ~0u };
	if (o->r[7] % 16)
		e[n++] = (struct acl_entry){ 0x20, o->r[7] / 16 % 8, ~0u };
	memcpy(s->buf, &version, 4);
	memcpy(s->buf + 4, e, n * sizeof(e[0]));
	return 4 + n * sizeof(e[0]);
}

void ls_do_setacl(struct ls_side *s, const struct ls_op *o, struct ls_result *r)
{
	const char *name = o->r[0] % 2 ? "system.posix_acl_access" : "system.posix_acl_default";
	size_t size = make_acl(s, o);

	if (o->r[8] % 8 == 0)
		r->ret = LS_CALL(s, shelf_removexattr(s->task, o->path, name), KERNEL2(SYS_removexattr, o->path, name));
	else if (o->r[8] % 8 == 1)
		r->ret = LS_CALL(s, shelf_getxattr(s->task, o->path, name, s->buf, 1000),
				 KERNEL4(SYS_getxattr, o->path, name, s->buf, 1000));
	else
		r->ret = LS_CALL(s, shelf_setxattr(s->task, o->path, name, s->buf, size, 0),
				 KERNEL5(SYS_setxattr, o->path, name, s->buf, size, 0));
	if (o->r[8] % 8 == 1 && r->ret > 0)
		r->hash = ls_hash(1, s->buf, (size_t)r->ret);
}

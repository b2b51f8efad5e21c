/* SPDX-License-Identifier: MIT */
/*
 * open.c - open and openat2.
 *
 * An open that may leave something behind (O_CREAT, O_TRUNC, O_TMPFILE) takes its number and its file
 * object first, so that EMFILE, ENFILE and a full segment leave no trace.  Any other walks first: when it
 * fails it has stored nothing that is shared.  Linux looks at the numbers before it looks at the path,
 * so a full table still answers EMFILE; it is asked only where the highest number allowed is open.
 */
#include <linux/openat2.h>
#include <string.h>
#include <sys/inotify.h>

#include "api/api.h"

#define O_TMPFILE_BIT 020000000 /* O_TMPFILE without the O_DIRECTORY that always goes with it */
#define O_LARGEFILE_ 0100000 /* glibc's is 0 on 64-bit systems; F_GETFL shows the kernel's */
#define HOW_SIZE_FIRST 24 /* struct open_how as first published */
#define O_CLOFORK_ ((uint64_t)(uint32_t)SHELF_O_CLOFORK)

#define OPEN_KNOWN                                                                                 \
	(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC |      \
	 O_DSYNC | O_ASYNC | O_DIRECT | O_LARGEFILE_ | O_DIRECTORY | O_NOFOLLOW | O_NOATIME |      \
	 O_CLOEXEC | O_PATH | O_TMPFILE_BIT)
#define OPEN_PATH_KNOWN (O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC)
#define OPEN_NOT_KEPT (O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC) /* F_GETFL never shows them */
/* Nothing to check about these, but what goes with O_CREAT. */
#define OPEN_COMMON                                                                                \
	(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_LARGEFILE_ |        \
	 O_NOFOLLOW | O_CLOEXEC)
#define OPEN_LEAVES (O_CREAT | O_TRUNC | O_TMPFILE_BIT)

#define RESOLVE_KNOWN                                                                              \
	(RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH |         \
	 RESOLVE_IN_ROOT | RESOLVE_CACHED)

struct opening {
	struct who w;
	int dirfd;
	const char *path;
	uint32_t flags; /* of open(2), as checked */
	uint32_t mode;
	unsigned walk; /* WALK_OPENAT2 bits */
	unsigned bits; /* of the descriptor */
};

/* ---- what is asked for ------------------------------------------------------------------------ */

static int flags_check(uint64_t flags, uint64_t mode)
{
	if (flags & ~((uint64_t)OPEN_KNOWN | O_CLOFORK_))
		return -EINVAL;
	if (flags & (O_CREAT | O_TMPFILE_BIT) ? mode & ~07777ULL : mode)
		return -EINVAL;
	if ((flags & (O_DIRECTORY | O_CREAT)) == (O_DIRECTORY | O_CREAT))
		return -EINVAL;
	if (flags & O_TMPFILE_BIT && (!(flags & O_DIRECTORY) || (flags & O_ACCMODE) == O_RDONLY))
		return -EINVAL;
	if (flags & O_PATH && flags & ~((uint64_t)OPEN_PATH_KNOWN | O_CLOFORK_))
		return -EINVAL;
	return 0;
}

static int resolve_check(uint64_t resolve, uint64_t flags)
{
	if (resolve & ~(uint64_t)RESOLVE_KNOWN)
		return -EINVAL;
	if ((resolve & RESOLVE_BENEATH) && (resolve & RESOLVE_IN_ROOT))
		return -EINVAL;
	return (resolve & RESOLVE_CACHED) && (flags & OPEN_LEAVES) ? -EAGAIN : 0;
}

static unsigned walk_of_resolve(uint64_t resolve)
{
	static const struct {
		unsigned resolve, walk;
	} map[] = {
		{ RESOLVE_NO_XDEV, WALK_NO_XDEV },
		{ RESOLVE_NO_MAGICLINKS, WALK_NO_MAGICLINKS },
		{ RESOLVE_NO_SYMLINKS, WALK_NO_SYMLINKS },
		{ RESOLVE_BENEATH, WALK_BENEATH },
		{ RESOLVE_IN_ROOT, WALK_IN_ROOT },
		{ RESOLVE_CACHED, WALK_CACHED },
	};
	unsigned walk = 0;

	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (resolve & map[i].resolve)
			walk |= map[i].walk;
	return walk;
}

static int opening_init_slow(struct opening *o, const struct open_how *how)
{
	int err = flags_check(how->flags, how->mode);

	if (!err)
		err = resolve_check(how->resolve, how->flags);
	if (err)
		return err;
	o->flags = (uint32_t)(how->flags & ~O_CLOFORK_);
	if (o->flags & (O_SYNC & ~O_DSYNC))
		o->flags |= O_DSYNC;
	o->mode = (uint32_t)how->mode;
	o->walk = walk_of_resolve(how->resolve);
	o->bits = (how->flags & O_CLOEXEC ? FD_CLOEXEC_BIT : 0u) | (how->flags & O_CLOFORK_ ? FD_CLOFORK_BIT : 0u);
	return 0;
}

static inline_always int opening_init(struct opening *o, const struct open_how *how)
{
	if (unlikely((how->flags & ~(uint64_t)OPEN_COMMON) || how->resolve ||
		     (how->flags & O_CREAT ? how->mode & ~07777ULL : how->mode)))
		return opening_init_slow(o, how);
	o->flags = (uint32_t)how->flags;
	o->mode = (uint32_t)how->mode;
	o->walk = 0;
	o->bits = how->flags & O_CLOEXEC ? FD_CLOEXEC_BIT : 0u;
	return 0;
}

/* ---- finding or making the file ------------------------------------------------------------------ */

/* Of an open with OPEN_COMMON flags and no openat2 restrictions: the flags that the common walk serves. */
#define OPEN_COMMON_WALK (O_ACCMODE | O_NOCTTY | O_APPEND | O_NONBLOCK | O_LARGEFILE_ | O_CLOEXEC)

static inline bool open_walk_is_common(const struct opening *o)
{
	return !(o->flags & ~(uint32_t)OPEN_COMMON_WALK) && !o->walk && o->dirfd == AT_FDCWD;
}

/* The inode, counted and in the ledger. */
static inline_always int open_inode(struct opening *o, struct open_walk *found)
{
	struct place p;
	int err;

	scheme_names_enter(o->w.self);
	err = place_get_as(&o->w, o->dirfd, o->path, o->walk, &p);
	if (err)
		goto out;
	if (o->flags & O_TMPFILE_BIT) {
		found->created = true;
		err = ramfs_tmpfile(&o->w, p.start, o->path, o->mode, (int)o->flags, &found->inode);
	} else {
		err = ramfs_open(&o->w, p.start, o->path, (int)o->flags, o->mode, o->walk, found);
	}
	place_put(&o->w, &p);
out:
	scheme_names_exit(o->w.self);
	return err;
}

/* Pipes, sockets and devices are names here, nothing to talk to. */
static inline int type_of(const struct opening *o, struct inode *inode, uint32_t *type)
{
	mode_t m = inode_type(inode);

	if (likely(m == S_IFREG && !(o->flags & O_PATH))) {
		*type = FD_TYPE_REG;
		return 0;
	}
	*type = o->flags & O_PATH ? FD_TYPE_PATH : m == S_IFDIR ? FD_TYPE_DIR : FD_TYPE_REG;
	if (*type == FD_TYPE_REG && m != S_IFREG)
		return -ENXIO;
	return *type == FD_TYPE_DIR && o->flags & O_DIRECT ? -EINVAL : 0;
}

static inline uint32_t flags_kept(const struct opening *o)
{
	if (o->flags & O_PATH)
		return o->flags & ~(uint32_t)OPEN_NOT_KEPT;
	return (o->flags & ~(uint32_t)OPEN_NOT_KEPT) | O_LARGEFILE_;
}

/* What is left to do once the inode is there; on failure it is dropped. */
static inline int open_finish(struct opening *o, struct open_walk *found, uint32_t *type)
{
	int err = type_of(o, found->inode, type);

	if (!err && o->flags & O_TRUNC && !found->created && *type == FD_TYPE_REG)
		err = ramfs_truncate(&o->w, found->inode, 0);
	if (err)
		inode_put(o->w.self, found->inode);
	return err;
}

/* ---- the three orders ----------------------------------------------------------------------------- */

/* In a read-only process: what fails fails in the same way; what would succeed cannot have a number. */
static int open_read_only(struct opening *o)
{
	unsigned walk = o->flags & O_NOFOLLOW ? 0 : WALK_FOLLOW;
	struct look l = { .w = o->w };
	int err = look_begin_as(&l, o->dirfd, o->path, walk | o->walk | (o->flags & O_DIRECTORY ? WALK_DIRECTORY : 0));

	if (err)
		return err;
	look_end(&l);
	return -EROFS;
}

/* Is there no number for it?  Not while the highest allowed is free; else ask the table. */
static bool table_full(const struct opening *o)
{
	uint64_t limit = min_of(nofile_of(&o->w), (uint64_t)FD_NUMBER_MAX);
	int fd;

	if (limit && fd_get_bits(o->w.self, o->w.files, (int)(limit - 1)) < 0)
		return false;
	fd = fd_reserve(o->w.self, o->w.files, 0, limit);
	if (fd >= 0)
		fd_cancel(o->w.self, o->w.files, fd);
	return fd < 0;
}

/* There is no number for it: it was never open, so nobody is told of a close. */
static void file_unmake(struct slot *self, struct file *f)
{
	struct inode *inode = f->inode;

	file_unfill(self, f);
	fd_put(self, &f->head);
	inode_put(self, inode);
}

/* As open_inode(), by the short way where there is one. */
static inline_always int open_inode_plain(struct opening *o, struct open_walk *found)
{
	int err = WALK_UNCOMMON;

	if (likely(open_walk_is_common(o))) {
		scheme_names_enter(o->w.self);
		err = ramfs_open_common(&o->w, o->path, (int)o->flags, found);
		scheme_names_exit(o->w.self);
	}
	return unlikely(err == WALK_UNCOMMON) ? open_inode(o, found) : err;
}

struct api_numbers api_numbers;

/* A number for a file that is made. */
static inline_always int install(struct opening *o, struct fd_file *head)
{
	uint64_t limit = nofile_of(&o->w);
	int fd;

	if (likely(!api_numbers.place))
		return fd_install(o->w.self, o->w.files, head, limit, o->bits);
	fd = fd_reserve(o->w.self, o->w.files, 0, limit);
	if (fd >= 0)
		fd = api_numbers.place(&o->w, fd, 0);
	if (fd >= 0)
		fd_publish(o->w.self, o->w.files, fd, head, o->bits);
	return fd;
}

/* Nothing to leave behind: the path first. */
static int open_plain(struct opening *o)
{
	struct slot *self = o->w.self;
	struct open_walk found = { .keeps_name = false };
	struct file *f;
	uint32_t type;
	int fd, err = open_inode_plain(o, &found);

	if (!err)
		err = open_finish(o, &found, &type);
	if (unlikely(err))
		return table_full(o) ? -EMFILE : err;
	f = file_new(self, found.inode, type, flags_kept(o), &err);
	if (unlikely(!f)) {
		inode_put(self, found.inode);
		return table_full(o) ? -EMFILE : err;
	}
	f->cred_id = cred_id_of(&o->w);
	fd = install(o, &f->head);
	if (unlikely(fd < 0))
		file_unmake(self, f);
	return fd;
}

/* Somebody watches: the file is not published yet. */
static __attribute__((cold)) void open_told(struct opening *o, struct file *f, const struct open_walk *found)
{
	notify_file(o->w.self, f, IN_OPEN);
	if (o->flags & O_TRUNC && !found->created && f->head.type == FD_TYPE_REG)
		notify_file(o->w.self, f, IN_MODIFY);
}

/* The number and the object first. */
static int open_leaving(struct opening *o)
{
	struct slot *self = o->w.self;
	int err, fd = fd_reserve(self, o->w.files, 0, nofile_of(&o->w));
	struct open_walk found = { .keeps_name = notify_wanted(self) };
	struct file *f;
	uint32_t type;

	if (api_numbers.place && fd >= 0)
		fd = api_numbers.place(&o->w, fd, 0);
	if (unlikely(fd < 0))
		return fd;
	f = file_new_empty(self, flags_kept(o), &err);
	if (unlikely(!f))
		goto out_number;
	err = open_inode(o, &found);
	if (!err)
		err = open_finish(o, &found, &type);
	if (unlikely(err))
		goto out_name;
	file_fill(self, f, found.inode, type);
	f->created = found.created && !(o->flags & O_TMPFILE_BIT); /* as Linux has it */
	f->cred_id = cred_id_of(&o->w);
	if (found.name)
		opened_set(self, &f->opened, found.name);
	if (notify_wanted(self))
		open_told(o, f, &found);
	fd_publish(self, o->w.files, fd, &f->head, o->bits);
	return fd;
out_name:
	opened_put(self, found.name);
	fd_put(self, &f->head);
out_number:
	if (api_numbers.place)
		api_numbers.cancel(&o->w, fd);
	else
		fd_cancel(self, o->w.files, fd);
	return err;
}

/* An event is left behind, too. */
static inline bool open_leaves(const struct opening *o)
{
	return o->flags & OPEN_LEAVES || notify_wanted(o->w.self);
}

static inline_always int open_how(struct shelf_task *t, int dirfd, const char *path, const struct open_how *how)
{
	struct opening o;
	int err = who_init(&o.w, t);

	if (likely(!err))
		err = opening_init(&o, how);
	if (unlikely(err))
		return err;
	if (unlikely(!path))
		return -EFAULT;
	if (unlikely(!*path))
		return -ENOENT;
	o.dirfd = dirfd;
	o.path = path;
	if (unlikely(o.w.self->seg->read_only))
		return open_read_only(&o);
	return open_leaves(&o) ? open_leaving(&o) : open_plain(&o);
}

/* ---- the calls --------------------------------------------------------------------------------------- */

/* open(2) ignores what it does not know, and a mode that nothing needs. */
int shelf_openat(struct shelf_task *t, int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = { .flags = (uint32_t)flags & (OPEN_KNOWN | (uint32_t)O_CLOFORK_) };

	if (how.flags & O_PATH)
		how.flags &= OPEN_PATH_KNOWN | O_CLOFORK_;
	if (how.flags & (O_CREAT | O_TMPFILE_BIT))
		how.mode = mode & 07777;
	return open_how(t, dirfd, path, &how);
}

int api_reopen(struct shelf_task *t, int fd, int flags)
{
	struct open_how how = { .flags = (uint32_t)flags & (OPEN_KNOWN & ~(uint32_t)(O_CREAT | O_EXCL | O_NOFOLLOW)) };
	struct opening o;
	int err = who_change(&o.w, t);

	if (!err)
		err = opening_init(&o, &how);
	if (err)
		return err;
	o.dirfd = fd;
	o.path = "";
	o.walk |= WALK_EMPTY_PATH;
	return open_leaves(&o) ? open_leaving(&o) : open_plain(&o);
}

int api_open_hidden(struct shelf_task *t, int dirfd, const char *path, int min)
{
	struct opening o = { .dirfd = dirfd, .path = path, .flags = O_RDONLY, .walk = *path ? 0 : WALK_EMPTY_PATH };
	struct open_walk found = { .keeps_name = false };
	struct file *f;
	uint32_t type;
	int fd, err = who_change(&o.w, t);

	if (!err)
		err = open_inode(&o, &found);
	if (!err)
		err = open_finish(&o, &found, &type);
	if (err)
		return err;
	f = file_new(o.w.self, found.inode, type, flags_kept(&o), &err);
	if (!f) {
		inode_put(o.w.self, found.inode);
		return err;
	}
	fd = fd_reserve(o.w.self, o.w.files, min, FD_NUMBER_MAX);
	if (fd < 0) {
		file_unmake(o.w.self, f);
		return fd;
	}
	if (notify_wanted(o.w.self))
		open_told(&o, f, &found);
	fd_publish(o.w.self, o.w.files, fd, &f->head, FD_CLOEXEC_BIT);
	return fd;
}

int shelf_open(struct shelf_task *t, const char *path, int flags, mode_t mode)
{
	return shelf_openat(t, AT_FDCWD, path, flags, mode);
}

int shelf_creat(struct shelf_task *t, const char *path, mode_t mode)
{
	return shelf_openat(t, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* What a newer program's longer struct has and we do not know must be zero. */
static int how_copy(struct open_how *out, const void *how, size_t size)
{
	const unsigned char *bytes = how;

	if (size < HOW_SIZE_FIRST)
		return -EINVAL;
	if (size > PAGE_BYTES)
		return -E2BIG;
	if (!how)
		return -EFAULT;
	for (size_t i = sizeof(*out); i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memcpy(out, how, sizeof(*out));
	return 0;
}

int shelf_openat2(struct shelf_task *t, int dirfd, const char *path, const struct open_how *how, size_t size)
{
	struct open_how mine;
	int err = how_copy(&mine, how, size);

	return err ? err : open_how(t, dirfd, path, &mine);
}

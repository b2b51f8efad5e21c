/* SPDX-License-Identifier: MIT */
/*
 * api.h - what the public calls share: three ways to get at a file.
 *
 *	use	a descriptor: borrowed inside a read section; use_pin() turns the loan into a counted
 *		reference and leaves the section, for what must wait
 *	look	a path, for reading: one read section from the descriptor of the directory to the result;
 *		no lock, no count, no shared store
 *	hold	a path or a descriptor, for changing what it names: the inode is counted and the
 *		section over; call_at() and call_end() likewise for calls that walk by themselves
 *
 * Data owned: none.  Every begin that returns 0 is followed by its end.  Progress: use and look are wait-free
 * but for the walk's bounded restarts; the others block where the layer below does.
 * A call that changes anything fails with -EROFS in a process that attached for reading.
 */
#ifndef SHELF_API_API_H
#define SHELF_API_API_H

#include <limits.h>

#include "fd/fd.h"
#include "ramfs/ramfs.h"
#include "task/task.h"
#include "vfs/file_ops.h"
#include "vfs/vfs.h"

#define RW_COUNT_MAX 0x7ffff000UL /* what one read or write moves at most */
#define USER_TOP ((1UL << 47) - 4096) /* where addresses a caller can own end */
#define USE_AGAIN (-4097) /* the file died between the look and the pin: start over */

static inline bool file_has_inode(const struct file *f)
{
	return (f->head.type >= FD_TYPE_REG && f->head.type <= FD_TYPE_NODE) || f->head.type == FD_TYPE_MAP;
}

static inline struct file *file_of(struct fd_file *head)
{
	return container_of(head, struct file, head);
}

/* Nobody else can have this file: one thread, one table, one slot. */
static inline bool file_is_alone(struct slot *self, struct fd_table *files, const struct file *f)
{
	return fd_table_is_sole(self, files) && ref_read(&f->head.count) == 1;
}

/* It was read: relatime. */
static inline void file_touch(struct slot *self, struct file *f)
{
	if (!(load_relaxed(&f->flags) & O_NOATIME)) /* relaxed: a flag */
		attr_touch_atime(self, f->inode);
}

static inline bool buffer_ok(const void *buf, size_t n)
{
	uintptr_t end;

	return !__builtin_add_overflow((uintptr_t)buf, n, &end) && end <= USER_TOP;
}

/* who_init() for calls that change something. */
static inline int who_change(struct who *w, struct shelf_task *t)
{
	int err = who_init(w, t);

	if (likely(!err) && unlikely(w->self->seg->read_only))
		err = -EROFS;
	if (likely(!err))
		epoch_catch_up(w->self);
	return err;
}

/* ---- use: a descriptor ------------------------------------------------------------------- */

struct use {
	struct who w;
	struct file *f;
	bool pinned; /* counted, not in a section; else borrowed, in one */
	bool pos_locked;
};

/* With `raw`, O_PATH descriptors too.  A number of the kernel's is none of ours, and what keeps a map nobody's. */
static inline bool use_takes(uint32_t type, bool raw)
{
	return type == FD_TYPE_PATH ? raw : type != FD_TYPE_HOST && type != FD_TYPE_MAP;
}


static inline int use_begin(struct use *u, struct shelf_task *t, int fd, bool raw)
{
	struct fd_file *head;
	int err = who_init(&u->w, t);

	if (unlikely(err))
		return err;
	epoch_enter_root(u->w.self, t->hdr->epoch); /* what the file names needs one, too */
	err = fd_borrow_epoch(u->w.self, u->w.files, fd, &head);
	if (unlikely(err))
		goto out;
	u->f = file_of(head);
	u->pinned = u->pos_locked = false;
	if (likely(head->type < FD_TYPE_PATH || use_takes(head->type, raw)))
		return 0;
	err = -EBADF;
	fd_return_epoch(u->w.self, u->w.files, head);
out:
	epoch_exit(u->w.self);
	return err;
}

static inline void use_end(struct use *u)
{
	if (unlikely(u->pinned)) {
		fd_put(u->w.self, &u->f->head);
		return;
	}
	fd_return_epoch(u->w.self, u->w.files, &u->f->head);
	epoch_exit(u->w.self);
}

/* 0, or USE_AGAIN; the use stays begun either way. */
int use_pin(struct use *u);
/* begin and pin: for calls that wait anyway. */
int use_begin_pinned(struct use *u, struct shelf_task *t, int fd, bool raw);
/* use_begin_pinned() for a call that changes something. */
int use_begin_change(struct use *u, struct shelf_task *t, int fd, bool raw);
int use_pos_lock_slow(struct use *u);
/* Ends the use, which is pinned, after a change of which `event` tells those who watch; 0: Linux would not. */
int use_changed(struct use *u, int err, uint32_t event);

static inline bool use_alone(const struct use *u)
{
	return file_is_alone(u->w.self, u->w.files, u->f);
}

/* The file's offset is ours until use_pos_unlock().  May pin.  0 or USE_AGAIN. */
static inline int use_pos_lock(struct use *u) LOCK_NO_ANALYSIS
{
	if (use_alone(u))
		return 0;
	u->pos_locked = lock_try(&u->f->pos_lock, &u->w.self->locker, LOCK_FILEPOS);
	return likely(u->pos_locked) ? 0 : use_pos_lock_slow(u);
}

static inline void use_pos_unlock(struct use *u) LOCK_NO_ANALYSIS
{
	if (u->pos_locked)
		lock_release(&u->f->pos_lock, &u->w.self->locker, LOCK_FILEPOS);
	u->pos_locked = false;
}

static inline void use_touch(struct use *u)
{
	file_touch(u->w.self, u->f);
}

/* Does the path start at the descriptor?  Below WALK_IN_ROOT an absolute one does too. */
static inline bool needs_dirfd(int dirfd, const char *path, unsigned walk_flags)
{
	return dirfd != AT_FDCWD && (*path != '/' || (walk_flags & WALK_IN_ROOT));
}

/* ---- look: a path, for reading --------------------------------------------------------------- */

struct look {
	struct who w;
	struct fd_file *at; /* borrowed; NULL: cwd or an absolute path */
	struct walk walk;
};

/* In a section when it returns 0. */
int look_begin(struct look *l, struct shelf_task *t, int dirfd, const char *path, unsigned walk_flags);
/* The same with `who` made by the caller. */
int look_begin_as(struct look *l, int dirfd, const char *path, unsigned walk_flags);
void look_end(struct look *l);

/* ---- hold: an inode to change ------------------------------------------------------------------ */

struct hold {
	struct who w;
	struct inode *inode; /* counted */
	atomic_ptr(struct opened) name; /* for hold_changed(), where somebody watches: which of several */
};

int hold_begin(struct hold *h, struct shelf_task *t, int dirfd, const char *path, unsigned walk_flags);
/* Returns `result`, for the caller's last line. */
int64_t hold_end(struct hold *h, int64_t result);
/* The same for a change of attributes, of which `event` tells those who watch; 0: Linux would not. */
int hold_changed(struct hold *h, int err, uint32_t event);

/* ---- calls that walk by themselves (ramfs.h) ------------------------------------------------------ */

struct place {
	struct fd_file *at; /* counted; NULL: cwd or an absolute path */
	struct inode *start; /* what ramfs_*() wants: its inode or NULL */
};

/* Changes, so -EROFS where that is due; enters the names of the biglock scheme. */
int call_begin(struct who *w, struct shelf_task *t);
/* 0, -EFAULT, -ENOENT (""), -EBADF, -ENOTDIR */
int place_get_slow(struct who *w, int dirfd, const char *path, unsigned walk_flags, struct place *out);
static inline int place_get_as(struct who *w, int dirfd, const char *path, unsigned walk_flags, struct place *out) /* openat2 */
{
	if (unlikely(!path || !*path || needs_dirfd(dirfd, path, walk_flags)))
		return place_get_slow(w, dirfd, path, walk_flags, out);
	out->at = NULL;
	out->start = NULL;
	return 0;
}
static inline int place_get(struct who *w, int dirfd, const char *path, struct place *out)
{
	return place_get_as(w, dirfd, path, 0, out);
}
static inline void place_put(struct who *w, struct place *p)
{
	if (unlikely(p->at != NULL))
		fd_put(w->self, p->at);
	p->at = NULL;
}
int call_end(struct who *w, int result);

/* call_begin and one place. */
struct call {
	struct who w;
	struct place place;
};
int call_at(struct call *c, struct shelf_task *t, int dirfd, const char *path);
int call_at_end(struct call *c, int result);

/* ---- moving data (io.c) -------------------------------------------------------------------------------- */

struct io {
	const struct iovec *iov;
	int iovcnt;
	size_t total;
	int err; /* of the buffers, to report once the descriptor and its mode turned out to be good */
	bool null; /* the first buffer is NULL: EFAULT if it would be touched */
	bool moves; /* use and move the file's offset */
	bool vector; /* total 0 ends the call before the offset is looked at */
	uint64_t pos;
	unsigned rwf; /* RWF_* */
};

#define IO_COMMON 65536u /* longer ones are not worth a short cut */
/* One comparison each: no length, or a long one; NULL, or too near the end of what a caller can own; an offset likewise. */
static inline bool io_is_common(const void *buf, size_t count, uint64_t pos)
{
	return count - 1 < IO_COMMON && (uintptr_t)buf - 1 < USER_TOP - IO_COMMON && pos < (uint64_t)INT64_MAX - IO_COMMON;
}

void io_one(struct io *io, struct iovec *one, const void *buf, size_t count);
void io_many(struct io *io, const struct iovec *iov, int iovcnt);
ssize_t io_read(struct shelf_task *t, int fd, struct io *io);
ssize_t io_write(struct shelf_task *t, int fd, struct io *io);

/*
 * For the runtime behind `shelf run`.  reopen: the file of descriptor `fd` once more, as open("/proc/self/fd/N") does.
 * path_of: a name of its inode below the root, " (deleted)" behind it if it has none; the length without NUL.
 */
int api_reopen(struct shelf_task *t, int fd, int flags);
/*
 * Another table goes by the same numbers (shelf run: the kernel's).  `place`, for one that is reserved, readies the other side:
 * the number it is in the end, reserved, or -errno and it is given up.  `cancel` gives it up on both sides.
 */
struct api_numbers {
	int (*place)(struct who *w, int fd, int min);
	void (*cancel)(struct who *w, int fd);
};
extern struct api_numbers api_numbers; /* of the process; set once, before its second thread */
/* A second number for `fd`, from `min` on, placed. */
int api_dup_placed(struct shelf_task *t, int fd, int min, bool cloexec);
/* For reading, close-on-exec, at the lowest free number from `min` on, whatever RLIMIT_NOFILE says; path "" is dirfd's file. */
int api_open_hidden(struct shelf_task *t, int dirfd, const char *path, int min);

/* A descriptor, from `min` on, that keeps the file of `fd` for a map (map.c): the number, -EBADF, -ENODEV (no regular file) ... */
struct api_map {
	struct inode *inode;
	bool readable, writable; /* through `fd` */
};
int api_map_open(struct shelf_task *t, int fd, int min, struct api_map *out);
/* A second number of open file `fd`, close-on-exec, from `min` on, for as long as there are maps made of it; *which: the open file. */
int api_map_hold(struct shelf_task *t, int fd, int min, const void **which);
void api_map_close(struct shelf_task *t, int fd); /* of either kind */
/* What had left the file at `drops` (ramfs_map_drops) is mapped by this process no more. */
void api_map_settle(struct shelf_task *t, int fd, uint32_t drops);
/*
 * inotify.c.  An instance that goes with a descriptor of the kernel's stands at a hidden number; special/inotify.h says what
 * its token is.  make: at exactly that number, -EMFILE: taken.  token: the token's wd, 0 if it is not armed, or -errno.
 * rm: 1, and *host: it is the kernel's watch.  merge: N bytes that the kernel's read gave are in `buf` of `size` bytes;
 * what is there then, -EAGAIN: nothing for the program was among it, -EINVAL: the next event does not fit.
 */
int api_inotify_make(struct shelf_task *t, int fd);
int api_inotify_token(struct shelf_task *t, int fd, uint64_t *id);
int api_inotify_arm(struct shelf_task *t, int fd, const char *path, int wd); /* -EEXIST: it is */
int api_inotify_add(struct shelf_task *t, int fd, int dirfd, const char *path, uint32_t mask);
int api_inotify_rm(struct shelf_task *t, int fd, int wd, int *host);
int api_inotify_host_wd(struct shelf_task *t, int fd, int wd);
ssize_t api_inotify_merge(struct shelf_task *t, int fd, void *buf, size_t n, size_t size);
int64_t api_inotify_bytes(struct shelf_task *t, int fd);
ssize_t api_path_of(struct shelf_task *t, int fd, char *buf, size_t size);

/* open.c: a descriptor's limit */
static inline uint64_t nofile_of(const struct who *w)
{
	return load_relaxed(&((struct shelf_task *)w->task)->nofile); /* a number */
}

/* copy.c: may data go straight from `in` to `out`? */
int copy_check_files(struct file *in, struct file *out);

/* What open notes in a file, and linkat by descriptor asks for. */
static inline uint64_t cred_id_of(const struct who *w)
{
	return load_relaxed(&((struct shelf_task *)w->task)->cred_id); /* a number */
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * copy.h - what `shelf put` and `shelf get` are made of.
 *
 * A source makes items (one for each file, directory, link, ...), a sink takes them:
 *
 *   a directory of the host or the shelf   tree_read      tree_sink      the same, in the other place
 *   an archive                             stream_read    stream_sink    a pax stream
 *
 * The host and the shelf have the same calls, so that a tree is read and written by the same
 * code, through a struct place.  One process, one thread; nothing here is shared.
 */
#ifndef SHELF_CLI_COPY_H
#define SHELF_CLI_COPY_H

#include <fcntl.h>
#include <linux/openat2.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <shelf/shelf.h>

/* ---- where: calls that return 0 or more, or -errno ------------------------------------ */

struct file_calls {
	int (*openat)(struct shelf_task *, int dirfd, const char *, int flags, mode_t);
	int (*openat2)(struct shelf_task *, int dirfd, const char *, const struct open_how *,
		       size_t);
	int (*close)(struct shelf_task *, int fd);
	ssize_t (*pread)(struct shelf_task *, int fd, void *, size_t, off_t);
	ssize_t (*pwrite)(struct shelf_task *, int fd, const void *, size_t, off_t);
	off_t (*lseek)(struct shelf_task *, int fd, off_t, int whence);
	int (*ftruncate)(struct shelf_task *, int fd, off_t);
	int (*fstat)(struct shelf_task *, int fd, struct stat *);
	int (*fstatat)(struct shelf_task *, int dirfd, const char *, struct stat *, int flags);
	ssize_t (*getdents64)(struct shelf_task *, int fd, void *, size_t);
	ssize_t (*readlinkat)(struct shelf_task *, int dirfd, const char *, char *, size_t);
	int (*mkdirat)(struct shelf_task *, int dirfd, const char *, mode_t);
	int (*mknodat)(struct shelf_task *, int dirfd, const char *, mode_t, dev_t);
	int (*symlinkat)(struct shelf_task *, const char *, int dirfd, const char *);
	int (*linkat)(struct shelf_task *, int, const char *, int, const char *, int flags);
	int (*unlinkat)(struct shelf_task *, int dirfd, const char *, int flags);
	int (*fchmod)(struct shelf_task *, int fd, mode_t);
	int (*fchmodat)(struct shelf_task *, int dirfd, const char *, mode_t); /* never through a link */
	int (*fchown)(struct shelf_task *, int fd, uid_t, gid_t);
	int (*fchownat)(struct shelf_task *, int dirfd, const char *, uid_t, gid_t, int flags);
	int (*futimens)(struct shelf_task *, int fd, const struct timespec[2]);
	int (*utimensat)(struct shelf_task *, int dirfd, const char *, const struct timespec[2],
			 int);
	ssize_t (*flistxattr)(struct shelf_task *, int fd, char *, size_t);
	ssize_t (*fgetxattr)(struct shelf_task *, int fd, const char *, void *, size_t);
	int (*fsetxattr)(struct shelf_task *, int fd, const char *, const void *, size_t, int);
	int (*fremovexattr)(struct shelf_task *, int fd, const char *);
	/* of a name that cannot be opened: a link, a FIFO, a device; the link itself, never its target */
	ssize_t (*listxattrat)(struct shelf_task *, int dirfd, const char *, char *, size_t);
	ssize_t (*getxattrat)(struct shelf_task *, int dirfd, const char *, const char *, void *,
			      size_t);
	int (*setxattrat)(struct shelf_task *, int dirfd, const char *, const char *, const void *,
			  size_t);
	int (*removexattrat)(struct shelf_task *, int dirfd, const char *, const char *);
};

extern const struct file_calls host_calls, shelf_calls;

struct place {
	const struct file_calls *calls;
	struct shelf_task *task; /* NULL: the host */
	int root; /* descriptor of the top directory */
	bool fresh; /* made for this copy: its own mode, times and owner are set too */
	const char *label; /* in messages, before the path */
};

/* Opens dir there as the root; with `make`, makes it and what is missing above it. 0 or -errno. */
int place_open(struct place *place, const char *dir, bool make);

/* ---- what: items ------------------------------------------------------------------------ */

/* Names and values, one behind the other; kept from item to item so that they are not allocated anew. */
struct xattrs {
	char *buf;
	size_t used, room;
};
#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"
void *xattrs_add(struct xattrs *x, const char *name,
		 size_t size); /* room for the value; NULL: no memory */
bool xattrs_next(const struct xattrs *x, size_t *at, const char **name, const void **value,
		 size_t *size);
int xattrs_of_fd(const struct place *place, int fd, struct xattrs *out);
int xattrs_of_name(const struct place *place, int dirfd, const char *name, struct xattrs *out);

struct item {
	const char *path; /* "a/b", never absolute, no "..": "." is the top */
	struct stat st; /* times with UTIME_OMIT are not known */
	const char *link; /* target of a symbolic link */
	const char *hard; /* path of an earlier item that this is a further name of */
	bool has_data; /* data() may be called: regular files, and some archives' hard links */
	struct xattrs xattrs;
	/* The next piece: its length, 0 at the end, -errno after it was told.  Offsets only grow. */
	ssize_t (*data)(struct item *item, const void **block, off_t *offset);
	/* The same as a question: where the next piece of data begins and ends; false: none. */
	bool (*extent)(struct item *item, off_t from, off_t *begin, off_t *end);
	void *source;
};

/* ---- how it goes -------------------------------------------------------------------------- */

struct copy {
	struct shelf *shelf;
	const char *name; /* of the shelf */
	bool to_shelf, keep_owner;
	uid_t uid;
	gid_t gid;
	uint64_t files, bytes, failed;
	bool stop; /* full, or a broken stream: nothing more can be done */
	struct copy_sink *sink;
};

struct copy_sink {
	struct copy *copy;
	int (*put)(struct copy_sink *sink, struct item *item); /* 0, or -errno after it was told */
};

/* Tells, counts, returns err (-errno). A full target stops the copy. */
int copy_fail(struct copy *copy, const char *label, const char *path, const char *what, int err);
bool copy_stopped(const struct copy *copy);
void copy_progress(const struct copy *copy, const char *path);
/* The last word: 0, 1, or 130 when interrupted. */
int copy_end(const struct copy *copy, const char *verb);
/* The mode that may be set: set-ID bits only with the owner they were meant for. */
mode_t copy_mode(const struct copy *copy, const struct stat *st);

/* "/a/./b" as "a/b" in out; false: has "..", is empty, or is too long: *why says which. */
bool copy_clean_path(const char *path, char out[PATH_MAX], const char **why);

/* ---- the shelf's side of a command: copy_session.c ---------------------------------------- */

struct session {
	struct copy copy;
	struct shelf *shelf;
	struct shelf_task *task;
	struct place place; /* the directory in the shelf */
	char label[PATH_MAX];
};

struct session_options {
	const char *name, *dir; /* dir NULL: the root */
	bool to_shelf, no_owner, create;
	uint64_t size; /* with create */
};

/* 0, or an exit status after a message.  Changes the umask: host directories are opened before. */
int session_open(struct session *session, const struct session_options *options);
void session_close(struct session *session);

/* ---- sources and sinks ------------------------------------------------------------------- */

void tree_read(struct copy *copy, const struct place *from);

struct tree_sink;
struct tree_sink *tree_sink_open(struct copy *copy, const struct place *to);
/* Sets what directories get last: modes, times, owners. */
void tree_sink_close(struct tree_sink *sink);

/* The archive that comes from fd, of any format known; `label` names it in messages. */
void stream_read(struct copy *copy, int fd, const char *label);

enum stream_filter { STREAM_PLAIN, STREAM_GZIP, STREAM_ZSTD };
struct stream_sink;
struct stream_sink *stream_sink_open(struct copy *copy, int fd, enum stream_filter filter);
void stream_sink_close(struct stream_sink *sink);

/* copy_acl.c: the kernel's form of an access or default list, and libarchive's. */
struct archive_entry;
int acl_from_entry(struct archive_entry *entry, bool is_default, struct xattrs *out);
int acl_to_entry(struct archive_entry *entry, bool is_default, const void *value, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * lockstep.h - one random sequence of calls, on a shelf and on the kernel's tmpfs.
 *
 * The sequence is a function of its seed alone: whoever runs it makes the operations by itself (ls_next)
 * and carries them out on its side (ls_run).  What must be equal is the result: the number returned, a hash
 * of data, and a line of text.
 */
#ifndef TESTS_POSIX_LOCKSTEP_H
#define TESTS_POSIX_LOCKSTEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <shelf/shelf.h>

enum { LS_PATH = 5200, LS_NOFILE = 24, LS_NOFILE_DUMP = 900, LS_WORDS = 10, LS_BUFFER = 70000,
       LS_TREES = 32, LS_TREE_TEXT = 1 << 18 };

struct ls_op {
	unsigned code;
	int fd, fd2, at, at2;
	int64_t off, off2, len; /* offsets and lengths worth trying; some are not legal */
	uint32_t r[LS_WORDS]; /* for each operation's own choices */
	uint64_t seed; /* of data to be written */
	char path[LS_PATH], path2[LS_PATH];
};

struct ls_result {
	int64_t ret;
	uint64_t hash;
	char text[240];
};

/* One of the two. */
struct ls_side {
	struct shelf_task *task; /* NULL: the kernel */
	unsigned many_ids; /* the process may take other users' ids */
	unsigned char *buf; /* LS_BUFFER bytes */
	char *trees; /* LS_TREES texts of LS_TREE_TEXT bytes: the last trees, in turn */
	unsigned tree_count;
	unsigned long steps;
};

void ls_next(uint64_t *state, struct ls_op *op);
void ls_run(struct ls_side *s, const struct ls_op *op, struct ls_result *r);
void ls_describe(const struct ls_op *op, char *text, size_t size);

/* lib/lockstep_tree.c */
int64_t ls_tree_hash(struct ls_side *s, uint64_t *hash, char *text, size_t size); /* entries */
int64_t ls_tree_remove(struct ls_side *s, int at, const char *path);
int64_t ls_list(struct ls_side *s, int fd, unsigned buffer, uint64_t *hash); /* entries, order does not matter */

/* The calls that both the operations and the trees need: the result or -errno. */
int64_t ls_openat(struct ls_side *s, int at, const char *path, int flags, mode_t mode);
int64_t ls_close(struct ls_side *s, int fd);
int64_t ls_getdents(struct ls_side *s, int fd, void *buf, size_t size);
int64_t ls_lseek(struct ls_side *s, int fd, int64_t off, int whence);
int64_t ls_pread(struct ls_side *s, int fd, void *buf, size_t n, int64_t off);
int64_t ls_fstatat(struct ls_side *s, int at, const char *path, struct stat *st, int flags);
int64_t ls_readlinkat(struct ls_side *s, int at, const char *path, char *buf, size_t size);
int64_t ls_unlinkat(struct ls_side *s, int at, const char *path, int flags);
int64_t ls_setlimit(struct ls_side *s, unsigned nofile);
int64_t ls_setids(struct ls_side *s, unsigned who);
unsigned ls_ids(const struct ls_side *s); /* as which of them are we? */
void ls_stat_text(const struct stat *st, char *text, size_t size);
uint64_t ls_hash(uint64_t h, const void *data, size_t n);

/* The kernel, without libc's errno. */
int64_t ls_kernel(long nr, long a, long b, long c, long d, long e, long f);
#define KERNEL_ARG(x) ((long)(x))
#define KERNEL1(nr, a) ls_kernel(nr, KERNEL_ARG(a), 0, 0, 0, 0, 0)
#define KERNEL2(nr, a, b) ls_kernel(nr, KERNEL_ARG(a), KERNEL_ARG(b), 0, 0, 0, 0)
#define KERNEL3(nr, a, b, c) ls_kernel(nr, KERNEL_ARG(a), KERNEL_ARG(b), KERNEL_ARG(c), 0, 0, 0)
#define KERNEL4(nr, a, b, c, d) \
	ls_kernel(nr, KERNEL_ARG(a), KERNEL_ARG(b), KERNEL_ARG(c), KERNEL_ARG(d), 0, 0)
#define KERNEL5(nr, a, b, c, d, e) \
	ls_kernel(nr, KERNEL_ARG(a), KERNEL_ARG(b), KERNEL_ARG(c), KERNEL_ARG(d), KERNEL_ARG(e), 0)
#define KERNEL6(nr, a, b, c, d, e, f) \
	ls_kernel(nr, KERNEL_ARG(a), KERNEL_ARG(b), KERNEL_ARG(c), KERNEL_ARG(d), KERNEL_ARG(e), KERNEL_ARG(f))

#endif

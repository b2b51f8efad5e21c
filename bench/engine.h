/* SPDX-License-Identifier: MIT */
/*
 * engine.h - one set of file calls for all engines of the file benchmarks.
 *
 * The same workloads are compiled against the shelf library of each lookup
 * scheme, and with BENCH_TMPFS against the system calls of the kernel.  Calls
 * are inlined: an engine pays for nothing that the other does not.
 */
#ifndef SHELF_BENCH_ENGINE_H
#define SHELF_BENCH_ENGINE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct engine_config {
	uint64_t size; /* bytes the workload will store at most */
	uint64_t files, file_bytes; /* memcpy: how many there are, and how far apart */
	const char *dir; /* tmpfs: directory to work in */
};

/* Makes an empty tree and stands in it.  Ends the program with a message when it cannot. */
void engine_start(const struct engine_config *config);
void engine_stop(void);
/* One more task in this process that shares nothing with the first; the calling thread uses it. */
void engine_own_task(bool single_thread);
/* The calling thread goes on with a descriptor table that nobody else has. */
void engine_own_table(void);
/* In a forked child: the child's own task, made by engine_before_fork in the parent. */
/* Threads of one task: a worker thread joins the task of the thread that started it. */
void *engine_here(void);
void engine_join(void *task);
void engine_before_fork(void);
void engine_after_fork(void);

static inline void engine_die(const char *what, long err)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror((int)(err < 0 ? -err : err)));
	exit(1);
}

static inline long engine_ok(const char *what, long result)
{
	if (__builtin_expect(result < 0, 0))
		engine_die(what, result);
	return result;
}

#ifdef BENCH_MEMCPY /* the limit: the bytes alone, in a mapping; only what pread4k and tiobench call */

extern char *engine_area;
extern uint64_t engine_stride;
long eng_open(const char *path, int flags, mode_t mode); /* the number in the name is the file's */
#define engine_at(fd, off) (engine_area + (uint64_t)(fd)*engine_stride + (off))
#define eng_close(fd) ((void)(fd), 0L)
#define eng_pread(fd, buf, n, off) (memcpy((buf), engine_at(fd, off), (n)), (long)(n))
#define eng_pwrite(fd, buf, n, off) (memcpy(engine_at(fd, off), (buf), (n)), (long)(n))
#define eng_unlink(path) ((void)(path), 0L)

#elif defined(BENCH_TMPFS)

static inline long engine_result(long r)
{
	return r < 0 ? -(long)errno : r;
}

#define ENGINE_CALL(name, params, call)                                                            \
	static inline long eng_##name params                                                       \
	{                                                                                          \
		return engine_result(call);                                                        \
	}
ENGINE_CALL(open, (const char *path, int flags, mode_t mode), open(path, flags, mode))
ENGINE_CALL(close, (int fd), close(fd))
ENGINE_CALL(pread, (int fd, void *buf, size_t n, off_t off), pread(fd, buf, n, off))
ENGINE_CALL(pwrite, (int fd, const void *buf, size_t n, off_t off), pwrite(fd, buf, n, off))
ENGINE_CALL(read, (int fd, void *buf, size_t n), read(fd, buf, n))
ENGINE_CALL(write, (int fd, const void *buf, size_t n), write(fd, buf, n))
ENGINE_CALL(lseek, (int fd, off_t off, int whence), lseek(fd, off, whence))
ENGINE_CALL(stat, (const char *path, struct stat *st), stat(path, st))
ENGINE_CALL(mkdir, (const char *path, mode_t mode), mkdir(path, mode))
ENGINE_CALL(unlink, (const char *path), unlink(path))
ENGINE_CALL(rename, (const char *from, const char *to), rename(from, to))
ENGINE_CALL(getdents, (int fd, void *buf, size_t n), syscall(SYS_getdents64, fd, buf, n))

#else

#include <shelf/shelf.h>

extern __thread struct shelf_task *engine_task;

#define eng_open(path, flags, mode) shelf_open(engine_task, (path), (flags), (mode))
#define eng_close(fd) shelf_close(engine_task, (fd))
#define eng_pread(fd, buf, n, off) shelf_pread(engine_task, (fd), (buf), (n), (off))
#define eng_pwrite(fd, buf, n, off) shelf_pwrite(engine_task, (fd), (buf), (n), (off))
#define eng_read(fd, buf, n) shelf_read(engine_task, (fd), (buf), (n))
#define eng_write(fd, buf, n) shelf_write(engine_task, (fd), (buf), (n))
#define eng_lseek(fd, off, whence) shelf_lseek(engine_task, (fd), (off), (whence))
#define eng_stat(path, st) shelf_stat(engine_task, (path), (st))
#define eng_mkdir(path, mode) shelf_mkdir(engine_task, (path), (mode))
#define eng_unlink(path) shelf_unlink(engine_task, (path))
#define eng_rename(from, to) shelf_rename(engine_task, (from), (to))
#define eng_getdents(fd, buf, n) shelf_getdents64(engine_task, (fd), (buf), (n))

#endif
#endif

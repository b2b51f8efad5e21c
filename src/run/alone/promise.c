/* SPDX-License-Identifier: MIT */
/* promise.c - the shelf that was promised is made (run/promise.h). */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/syscall.h"
#include "run/promise.h"
#include "segment/segment.h"

static long lock_promise(const char *dir, const char *name)
{
	char path[PROMISE_PATH_MAX];
	long fd, err;

	if (promise_path(path, dir, name) >= PROMISE_PATH_MAX)
		return -ENAMETOOLONG;
	fd = sys_call3(SYS_open, (long)path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	do
		err = sys_call3(SYS_flock, fd, LOCK_EX, 0);
	while (err == -EINTR);
	if (!err)
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	return err;
}

/* Unlocks, too, in a fork's child as well: the lock is the open file's. */
static void let_promise_go(long fd)
{
	sys_call3(SYS_flock, fd, LOCK_UN, 0);
	sys_call3(SYS_close, fd, 0, 0);
}

/* Locked: nobody is making it. */
static int make(long promise, const char *name, struct shelf **shelf, char why[SHELF_WHY])
{
	struct shelf_options o = {0};
	struct stat st;
	int err = -ENOENT;

	if (segment_is_unfinished(name))
		shelf_remove(name, NULL);
	else
		err = shelf_attach(name, 0, shelf, why);
	if (err != -ENOENT)
		return err;
	if (sys_call3(SYS_fstat, promise, (long)&st, 0))
		return -EIO;
	if (st.st_uid != (uint64_t)sys_call3(SYS_geteuid, 0, 0, 0))
		return -EACCES; /* its rights suffice to open the promise: the shelf would be its own */
	o.uid = st.st_uid;
	o.gid = st.st_gid;
	err = shelf_create(name, &o, shelf, why);
	if (err == -EEXIST)
		return shelf_attach(name, 0, shelf, why); /* somebody made one of this name by himself */
	if (!err && !sys_call3(SYS_fstat, promise, (long)&st, 0) && !st.st_nlink) {
		shelf_remove(name, NULL);
		snprintf(why, SHELF_WHY, "shelf %s: its `shelf run` has ended", name);
		err = -ENOENT;
	}
	return err;
}

int promise_attach(const char *dir, const char *name, struct shelf **shelf, char why[SHELF_WHY])
{
	/* Attaching would wait for the maker of an unfinished one, which may be dead; its lock tells at once. */
	int err = segment_is_unfinished(name) ? -ENOENT : shelf_attach(name, 0, shelf, why);
	long promise;

	if (err != -ENOENT)
		return err;
	snprintf(why, SHELF_WHY, "shelf %s: there is no such shelf, as its `shelf run` has ended", name);
	promise = lock_promise(dir, name);
	if (promise < 0)
		return (int)promise;
	err = make(promise, name, shelf, why);
	let_promise_go(promise);
	return err;
}

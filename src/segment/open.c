/* SPDX-License-Identifier: MIT */
/*
 * open.c - is this file a segment that we may attach?
 *
 * Checked in an order in which each answer makes the next one meaningful: ours, or handed over by its owner; a
 * plain file, mode 0600; complete; magic; version; checksum; build
 * options; layout; length.  A segment that is still being made is waited for; one whose
 * creator died while making it is named as that, never waited for.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "segment/segment_priv.h"

#define OPEN_PAUSE_NS 1000000
#define OPEN_HEADER_NS 1000000000 /* a creator writes page 0 within this, or is gone */
#define OPEN_READY_NS 10000000000 /* and makes the roots within this */

static void open_pause(void)
{
	struct timespec ts = {0, OPEN_PAUSE_NS};

	sys_call3(SYS_nanosleep, (long)&ts, 0, 0);
}

static int open_failed(int err, const char *path, char *why)
{
	switch (err) {
	case ENOENT:
		return refuse(why, err, "%.150s: there is no such shelf; `shelf ls` shows those there are", path);
	case ELOOP:
		return refuse(why, err, "%.150s: is a symbolic link, which a shelf never is; remove it", path);
	case EACCES:
	case EPERM:
		return refuse(why, err, "%.150s: belongs to somebody else; use your own shelf", path);
	default:
		return refuse(why, err, "%.150s: cannot be opened: %s", path, strerror(err));
	}
}

static int open_check_owner(const struct stat *st, const char *path, char *why)
{
	if (st->st_uid != geteuid())
		return refuse(why, EPERM, "%.150s: belongs to user %u, you are %u; use your own shelf", path,
			      st->st_uid, geteuid());
	return 0;
}

static int open_check_file(const struct stat *st, const char *path, char *why)
{
	if (!S_ISREG(st->st_mode))
		return refuse(why, EINVAL, "%.150s: is not a plain file, so no shelf; remove it", path);
	if ((st->st_mode & 07777) != 0600)
		return refuse(why, EPERM, "%.150s: has mode %04o, not 0600; chmod it if nobody tampered with it",
			      path, st->st_mode & 07777);
	return 0;
}

static int open_by_path(const char *path, struct stat *st, char *why)
{
	int fd = (int)sys_call3(SYS_open, (long)path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return open_failed(-fd, path, why);
	err = (int)sys_call3(SYS_fstat, fd, (long)st, 0);
	err = err ? open_failed(-err, path, why) : open_check_owner(st, path, why);
	if (err)
		sys_call3(SYS_close, fd, 0, 0);
	return err ? err : fd;
}

static long (*opener)(void); /* process-local; set before the first attach that may want it */

void segment_register_opener(long (*fn)(void))
{
	opener = fn;
}

/* Handed over by one who owns it, who answers for the owner. */
static int open_handed(struct stat *st)
{
	long fd = opener ? opener() : -EACCES;

	if (fd >= 0 && sys_call3(SYS_fstat, fd, (long)st, 0)) {
		sys_call3(SYS_close, fd, 0, 0);
		return -EACCES;
	}
	return (int)fd;
}

int open_segment(const char *path, char *why)
{
	struct stat st;
	int err, handed, fd = open_by_path(path, &st, why);

	if (fd == -EACCES || fd == -EPERM) {
		handed = open_handed(&st);
		fd = handed < 0 ? fd : handed;
	}
	if (fd < 0)
		return fd;
	err = open_check_file(&st, path, why);
	if (err)
		sys_call3(SYS_close, fd, 0, 0);
	return err ? err : fd;
}

/* ---- page 0 ---------------------------------------------------------------------------------- */

static long open_pread(int fd, struct seg_header *h)
{
	return sys_call6(SYS_pread64, fd, (long)h, sizeof(*h), 0, 0, 0);
}

static int64_t open_age_ns(const struct stat *st)
{
	return clock_now() - ((int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec);
}

/* Until the creator has written page 0, its magic last.  0, or it never will. */
static int open_wait_magic(int fd, const char *path, struct seg_header *h, char *why)
{
	struct stat st;
	long n;

	for (;;) {
		n = open_pread(fd, h);
		if (sys_call3(SYS_fstat, fd, (long)&st, 0) || n < 0)
			return refuse(why, EIO, "%.150s: cannot be read", path);
		if (st.st_size && n < (long)sizeof(*h))
			return refuse(why, EINVAL, "%.150s: is truncated; remove it with `shelf rm`", path);
		if (n == (long)sizeof(*h) && h->magic)
			return 0;
		if (open_age_ns(&st) > OPEN_HEADER_NS)
			return refuse(why, EIO, "%.150s: not ready, its creator died; remove it with `shelf rm`",
				      path);
		open_pause();
	}
}

static int open_check_length(int fd, const struct seg_header *h, const char *path, char *why)
{
	struct stat st;

	if (sys_call3(SYS_fstat, fd, (long)&st, 0) || (uint64_t)st.st_size < layout_bytes(h))
		return refuse(why, EINVAL, "%.150s: is truncated; remove it with `shelf rm`", path);
	return 0;
}

int open_read_header(int fd, const char *path, struct seg_header *h, char *why)
{
	int err = open_wait_magic(fd, path, h, why);

	if (err)
		return err;
	if (h->magic != SEG_MAGIC)
		return refuse(why, EINVAL, "%.150s: is not a shelf segment; remove it if it is in the way", path);
	if (h->version != SEG_VERSION)
		return refuse(why, EPROTO, "%.150s: has format version %u, this build knows %u; use the shelf that made it",
			      path, h->version, SEG_VERSION);
	if (!layout_sum_ok(h))
		return refuse(why, EIO, "%.150s: its header is damaged (checksum); remove it with `shelf rm`", path);
	if (h->build != layout_build())
		return refuse(why, EPROTO, "%.150s: made by a build with options %#x, this one has %#x; use that build",
			      path, h->build, layout_build());
	if (!layout_ok(h) || !base_usable(h->base, layout_bytes(h)))
		return refuse(why, EIO, "%.150s: its header makes no sense; remove it with `shelf rm`", path);
	return open_check_length(fd, h, path, why);
}

/* `h` is mapped.  Wait for the layers above to make their roots. */
int open_wait_ready(struct seg_header *h, const char *path, char *why)
{
	int64_t until = clock_now_monotonic() + OPEN_READY_NS;

	while (!load_acquire(&h->ready)) { /* pairs with segment_set_ready */
		if (!slot_process_exists(h->creator_pid, h->creator_start) && !load_acquire(&h->ready)) /* as above */
			return refuse(why, EIO, "%.150s: not ready, its creator (pid %u) died; remove it with `shelf rm`",
				      path, h->creator_pid);
		if (clock_now_monotonic() > until)
			return refuse(why, EAGAIN, "%.150s: not ready, pid %u is still making it; try again later",
				      path, h->creator_pid);
		open_pause();
	}
	return 0;
}

bool segment_is_unfinished(const char *name)
{
	char path[SEG_PATH_MAX];
	struct seg_header h = {0};
	int fd;

	if (refuse_name(name, NULL) || local_path(path, sizeof(path), local_dir(), name))
		return false;
	fd = open_segment(path, NULL);
	if (fd < 0)
		return false;
	open_pread(fd, &h);
	sys_call3(SYS_close, fd, 0, 0);
	return h.magic != SEG_MAGIC || !load_relaxed(&h.ready); /* a copy */
}

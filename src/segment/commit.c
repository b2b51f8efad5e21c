/* SPDX-License-Identifier: MIT */
/*
 * commit.c - puts memory behind ranges of the sparse file, so that touching them
 * later can never raise SIGBUS.
 *
 * Large ranges: open the file by its name for a moment, check that it is still
 * ours, fallocate (all or nothing; 0.45 us a page), then MADV_POPULATE_WRITE (1.1 us a
 * page).  Small ranges, and segments whose name is gone: populate alone (2.1 us a
 * page), which reports a full /dev/shm or a memory limit as EFAULT or ENOMEM.
 * Whole chunks: MADV_COLLAPSE makes 2 MiB one huge page at once, whatever the settings for huge pages say; 0.4-0.7 us
 * a page, cleared, and then one fault for all of it in each process, where 512 cost 2-8 us each in a virtual machine.
 * Where that fails, the chunk gets small pages as above.
 * Raw system calls: the runtime behind `shelf run` rewrites libc's.
 * Committing twice is harmless, so a death in between needs no repair.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/syscall.h"
#include "segment/segment_priv.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define HUGE_MISSES 8u /* then the process asks no more: an old kernel, or no free memory in one piece */
#define COMMIT_FALLOCATE_MIN (128UL << 10) /* below, opening the file costs more than it saves */

static bool commit_same_file(struct seg_local *sl, int fd)
{
	struct stat st;

	return sys_call3(SYS_fstat, fd, (long)&st, 0) == 0 && st.st_dev == sl->pub.file_dev &&
	       st.st_ino == sl->pub.file_ino;
}

int commit_open(struct seg_local *sl)
{
	char path[SEG_PATH_MAX];
	int fd;

	if (local_path(path, sizeof(path), sl->dir, sl->pub.name))
		return -ENAMETOOLONG;
	fd = (int)sys_call3(SYS_open, (long)path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd >= 0 && !commit_same_file(sl, fd)) {
		sys_call3(SYS_close, fd, 0, 0);
		return -ESTALE;
	}
	return fd;
}

int segment_open_file(const struct segment *seg)
{
	return commit_open(seg_local(seg));
}

uint64_t segment_file_bytes(const struct segment *seg)
{
	return layout_bytes(seg->hdr);
}

/* 0 also when it could not be tried: populating decides then. */
static int commit_fallocate(struct seg_local *sl, uint64_t offset, uint64_t bytes)
{
	int fd = commit_open(sl);
	long err;

	if (fd < 0)
		return 0;
	err = sys_call6(SYS_fallocate, fd, 0, (long)offset, (long)bytes, 0, 0);
	sys_call3(SYS_close, fd, 0, 0);
	return err == -ENOSPC || err == -ENOMEM ? -ENOSPC : 0;
}

static int commit_populate(struct seg_local *sl, uint64_t offset, uint64_t bytes)
{
	long err;

	do
		err = sys_call3(SYS_madvise, (long)((char *)sl->pub.hdr + offset), (long)bytes,
				MADV_POPULATE_WRITE);
	while (err == -EINTR || err == -EAGAIN);
	return err ? -ENOSPC : 0;
}

int commit_range(struct seg_local *sl, uint64_t offset, uint64_t bytes)
{
	if (!bytes)
		return 0;
	if (bytes >= COMMIT_FALLOCATE_MIN && commit_fallocate(sl, offset, bytes))
		return -ENOSPC;
	if (commit_populate(sl, offset, bytes)) {
		commit_undo(sl, offset, bytes);
		return -ENOSPC;
	}
	return 0;
}

bool commit_huge(struct seg_local *sl, uint64_t offset)
{
	long err = -ENOMEM;

	if (load_relaxed(&sl->huge_misses) >= HUGE_MISSES) /* relaxed: a hint */
		return false;
	/* One page must be there already. */
	if (!commit_populate(sl, offset, PAGE_BYTES))
		err = sys_call3(SYS_madvise, (long)((char *)sl->pub.hdr + offset), SEG_CHUNK, MADV_COLLAPSE);
	store_relaxed(&sl->huge_misses, err ? load_relaxed(&sl->huge_misses) + 1 : 0);
	return !err;
}

void commit_undo(struct seg_local *sl, uint64_t offset, uint64_t bytes)
{
	if (bytes)
		sys_call3(SYS_madvise, (long)((char *)sl->pub.hdr + offset), (long)bytes, MADV_REMOVE);
}

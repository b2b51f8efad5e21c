/* SPDX-License-Identifier: MIT */
/*
 * ramfs.h - the in-memory file system: directories' changes, links, data pages.
 * All return 0 (or a count) or -errno.
 */
#ifndef SHELF_RAMFS_RAMFS_H
#define SHELF_RAMFS_RAMFS_H

#include "vfs/vfs.h"

int ramfs_attach(struct segment *seg); /* registers drop functions and recovery */

/* ---- names (names.c, rename.c) --------------------------------------------------------------
 * Whole calls: walk, permissions, locks, intent, steps.  `start` is counted by the caller or NULL (cwd).
 * Not inside a section. */

/*
 * What open needs: finds or creates, with every check of kind and permission that open makes, O_TRUNC's included;
 * truncating is the caller's (when not created, and a regular file).  walk_flags: WALK_OPENAT2 bits.
 * On 0 *inode is counted for the caller, and in the thread's ledger until file_new() or ledger_del().
 */
struct open_walk {
	struct inode *inode;
	bool created;
	bool keeps_name; /* asked for: */
	struct opened *name; /* where somebody watches, one of several names, for the file; else as it was */
};
/* An existing name from the task's own place, followed, nothing left behind: 0, an error, or WALK_UNCOMMON: ramfs_open(). */
int ramfs_open_common(struct who *w, const char *path, int flags, struct open_walk *out);
int ramfs_open(struct who *w, struct inode *start, const char *path, int flags, uint32_t mode, unsigned walk_flags,
	       struct open_walk *out);
int ramfs_tmpfile(struct who *w, struct inode *start, const char *path, uint32_t mode, int flags, struct inode **out);
int ramfs_mknod(struct who *w, struct inode *start, const char *path, uint32_t mode, uint64_t rdev);
int ramfs_mkdir(struct who *w, struct inode *start, const char *path, uint32_t mode);
int ramfs_symlink(struct who *w, const char *target, struct inode *start, const char *path);
int ramfs_unlink(struct who *w, struct inode *start, const char *path);
int ramfs_rmdir(struct who *w, struct inode *start, const char *path);
/* AT_EMPTY_PATH with an O_TMPFILE: from_inode given, from ignored. */
int ramfs_link(struct who *w, struct inode *from_start, const char *from, struct inode *from_inode, bool follow,
	       struct inode *to_start, const char *to);
int ramfs_rename(struct who *w, struct inode *from_start, const char *from, struct inode *to_start, const char *to,
		 unsigned flags);

/* In a section, no shared store. Fills linux_dirent64 records from *pos on; *pos moves. */
ssize_t ramfs_getdents_epoch(struct who *w, struct inode *dir, uint64_t *pos, void *buf, size_t size);
/* The same for an open directory, its pos_lock held: a listing ends where the directory ended when it began. */
ssize_t ramfs_getdents_file_epoch(struct who *w, struct file *f, uint64_t *pos, void *buf, size_t size);
/* The path of a directory below root: from the end of buf backwards; its start through *at. -ENOENT removed, -ERANGE */
int ramfs_path_epoch(struct who *w, struct inode *inode, struct inode *root, char *buf, size_t size, char **at);

/* ---- data (data.c, write.c, resize.c, fallocate.c, shift.c, seek.c, copy.c) ----------------------
 * Writes hold the inode's lock from end to end, so they never mix with one another.  A read of at most
 * DATA_ATOMIC bytes sees each write of at most DATA_ATOMIC bytes whole or not at all; larger reads and writes go in
 * pieces of that size (a write into new pages in larger ones).  A reader that dies, stalls or retries
 * disturbs nobody; a writer that dies leaves each page old or new.
 * Reads: inside a section, lock-free; DATA_AGAIN after a bounded number of
 * retries, or when the file is being freed, or for more than DATA_SECTION_BYTES: the caller counts the file
 * (a dead count: it looks the descriptor up again), leaves the section and calls ramfs_read_slow.
 * A buffer that faults gives the bytes before it, or -EFAULT (base/fault.h). */
int ramfs_data_attach(struct segment *seg); /* part of ramfs_attach */
#define DATA_ATOMIC 32768u
#define DATA_SECTION_BYTES (1u << 20)
#define DATA_AGAIN (-4096)
ssize_t ramfs_read_epoch(struct slot *self, struct inode *inode, const struct iovec *iov, int iovcnt, uint64_t pos,
			 size_t total);
/* One buffer.  data_inline.h has the common case of it. */
ssize_t ramfs_pread_epoch(struct slot *self, struct inode *inode, void *buf, size_t n, uint64_t pos);
ssize_t ramfs_read_slow(struct slot *self, struct inode *inode, const struct iovec *iov, int iovcnt, uint64_t pos,
			size_t total); /* takes the lock; inode counted; not in a section */
/* The same without the lock (RWF_NOWAIT): what could be read before a writer stood in the way, -EAGAIN if that is nothing. */
ssize_t ramfs_read_nowait(struct slot *self, struct inode *inode, const struct iovec *iov, uint64_t pos, size_t total);
/* In a section, the inode borrowed: bytes of one page that is there.  Bytes, or 0: not here, ramfs_write() is to decide. */
size_t ramfs_overwrite_epoch(struct slot *self, struct inode *inode, const void *buf, size_t n, uint64_t pos);
/* Writes: the inode is counted or borrowed; pos is ignored with append and set to where it wrote.
 * WRITE_TRY: -EAGAIN instead of waiting for the lock (RWF_NOWAIT, and the in-section attempt). */
#define WRITE_APPEND 1u
#define WRITE_TRY 2u
ssize_t ramfs_write(struct who *w, struct inode *inode, const struct iovec *iov, int iovcnt, uint64_t *pos,
		    size_t total, unsigned flags);
int ramfs_truncate(struct who *w, struct inode *inode, uint64_t length);
/*
 * As truncate() does: of a file without pages to the size it has it leaves the times alone, as tmpfs does; with pages, or by
 * ftruncate() or O_TRUNC, they are set.  Set-ID bits and capabilities go in any case.
 */
int ramfs_truncate_named(struct who *w, struct inode *inode, uint64_t length);
int ramfs_fallocate(struct who *w, struct inode *inode, int mode, uint64_t off, uint64_t len);
int64_t ramfs_seek_epoch(struct slot *self, struct inode *inode, uint64_t off, int whence); /* SEEK_DATA, SEEK_HOLE: or -ENXIO */
ssize_t ramfs_copy_range(struct who *w, struct inode *in, uint64_t in_pos, struct inode *out, uint64_t *out_pos,
			 size_t n, unsigned flags);

/* ---- maps (map.c) -----------------------------------------------------------------------------
 * get: before a file of type FD_TYPE_MAP is made of the inode; its last put undoes it. */
void ramfs_map_get(struct inode *inode);
void ramfs_map_put(struct slot *self, struct inode *inode); /* if none was made */
/*
 * Calls fn, the inode's lock held, for the runs of pages in [first, end) that are there and were written; the first run may
 * lie behind `first`.  -ENXIO: `first` is beyond the end of the file; -ENOSPC; what fn said if that was not 0.
 */
#define MAP_MAKE 1u /* page `first` counts as written; if it is a hole it is made, and fn sees no other */
#define MAP_WROTE 2u /* it is about to be written to: times */
#define MAP_TRY 4u /* -EAGAIN instead of waiting, and in the middle of a change */
typedef int ramfs_map_fn(void *ctx, uint64_t index, char *page, uint64_t pages);
int ramfs_map_pages(struct who *w, struct inode *inode, uint64_t first, uint64_t end, unsigned flags, ramfs_map_fn *fn,
		    void *ctx);
/* Grows when pages leave the file: what is mapped must be looked at again.  Settle: that was done at `drops`, by the only mapper. */
uint32_t ramfs_map_drops(struct inode *inode);
void ramfs_map_settle(struct slot *self, struct inode *inode, uint32_t drops);

#endif

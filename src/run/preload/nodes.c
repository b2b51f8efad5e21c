/* SPDX-License-Identifier: MIT */
/*
 * nodes.c - FIFOs, sockets and devices below the prefix.
 *
 * The shelf has the name, type, mode and owner; what is opened is the kernel's. A FIFO or socket of inode I, born at B,
 * is the file I-B in a folder beside the shelf, mode 0700, whose name has the inode number of the shelf's own
 * file: no other shelf, and no other inode of this one, ever has the same. The file is made when it is first
 * wanted, and goes with the inode; the folder goes with the shelf.
 * A device is looked for among the host's, as /dev/shm does not let one be opened.
 *
 * Limits: fstat of an open FIFO shows the hidden file. A process that gave up the rights of the shelf's owner
 * cannot enter the folder. An inode that is dropped by a process which is not under `shelf run` leaves its file
 * until the shelf goes. Where SHELF_SHM_DIR is longer than a socket's name can be, the folder is in /tmp.
 */
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>

#include "run/preload/nodes.h"

#define FOLDER_ROOM 40 /* a longer folder would leave too little of a socket's name */

/* Where the shelves are, if a socket's name leaves room for that. */
static const char *shm_dir(void)
{
	const char *shm = secure_getenv("SHELF_SHM_DIR");

	if (!shm || !*shm)
		shm = "/dev/shm";
	return strlen(shm) > FOLDER_ROOM ? "/tmp" : shm;
}

/* The inode number of the shelf's own file; 0: no slot is free. */
static unsigned long shelf_ino(void)
{
	struct slot *self;

	call_enter();
	self = task_slot(task_here()); /* this may be the thread's first call */
	call_leave();
	return self ? (unsigned long)self->seg->file_ino : 0;
}

long nodes_folder(char out[NODE_FOLDER], bool make)
{
	unsigned long ino = shelf_ino();
	long err;

	if (!ino)
		return -ENOMEM;
	snprintf(out, NODE_FOLDER, "%s/shelf-nodes.%lx", shm_dir(), ino);
	err = make ? sys_call3(SYS_mkdir, (long)out, 0700, 0) : 0;
	return err == -EEXIST ? 0 : err;
}

/* Anybody may touch it.  Where others may make files they may not take ours away; what is there already must be ours. */
static long token_make_in(const char *dir, char out[NODE_PATH], unsigned long ino, uint64_t id)
{
	struct stat st;
	long err;

	snprintf(out, NODE_PATH, "%s/shelf-wake.%lx.%lx", dir, ino, (unsigned long)id);
	err = sys_call3(SYS_mknod, (long)out, S_IFREG | 0666, 0);
	if (!err)
		return sys_call3(SYS_chmod, (long)out, 0666, 0); /* whatever the umask is */
	if (err != -EEXIST)
		return err;
	err = sys_call3(SYS_lstat, (long)out, (long)&st, 0);
	return err ? err : S_ISREG(st.st_mode) && st.st_uid == (uid_t)sys_call3(SYS_geteuid, 0, 0, 0) ? 0 : -EACCES;
}

long token_make(char out[NODE_PATH], uint64_t id)
{
	unsigned long ino = shelf_ino();
	long err = ino ? token_make_in(shm_dir(), out, ino, id) : -ENOMEM;

	return err == -EACCES || err == -EROFS ? token_make_in("/tmp", out, ino, id) : err;
}

long node_path(char out[NODE_PATH], uint64_t ino, uint64_t btime, bool make_folder)
{
	char folder[NODE_FOLDER];
	long err = nodes_folder(folder, make_folder);

	if (!err)
		snprintf(out, NODE_PATH, "%s/%lx-%lx", folder, (unsigned long)ino, (unsigned long)btime);
	return err;
}

/* ---- opening ------------------------------------------------------------------------------------- */

static long fifo_open(const struct statx *sx, long flags)
{
	uint64_t btime = (uint64_t)sx->stx_btime.tv_sec * 1000000000u + sx->stx_btime.tv_nsec;
	char path[NODE_PATH];
	long err = node_path(path, sx->stx_ino, btime, true);

	if (!err)
		err = sys_call3(SYS_mknod, (long)path, S_IFIFO | 0600, 0);
	if (err && err != -EEXIST)
		return err;
	return sys_call3(SYS_open, (long)path, flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW), 0);
}

/* The host's file of the same device. */
static long device_open(const struct statx *sx, long flags)
{
	static const char *const memory[] = {"", "", "", "null", "", "zero", "", "full", "random", "urandom"};
	bool block = S_ISBLK(sx->stx_mode);
	char path[64];
	struct stat st;

	if (!block && sx->stx_rdev_major == 1 && sx->stx_rdev_minor < ARRAY_SIZE(memory) && *memory[sx->stx_rdev_minor])
		snprintf(path, sizeof(path), "/dev/%s", memory[sx->stx_rdev_minor]);
	else if (!block && sx->stx_rdev_major == 5 && sx->stx_rdev_minor == 0)
		snprintf(path, sizeof(path), "%s", "/dev/tty");
	else
		snprintf(path, sizeof(path), "/dev/%s/%u:%u", block ? "block" : "char", sx->stx_rdev_major, sx->stx_rdev_minor);
	if (sys_call3(SYS_stat, (long)path, (long)&st, 0) || (st.st_mode & S_IFMT) != (sx->stx_mode & S_IFMT) ||
	    st.st_rdev != makedev(sx->stx_rdev_major, sx->stx_rdev_minor))
		return -ENXIO;
	return sys_call3(SYS_open, (long)path, flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW), 0);
}

/* In a call. */
static long node_look(const struct route *rt, long flags, struct statx *sx)
{
	static const int wants[] = {R_OK, W_OK, R_OK | W_OK, R_OK | W_OK};
	struct shelf_task *t = task_here();
	struct route at = *rt;
	long err;

	walk_border = &at.border;
	err = shelf_statx(t, at.dirfd, at.path, at.magic >= 0 ? AT_EMPTY_PATH : flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0,
			  STATX_BASIC_STATS | STATX_BTIME, sx);
	if (!err)
		err = shelf_faccessat2(t, at.dirfd, at.path, wants[flags & O_ACCMODE],
				       AT_EACCESS | (at.magic >= 0 ? AT_EMPTY_PATH : 0));
	walk_border = NULL;
	return err;
}

long node_open(const struct route *rt, long flags)
{
	struct statx sx;
	long fd = SERVED(node_look(rt, flags, &sx));

	if (fd)
		return fd == WALK_LEFT ? -ENXIO : fd;
	if (S_ISSOCK(sx.stx_mode))
		return -ENXIO;
	numbers_release();
	fd = S_ISFIFO(sx.stx_mode) ? fifo_open(&sx, flags) : device_open(&sx, flags);
	if (fd >= 0)
		number_mark((int)fd);
	return fd;
}

/* ---- the end -------------------------------------------------------------------------------------- */

/* The inode goes: its file too, and the name that a socket was bound to. */
static void node_drop(struct slot *self, struct inode *inode)
{
	char path[NODE_PATH + 2];

	(void)self;
	if (node_path(path, inode->ino, inode->btime, false) || sys_call3(SYS_unlink, (long)path, 0, 0))
		return;
	memcpy(path + strlen(path), ".n", 3);
	sys_call3(SYS_unlink, (long)path, 0, 0);
}

void nodes_attach(void)
{
	inode_register_drop(S_IFIFO, node_drop);
	inode_register_drop(S_IFSOCK, node_drop);
}

AT_START void serve_nodes_init(void)
{
	serve_names_init();
	serve_carry_init();
}

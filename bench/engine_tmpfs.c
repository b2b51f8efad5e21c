/* SPDX-License-Identifier: MIT */
/*
 * engine_tmpfs.c - the kernel's tmpfs: mounted for this run where the process
 * may (a mount namespace of its own), else a directory below --dir.
 */
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "engine.h"

static char dir[PATH_MAX];
static bool mounted;

static bool mount_own(uint64_t size)
{
	char options[64];

	snprintf(options, sizeof(options), "size=%llu,mode=0700",
		 (unsigned long long)(size + size / 8 + (64UL << 20)));
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	return mount("tmpfs", dir, "tmpfs", 0, options) == 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	remove(path);
	return 0;
}

static void remove_dir(void)
{
	if (!dir[0] || chdir("/") < 0)
		return;
	if (mounted)
		umount(dir); /* could not be detached above */
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	dir[0] = 0;
}

void engine_start(const struct engine_config *config)
{
	struct statfs fs;

	snprintf(dir, sizeof(dir), "%s/shelf-bench.XXXXXX", config->dir ? config->dir : "/dev/shm");
	if (!mkdtemp(dir))
		engine_die(dir, errno);
	mounted = mount_own(config->size);
	if (statfs(dir, &fs) < 0 || fs.f_type != 0x01021994) {
		fprintf(stderr,
			"bench: %s is not on a tmpfs and none can be mounted: name one with --dir\n",
			dir);
		rmdir(dir);
		exit(1);
	}
	if (chdir(dir) < 0)
		engine_die(dir, errno);
	/* A program that is killed leaves nothing: the mount lives as long as somebody is in it. */
	if (mounted && umount2(dir, MNT_DETACH) == 0) {
		rmdir(dir);
		dir[0] = 0;
	}
}

void engine_stop(void)
{
	remove_dir();
}

void engine_own_task(bool single_thread)
{
	(void)single_thread;
}

void engine_own_table(void)
{
	if (unshare(CLONE_FILES) < 0)
		engine_die("unshare", errno);
}

void *engine_here(void)
{
	return NULL;
}

void engine_join(void *task)
{
	(void)task;
}

void engine_before_fork(void)
{
}

void engine_after_fork(void)
{
}

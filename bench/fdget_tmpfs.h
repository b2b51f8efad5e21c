/* SPDX-License-Identifier: MIT */
/*
 * fdget_tmpfs.h - the kernel's own table: F_GETFD, the cheapest system call that
 * looks a descriptor up.  What it costs is the entry into the kernel and the lookup.
 * unshared: each thread leaves the shared table first (CLONE_FILES).
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct engine_thread {
	int fd[FDGET_TABLES];
};

static int numbers[FDGET_TABLES];
static int alone;

static int engine_start(int shared, int threads)
{
	int k;

	alone = !shared;
	for (k = 0; k < threads; k++) {
		char path[64];

		snprintf(path, sizeof(path), "/dev/shm/shelf-fdget.XXXXXX");
		numbers[k] = mkstemp(path);
		if (numbers[k] < 0) {
			perror("fdget: /dev/shm");
			return 1;
		}
		unlink(path);
	}
	return 0;
}

static void engine_join(struct engine_thread *t, int table)
{
	(void)table;
	memcpy(t->fd, numbers, sizeof(numbers));
	if (alone && unshare(CLONE_FILES) < 0) {
		perror("fdget: unshare");
		exit(1);
	}
}

static inline uint64_t engine_lookup(struct engine_thread *t, int fd)
{
	return fcntl(t->fd[fd], F_GETFD) >= 0;
}

static void engine_leave(struct engine_thread *t)
{
	(void)t;
}

static void engine_end(void)
{
}

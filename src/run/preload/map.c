/* SPDX-License-Identifier: MIT */
/*
 * map.c - files of the shelf in memory.
 */
#include <sys/mman.h>

#include "run/preload/serve.h"

bool map_fault(uintptr_t addr, long code, int *sig, siginfo_t *info)
{
	(void)addr, (void)code, (void)sig, (void)info;
	return false;
}

/* A private map is a copy: what is written to the file later need not be seen in it. */
static long map_private(const struct run_regs *r, int fd)
{
	uint64_t len = r->si, done = 0;
	long n = 1, at = sys_call6(SYS_mmap, (long)r->di, (long)len, PROT_READ | PROT_WRITE,
				   (long)(r->r10 | MAP_ANONYMOUS), -1, 0);

	if (at < 0 && at > -4096)
		return at;
	while (done < len && n > 0) {
		n = SERVED(shelf_pread(task_here(), fd, (char *)at + done, len - done, (off_t)(r->r9 + done)));
		done += n > 0 ? (uint64_t)n : 0;
	}
	if (n < 0) {
		sys_call3(SYS_munmap, at, (long)len, 0);
		return n == -EBADF ? -EACCES : n;
	}
	if (r->dx != (PROT_READ | PROT_WRITE))
		sys_call3(SYS_mprotect, at, (long)len, (long)r->dx);
	return at;
}

static long serve_mmap(struct run_regs *r)
{
	int fd = (int)r->r8;

	if (r->r10 & MAP_ANONYMOUS || !attached())
		return run_pass(r);
	if (!number_is_ours(fd))
		return pass_number(r, fd);
	if (!r->si || r->r9 & PAGE_MASK)
		return -EINVAL;
	return (r->r10 & MAP_TYPE) == MAP_PRIVATE ? map_private(r, fd) : -ENODEV;
}

void serve_map_init(void)
{
	serve_table[SYS_mmap] = serve_mmap;
}

/* SPDX-License-Identifier: MIT */
/*
 * engine_memcpy.c - no files: a shared mapping to copy from and to, laid out as the files would be.
 *
 * The limit: what the same bytes in memory of the same kind (shared, in pages of 4 KiB) cost with libc's memcpy and
 * nothing else, caches and translation caches included.
 */
#include <sys/mman.h>

#include "engine.h"

char *engine_area;
uint64_t engine_stride;
static uint64_t area_files;

void engine_start(const struct engine_config *config)
{
	engine_stride = config->file_bytes;
	area_files = config->files;
	engine_area = mmap(NULL, area_files * engine_stride, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (engine_area == MAP_FAILED)
		engine_die("mmap", errno);
	/* Not supported where there are no huge pages: all the better. */
	madvise(engine_area, area_files * engine_stride, MADV_NOHUGEPAGE);
	for (uint64_t at = 0; at < area_files * engine_stride; at += 4096)
		engine_area[at] = 1;
}

void engine_stop(void)
{
	munmap(engine_area, area_files * engine_stride);
}

long eng_open(const char *path, int flags, mode_t mode)
{
	unsigned long number = strtoul(path + strcspn(path, "0123456789"), NULL, 10);

	(void)flags, (void)mode;
	return number < area_files ? (long)number : -ENFILE;
}

void engine_own_task(bool single_thread)
{
	(void)single_thread;
}

void engine_own_table(void)
{
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

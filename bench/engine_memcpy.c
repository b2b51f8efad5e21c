/* SPDX-License-Identifier: MIT */
/* engine_memcpy.c - no files: a shared mapping to copy from, as the limit for reads. */
#include <sys/mman.h>

#include "engine.h"

#define AREA (64UL << 20)

char *engine_area;

void engine_start(const struct engine_config *config)
{
	(void)config;
	engine_area = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (engine_area == MAP_FAILED)
		engine_die("mmap", errno);
}

void engine_stop(void)
{
	munmap(engine_area, AREA);
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

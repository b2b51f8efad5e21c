/* SPDX-License-Identifier: MIT */
/* table_file.c - tables as files, one for each build id. */
#include <limits.h>
#include <sys/mman.h>

#include "base/syscall.h"
#include "run/kept.h"
#include "run/table.h"

int table_path(const struct run_image *im, const char *dir, char *path)
{
	return kept_path(im, dir, TABLE_VERSION, 1, ".sites", path);
}

static long map_memory(size_t size)
{
	return sys_call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static bool map_failed(long map)
{
	return map < 0 && map > -4096;
}

int table_load(const struct run_image *im, const char *dir, const void **buf, size_t *size)
{
	char path[PATH_MAX];
	long fd, map;
	int rc = table_path(im, dir, path);

	if (rc)
		return rc;
	fd = kept_open(path, (size_t)TABLE_SITES_MAX * (SITE_HEAD + WINDOW_MAX), size);
	if (fd < 0)
		return (int)fd;
	/* A copy, so that the bytes that were checked are the bytes that are used. */
	map = map_memory(*size);
	if (map_failed(map)) {
		rc = (int)map;
	} else if (sys_call3(SYS_read, fd, map, (long)*size) != (long)*size) {
		table_unload((const void *)map, *size);
		rc = -EBADMSG;
	} else {
		*buf = (const void *)map;
	}
	sys_call3(SYS_close, fd, 0, 0);
	return rc;
}

void table_unload(const void *buf, size_t size)
{
	sys_call3(SYS_munmap, (long)buf, (long)size, 0);
}

int table_save(const struct run_image *im, const struct run_sites *sites, const char *dir)
{
	size_t size = table_size(sites);
	char path[PATH_MAX];
	int rc = table_path(im, dir, path);
	long map;

	if (rc)
		return rc;
	map = map_memory(size);
	if (map_failed(map))
		return (int)map;
	table_write(im, sites, (void *)map);
	rc = kept_save(path, (const void *)map, size, false);
	table_unload((const void *)map, size);
	return rc;
}

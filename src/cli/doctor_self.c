/* SPDX-License-Identifier: MIT */
/*
 * doctor_self.c - the half of `shelf doctor` that runs on a shelf.
 *
 * Each call is made twice: by libc, where it must find the file, and by a system call of our own, which nobody rewrites,
 * where the kernel must know nothing of it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/syscall.h"
#include "cli.h"
#include "doctor.h"

#define WORDS "kept in memory\n"

struct self_check {
	const char *dir, *file;
	int fd;
};

static bool open_is_caught(struct self_check *s)
{
	s->fd = open(s->file, O_RDWR | O_CREAT | O_EXCL, 0600);
	return s->fd >= 0 && write(s->fd, WORDS, strlen(WORDS)) == (ssize_t)strlen(WORDS) &&
	       sys_call3(SYS_open, (long)s->file, O_RDONLY, 0) == -ENOENT;
}

static bool stat_is_caught(struct self_check *s)
{
	struct stat st;

	return !stat(s->file, &st) && st.st_size == (off_t)strlen(WORDS) && sys_call3(SYS_stat, (long)s->file, (long)&st, 0) == -ENOENT;
}

static bool read_is_caught(struct self_check *s)
{
	char buf[64];

	return pread(s->fd, buf, sizeof(buf), 0) == (ssize_t)strlen(WORDS) && !memcmp(buf, WORDS, strlen(WORDS)) &&
	       sys_call3(SYS_read, s->fd, (long)buf, sizeof(buf)) == -EBADF;
}

/* The call is inside libc, not made by us. */
static bool stdio_is_caught(struct self_check *s)
{
	FILE *f = fopen(s->file, "re");
	char line[64];
	bool ok = f && fgets(line, sizeof(line), f) && !strcmp(line, WORDS);

	if (f)
		fclose(f);
	return ok;
}

static bool listing_is_caught(struct self_check *s)
{
	DIR *d = opendir(s->dir);
	struct dirent *e;
	bool found = false;

	while (d && (e = readdir(d)))
		found |= !strcmp(e->d_name, "file");
	if (d)
		closedir(d);
	return found;
}

static bool children_are_caught(struct self_check *s)
{
	char command[4200], line[64] = "";
	FILE *f;

	snprintf(command, sizeof(command), "cat '%s'", s->file);
	f = popen(command, "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		*line = '\0';
	return !pclose(f) && !strcmp(line, WORDS);
}

int doctor_self_check(const char *dir)
{
	static const struct {
		const char *name;
		bool (*holds)(struct self_check *s);
	} checks[] = {
		{"open", open_is_caught},	{"stat", stat_is_caught},	  {"read", read_is_caught},
		{"fopen", stdio_is_caught},	{"readdir", listing_is_caught}, {"children", children_are_caught},
	};
	char file[4200];
	struct self_check s = {.dir = dir, .file = file, .fd = -1};

	snprintf(file, sizeof(file), "%s/file", dir);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!checks[i].holds(&s)) {
			printf("%s: not caught on a shelf (%s)\n", checks[i].name, strerror(errno));
			return EXIT_FAILED;
		}
	puts("open, stat, read, fopen, readdir and those of children are caught");
	return EXIT_OK;
}

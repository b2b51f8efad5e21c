/* SPDX-License-Identifier: MIT */
/* settings.c - what `shelf run` and the image before say in the environment (start.c), copied: programs write over theirs. */
#include <string.h>

#include "run/alone/libc.h"
#include "run/library.h"
#include "run/preload/serve.h"

/* Texts one behind the other: as few pages as they need. */
static char texts[NAME_LIMIT + 1 + RUN_KEY + 1 + 8 * PATH_LIMIT];
static size_t texts_used;

/* A copy of FROM up to STOP, OR or the end, less than SIZE bytes; NULL: it is longer. */
static AT_START const char *keep_text(const char *from, size_t size, char stop, char or)
{
	char *out = texts + texts_used;
	size_t n = 0;

	while (from[n] && from[n] != stop && from[n] != or)
		n++;
	if (n >= size)
		return NULL;
	memcpy(out, from, n);
	out[n] = '\0';
	texts_used += n + 1;
	return out;
}

/* A copy of variable NAME, or NULL. */
static AT_START const char *keep_variable(char **envp, const char *name)
{
	const char *value = libc_env(envp, name);

	return value && *value ? keep_text(value, PATH_LIMIT, 0, 0) : NULL;
}

/* ", KEY", or nothing. */
static AT_START bool take_key(const char **run)
{
	runtime.key = "";
	if (**run == ',') {
		runtime.key = keep_text(++*run, RUN_KEY + 1, ':', 0);
		if (!runtime.key || strlen(runtime.key) != RUN_KEY)
			return false;
		*run += RUN_KEY;
	}
	return *(*run)++ == ':';
}

/* S PID + , KEY : NAME PREFIX */
static AT_START bool take_state(const char *run)
{
	const char *at = strchr(run, '/');

	if (!at)
		return false;
	runtime.strict = *run >= '4';
	runtime.state = (uint32_t)(*run - '0') & 3;
	for (run++; *run >= '0' && *run <= '9'; run++)
		runtime.keeper = runtime.keeper * 10 + (uint32_t)(*run - '0');
	runtime.promised = *run == '+';
	run += runtime.promised;
	if (!take_key(&run))
		return false;
	runtime.name = keep_text(run, NAME_LIMIT + 1, '/', 0);
	runtime.prefix = keep_text(at, PATH_LIMIT, 0, 0);
	return runtime.name && runtime.prefix;
}

/* "/memfd:PATH (deleted)" */
static AT_START const char *keep_memfd(int fd)
{
	static const char before[] = "/memfd:", behind[] = " (deleted)";
	char link[32], text[PATH_LIMIT];
	long n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = sys_call3(SYS_readlink, (long)link, (long)text, sizeof(text) - 1);
	text[max_of(n, 0L)] = '\0';
	if (n <= (long)sizeof(behind) || strncmp(text, before, sizeof(before) - 1) || strcmp(text + n - (sizeof(behind) - 1), behind))
		return NULL;
	text[n - (long)(sizeof(behind) - 1)] = '\0';
	return keep_text(text + sizeof(before) - 1, PATH_LIMIT, 0, 0);
}

/* N:PATH, as exec.c writes it: the memfd, or nothing, and what the loader was told. */
AT_START void settings_take_loaded(char **argv, char **envp)
{
	const char *told = keep_variable(envp, LOADED_VARIABLE);
	bool named = true; /* by what is not the program's affair */
	int fd = 0;

	if (!told)
		return;
	if (*told != ':') {
		for (; *told >= '0' && *told <= '9'; told++)
			fd = fd * 10 + (*told - '0');
		runtime.loaded = keep_memfd(fd);
		sys_call3(SYS_close, fd, 0, 0);
		named = argv[0] && !strncmp(argv[0], LOADED_AT, strlen(LOADED_AT)); /* not by --argv0 */
	}
	if (*told == ':' && named)
		argv[0] = (char *)(uintptr_t)(told + 1);
}

const char *settings_take_static(char **envp, int *fd)
{
	const char *told = keep_variable(envp, STATIC_VARIABLE);

	if (!told || *told < '0' || *told > '9')
		return NULL;
	for (*fd = 0; *told >= '0' && *told <= '9'; told++)
		*fd = *fd * 10 + (*told - '0');
	if (*told++ != ':')
		return NULL;
	if (!strncmp(told, runtime.prefix, runtime.prefix_len) && told[runtime.prefix_len] == '/')
		runtime.exe = told;
	else
		runtime.host_exe = told;
	return told;
}

AT_START bool settings_take(char **envp)
{
	const char *run = libc_env(envp, "SHELF_RUN"), *library = libc_env(envp, runtime.auditor ? "LD_AUDIT" : "LD_PRELOAD");

	*(volatile size_t *)&texts_used = 0; /* written before it is read: one fault, not two */
	if (!run || !library || !take_state(run))
		return false;
	runtime.library = keep_text(library, PATH_LIMIT, ':', ' ');
	runtime.prefix_len = strlen(runtime.prefix);
	runtime.prefix_last = strrchr(runtime.prefix, '/') + 1;
	runtime.exe = keep_variable(envp, "SHELF_RUN_EXE");
	runtime.shm_dir = keep_variable(envp, "SHELF_RUN_DIR");
	runtime.tables = keep_variable(envp, "SHELF_RUN_TABLES");
	runtime.proc.cwd_in = runtime.state == 2;
	return runtime.library;
}

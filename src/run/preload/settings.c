/* SPDX-License-Identifier: MIT */
/* settings.c - what `shelf run` and the image before say in the environment (start.c), copied: programs write over theirs. */
#include <string.h>

#include "run/alone/libc.h"
#include "run/preload/serve.h"

/* Texts one behind the other: as few pages as they need. */
static char texts[NAME_LIMIT + 1 + RUN_KEY + 1 + 5 * PATH_LIMIT];
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

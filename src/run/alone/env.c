/* SPDX-License-Identifier: MIT */
/* env.c - the environment as a program was given it. */
#include <string.h>

#include "run/alone/libc.h"

const char *libc_env(char **envp, const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/* hosted.c - the same program with a libc behind it, in builds that want one. */
#include "run/alone/start.h"

int main(int argc, char **argv, char **envp)
{
	return alone_main(argc, argv, envp);
}

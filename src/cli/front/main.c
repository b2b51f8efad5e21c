/* SPDX-License-Identifier: MIT */
/* main.c - see front.h. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "base/base.h"
#include "base/syscall.h"
#include "cli/places.h"
#include "front.h"
#include "run/alone/start.h"
#include "run/program.h"

#define COMMANDS "shelf-commands"

/* Under `shelf run` this program is started although it is statically linked: by this it is known. */
static const struct {
	Elf64_Nhdr head;
	char name[8];
} note __attribute__((section(".note.shelf"), aligned(4), used)) = {{sizeof(PROGRAM_FRONT_NOTE), 0, 1}, PROGRAM_FRONT_NOTE};

/* A shelf's file must not become descriptor 1: what is printed would go into it.  To the program they are as they were, closed. */
static void hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (sys_call3(SYS_fcntl, fd, F_GETFD, 0) < 0)
			sys_call3(SYS_open, (long)"/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC, 0); /* fails when used */
}

static bool wants_help(char **argv)
{
	for (; *argv && strcmp(*argv, "--"); argv++)
		if (!strcmp(*argv, "--help") || !strcmp(*argv, "-h"))
			return true;
	return false;
}

/* Only comes back if there is no such program. */
static int leave_to_commands(char **argv, char **envp)
{
	static const char *const beside[] = {"/" COMMANDS, "/../libexec/shelf/" COMMANDS};
	static const char missing[] = "shelf: " COMMANDS " is not installed beside it, nor in ../libexec/shelf\n";
	char here[PATH_MAX], path[PATH_MAX];

	place_here(here);
	if (place_beside(here, beside, ARRAY_SIZE(beside), path))
		sys_call3(SYS_execve, (long)path, (long)argv, (long)envp);
	sys_call3(SYS_write, 2, (long)missing, sizeof(missing) - 1);
	return EXIT_FAILED;
}

int alone_main(int argc, char **argv, char **envp)
{
	struct run r = {.at = "/shelf", .static_fd = -1, .options = {.uid = (uint32_t)-1, .gid = (uint32_t)-1}, .envp = envp};
	int status;

	if (argc < 2 || strcmp(argv[1], "run") || wants_help(argv + 2))
		return leave_to_commands(argv, envp);
	hold_standard_descriptors();
	status = front_options(&r, argv + 1);
	return status == EXIT_OK ? front_run(&r) : status;
}

/* SPDX-License-Identifier: MIT */
/* past_shelf FILE: opens FILE twice from code that is written as it runs, where nobody rewrites a system call. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

typedef long open_fn(long nr, long dirfd, const char *path, long flags);

int main(int argc, char **argv)
{
	/* mov %rdi, %rax; mov %rsi, %rdi; mov %rdx, %rsi; mov %rcx, %rdx; syscall; ret */
	static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6,
					     0x48, 0x89, 0xca, 0x0f, 0x05, 0xc3};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	open_fn *call;

	if (argc != 2 || page == MAP_FAILED)
		return 2;
	memcpy(page, code, sizeof(code));
	memcpy(&call, &page, sizeof(call));
	for (int i = 0; i < 2; i++)
		printf("%ld\n", call(SYS_openat, AT_FDCWD, argv[1], O_RDONLY));
	return 0;
}

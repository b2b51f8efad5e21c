/* SPDX-License-Identifier: MIT */
/*
 * start.c - the start of a program that has no libc: stack, thread-local variables, main().  The few calls of libc's that the
 * layers make are here, too.
 *
 * What it saves is most of a short program's time: glibc asks the processor over a hundred questions at each start, each of
 * them a trap in a virtual machine, and a loader relocates and touches pages that are not needed.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/syscall.h"
#include "run/alone/libc.h"
#include "run/alone/start.h"

#define TLS_ROOM 8192
#define ARCH_SET_FS 0x1002

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

/* The variables, and behind them what the thread pointer points to: its own address. */
static _Alignas(64) char tls[TLS_ROOM + 64];

static char **environment;

static void tls_start(void)
{
	const Elf64_Phdr *ph = (const Elf64_Phdr *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);
	char *pointer = tls + TLS_ROOM;

	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++, ph++) {
		if (ph->p_type != PT_TLS)
			continue;
		if (ph->p_memsz + ph->p_align > TLS_ROOM)
			sys_call3(SYS_exit_group, 126, 0, 0);
		memcpy(pointer - ALIGN_UP(ph->p_memsz, ph->p_align), (const void *)ph->p_vaddr, ph->p_filesz);
	}
	*(void **)(void *)pointer = pointer;
	sys_call3(SYS_arch_prctl, ARCH_SET_FS, (long)pointer, 0);
}

_Noreturn void alone_start(long *stack);

_Noreturn void alone_start(long *stack)
{
	int argc = (int)stack[0];
	char **argv = (char **)(stack + 1);

	environment = argv + argc + 1;
	tls_start();
	for (;;)
		sys_call3(SYS_exit_group, alone_main(argc, argv, environment), 0, 0);
}

__asm__(".text\n"
	".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined %rip\n"
	"	xor	%ebp, %ebp\n"
	"	mov	%rsp, %rdi\n"
	"	and	$-16, %rsp\n"
	"	call	alone_start\n"
	"	hlt\n"
	"	.cfi_endproc\n"
	"	.size _start, . - _start\n");

/* ---- libc's names ------------------------------------------------------------------------------ */

char *secure_getenv(const char *name)
{
	return (char *)(uintptr_t)libc_env(environment, name); /* no such program is ever setuid: nothing it does wants that */
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	return (int)sys_call3(SYS_clock_gettime, id, (long)ts, 0);
}

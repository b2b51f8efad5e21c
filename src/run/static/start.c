/* SPDX-License-Identifier: MIT */
/* start.c - see static.h. */
#include <string.h>

#include "run/alone/libc.h"
#include "run/attach.h"
#include "run/preload/calls.h"
#include "run/static/static.h"

static _Alignas(64) char first_thread[STATIC_TLS + sizeof(struct static_thread)];

static void vector_set(Elf64_auxv_t *aux, uint64_t type, uintptr_t value)
{
	Elf64_auxv_t *entry = run_vector_entry(aux, type);

	if (entry)
		entry->a_un.a_val = value;
}

static void vector_tell(Elf64_auxv_t *aux, const struct static_program *p, const char *path)
{
	vector_set(aux, AT_PHDR, p->headers);
	vector_set(aux, AT_PHENT, sizeof(Elf64_Phdr));
	vector_set(aux, AT_PHNUM, p->header_count);
	vector_set(aux, AT_ENTRY, p->entry);
	vector_set(aux, AT_EXECFN, (uintptr_t)path);
	run_take_comm(path);
}

static void rewrite_calls(const struct static_program *p, const char *path)
{
	struct attach_result patched = {0};
	int rc = run_attach_program(&p->image, p->image.id_len ? runtime.tables : NULL, run_wanted, &patched);

	if (rc || patched.count.left)
		run_die("%s: %u of its system calls cannot be rewritten (%d)", path, patched.count.left, rc);
}

/* Started by hand, or by who knows nothing of us. */
static _Noreturn void not_for_you(void)
{
	static const char text[] = "shelf-static: `shelf run` starts this for statically linked programs\n";

	sys_call3(SYS_write, 2, (long)text, sizeof(text) - 1);
	for (;;)
		sys_call3(SYS_exit_group, 2, 0, 0);
}

_Noreturn void static_start(long *stack);

_Noreturn void static_start(long *stack)
{
	char **envp = (char **)(stack + 1 + stack[0] + 1);
	Elf64_auxv_t *aux = run_vector_of(envp);
	struct static_program program;
	const char *path;
	int fd;

	static_thread_init((struct static_thread *)(void *)(first_thread + STATIC_TLS));
	if (!run_begin(envp, aux))
		not_for_you();
	path = settings_take_static(envp, &fd);
	if (!path)
		not_for_you();
	static_load(&program, fd, path, stack);
	sys_call3(SYS_close, fd, 0, 0);
	rewrite_calls(&program, path);
	vector_tell(aux, &program, path);
	if (runtime.state || runtime.exe)
		run_attach_shelf();
	static_enter(stack, program.entry);
}

/* SPDX-License-Identifier: MIT */
/* assert.c - the last words of a process that found a broken invariant. */
#include "base/assert.h"
#include "base/syscall.h"

#include <signal.h>

struct line {
	char text[256];
	size_t len;
};

static void line_add(struct line *out, const char *s)
{
	while (*s && out->len < sizeof(out->text) - 1)
		out->text[out->len++] = *s++;
}

static void line_add_number(struct line *out, unsigned n)
{
	char digits[12];
	size_t at = sizeof(digits) - 1;

	digits[at] = 0;
	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	line_add(out, digits + at);
}

_Noreturn void shelf_panic(const char *what, const char *file, int line)
{
	struct line out = {.len = 0};

	line_add(&out, "shelf: broken invariant at ");
	line_add(&out, file);
	line_add(&out, ":");
	line_add_number(&out, (unsigned)line);
	line_add(&out, ": ");
	line_add(&out, what);
	out.text[out.len++] = '\n';
	sys_call3(SYS_write, 2, (long)out.text, (long)out.len);
	for (;;) {
		long pid = sys_call3(SYS_getpid, 0, 0, 0);
		long tid = sys_call3(SYS_gettid, 0, 0, 0);

		sys_call3(SYS_tgkill, pid, tid, SIGABRT);
		sys_call3(SYS_exit_group, 134, 0, 0); /* SIGABRT is ignored or handled */
	}
}

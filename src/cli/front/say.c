/* SPDX-License-Identifier: MIT */
/* say.c - messages. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/syscall.h"
#include "front.h"

/* Names of files come here as they are: nothing in them may steer a terminal. */
static void defuse(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

static void say(const char *format, va_list args)
{
	char text[8192], line[sizeof(text) + 16];

	vsnprintf(text, sizeof(text), format, args);
	defuse(text);
	sys_call3(SYS_write, 2, (long)line, snprintf(line, sizeof(line), "shelf run: %s\n", text));
}

void front_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

int front_usage(const char *format, ...)
{
	static const char help[] = "Try `shelf run --help`.\n";
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	sys_call3(SYS_write, 2, (long)help, sizeof(help) - 1);
	return EXIT_USAGE;
}

const char *front_reason(long err)
{
	const char *text = strerrordesc_np((int)-err);

	return text ? text : "unknown error";
}

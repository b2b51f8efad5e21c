/* SPDX-License-Identifier: MIT */
/*
 * libc.c - what the layers call of libc, for programs that have none behind them: the preloaded library, whose code may
 * not call the program's (preload/libc.c), and the command `shelf` (cli/front).  Hidden, so that calls end here.
 *
 * Threads' slots are given back by who sees the thread's exit, and who forks tells the segment, so pthread keys and
 * fork handlers have nothing to do.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/copy.h"
#include "base/syscall.h"

/* ---- memory and strings ----------------------------------------------------------------- */

void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
	copy_bytes(dst, src, n);
	return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
	move_bytes(dst, src, n);
	return dst;
}

void *memset(void *dst, int value, size_t n)
{
	fill_bytes(dst, (unsigned char)value, n);
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

void *memchr(const void *s, int c, size_t n)
{
	const unsigned char *p = s;

	for (; n; n--, p++)
		if (*p == (unsigned char)c)
			return (void *)(uintptr_t)p;
	return NULL;
}

size_t strlen(const char *s)
{
	const char *p = s;

	while (*p)
		p++;
	return (size_t)(p - s);
}

size_t strnlen(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n && *a && *a == *b; n--, a++, b++)
		;
	return n ? (unsigned char)*a - (unsigned char)*b : 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

char *strncpy(char *restrict dst, const char *restrict src, size_t n)
{
	size_t len = strnlen(src, n);

	copy_bytes(dst, src, len);
	fill_bytes(dst + len, 0, n - len);
	return dst;
}

char *strrchr(const char *s, int c)
{
	const char *found = NULL;

	do
		if (*s == (char)c)
			found = s;
	while (*s++);
	return (char *)(uintptr_t)found;
}

char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

/* ---- printing: %s %.Ns %c %d %u %lu %llu %zu %x %#x %04o, which is what is said --------------- */

struct print {
	char *out;
	size_t size, at;
};

static void put(struct print *p, char c)
{
	if (p->at + 1 < p->size)
		p->out[p->at] = c;
	p->at++;
}

/* At least LEAST digits. */
static void put_number(struct print *p, uint64_t n, unsigned base, unsigned least)
{
	char digits[24];
	unsigned k = 0;

	do
		digits[k++] = "0123456789abcdef"[n % base];
	while ((n /= base) || k < least);
	while (k)
		put(p, digits[--k]);
}

static void put_text(struct print *p, const char *s, size_t max)
{
	for (s = s ? s : "(null)"; max && *s; max--)
		put(p, *s++);
}

static void put_signed(struct print *p, int64_t n)
{
	if (n < 0)
		put(p, '-');
	put_number(p, n < 0 ? -(uint64_t)n : (uint64_t)n, 10, 0);
}

/* Digits behind a '.'; SIZE_MAX if there is none. */
static size_t precision(const char **f)
{
	size_t n = 0;

	if (**f != '.')
		return SIZE_MAX;
	for (++*f; **f >= '0' && **f <= '9'; ++*f)
		n = n * 10 + (size_t)(**f - '0');
	return n;
}

static bool is_long(const char **f)
{
	bool wide = false;

	for (; **f == 'l' || **f == 'z'; ++*f)
		wide = true;
	return wide;
}

int vsnprintf(char *out, size_t size, const char *f, va_list ap)
{
	struct print p = {out, size, 0};

	for (; *f; f++) {
		unsigned least = 0;
		size_t max;
		bool wide;

		if (*f != '%') {
			put(&p, *f);
			continue;
		}
		f++;
		if (*f == '#') {
			put_text(&p, "0x", 2);
			f++;
		}
		if (*f == '0' && f[1] >= '1' && f[1] <= '9') {
			least = (unsigned)(f[1] - '0');
			f += 2;
		}
		max = precision(&f);
		wide = is_long(&f);
		if (*f == 's')
			put_text(&p, va_arg(ap, const char *), max);
		else if (*f == 'c')
			put(&p, (char)va_arg(ap, int));
		else if (*f == 'd')
			put_signed(&p, wide ? va_arg(ap, long) : va_arg(ap, int));
		else if (*f == 'u' || *f == 'x' || *f == 'o')
			put_number(&p, wide ? va_arg(ap, unsigned long) : va_arg(ap, unsigned), *f == 'u' ? 10 : *f == 'x' ? 16 : 8, least);
		else
			put(&p, *f);
	}
	if (size)
		out[p.at < size ? p.at : size - 1] = '\0';
	return (int)p.at;
}

int snprintf(char *out, size_t size, const char *f, ...)
{
	va_list ap;
	int n;

	va_start(ap, f);
	n = vsnprintf(out, size, f, ap);
	va_end(ap);
	return n;
}

char *strerror(int err)
{
	const char *text = strerrordesc_np(err);

	return (char *)(uintptr_t)(text ? text : "unknown error");
}

/* ---- ids ---------------------------------------------------------------------------------------- */

uid_t geteuid(void)
{
	return (uid_t)sys_call3(SYS_geteuid, 0, 0, 0);
}

gid_t getegid(void)
{
	return (gid_t)sys_call3(SYS_getegid, 0, 0, 0);
}

/* ---- threads ------------------------------------------------------------------------------------ */

int pthread_once(pthread_once_t *once, void (*fn)(void))
{
	if (!*once) {
		*once = 1;
		fn();
	}
	return 0;
}

int pthread_key_create(pthread_key_t *key, void (*fn)(void *))
{
	(void)fn;
	*key = 0;
	return 0;
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
	(void)key, (void)value;
	return 0;
}

int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
	(void)before, (void)parent, (void)child;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* events.h - inotify events said field by field, for the programs of cases that compare them. */
#ifndef TESTS_PROGRAMS_EVENTS_H
#define TESTS_PROGRAMS_EVENTS_H

#include <sys/inotify.h>
#include <sys/ioctl.h>

#include "cases.h"

/* The cookie as the n-th that was seen. */
static inline unsigned cookie_number(uint32_t cookie)
{
	static uint32_t seen[64];
	static unsigned count;
	unsigned k;

	if (!cookie)
		return 0;
	for (k = 0; k < count; k++)
		if (seen[k] == cookie)
			return k + 1;
	MUST(count < 64);
	seen[count++] = cookie;
	return count;
}

static inline void say_events(const char *buf, ssize_t n)
{
	ssize_t at;

	for (at = 0; at < n;) {
		struct inotify_event e;

		memcpy(&e, buf + at, sizeof(e));
		say("  wd %d mask %08x cookie %u len %u '%s'", e.wd, e.mask, cookie_number(e.cookie), e.len,
		    e.len ? buf + at + sizeof(e) : "");
		for (uint32_t k = 0; k < e.len; k++)
			if (k > strlen(buf + at + sizeof(e)))
				MUST(!buf[at + (ssize_t)sizeof(e) + k]);
		at += (ssize_t)(sizeof(e) + e.len);
	}
	MUST(at == n || n < 0);
}

/* One read of SIZE bytes. */
static inline ssize_t read_once(int in, size_t size)
{
	static _Alignas(8) char buf[65536];
	ssize_t n;

	memset(buf, 0x55, sizeof(buf));
	n = read(in, buf, size);
	if (n < 0)
		say("read: %s", strerrorname_np(errno));
	else
		say("read: %zd", n);
	say_events(buf, n);
	return n;
}

/* All that waits; `in` does not block. */
static inline void told(const char *what, int in)
{
	int waits = -1;

	ioctl(in, FIONREAD, &waits);
	say("%s: %d bytes", what, waits);
	while (read_once(in, 65536) > 0)
		;
}

static inline int watching(const char *path, uint32_t mask)
{
	int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	MUST(in >= 0);
	SAY(inotify_add_watch(in, path, mask));
	return in;
}

static inline void touch(const char *path)
{
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

#endif

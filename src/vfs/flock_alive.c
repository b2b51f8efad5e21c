/* SPDX-License-Identifier: MIT */
/*
 * flock_alive.c - is the process that a lock names still there?
 *
 * Asked only when a lock of its is in somebody's way, and of one range at most
 * every ALIVE_MS.  A stopped process is alive; a zombie is dead unless other threads of it run on.
 */
#include "base/clock.h"
#include "base/syscall.h"
#include "vfs/flock_priv.h"

#define STAT_STATE 3
#define STAT_THREADS 20
#define STAT_START 22

uint32_t flock_now_ms(void)
{
	return (uint32_t)(clock_read_ns(CLOCK_MONOTONIC_COARSE) / 1000000);
}

static char *put_text(char *at, const char *s)
{
	while (*s)
		*at++ = *s++;
	return at;
}

static char *put_number(char *at, uint32_t n)
{
	char digits[12];
	unsigned k = 0;

	do
		digits[k++] = (char)('0' + n % 10);
	while (n /= 10);
	while (k)
		*at++ = digits[--k];
	return at;
}

/* The bytes of /proc/PID/stat, NUL-terminated; negative: -errno. */
static long read_stat(uint32_t pid, char *buf, size_t size)
{
	char path[32];
	long fd, n;

	*put_text(put_number(put_text(path, "/proc/"), pid), "/stat") = 0;
	fd = sys_call3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	n = sys_call3(SYS_read, fd, (long)buf, (long)size - 1);
	sys_call3(SYS_close, fd, 0, 0);
	buf[n > 0 ? n : 0] = 0;
	return n;
}

/* Field `which` (3 and up), behind the name in parentheses, which may hold anything. */
static const char *stat_field(const char *line, long len, int which)
{
	const char *at = line + len;
	int field = 2;

	while (at > line && *at != ')')
		at--;
	while (*at && field < which)
		if (*at++ == ' ')
			field++;
	return at;
}

static uint64_t number_at(const char *s)
{
	uint64_t n = 0;

	while (*s >= '0' && *s <= '9')
		n = n * 10 + (uint64_t)(*s++ - '0');
	return n;
}

bool flock_process_dead(uint32_t pid, uint64_t start_time)
{
	char line[512];
	char state;
	long n;

	if (!pid)
		return false;
	n = read_stat(pid, line, sizeof(line));
	if (n <= 0) /* perhaps hidden from us, or no descriptor free */
		return sys_call3(SYS_kill, pid, 0, 0) == -ESRCH;
	if (number_at(stat_field(line, n, STAT_START)) != start_time)
		return true; /* the number has been given to another process */
	state = *stat_field(line, n, STAT_STATE);
	return (state == 'Z' || state == 'X') && number_at(stat_field(line, n, STAT_THREADS)) <= 1;
}

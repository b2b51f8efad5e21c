/* SPDX-License-Identifier: MIT */
/* size.c - sizes on the command line. */
#include <string.h>
#include <sys/sysinfo.h>

#include "base/syscall.h"
#include "size.h"

static uint64_t ram_bytes(void)
{
	struct sysinfo si;

	return sys_call3(SYS_sysinfo, (long)&si, 0, 0) ? 0 : (uint64_t)si.totalram * si.mem_unit;
}

/* Decimal digits; where they end.  NULL: there are none, or too many. */
static const char *take_digits(const char *text, uint64_t *out)
{
	const char *p = text;

	for (*out = 0; *p >= '0' && *p <= '9'; p++) {
		if (*out > (UINT64_MAX - 9) / 10)
			return NULL;
		*out = *out * 10 + (uint64_t)(*p - '0');
	}
	return p > text ? p : NULL;
}

bool cli_parse_size(const char *text, uint64_t *out)
{
	static const char suffixes[] = "KMGT";
	unsigned shift = 0;
	uint64_t v;
	const char *s, *end = take_digits(text, &v);

	if (!end)
		return false;
	if (!strcmp(end, "%")) {
		*out = v > 100 ? 0 : ram_bytes() / 100 * v;
		return v && v <= 100;
	}
	if (*end && (s = strchr(suffixes, *end >= 'a' ? *end - 32 : *end))) {
		shift = 10 * (unsigned)(s - suffixes + 1);
		end++;
	}
	if (!strcmp(end, "iB") || !strcmp(end, "B"))
		end += strlen(end);
	if (*end || !v || v > (UINT64_MAX >> 1) >> shift)
		return false;
	*out = v << shift;
	return true;
}

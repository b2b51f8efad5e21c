/* SPDX-License-Identifier: MIT */
/* lockstep_gen.c - the random sequence: arguments that often meet, and some that never should. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "harness.h"
#include "lockstep.h"
#include "lockstep_ops.h"

static const char long_name[] =
	"a-name-of-more-than-sixty-three-characters-so-that-it-takes-the-larger-entry-0123456789";

static uint32_t pick(uint64_t *state, uint32_t n)
{
	return (uint32_t)(test_random(state) >> 33) % n;
}

/* ---- paths ---------------------------------------------------------------------------------------- */

static size_t add_text(char *path, size_t at, const char *text)
{
	size_t n = strlen(text);

	memcpy(path + at, text, n + 1);
	return at + n;
}

static size_t add_component(uint64_t *state, char *path, size_t at)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", long_name };
	uint32_t r = pick(state, 100);

	if (r < 4)
		return add_text(path, at, ".");
	if (r < 11)
		return add_text(path, at, "..");
	r = pick(state, 20);
	return add_text(path, at, names[r < 19 ? r % 7 : 7]);
}

static void odd_path(uint64_t *state, char *path)
{
	static const char *const odd[] = { "", "/", ".", "..", "//", "a/", "./.", "a/..", "///a//b", "a/.", "b/../" };
	uint32_t r = pick(state, 14);
	size_t end;

	if (r < 11) {
		add_text(path, 0, odd[r]);
		return;
	}
	/* a component too long; a path too long; one of just the greatest length */
	end = r == 11 ? 256 : r == 12 ? 5000 : 4095;
	memset(path, 'x', end);
	path[end] = '\0';
	for (size_t i = 1; r != 11 && i + 1 < end; i += 2)
		path[i] = '/';
}

static void make_path(uint64_t *state, char *path)
{
	uint32_t components = 1 + pick(state, 2) + pick(state, 2);
	size_t at = 0;

	if (pick(state, 100) < 4) {
		odd_path(state, path);
		return;
	}
	if (pick(state, 4) == 0)
		at = add_text(path, at, "/");
	for (uint32_t i = 0; i < components; i++) {
		if (i)
			at = add_text(path, at, pick(state, 30) ? "/" : "//");
		at = add_component(state, path, at);
	}
	if (pick(state, 30) == 0)
		add_text(path, at, "/");
}

/* ---- numbers --------------------------------------------------------------------------------------- */

static int make_fd(uint64_t *state)
{
	static const int odd[] = { -1, INT_MAX, INT_MIN, LS_NOFILE - 1, LS_NOFILE, 1000000 };

	return pick(state, 60) ? (int)pick(state, 12) : odd[pick(state, 6)];
}

static int make_at(uint64_t *state)
{
	return pick(state, 4) ? AT_FDCWD : make_fd(state);
}

/* No data in the last page of all: there the kernel's own SEEK_DATA is wrong. */
static int64_t make_offset(uint64_t *state)
{
	static const int64_t odd[] = { -1, INT64_MAX, INT64_MIN, (1LL << 62) - 4095, 1LL << 40, (1LL << 32) - 1, -4096 };
	uint32_t r = pick(state, 100);

	if (r < 2)
		return odd[pick(state, 7)];
	if (r < 25)
		return pick(state, 100);
	if (r < 50)
		return (int64_t)pick(state, 10) * 4096 + (int64_t)pick(state, 3) - 1;
	return pick(state, r < 95 ? 40000 : 1000000);
}

static int64_t make_length(uint64_t *state)
{
	uint32_t r = pick(state, 100);

	if (r < 3)
		return 0;
	if (r < 50)
		return 1 + pick(state, 300);
	if (r < 75)
		return (int64_t)(1 + pick(state, 5)) * 4096 + (int64_t)pick(state, 3) - 1;
	return 1 + pick(state, r < 97 ? 10000 : LS_BUFFER - 10);
}

void ls_next(uint64_t *state, struct ls_op *op)
{
	op->code = ls_pick_code(pick(state, ls_total_weight()));
	op->fd = make_fd(state);
	op->fd2 = make_fd(state);
	op->at = make_at(state);
	op->at2 = make_at(state);
	op->off = make_offset(state);
	op->off2 = make_offset(state);
	op->len = make_length(state);
	for (int i = 0; i < LS_WORDS; i++)
		op->r[i] = (uint32_t)(test_random(state) >> 32);
	op->seed = test_random(state);
	make_path(state, op->path);
	make_path(state, op->path2);
}

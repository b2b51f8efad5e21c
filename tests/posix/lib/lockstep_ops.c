/* SPDX-License-Identifier: MIT */
/* lockstep_ops.c - the table of operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep_ops.h"

#define LS_ROW(name, weight) { #name, weight, ls_do_##name },
static const struct ls_kind kinds[] = { LS_OPS(LS_ROW) };
#undef LS_ROW

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

unsigned ls_total_weight(void)
{
	static unsigned total;

	for (unsigned i = 0; !total || i < KINDS; i++) {
		if (!i)
			total = 0;
		total += kinds[i].weight;
	}
	return total;
}

unsigned ls_pick_code(unsigned ticket)
{
	unsigned i = 0;

	while (ticket >= kinds[i].weight)
		ticket -= kinds[i++].weight;
	return i;
}

/* LOCKSTEP_TREES=N in the environment: the whole tree after every call from the N-th on, to find what went wrong. */
static void run_tree(struct ls_side *s, struct ls_result *r)
{
	uint64_t hash;
	size_t at = strlen(r->text);

	ls_tree_hash(s, &hash, r->text + at, sizeof(r->text) - at);
	r->hash += hash;
}

void ls_run(struct ls_side *s, const struct ls_op *op, struct ls_result *r)
{
	const char *from = getenv("LOCKSTEP_TREES");

	memset(r, 0, sizeof(*r));
	kinds[op->code].fn(s, op, r);
	if (from && s->steps++ >= strtoul(from, NULL, 0))
		run_tree(s, r);
}

void ls_describe(const struct ls_op *op, char *text, size_t size)
{
	snprintf(text, size,
		 "%s fd %d,%d at %d,%d off %lld,%lld len %lld r %x %x %x %x %x path \"%.100s\"(%zu) \"%.100s\"(%zu)",
		 kinds[op->code].name, op->fd, op->fd2, op->at, op->at2, (long long)op->off, (long long)op->off2,
		 (long long)op->len, op->r[0], op->r[1], op->r[2], op->r[3], op->r[4], op->path, strlen(op->path),
		 op->path2, strlen(op->path2));
}

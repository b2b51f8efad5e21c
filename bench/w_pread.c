/* SPDX-License-Identifier: MIT */
/*
 * w_pread.c - tiny and page-sized reads through the descriptor table.
 *
 * shared: all threads use one table.  unshared: each thread has a task and a
 * table of its own, used by it alone (the fget_light case of 2007).
 * Each thread reads its own file of 64 blocks, so that the table is what is shared.
 */
#include "engine.h"
#include "workloads.h"

#define BLOCK 4096
#define BLOCKS 64

struct reader {
	int fd;
	unsigned block;
	char buf[BLOCK];
};

static void make_file(struct worker *w, struct reader *r)
{
	char path[32];

	snprintf(path, sizeof(path), "r%u", w->index);
	r->fd = (int)engine_ok("open", eng_open(path, O_RDWR | O_CREAT, 0600));
	memset(r->buf, 'x', BLOCK);
	for (unsigned i = 0; i < BLOCKS; i++)
		engine_ok("pwrite", eng_pwrite(r->fd, r->buf, BLOCK, (off_t)i * BLOCK));
}

static void begin_shared(struct worker *w)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		engine_die("calloc", ENOMEM);
	w->state = r;
	make_file(w, r);
}

static void begin_unshared(struct worker *w)
{
	engine_own_task(true);
	begin_shared(w);
}

static inline uint64_t read_batch(struct worker *w, size_t n)
{
	struct reader *r = w->state;

	for (int i = 0; i < 64; i++) {
		long got = eng_pread(r->fd, r->buf, n, (off_t)(r->block++ % BLOCKS) * BLOCK);

		if (__builtin_expect(got != (long)n, 0))
			engine_die("pread", got < 0 ? got : EIO);
	}
	return 64;
}

static uint64_t step_1(struct worker *w)
{
	return read_batch(w, 1);
}

static uint64_t step_4k(struct worker *w)
{
	return read_batch(w, BLOCK);
}

const struct workload pread_workloads[] = {
	{.name = "fdget",
	 .case_ = "pread1_shared",
	 .unit = "op/s",
	 .begin = begin_shared,
	 .step = step_1},
	{.name = "fdget",
	 .case_ = "pread1_unshared",
	 .unit = "op/s",
	 .begin = begin_unshared,
	 .step = step_1},
	{.name = "fdget",
	 .case_ = "pread4k_shared",
	 .unit = "op/s",
	 .begin = begin_shared,
	 .step = step_4k},
	{.name = NULL},
};

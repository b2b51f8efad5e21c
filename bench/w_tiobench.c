/* SPDX-License-Identifier: MIT */
/*
 * w_tiobench.c - tiobench of 2004: T threads of one table, S bytes each, block
 * 4 KiB.  seqwrite fills fresh files; the files were written and removed once
 * before, so that every engine has memory it has used already.  The other
 * cases touch as many blocks as the file has, at random or in order.
 * Cases given together run one after the other on the same files, as tiobench does.
 */
#include <pthread.h>

#include "engine.h"
#include "workloads.h"

#define BLOCK 4096

struct stream {
	int fd;
	uint64_t blocks;
	char *buf;
};

static int *fds;

static void path_of(char path[32], unsigned index)
{
	snprintf(path, 32, "t%u", index);
}

static int open_file(unsigned index)
{
	char path[32];

	path_of(path, index);
	return (int)engine_ok("open", eng_open(path, O_RDWR | O_CREAT, 0600));
}

static void fill(int fd, const char *buf, uint64_t blocks)
{
	for (uint64_t i = 0; i < blocks; i++)
		if (engine_ok("pwrite", eng_pwrite(fd, buf, BLOCK, (off_t)(i * BLOCK))) != BLOCK)
			engine_die("short write", ENOSPC);
}

static void fill_all(unsigned threads)
{
	static char buf[BLOCK];

	memset(buf, 'z', sizeof(buf));
	fds = calloc(threads, sizeof(*fds));
	if (!fds)
		engine_die("calloc", ENOMEM);
	for (unsigned i = 0; i < threads; i++) {
		fds[i] = open_file(i);
		fill(fds[i], buf, bench_options.file_bytes / BLOCK);
	}
}

static void remove_all(unsigned threads)
{
	char path[32];

	for (unsigned i = 0; i < threads; i++) {
		engine_ok("close", eng_close(fds[i]));
		path_of(path, i);
		engine_ok("unlink", eng_unlink(path));
	}
	free(fds);
	fds = NULL;
}

static void ensure_filled(unsigned threads)
{
	if (!fds)
		fill_all(threads);
}

/* seqwrite: memory that was used before, but files that are new. */
static void setup_fresh(unsigned threads)
{
	ensure_filled(threads);
	remove_all(threads);
	fds = calloc(threads, sizeof(*fds));
	if (!fds)
		engine_die("calloc", ENOMEM);
	for (unsigned i = 0; i < threads; i++)
		fds[i] = open_file(i);
}

static void begin(struct worker *w)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s || !(s->buf = aligned_alloc(BLOCK, BLOCK)))
		engine_die("calloc", ENOMEM);
	memset(s->buf, 'w', BLOCK);
	s->fd = fds[w->index];
	s->blocks = bench_options.file_bytes / BLOCK;
	w->state = s;
}

static uint64_t step_seqwrite(struct worker *w)
{
	struct stream *s = w->state;

	fill(s->fd, s->buf, s->blocks);
	return s->blocks * BLOCK;
}

static inline void read_block(struct stream *s, uint64_t block)
{
	long got = eng_pread(s->fd, s->buf, BLOCK, (off_t)(block * BLOCK));

	if (__builtin_expect(got != BLOCK, 0))
		engine_die("pread", got < 0 ? got : EIO);
}

static uint64_t step_seqread(struct worker *w)
{
	struct stream *s = w->state;

	for (uint64_t i = 0; i < s->blocks; i++)
		read_block(s, i);
	return s->blocks * BLOCK;
}

static uint64_t step_randread(struct worker *w)
{
	struct stream *s = w->state;

	for (uint64_t i = 0; i < s->blocks; i++)
		read_block(s, worker_random(w) % s->blocks);
	return s->blocks * BLOCK;
}

static uint64_t step_randwrite(struct worker *w)
{
	struct stream *s = w->state;

	for (uint64_t i = 0; i < s->blocks; i++)
		if (eng_pwrite(s->fd, s->buf, BLOCK,
			       (off_t)(worker_random(w) % s->blocks * BLOCK)) != BLOCK)
			engine_die("pwrite", EIO);
	return s->blocks * BLOCK;
}

#define TIO(c, prepare, work)                                                                      \
	{                                                                                          \
		.name = "tiobench", .case_ = c, .unit = "MB/s", .bounded = true, .setup = prepare, \
		.begin = begin, .step = work, .teardown = remove_all                               \
	}

const struct workload tiobench_workloads[] = {
	TIO("seqwrite", setup_fresh, step_seqwrite),
	TIO("seqread", ensure_filled, step_seqread),
	TIO("randread", ensure_filled, step_randread),
	TIO("randwrite", ensure_filled, step_randwrite),
	{.name = NULL},
};

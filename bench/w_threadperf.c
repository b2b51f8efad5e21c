/* SPDX-License-Identifier: MIT */
/*
 * w_threadperf.c - the 'readwrite' test of 2005: each of N tasks opens its own
 * file, writes and reads it in small pieces, and closes it.  Once the tasks are
 * threads of one table, once processes with a table each: what does sharing cost?
 */
#include "engine.h"
#include "workloads.h"

#define PIECE 512
#define PIECES 8

struct task_state {
	char path[32];
	char buf[PIECE];
};

static void begin(struct worker *w)
{
	struct task_state *s = calloc(1, sizeof(*s));

	if (!s)
		engine_die("calloc", ENOMEM);
	w->state = s;
	memset(s->buf, 'y', sizeof(s->buf));
	snprintf(s->path, sizeof(s->path), "d%u", w->index);
	engine_ok("mkdir", eng_mkdir(s->path, 0700));
	snprintf(s->path, sizeof(s->path), "d%u/f", w->index);
}

/* One turn: open, 8 writes, seek, 8 reads, close. */
static void turn(struct task_state *s)
{
	int fd = (int)engine_ok("open", eng_open(s->path, O_RDWR | O_CREAT, 0600));

	for (int i = 0; i < PIECES; i++)
		engine_ok("write", eng_write(fd, s->buf, PIECE));
	engine_ok("lseek", eng_lseek(fd, 0, SEEK_SET));
	for (int i = 0; i < PIECES; i++)
		if (engine_ok("read", eng_read(fd, s->buf, PIECE)) != PIECE)
			engine_die("short read", EIO);
	engine_ok("close", eng_close(fd));
}

static uint64_t step(struct worker *w)
{
	for (int i = 0; i < 16; i++)
		turn(w->state);
	return 16;
}

const struct workload threadperf_workloads[] = {
	{.name = "threadperf", .case_ = "threads", .unit = "op/s", .begin = begin, .step = step},
	{.name = "threadperf",
	 .case_ = "processes",
	 .unit = "op/s",
	 .begin = begin,
	 .step = step,
	 .processes = true},
	{.name = NULL},
};

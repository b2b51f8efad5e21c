/* SPDX-License-Identifier: MIT */
/* engine_shelf.c - a scratch shelf for one run of a benchmark program. */
#include "engine.h"

__thread struct shelf_task *engine_task;

static struct shelf *shelf;
static struct shelf_task *first_task, *child_task;
static char name[64];
static pid_t starter;

static void remove_at_exit(void)
{
	if (getpid() == starter && name[0])
		shelf_remove(name, NULL);
}

void engine_start(const struct engine_config *config)
{
	char why[SHELF_WHY];
	struct shelf_options options = {.size = config->size + config->size / 8 + (64UL << 20),
					.uid = (uint32_t)-1,
					.gid = (uint32_t)-1};

	starter = getpid();
	snprintf(name, sizeof(name), "bench.%d", (int)starter);
	if (shelf_create(name, &options, &shelf, why) < 0) {
		fprintf(stderr, "bench: %s\n", why);
		exit(1);
	}
	atexit(remove_at_exit);
	engine_ok("task", shelf_task_create(shelf, NULL, &first_task));
	shelf_task_setrlimit_nofile(first_task, 1 << 20);
	engine_task = first_task;
}

void engine_stop(void)
{
	remove_at_exit();
	name[0] = 0;
}

void engine_own_task(bool single_thread)
{
	engine_ok("task", shelf_task_create(shelf, NULL, &engine_task));
	if (single_thread)
		engine_ok("threads", shelf_task_set_threads(engine_task, 1));
}

void engine_own_table(void)
{
	engine_own_task(true);
}

void *engine_here(void)
{
	return engine_task;
}

void engine_join(void *task)
{
	engine_task = task;
}

void engine_before_fork(void)
{
	engine_ok("fork", shelf_task_fork(first_task, 0, &child_task));
}

void engine_after_fork(void)
{
	engine_ok("adopt", shelf_task_adopt(child_task));
	engine_ok("threads", shelf_task_set_threads(child_task, 1));
	engine_task = child_task;
}

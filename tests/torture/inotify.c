/* SPDX-License-Identifier: MIT */
/*
 * Watching under load: threads and processes make, move and remove files in two watched directories, while others put watches
 * on them and take them away.  One reader is the oracle: of each worker it hears every step, once, in order, and the two halves
 * of a move by one cookie.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mman.h>

#include <shelf/shelf.h>

#include "base/atomic.h"

enum { THREADS = 3, PROCESSES = 2, WORKERS = THREADS + PROCESSES, STEPS = 20000, AHEAD = 300, CHURNERS = 2 };

static struct shelf *shelf;
static struct shelf_task *task;
static char shelf_name[TEST_NAME_SIZE];
static unsigned long steps;

/* Of all processes. */
static struct shared {
	atomic_u64 seen[WORKERS]; /* steps that the reader has heard to their end */
	atomic_u32 done;
} *shared;

/* ---- who changes ---------------------------------------------------------------------------------- */

/* Four events a step; never so far ahead of the reader that the queue could be full. */
static void step(struct shelf_task *t, unsigned k, unsigned long n)
{
	char from[32], to[32];
	int fd;

	snprintf(from, sizeof(from), "/a/%u-%lu", k, n);
	snprintf(to, sizeof(to), "/b/%u-%lu", k, n);
	while (load_acquire(&shared->seen[k]) + AHEAD < n)
		sched_yield();
	fd = shelf_open(t, from, O_CREAT | O_EXCL | O_WRONLY, 0600);
	CHECK(fd >= 0 && !shelf_rename(t, from, to) && !shelf_close(t, fd) && !shelf_unlink(t, to));
}

static void *worker_thread(void *arg)
{
	unsigned k = *(unsigned *)arg;
	unsigned long n;

	for (n = 0; n < steps; n++)
		step(task, k, n);
	return NULL;
}

static int worker_process(void *arg)
{
	struct shelf_task *t;
	unsigned long n;

	CHECK(!shelf_task_create(shelf, &(struct shelf_cred){.caps = SHELF_CAP_ALL}, &t));
	for (n = 0; n < steps; n++)
		step(t, *(unsigned *)arg, n);
	return shelf_task_exit(t);
}

/* Watches come and go; what they hear is nobody's. */
static void *churn(void *arg)
{
	char buf[512];
	int in, wd;

	(void)arg;
	while (!load_acquire(&shared->done)) {
		in = shelf_inotify_init(task, IN_NONBLOCK);
		CHECK(in >= 0);
		wd = shelf_inotify_add_watch(task, in, "/a", IN_ALL_EVENTS);
		CHECK(wd == 1 && shelf_inotify_add_watch(task, in, "/b", IN_CREATE | IN_ONESHOT) == 2);
		CHECK(!shelf_inotify_rm_watch(task, in, wd));
		CHECK(shelf_read(task, in, buf, sizeof(buf)) > 0); /* at least that it is gone */
		CHECK(!shelf_close(task, in));
	}
	return NULL;
}

/* ---- who hears -------------------------------------------------------------------------------------- */

struct heard {
	unsigned long n; /* the step */
	unsigned part; /* of it: create, from, to, delete */
	uint32_t cookie;
};

static void hear(struct heard *all, const struct inotify_event *e)
{
	static const uint32_t parts[] = {IN_CREATE, IN_MOVED_FROM, IN_MOVED_TO, IN_DELETE};
	struct heard *h;
	unsigned long n;
	unsigned k;

	CHECK(sscanf(e->name, "%u-%lu", &k, &n) == 2 && k < WORKERS);
	h = &all[k];
	CHECK(n == h->n && e->mask == parts[h->part] && e->wd == (h->part < 2 ? 1 : 2));
	CHECK(h->part == 2 ? e->cookie == h->cookie && e->cookie : true);
	h->cookie = e->cookie;
	if (++h->part < 4)
		return;
	h->part = 0;
	h->n++;
	store_release(&shared->seen[k], h->n); /* pairs with step() */
}

static void read_all(int in)
{
	struct heard heard[WORKERS] = {{0}};
	_Alignas(8) char buf[4096];
	unsigned long left = steps * WORKERS * 4;
	ssize_t n, at;

	while (left) {
		n = shelf_read(task, in, buf, sizeof(buf));
		CHECK(n > 0);
		for (at = 0; at < n; left--) {
			const struct inotify_event *e = (const void *)(buf + at);

			hear(heard, e);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	}
}

static void each_change_is_heard_once_and_in_order(void **state)
{
	pthread_t thread[THREADS], churner[CHURNERS];
	unsigned number[WORKERS], k;
	pid_t pid[PROCESSES];
	int in;

	(void)state;
	CHECK(!shelf_mkdir(task, "/a", 0755) && !shelf_mkdir(task, "/b", 0755));
	in = shelf_inotify_init(task, 0);
	CHECK(shelf_inotify_add_watch(task, in, "/a", IN_CREATE | IN_MOVE | IN_DELETE) == 1);
	CHECK(shelf_inotify_add_watch(task, in, "/b", IN_CREATE | IN_MOVE | IN_DELETE) == 2);
	for (k = 0; k < WORKERS; k++)
		number[k] = k;
	for (k = 0; k < PROCESSES; k++)
		pid[k] = test_fork(worker_process, &number[THREADS + k]);
	for (k = 0; k < CHURNERS; k++)
		CHECK(!pthread_create(&churner[k], NULL, churn, NULL));
	for (k = 0; k < THREADS; k++)
		CHECK(!pthread_create(&thread[k], NULL, worker_thread, &number[k]));
	read_all(in);
	store_release(&shared->done, 1u);
	for (k = 0; k < THREADS; k++)
		CHECK(!pthread_join(thread[k], NULL));
	for (k = 0; k < CHURNERS; k++)
		CHECK(!pthread_join(churner[k], NULL));
	for (k = 0; k < PROCESSES; k++)
		CHECK(test_wait(pid[k]) == 0);
	assert_int_equal(shelf_check(shelf, NULL, NULL), 0);
}

static int setup(void **state)
{
	const struct shelf_options options = {.size = 64 << 20};

	(void)state;
	steps = test_scaled(STEPS);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	CHECK(!shelf_create(fresh_name(shelf_name), &options, &shelf, NULL));
	CHECK(!shelf_task_create(shelf, &(struct shelf_cred){.caps = SHELF_CAP_ALL}, &task));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	shelf_task_exit(task);
	shelf_remove(shelf_name, NULL);
	shelf_detach(shelf);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_change_is_heard_once_and_in_order),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

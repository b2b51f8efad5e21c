/* SPDX-License-Identifier: MIT */
/* crew.c - see crew.h.  Control words lie in a shared mapping, so that processes see them too. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "crew.h"
#include "engine.h"

struct seat {
	_Alignas(64) uint64_t done;
	uint64_t start_ns, end_ns;
	struct worker worker;
};

struct crew {
	_Alignas(64) atomic_uint ready;
	_Alignas(64) atomic_bool go;
	_Alignas(64) atomic_bool stop;
	const struct workload *wl;
	unsigned threads;
	struct seat seat[];
};

struct start {
	struct crew *crew;
	unsigned index;
	void *task;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void work(struct crew *crew, unsigned index)
{
	const struct workload *wl = crew->wl;
	struct seat *seat = &crew->seat[index];
	struct worker w = {.index = index, .random = 0x9e3779b97f4a7c15u * (index + 1)};
	uint64_t done = 0;

	if (wl->own_table)
		engine_own_table();
	if (wl->begin)
		wl->begin(&w);
	atomic_fetch_add(&crew->ready, 1);
	while (!atomic_load(&crew->go))
		sched_yield();
	seat->start_ns = now_ns();
	do {
		done += wl->step(&w);
	} while (!wl->bounded && !atomic_load_explicit(&crew->stop, memory_order_relaxed));
	seat->end_ns = now_ns();
	seat->done = done;
}

static void *thread_main(void *arg)
{
	struct start *s = arg;

	engine_join(s->task);
	work(s->crew, s->index);
	return NULL;
}

static void conduct(struct crew *crew, unsigned ms)
{
	while (atomic_load(&crew->ready) < crew->threads)
		usleep(200);
	atomic_store(&crew->go, true);
	if (!crew->wl->bounded) {
		usleep(ms * 1000);
		atomic_store(&crew->stop, true);
	}
}

static void run_threads(struct crew *crew, unsigned ms)
{
	pthread_t tid[crew->threads];
	struct start starts[crew->threads];

	for (unsigned i = 0; i < crew->threads; i++) {
		starts[i] = (struct start){crew, i, engine_here()};
		int err = pthread_create(&tid[i], NULL, thread_main, &starts[i]);

		if (err)
			engine_die("pthread_create", err);
	}
	conduct(crew, ms);
	for (unsigned i = 0; i < crew->threads; i++)
		pthread_join(tid[i], NULL);
}

static void child_main(struct crew *crew, unsigned index)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	engine_after_fork();
	work(crew, index);
	_exit(0);
}

static void run_processes(struct crew *crew, unsigned ms)
{
	pid_t pid[crew->threads];

	for (unsigned i = 0; i < crew->threads; i++) {
		engine_before_fork();
		pid[i] = fork();
		if (pid[i] < 0)
			engine_die("fork", errno);
		if (!pid[i])
			child_main(crew, i);
	}
	conduct(crew, ms);
	for (unsigned i = 0; i < crew->threads; i++) {
		int status;

		waitpid(pid[i], &status, 0);
		if (status)
			engine_die("a worker process failed", EIO);
	}
}

static double rate(const struct crew *crew)
{
	uint64_t first = UINT64_MAX, last = 0, total = 0;
	double sum = 0;

	for (unsigned i = 0; i < crew->threads; i++) {
		const struct seat *s = &crew->seat[i];

		first = s->start_ns < first ? s->start_ns : first;
		last = s->end_ns > last ? s->end_ns : last;
		total += s->done;
		sum += (double)s->done * 1e9 / (double)(s->end_ns - s->start_ns);
	}
	return crew->wl->bounded ? (double)total * 1e9 / (double)(last - first) : sum;
}

double crew_run(const struct workload *wl, unsigned threads, unsigned ms)
{
	size_t bytes = sizeof(struct crew) + threads * sizeof(struct seat);
	struct crew *crew =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double result;

	if (crew == MAP_FAILED)
		engine_die("mmap", errno);
	crew->wl = wl;
	crew->threads = threads;
	if (wl->processes)
		run_processes(crew, ms);
	else
		run_threads(crew, ms);
	result = rate(crew);
	munmap(crew, bytes);
	return result;
}

// SPDX-License-Identifier: MIT
/*
 * run_passthrough [RUNS]: what a system call costs when its site in libc has been rewritten.
 *
 * Runs itself once for each way a call can go, RUNS times in turn (15 unless given), and prints the
 * median and the least nanoseconds of getppid(), the instructions in user space, counted by single
 * steps, and how long attaching took.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 300000, WAYS = 5, RUNS_MAX = 1000, SERVED = -4711 /* what preload.c answers */ };

extern uint64_t run_bench_attach_ns __attribute__((weak));
extern uint32_t run_bench_sites __attribute__((weak)), run_bench_patched __attribute__((weak));

static const struct {
	const char *mode, *text;
} ways[WAYS] = {
	{NULL, "site as it was"},
	{"filter", "patched, number not wanted"},
	{"pass", "patched, handler passes"},
	{"serve", "patched, handler answers"},
	{"files", "only file calls patched"},
};

struct sample {
	double ns, attach_us;
	unsigned int steps, sites, patched;
};

static volatile unsigned int steps;

static void on_trap(int sig)
{
	(void)sig;
	steps++;
}

#define STEP(change)                                                                               \
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; " change                                 \
			 ", (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::                              \
				 : "memory", "cc")

static unsigned int count_steps(pid_t (*call)(void))
{
	struct sigaction sa = {.sa_handler = on_trap};

	sigaction(SIGTRAP, &sa, NULL);
	call();
	steps = 0;
	STEP("orq $0x100");
	call();
	STEP("andq $~0x100");
	return steps;
}

static pid_t nothing(void)
{
	return 0;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* One run of one way, in a process of its own; prints a line for the parent. */
static int child(void)
{
	pid_t (*volatile empty)(void) = nothing;
	double from, ns;

	from = now();
	for (int i = 0; i < CALLS; i++)
		getppid();
	ns = (now() - from) / CALLS;
	/* The empty function has two instructions; a call that the kernel makes swallows one stop. */
	printf("%f %f %u %u %u\n", ns, &run_bench_attach_ns ? (double)run_bench_attach_ns / 1e3 : 0,
	       count_steps(getppid) - count_steps(empty) + 2 + (getppid() != SERVED),
	       &run_bench_sites ? run_bench_sites : 0, &run_bench_patched ? run_bench_patched : 0);
	return 0;
}

static int run_way(const char *self, const char *preload, const char *mode, struct sample *s)
{
	char command[3000];
	FILE *from;
	int fields;

	snprintf(command, sizeof(command), "%s%s %s%s '%s' --child", mode ? "LD_PRELOAD=" : "",
		 mode ? preload : "", mode ? "RUN_BENCH=" : "", mode ? mode : "", self);
	from = popen(command, "r");
	if (!from)
		return -1;
	fields = fscanf(from, "%lf %lf %u %u %u", &s->ns, &s->attach_us, &s->steps, &s->sites,
			&s->patched);
	return pclose(from) == 0 && fields == 5 ? 0 : -1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_way(int way, const struct sample *s, int runs)
{
	static double ns[RUNS_MAX], attach[RUNS_MAX];

	for (int i = 0; i < runs; i++) {
		ns[i] = s[i].ns;
		attach[i] = s[i].attach_us;
	}
	qsort(ns, (size_t)runs, sizeof(*ns), by_value);
	qsort(attach, (size_t)runs, sizeof(*attach), by_value);
	printf("%-28s %9.1f %9.1f %8u", ways[way].text, ns[runs / 2], ns[0], s[0].steps);
	if (ways[way].mode)
		printf(" %9.0f %9.0f   %u of %u", attach[runs / 2], attach[0], s[0].patched,
		       s[0].sites);
	printf("\n");
}

int main(int argc, char **argv)
{
	static struct sample samples[WAYS][RUNS_MAX];
	char self[1024] = {0}, preload[1100], dir[] = "/tmp/shelf-sites.XXXXXX", clean[100];
	int runs = argc > 1 ? atoi(argv[1]) : 15;

	if (argc > 1 && !strcmp(argv[1], "--child"))
		return child();
	if (runs < 1 || runs > RUNS_MAX) {
		fprintf(stderr, "run_passthrough: RUNS is 1 to %d\n", RUNS_MAX);
		return 2;
	}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || !mkdtemp(dir))
		return 1;
	snprintf(preload, sizeof(preload), "%.*s/librun_bench.so", (int)(strrchr(self, '/') - self),
		 self);
	setenv("RUN_BENCH_TABLES", dir, 1);
	/* The first run of each makes the tables. */
	for (int i = -1; i < runs; i++)
		for (int way = 0; way < WAYS; way++)
			if (run_way(self, preload, ways[way].mode, &samples[way][i < 0 ? 0 : i])) {
				fprintf(stderr, "run_passthrough: %s: failed\n", ways[way].text);
				return 1;
			}
	printf("%-28s %9s %9s %8s %9s %9s   %s\n", "getppid, ns a call", "median", "least", "insns",
	       "attach us", "least", "sites patched");
	for (int way = 0; way < WAYS; way++)
		print_way(way, samples[way], runs);
	snprintf(clean, sizeof(clean), "rm -r %s", dir);
	return system(clean) != 0;
}

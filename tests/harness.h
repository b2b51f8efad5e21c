/* SPDX-License-Identifier: MIT */
/*
 * What the tests share, on top of cmocka: seeds, amounts of work, segment names, child processes.
 *
 *   SHELF_SEED        seed of the run; the time if unset. Printed, so that a failure can be repeated.
 *   SHELF_TEST_SCALE  factor on amounts of work, such as 20 or 0.1; 1 if unset.
 *
 * cmocka's assertions may be used in the thread that runs the test, and in the function given to
 * test_in_child (where they abort the child). Other threads use CHECK.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <cmocka.h>

enum {
	TEST_SKIP = 77, /* exit status of a skipped test program */
	TEST_NAME_SIZE = 64, /* room that fresh_name needs */
};

/* Ends the program unless COND holds. For any thread and any process. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: CHECK(%s) failed, errno %d\n", __FILE__, __LINE__, \
				#cond, errno);                                                     \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The seed of this run; printed the first time. Call it first from the main thread. */
static inline uint64_t test_seed(void)
{
	static uint64_t seed;
	const char *env;

	if (seed)
		return seed;
	env = getenv("SHELF_SEED");
	seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
	if (!seed)
		seed = 1;
	fprintf(stderr, "SHELF_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* The next number of the sequence in *state (splitmix64). Any start value will do. */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* N operations, times SHELF_TEST_SCALE, at least one. */
static inline unsigned long test_scaled(unsigned long n)
{
	const char *env = getenv("SHELF_TEST_SCALE");
	double scaled = (double)n * (env ? strtod(env, NULL) : 1.0);

	return scaled < 1.0 ? 1 : (unsigned long)scaled;
}

/* Writes to BUF a segment name that nothing else uses, and returns BUF. For the main thread. */
static inline char *fresh_name(char buf[static TEST_NAME_SIZE])
{
	static unsigned int count;
	static struct timespec start; /* a killed test leaves its segment, and pids come again */

	if (!start.tv_sec)
		clock_gettime(CLOCK_MONOTONIC, &start);
	snprintf(buf, TEST_NAME_SIZE, "test-%ld-%lx%08lx-%u", (long)getpid(), (unsigned long)start.tv_sec,
		 (unsigned long)start.tv_nsec, count++);
	return buf;
}

/* Leaves the program as skipped. */
static inline _Noreturn void test_skip(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
	exit(TEST_SKIP);
}

/* Waits for a child. Returns its exit status, or 128 plus the signal that ended it. */
static inline int test_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Starts FN(ARG) in a child process, whose exit status is what FN returns. Returns its pid. */
static inline pid_t test_fork(int (*fn)(void *), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		/* A failed assertion must not jump into the child's copy of the test runner. */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		int status = fn(arg);

		fflush(NULL);
		_exit(status);
	}
	return pid;
}

/* Runs FN(ARG) in a child process and returns its exit status as test_wait does. */
#define test_in_child(fn, arg) test_wait(test_fork((fn), (arg)))

#endif

// SPDX-License-Identifier: MIT
/*
 * A program that looks at itself from signal handlers while it makes calls; it prints the same with
 * and without patched sites.
 *
 *   steps unwind   stops at each instruction of a call into libc and unwinds from there to main
 *   steps cancel   cancels a thread that waits in read, asynchronously; its clean-up must run
 *   steps nest     stops at each instruction, and makes calls and uses the stack in the handler
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define TRAP_FLAG 0x100

static uintptr_t main_start, main_end;
static volatile unsigned int stops, lost;
static volatile int nested;

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *arg)
{
	uintptr_t ip = _Unwind_GetIP(context);

	if (ip >= main_start && ip < main_end)
		*(int *)arg = 1;
	return _URC_NO_REASON;
}

static void unwind_here(int sig)
{
	int found = 0;

	(void)sig;
	stops++;
	_Unwind_Backtrace(look, &found);
	lost += !found;
}

static void work_here(int sig)
{
	volatile char scratch[512];

	(void)sig;
	memset((char *)scratch, 0x5a, sizeof(scratch));
	stops++;
	nested = getppid();
	if (write(-1, (const char *)scratch, 1) != -1 || errno != EBADF)
		lost++;
}

#define STEP(on)                                                                                   \
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; " on "; popfq; lea 128(%%rsp), %%rsp" :: \
				 : "memory", "cc")
#define STEP_START "orq $0x100, (%%rsp)"
#define STEP_END "andq $~0x100, (%%rsp)"

/* Noinline, and not a tail call: this is the frame that the unwinder has to find. */
__attribute__((noinline)) static int stepped(void)
{
	int ppid;

	STEP(STEP_START);
	ppid = getppid();
	STEP(STEP_END);
	__asm__ volatile("" ::: "memory");
	return ppid;
}

static void catch (void (*handler)(int))
{
	struct sigaction sa = {.sa_handler = handler};

	sigaction(SIGTRAP, &sa, NULL);
}

static int run_steps(void (*handler)(int))
{
	int ppid = getppid(), got;

	unwind_here(0); /* loads what the unwinder needs */
	stops = lost = 0;
	catch (handler);
	got = stepped();
	printf("%s, %u lost\n", got == ppid ? "same" : "different", lost);
	fprintf(stderr, "stopped %u times\n", stops);
	return stops > 5 && !lost && got == ppid ? 0 : 1;
}

static int pipe_ends[2];
static volatile int cleaned;

static void clean_up(int *arg)
{
	cleaned += *arg;
}

static void *wait_in_read(void *arg)
{
	int mark __attribute__((cleanup(clean_up), unused)) = 1;
	char byte;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	if (write(pipe_ends[1], "", 1) != 1)
		return NULL;
	while (read(pipe_ends[0], &byte, 1) >= 0)
		;
	return arg;
}

static int run_cancel(void)
{
	void *result;
	pthread_t thread;

	if (pipe(pipe_ends) || pthread_create(&thread, NULL, wait_in_read, NULL))
		return 1;
	usleep(50000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("%s, clean-up ran %d times\n", result == PTHREAD_CANCELED ? "cancelled" : "ended",
	       cleaned);
	return result == PTHREAD_CANCELED && cleaned == 1 ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	main_start = (uintptr_t)main;
	main_end = main_start + 1024;
	if (!strcmp(what, "unwind"))
		return run_steps(unwind_here);
	if (!strcmp(what, "nest"))
		return run_steps(work_here);
	return run_cancel();
}

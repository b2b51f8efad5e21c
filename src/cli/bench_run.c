/* SPDX-License-Identifier: MIT */
/*
 * bench_run.c - takes the samples: for each run, for each group of rows, one call of
 * the engine's program.  The order of engines turns with the run, so that none
 * is always the first after a pause.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"

#define OUTPUT 1024

struct call {
	char program[4200], threads[16], ms[16], bytes[24], cases[256];
	char *argv[16];
};

static bool is_lookup(const struct bench_row *row)
{
	return !strcmp(row->workload, "fdget") && strncmp(row->case_, "pread", 5);
}

static void add_cases(const struct bench_plan *plan, unsigned group, char *out, size_t size)
{
	size_t n = 0;

	out[0] = 0;
	for (size_t i = 0; i < plan->rows && n < size; i++)
		if (plan->row[i].group == group)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "," : "",
					      plan->row[i].case_);
}

static void make_call(const struct bench_plan *plan, const struct bench_row *row, struct call *c)
{
	int n = 0;

	snprintf(c->program, sizeof(c->program), "%s/%s_%s", plan->programs,
		 is_lookup(row) ? "fdget" : "files", row->engine);
	snprintf(c->threads, sizeof(c->threads), "%u", row->threads);
	snprintf(c->ms, sizeof(c->ms), "%u", plan->ms);
	snprintf(c->bytes, sizeof(c->bytes), "%llu", (unsigned long long)plan->file_bytes);
	add_cases(plan, row->group, c->cases, sizeof(c->cases));
	c->argv[n++] = c->program;
	c->argv[n++] = (char *)"--case";
	c->argv[n++] = c->cases;
	c->argv[n++] = (char *)"--threads";
	c->argv[n++] = c->threads;
	c->argv[n++] = (char *)"--ms";
	c->argv[n++] = c->ms;
	if (!is_lookup(row)) {
		c->argv[n++] = (char *)"--workload";
		c->argv[n++] = (char *)row->workload;
		c->argv[n++] = (char *)"--file-bytes";
		c->argv[n++] = c->bytes;
	}
	if (plan->dir && !strcmp(row->engine, "tmpfs")) {
		c->argv[n++] = (char *)"--dir";
		c->argv[n++] = (char *)plan->dir;
	}
	c->argv[n] = NULL;
}

/* Runs the program; its standard output goes to out.  Its wait status, or -1 after a message. */
static int run_program(const struct call *c, char out[OUTPUT])
{
	int pipefd[2], status;
	size_t have = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(pipefd) < 0 || (pid = fork()) < 0) {
		cli_error("fork: %s", strerror(errno));
		return -1;
	}
	if (!pid) {
		dup2(pipefd[1], STDOUT_FILENO);
		close(pipefd[0]);
		close(pipefd[1]);
		execv(c->program, c->argv);
		fprintf(stderr, "shelf bench: %s: %s\n", c->program, strerror(errno));
		_exit(127);
	}
	close(pipefd[1]);
	while ((n = read(pipefd[0], out + have, OUTPUT - 1 - have)) > 0 ||
	       (n < 0 && errno == EINTR)) {
		if (n > 0)
			have += (size_t)n;
		else if (cli_interrupted())
			kill(pid, SIGTERM);
	}
	out[have] = 0;
	close(pipefd[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Lines "CASE RATE", or "rate RATE" from the lookup programs. */
static bool take_samples(struct bench_plan *plan, unsigned group, const char *out)
{
	for (size_t i = 0; i < plan->rows; i++) {
		struct bench_row *row = &plan->row[i];
		char word[40];
		const char *at = out;
		double v = 0;

		if (row->group != group)
			continue;
		snprintf(word, sizeof(word), "%s ", is_lookup(row) ? "rate" : row->case_);
		if (!(at = strstr(out, word)) || sscanf(at + strlen(word), "%lf", &v) != 1 ||
		    !(v > 0))
			return false;
		row->sample[row->samples++] = v;
	}
	return true;
}

static const struct bench_row *first_of(const struct bench_plan *plan, unsigned group)
{
	for (size_t i = 0; i < plan->rows; i++)
		if (plan->row[i].group == group)
			return &plan->row[i];
	return NULL;
}

static int sample_group(struct bench_plan *plan, unsigned run, unsigned group)
{
	const struct bench_row *row = first_of(plan, group);
	struct call call;
	char out[OUTPUT];
	int status;

	progress_show("run %u of %u, %u of %u: %s %s, %s, %u thread%s", run + 1, plan->runs,
		      group + 1, plan->groups, row->workload, row->case_, row->engine, row->threads,
		      row->threads == 1 ? "" : "s");
	make_call(plan, row, &call);
	status = run_program(&call, out);
	if (cli_interrupted())
		return cli_interrupted_status();
	if (status < 0)
		return EXIT_FAILED;
	if (status || !take_samples(plan, group, out)) {
		cli_error("%s ended with status %d%s and printed '%.200s': no result for %s %s",
			  call.program,
			  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			  WIFSIGNALED(status) ? " (signal)" : "", out, row->workload, call.cases);
		return EXIT_FAILED;
	}
	return 0;
}

int bench_run(struct bench_plan *plan)
{
	for (unsigned run = 0; run < plan->runs; run++)
		for (unsigned g = 0; g < plan->groups; g++) {
			/* odd runs go backwards: A B C, C B A, ... */
			int status = sample_group(plan, run, run & 1 ? plan->groups - 1 - g : g);

			if (status)
				return status;
		}
	progress_clear();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * bench_plot.c - a workload's cases as small panels of bars, drawn by gnuplot.
 *
 * The script goes in by a file and the picture comes back by a pipe.  Names from the file of results
 * get into the script only as letters, digits and a few signs, since a script can run programs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_report_file.h"
#include "cli.h"

#define COLUMNS 3u
#define PANEL_WIDTH 320u
#define PANEL_HEIGHT 240u

static void put_name(FILE *to, const char *name)
{
	for (; *name; name++) {
		char c = *name;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || (c && strchr("_-+./ ", c));

		fputc(plain ? c : '?', to);
	}
}

static void put_panel(FILE *to, const struct bench_plan *plan, const struct bench_row *first)
{
	unsigned bar = 0;

	fputs("$d << EOD\n", to);
	for (size_t i = 0; i < plan->rows; i++) {
		const struct bench_row *row = &plan->row[i];

		if (!bench_same_case(row, first))
			continue;
		fprintf(to, "%u \"", bar++);
		put_name(to, row->engine);
		fprintf(to, "\" %.6g %.6g\n", bench_mean(row), bench_stdev(row));
	}
	fputs("EOD\nset title '", to);
	put_name(to, first->case_);
	fprintf(to, ", %u thread%s'\nset ylabel '", first->threads, first->threads == 1 ? "" : "s");
	put_name(to, first->unit);
	fprintf(to,
		"'\nset xrange [-0.6:%u.6]\n"
		"plot $d using 1:3:xtic(2) with boxes fc rgb '#7a9cc6', "
		"$d using 1:3:4 with yerrorbars lc rgb '#222222' pt 0\n",
		bar - 1);
}

static unsigned count_panels(const struct bench_plan *plan, const char *workload)
{
	unsigned n = 0;

	for (size_t i = 0; i < plan->rows; i++)
		n += !strcmp(plan->row[i].workload, workload) && bench_first_of_case(plan, i);
	return n;
}

static void put_script(FILE *to, const struct bench_plan *plan, const char *workload)
{
	unsigned panels = count_panels(plan, workload);
	unsigned columns = panels < COLUMNS ? panels : COLUMNS;
	unsigned rows = (panels + columns - 1) / columns;

	fprintf(to,
		"set terminal svg size %u,%u dynamic noenhanced font 'sans-serif,11' background 'white'\n"
		"set multiplot layout %u,%u\n"
		"set boxwidth 0.7\nset style fill solid 1 noborder\nunset key\n"
		"set yrange [0:*]\nset format y '%%.1s%%c'\nset ytics nomirror\nset xtics rotate by -40 nomirror\n"
		"set border 3\nset grid ytics lc rgb '#dddddd'\n",
		columns * PANEL_WIDTH, rows * PANEL_HEIGHT, rows, columns);
	for (size_t i = 0; i < plan->rows; i++)
		if (!strcmp(plan->row[i].workload, workload) && bench_first_of_case(plan, i))
			put_panel(to, plan, &plan->row[i]);
	fputs("unset multiplot\n", to);
}

static void run_gnuplot(FILE *script, int out)
{
	dup2(fileno(script), STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	close(out);
	unsetenv("GNUPLOT_LIB");
	execlp("gnuplot", "gnuplot", "-d", (char *)NULL);
	_exit(127);
}

static char *read_all(int fd)
{
	size_t used = 0, room = 0;
	char *text = NULL;
	ssize_t n = 1;

	while (n > 0 || (n < 0 && errno == EINTR && !cli_interrupted())) {
		if (used + 1 >= room) {
			char *more = realloc(text, room = room ? room * 2 : 65536);

			if (!more)
				break;
			text = more;
		}
		n = read(fd, text + used, room - used - 1);
		if (n > 0)
			used += (size_t)n;
	}
	if (text)
		text[used] = 0;
	return text;
}

/* What gnuplot prints for the script; NULL with *why. */
static char *draw(FILE *script, const char **why)
{
	int ends[2], status = 0;
	char *text;
	pid_t pid;

	*why = "no process could be started";
	if (pipe(ends) < 0)
		return NULL;
	pid = fork();
	if (!pid) {
		close(ends[0]);
		run_gnuplot(script, ends[1]);
	}
	close(ends[1]);
	text = pid > 0 ? read_all(ends[0]) : NULL;
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (text && !status)
		return text;
	if (pid > 0)
		*why = WIFEXITED(status) && WEXITSTATUS(status) == 127 ?
			       "gnuplot is not installed" :
			       "gnuplot failed";
	free(text);
	return NULL;
}

char *bench_plot(const struct bench_plan *plan, const char *workload, const char **why)
{
	FILE *script = tmpfile();
	char *text, *svg;

	*why = "no temporary file could be made";
	if (!script)
		return NULL;
	put_script(script, plan, workload);
	fflush(script);
	rewind(script);
	text = draw(script, why);
	fclose(script);
	svg = text ? strstr(text, "<svg") : NULL;
	if (svg) /* the XML declaration before it has no place inside a page */
		memmove(text, svg, strlen(svg) + 1);
	else if (text)
		*why = "gnuplot drew nothing";
	if (!svg) {
		free(text);
		text = NULL;
	}
	return text;
}

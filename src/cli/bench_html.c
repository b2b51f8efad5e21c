/* SPDX-License-Identifier: MIT */
/* bench_html.c - `shelf bench report`: files of results as one page that needs nothing else. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report_file.h"
#include "cli.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<title>shelf bench</title>\n<style>\n"
	"body { font: 15px/1.45 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; }\n"
	"h1 { font-size: 1.5em; } h2 { font-size: 1.25em; margin-top: 2em; } h3 { font-size: 1em; }\n"
	"table { border-collapse: collapse; margin: 0.5em 0 1.5em; }\n"
	"th, td { padding: 0.15em 0.8em; text-align: right; border-bottom: 1px solid #ddd; }\n"
	"th:first-child, td:first-child { text-align: left; }\n"
	"td { font-variant-numeric: tabular-nums; }\n"
	".machine { color: #555; } svg { max-width: 100%; height: auto; }\n"
	"</style></head><body>\n<h1>shelf bench</h1>\n"
	"<p>Higher is better. Each figure is the mean of its samples; the bars and the column "
	"&plusmn; are their standard deviation. Ratios compare means of one run.</p>\n";

bool bench_same_case(const struct bench_row *a, const struct bench_row *b)
{
	return !strcmp(a->workload, b->workload) && !strcmp(a->case_, b->case_) &&
	       a->threads == b->threads;
}

bool bench_first_of_case(const struct bench_plan *plan, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (bench_same_case(&plan->row[i], &plan->row[row]))
			return false;
	return true;
}

bool bench_first_of_workload(const struct bench_plan *plan, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (!strcmp(plan->row[i].workload, plan->row[row].workload))
			return false;
	return true;
}

static void put_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", to);
		else if (*text == '<')
			fputs("&lt;", to);
		else if (*text == '>')
			fputs("&gt;", to);
		else
			fputc(*text, to);
	}
}

static void put_ratio(FILE *to, const struct bench_plan *plan, const struct bench_row *row,
		      const char *engine)
{
	double base = 0;

	for (size_t i = 0; i < plan->rows; i++)
		if (bench_same_case(&plan->row[i], row) && !strcmp(plan->row[i].engine, engine))
			base = bench_mean(&plan->row[i]);
	if (base > 0)
		fprintf(to, "<td>%.2f</td>", bench_mean(row) / base);
	else
		fputs("<td>-</td>", to);
}

static void put_row(FILE *to, const struct bench_plan *plan, const struct bench_row *row)
{
	const char *format = bench_mean(row) < 1000 ? "<td>%.2f</td><td>%.2f</td>" :
						      "<td>%.0f</td><td>%.0f</td>";

	fputs("<tr><td>", to);
	put_text(to, row->engine);
	fputs("</td>", to);
	fprintf(to, format, bench_mean(row), bench_stdev(row));
	fprintf(to, "<td>%u</td>", row->samples);
	put_ratio(to, plan, row, "spinlock");
	put_ratio(to, plan, row, "tmpfs");
	fputs("</tr>\n", to);
}

static void put_table(FILE *to, const struct bench_plan *plan, const struct bench_row *first)
{
	fputs("<h3>", to);
	put_text(to, first->case_);
	fprintf(to, ", %u thread%s</h3>\n<table><tr><th>engine</th><th>", first->threads,
		first->threads == 1 ? "" : "s");
	put_text(to, first->unit);
	fputs("</th><th>&plusmn;</th><th>samples</th><th>/ spinlock</th><th>/ tmpfs</th></tr>\n",
	      to);
	for (size_t i = 0; i < plan->rows; i++)
		if (bench_same_case(&plan->row[i], first))
			put_row(to, plan, &plan->row[i]);
	fputs("</table>\n", to);
}

static void put_workload(FILE *to, const struct bench_plan *plan, const char *workload)
{
	const char *why;
	char *svg = bench_plot(plan, workload, &why);

	fputs("<h2>", to);
	put_text(to, workload);
	fputs("</h2>\n", to);
	if (svg)
		fputs(svg, to);
	else
		fprintf(to, "<p>There is no plot here: %s. The tables have all figures.</p>\n",
			why);
	free(svg);
	for (size_t i = 0; i < plan->rows; i++)
		if (!strcmp(plan->row[i].workload, workload) && bench_first_of_case(plan, i))
			put_table(to, plan, &plan->row[i]);
}

static void put_file(FILE *to, const struct bench_file *file)
{
	fputs("<p class=\"machine\">", to);
	put_text(to, file->path);
	fputs("<br>", to);
	put_text(to, *file->machine ? file->machine : "the file does not say on what machine");
	fputs("</p>\n", to);
	for (size_t i = 0; i < file->plan.rows; i++)
		if (bench_first_of_workload(&file->plan, i)) {
			progress_show("%s: %s", file->path, file->plan.row[i].workload);
			put_workload(to, &file->plan, file->plan.row[i].workload);
		}
}

static int write_page(const struct bench_file *file, int files, const char *path)
{
	FILE *to = strcmp(path, "-") ? fopen(path, "we") : stdout;
	bool bad;

	if (!to) {
		cli_error("%s: open: %s", path, strerror(errno));
		return EXIT_FAILED;
	}
	fputs(head, to);
	for (int i = 0; i < files; i++)
		put_file(to, &file[i]);
	fputs("</body></html>\n", to);
	bad = fflush(to) || ferror(to);
	if (to != stdout)
		bad |= fclose(to) != 0;
	progress_clear();
	if (bad)
		cli_error("%s: write: %s", path, strerror(errno));
	return bad ? EXIT_FAILED : EXIT_OK;
}

int bench_html(int argc, char **argv)
{
	static const struct option options[] = {{"output", required_argument, NULL, 'o'},
						{NULL, 0, NULL, 0}};
	const char *out = NULL;
	struct bench_file *file;
	int c, files, status = EXIT_OK;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (c != 'o')
			return cli_bad_option(argc, argv);
		out = optarg;
	}
	files = argc - optind;
	if (!files || !out)
		return cli_usage(files ? "-o FILE is wanted: where the page goes" :
					 "files of `shelf bench --json` are wanted");
	file = calloc((size_t)files, sizeof(*file));
	if (!file) {
		cli_error("out of memory");
		return EXIT_FAILED;
	}
	for (int i = 0; i < files && !status; i++)
		status = bench_file_read(&file[i], argv[optind + i]);
	if (!status)
		status = write_page(file, files, out);
	for (int i = 0; i < files; i++)
		bench_file_free(&file[i]);
	free(file);
	return status;
}

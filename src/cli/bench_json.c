/* SPDX-License-Identifier: MIT */
/*
 * bench_json.c - reads what bench_write_json writes: strict JSON, known shape, fixed sizes.
 *
 * A recursive reader of the grammar; values of unknown keys are checked and skipped.  The first fault
 * is kept with its line, and all readers return false from then on.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report_file.h"
#include "cli.h"

#define FILE_LIMIT (64u << 20)
#define DEPTH_LIMIT 32
#define ROW_LIMIT 4096u

struct reader {
	const char *at, *end;
	unsigned line, depth;
	bool bad;
	char fault[160];
	struct bench_file *file;
	struct bench_row *row;
};

static bool __attribute__((format(printf, 2, 3))) fault(struct reader *r, const char *format, ...)
{
	va_list args;

	if (r->bad)
		return false;
	r->bad = true;
	va_start(args, format);
	vsnprintf(r->fault, sizeof(r->fault), format, args);
	va_end(args);
	return false;
}

/* ---- tokens ------------------------------------------------------------------------------- */

static char peek(struct reader *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
		r->line += *r->at++ == '\n';
	return r->at < r->end ? *r->at : 0;
}

static bool accept(struct reader *r, char c)
{
	if (peek(r) != c || r->at == r->end)
		return false;
	r->at++;
	return true;
}

static bool expect(struct reader *r, char c)
{
	return accept(r, c) || fault(r, "'%c' is wanted", c);
}

static bool read_hex(struct reader *r, unsigned *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++, r->at++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = r->at < r->end && *r->at ? strchr(digits, *r->at | 32) : NULL;

		if (!d)
			return fault(r, "four hexadecimal digits are wanted after \\u");
		*out = *out * 16 + (unsigned)(d - digits);
	}
	return true;
}

/* Into UTF-8; halves of surrogate pairs, which we never write, become U+FFFD. */
static size_t put_utf8(unsigned c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)(c ? c : '?');
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	out[0] = (char)(0xe0 | c >> 12);
	out[1] = (char)(0x80 | (c >> 6 & 0x3f));
	out[2] = (char)(0x80 | (c & 0x3f));
	return 3;
}

static bool read_escape(struct reader *r, char piece[4], size_t *n)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = r->at < r->end ? *r->at++ : 0;
	const char *s = c ? strchr(from, c) : NULL;
	unsigned code;

	*n = 1;
	if (s) {
		piece[0] = to[s - from];
		return true;
	}
	if (c != 'u')
		return fault(r, "a backslash is followed by something unknown");
	if (!read_hex(r, &code))
		return false;
	*n = put_utf8(code, piece);
	return true;
}

/* A string of less than `size` bytes; out NULL: any, not kept. */
static bool read_string(struct reader *r, char *out, size_t size)
{
	size_t used = 0, n;
	char piece[4];

	if (!accept(r, '"'))
		return fault(r, "a string is wanted");
	while (r->at < r->end && *r->at != '"') {
		if ((unsigned char)*r->at < 0x20)
			return fault(r, "a control character in a string");
		n = 1;
		piece[0] = *r->at++;
		if (piece[0] == '\\' && !read_escape(r, piece, &n))
			return false;
		if (out && used + n >= size)
			return fault(r, "a string is longer than %zu bytes", size - 1);
		if (out)
			memcpy(out + used, piece, n);
		used += n;
	}
	if (out)
		out[used] = 0;
	return accept(r, '"') || fault(r, "a string does not end");
}

static bool digits(const char **s, const char *end)
{
	const char *from = *s;

	while (*s < end && **s >= '0' && **s <= '9')
		++*s;
	return *s > from;
}

static bool read_number(struct reader *r, double *out)
{
	const char *s, *from;
	char text[64];

	peek(r);
	s = from = r->at;
	s += s < r->end && *s == '-';
	from = s;
	if (!digits(&s, r->end) || (*from == '0' && s > from + 1))
		return fault(r, "a number is wanted");
	if (s < r->end && *s == '.' && (s++, !digits(&s, r->end)))
		return fault(r, "digits are wanted after '.'");
	if (s < r->end && (*s == 'e' || *s == 'E')) {
		s++;
		s += s < r->end && (*s == '+' || *s == '-');
		if (!digits(&s, r->end))
			return fault(r, "digits are wanted after 'e'");
	}
	if ((size_t)(s - r->at) >= sizeof(text))
		return fault(r, "a number is too long");
	memcpy(text, r->at, (size_t)(s - r->at));
	text[s - r->at] = 0;
	*out = strtod(text, NULL);
	r->at = s;
	return isfinite(*out) || fault(r, "a number is too large");
}

/* ---- values ---------------------------------------------------------------------------------- */

typedef bool member_fn(struct reader *r, const char *key);

static bool read_object(struct reader *r, member_fn *member)
{
	char key[64];

	if (++r->depth > DEPTH_LIMIT)
		return fault(r, "nested too deeply");
	if (!expect(r, '{'))
		return false;
	if (!accept(r, '}')) {
		do
			if (!read_string(r, key, sizeof(key)) || !expect(r, ':') || !member(r, key))
				return false;
		while (accept(r, ','));
		if (!expect(r, '}'))
			return false;
	}
	r->depth--;
	return true;
}

typedef bool element_fn(struct reader *r);

static bool read_array(struct reader *r, element_fn *element)
{
	if (++r->depth > DEPTH_LIMIT)
		return fault(r, "nested too deeply");
	if (!expect(r, '['))
		return false;
	if (!accept(r, ']')) {
		do
			if (!element(r))
				return false;
		while (accept(r, ','));
		if (!expect(r, ']'))
			return false;
	}
	r->depth--;
	return true;
}

static bool skip_member(struct reader *r, const char *key);

static bool skip_value(struct reader *r)
{
	static const char *const words[] = {"true", "false", "null"};
	double number;
	char c = peek(r);

	if (c == '{')
		return read_object(r, skip_member);
	if (c == '[')
		return read_array(r, skip_value);
	if (c == '"')
		return read_string(r, NULL, 0);
	for (int i = 0; i < 3; i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(r->end - r->at) >= n && !memcmp(r->at, words[i], n)) {
			r->at += n;
			return true;
		}
	}
	return read_number(r, &number);
}

static bool skip_member(struct reader *r, const char *key)
{
	(void)key;
	return skip_value(r);
}

/* ---- the shape ----------------------------------------------------------------------------------- */

static bool machine_member(struct reader *r, const char *key)
{
	char value[256], *line = r->file->machine;
	size_t used = strlen(line), room = sizeof(r->file->machine) - used;
	double number;

	if (peek(r) == '"') {
		if (!read_string(r, value, sizeof(value)))
			return false;
	} else if (!read_number(r, &number)) {
		return false;
	} else {
		snprintf(value, sizeof(value), "%.15g", number);
	}
	if (snprintf(line + used, room, "%s%s: %s", used ? ", " : "", key, value) >= (int)room)
		return fault(r, "the machine line is too long");
	return true;
}

static bool sample(struct reader *r)
{
	double value;

	if (!read_number(r, &value))
		return false;
	if (value < 0)
		return fault(r, "a sample is negative");
	if (r->row->samples == BENCH_MAX_RUNS)
		return fault(r, "more than %d samples", BENCH_MAX_RUNS);
	r->row->sample[r->row->samples++] = value;
	return true;
}

static bool row_member(struct reader *r, const char *key)
{
	struct bench_row *row = r->row;
	double number;

	if (!strcmp(key, "workload"))
		return read_string(r, row->workload, sizeof(row->workload));
	if (!strcmp(key, "case"))
		return read_string(r, row->case_, sizeof(row->case_));
	if (!strcmp(key, "engine"))
		return read_string(r, row->engine, sizeof(row->engine));
	if (!strcmp(key, "unit"))
		return read_string(r, row->unit, sizeof(row->unit));
	if (!strcmp(key, "samples") && !row->samples)
		return read_array(r, sample);
	if (strcmp(key, "threads"))
		return skip_value(r);
	if (!read_number(r, &number))
		return false;
	if (number < 1 || number > 1e6 || number != floor(number))
		return fault(r, "\"threads\": a whole number from 1 is wanted");
	row->threads = (unsigned)number;
	return true;
}

static bool result(struct reader *r)
{
	if (r->file->plan.rows == ROW_LIMIT)
		return fault(r, "more than %u results", ROW_LIMIT);
	r->row = bench_plan_add_row(&r->file->plan);
	if (!r->row)
		return fault(r, "out of memory");
	if (!read_object(r, row_member))
		return false;
	if (!*r->row->workload || !*r->row->case_ || !*r->row->engine || !r->row->threads ||
	    !r->row->samples)
		return fault(r, "a result lacks workload, case, engine, threads or samples");
	return true;
}

static bool top_member(struct reader *r, const char *key)
{
	if (!strcmp(key, "machine") && !*r->file->machine)
		return read_object(r, machine_member);
	if (!strcmp(key, "results"))
		return read_array(r, result);
	return skip_value(r);
}

static int parse(struct bench_file *file, const char *text, size_t size)
{
	struct reader r = {.at = text, .end = text + size, .line = 1, .file = file};

	if (read_object(&r, top_member) && (peek(&r) || r.at < r.end))
		fault(&r, "something follows the end");
	if (!r.bad && !file->plan.rows)
		fault(&r, "there are no results");
	if (!r.bad)
		return EXIT_OK;
	cli_error("%s: line %u: %s; files that `shelf bench --json` wrote are wanted", file->path,
		  r.line, r.fault);
	return EXIT_FAILED;
}

int bench_file_read(struct bench_file *file, const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t size = 0, room = 0, n = 1;
	int status;

	memset(file, 0, sizeof(*file));
	file->path = path;
	while (f && n && size <= FILE_LIMIT) {
		if (size == room) {
			char *more = realloc(text, room = room ? room * 2 : 65536);

			if (!more)
				break;
			text = more;
		}
		size += n = fread(text + size, 1, room - size, f);
	}
	if (!f || ferror(f) || n) {
		cli_error("%s: read: %s", path,
			  f && !ferror(f) ? "more than 64 MiB: no results of a benchmark" :
					    strerror(errno));
		status = EXIT_FAILED;
	} else {
		status = parse(file, text, size);
	}
	if (f)
		fclose(f);
	free(text);
	return status;
}

void bench_file_free(struct bench_file *file)
{
	bench_plan_free(&file->plan);
}

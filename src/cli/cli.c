/* SPDX-License-Identifier: MIT */
/* cli.c - messages, sizes, progress, interruption, JSON strings: see cli.h. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct command *cli_current;

/* Names of files come here as they are: nothing in them may steer a terminal. */
static void defuse(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

static void vmessage(const char *format, va_list args)
{
	char text[8192];

	vsnprintf(text, sizeof(text), format, args);
	defuse(text);
	progress_clear();
	fflush(stdout);
	fprintf(stderr, "shelf%s%s: %s\n", cli_current ? " " : "",
		cli_current ? cli_current->name : "", text);
}

void cli_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vmessage(format, args);
	va_end(args);
}

int cli_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vmessage(format, args);
	va_end(args);
	fprintf(stderr, "Try `shelf %s --help`.\n", cli_current ? cli_current->name : "");
	return EXIT_USAGE;
}

int cli_bad_option(int argc, char **argv)
{
	extern int optind, optopt;
	const char *word = optind > 1 && optind <= argc ? argv[optind - 1] : "";

	if (optopt && strncmp(word, "--", 2))
		return cli_usage("option -%c is not known or wants a value", optopt);
	if (optopt)
		return cli_usage(strchr(word, '=') ? "option %s: no value is wanted" :
						     "option %s: a value is wanted",
				 word);
	return cli_usage("option %s is not known", word);
}

bool cli_parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || end == text || strchr("+- \t", text[0]) || v < min || v > max)
		return false;
	*out = v;
	return true;
}

void cli_format_size(uint64_t bytes, char out[16])
{
	static const char units[] = "BKMGTPE";
	double v = (double)bytes;
	int u = 0;

	for (; v >= 1024 && units[u + 1]; u++)
		v /= 1024;
	snprintf(out, 16, v < 10 && u ? "%.1f%c" : "%.0f%c", v, units[u]);
}

/* ---- shelves ----------------------------------------------------------------------- */

/* SHELF_RUN ends in :NAME/PREFIX. */
static bool runs_on(const char *name)
{
	const char *run = getenv("SHELF_RUN"), *at = run ? strchr(run, ':') : NULL;
	size_t n = strlen(name);

	return at && !strncmp(at + 1, name, n) && at[1 + n] == '/';
}

/* It stands in the shelf or has a file of it open, so the shelf is mapped, and cannot be a second time. */
int cli_attach(const char *name, unsigned flags, struct shelf **out, char why[SHELF_WHY])
{
	int err = shelf_attach(name, flags, out, why);

	if (err == -EADDRINUSE && runs_on(name))
		snprintf(why, SHELF_WHY, "%.100s: in use here by `shelf run`: leave it (cd /) and close its files, or ask outside of the run",
			 name);
	return err;
}

/* ---- progress ---------------------------------------------------------------------- */

static bool shown;
static struct timespec started, last;

static double seconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) + (double)(now.tv_nsec - from->tv_nsec) / 1e9;
}

void progress_show(const char *format, ...)
{
	static int terminal = -1;
	char text[512];
	va_list args;

	if (terminal < 0)
		terminal = isatty(STDERR_FILENO);
	if (!terminal)
		return;
	if (!started.tv_sec)
		clock_gettime(CLOCK_MONOTONIC, &started);
	if (seconds_since(&started) < 1 || seconds_since(&last) < 0.1)
		return;
	clock_gettime(CLOCK_MONOTONIC, &last);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	defuse(text);
	fprintf(stderr, "\r%s\033[K", text);
	fflush(stderr);
	shown = true;
}

void progress_clear(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
}

/* ---- interruption ------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	if (interrupted)
		_exit(128 + sig); /* asked twice */
	interrupted = sig;
}

void cli_catch_interrupts(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

bool cli_interrupted(void)
{
	return interrupted != 0;
}

int cli_interrupted_status(void)
{
	progress_clear();
	cli_error("interrupted");
	return 128 + interrupted;
}

/* ---- JSON ----------------------------------------------------------------------------- */

/* Length of a well-formed UTF-8 sequence at s, 0 if there is none. */
static int utf8_length(const unsigned char *s)
{
	int n = s[0] < 0x80		    ? 1 :
		s[0] >= 0xc2 && s[0] < 0xe0 ? 2 :
		s[0] >= 0xe0 && s[0] < 0xf0 ? 3 :
		s[0] >= 0xf0 && s[0] < 0xf5 ? 4 :
					      0;

	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void json_string(FILE *to, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', to);
	while (*s) {
		int n = utf8_length(s);

		if (!n) {
			fputs("\\ufffd", to);
			s++;
		} else if (n > 1) {
			fwrite(s, 1, (size_t)n, to);
			s += n;
		} else {
			if (*s < 0x20 || *s == 0x7f)
				fprintf(to, "\\u%04x", *s);
			else if (*s == '"' || *s == '\\')
				fprintf(to, "\\%c", *s);
			else
				fputc(*s, to);
			s++;
		}
	}
	fputc('"', to);
}

/* ---- where shelves lie ----------------------------------------------------------------------- */

const char *cli_shm_dir(void)
{
	const char *dir = secure_getenv("SHELF_SHM_DIR");

	return dir && *dir ? dir : "/dev/shm";
}

/* SPDX-License-Identifier: MIT */
/* options.c - the options of `shelf run`, as getopt_long() reads them: up to the program's name. */
#include <string.h>

#include "base/base.h"
#include "cli/size.h"
#include "front.h"

enum option { NAME, SIZE, AT, STRICT, OPTIONS };

static const struct {
	const char *name;
	bool value;
} options[OPTIONS] = {
	[NAME] = {"name", true},
	[SIZE] = {"size", true},
	[AT] = {"at", true},
	[STRICT] = {"strict", false},
};

/* By its name, or the beginning of just one; OPTIONS: none. */
static enum option find_option(const char *word, size_t len)
{
	enum option found = OPTIONS;
	unsigned many = 0;

	for (unsigned i = 0; i < OPTIONS; i++) {
		if (strncmp(options[i].name, word, len))
			continue;
		found = (enum option)i;
		if (!options[i].name[len])
			return found;
		many++;
	}
	return many == 1 ? found : OPTIONS;
}

static int take_option(struct run *r, enum option o, const char *value)
{
	switch (o) {
	case NAME:
		r->name = value;
		r->keep = true;
		break;
	case AT:
		r->at = value;
		break;
	case STRICT:
		r->strict = true;
		break;
	default:
		if (!cli_parse_size(value, &r->options.size))
			return front_usage("--size '%s': a size such as 512M, 4G or 25%% is wanted", value);
	}
	return EXIT_OK;
}

/* A word that begins with "--", and the next one if that is its value. */
static int take_long(struct run *r, char ***argv)
{
	const char *word = **argv, *equals = strchr(word, '=');
	enum option o = find_option(word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2));

	if (o == OPTIONS)
		return front_usage("option %s is not known", word);
	if (equals && !options[o].value)
		return front_usage("option %s: no value is wanted", word);
	if (options[o].value && !equals && !*++*argv) {
		--*argv;
		return front_usage("option %s: a value is wanted", word);
	}
	return take_option(r, o, equals ? equals + 1 : **argv);
}

int front_options(struct run *r, char **argv)
{
	int status = EXIT_OK;

	for (argv++; *argv && (*argv)[0] == '-' && (*argv)[1]; argv++) {
		if (!strcmp(*argv, "--")) {
			argv++;
			break;
		}
		if ((*argv)[1] != '-')
			return front_usage("option -%c is not known or wants a value", (*argv)[1]);
		status = take_long(r, &argv);
		if (status != EXIT_OK)
			return status;
	}
	r->argv = argv;
	return *argv ? EXIT_OK : front_usage("a program is wanted");
}

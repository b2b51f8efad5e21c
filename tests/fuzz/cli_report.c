/* SPDX-License-Identifier: MIT */
/* `shelf bench report FILE -o OUT` on any bytes: a page, or a message that names what is wrong. */
#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>

#include "cli/cli.h"
#include "fuzz.h"

static int run(int argc, char **argv)
{
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY), status;

	CHECK(saved >= 0 && null >= 0);
	fflush(NULL);
	if (!getenv("FUZZ_VERBOSE"))
		dup2(null, STDERR_FILENO);
	optind = 0;
	cli_current = &command_bench;
	status = command_bench.run(argc, argv);
	fflush(NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char in_path[64], out_path[64];
	char *argv[] = {(char *)"bench", (char *)"report", in_path, (char *)"-o", out_path, NULL};
	int in = memfd_create("samples", 0), out = memfd_create("report", 0), status;

	CHECK(in >= 0 && out >= 0 && write(in, data, size) == (ssize_t)size);
	snprintf(in_path, sizeof(in_path), "/proc/self/fd/%d", in);
	snprintf(out_path, sizeof(out_path), "/proc/self/fd/%d", out);
	status = run(5, argv);
	CHECK(status == EXIT_OK || status == EXIT_FAILED);
	close(in);
	close(out);
	return 0;
}

size_t fuzz_example(unsigned k, uint8_t *out, size_t room)
{
	static const char *const texts[] = {
		"{\"machine\":{\"cpu\":\"a \\\"b\\\" \\u00e9\",\"cores\":2,\"memory_mib\":24000,\"kernel\":\"6.1\","
		"\"compiler\":\"12\",\"flags\":\"-O2\",\"commit\":\"abc\"},\n\"results\":[\n"
		"{\"workload\":\"fdget\",\"case\":\"shared\",\"engine\":\"borrow\",\"threads\":1,\"unit\":\"op/s\","
		"\"samples\":[1e8,1.1e+08],\"mean\":1.05e8,\"stdev\":7e6},\n"
		"{\"workload\":\"fdget\",\"case\":\"shared\",\"engine\":\"spinlock\",\"threads\":2,\"unit\":\"op/s\","
		"\"samples\":[-1,0.5],\"mean\":0,\"stdev\":1}\n]}\n",
		"{\"machine\":{},\"results\":[]}",
		"{\"results\":[{\"samples\":[[[[{}]]]]}, null, true, 1e999]}",
	};

	if (k >= sizeof(texts) / sizeof(texts[0]) || strlen(texts[k]) > room)
		return 0;
	memcpy(out, texts[k], strlen(texts[k]));
	return strlen(texts[k]);
}

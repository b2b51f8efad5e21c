/* SPDX-License-Identifier: MIT */
/*
 * `shelf put NAME ARCHIVE` on any bytes: it says what is wrong with them or copies what is there, nothing
 * reaches out of the shelf, and the shelf has no faults afterwards.
 */
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "fuzz.h"

static char name[TEST_NAME_SIZE];

static void remove_shelf(void)
{
	shelf_remove(name, NULL);
}

static void say_fault(void *ctx, const char *fault)
{
	(void)ctx;
	fprintf(stderr, "shelf check: %s\n", fault);
}

/* Errors are expected by the thousand; they go to /dev/null unless FUZZ_VERBOSE is set. */
static int run(int argc, char **argv)
{
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY), status;

	CHECK(saved >= 0 && null >= 0);
	fflush(NULL);
	if (!getenv("FUZZ_VERBOSE"))
		dup2(null, STDERR_FILENO);
	optind = 0;
	cli_current = &command_put;
	status = command_put.run(argc, argv);
	fflush(NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	return status;
}

static void check_shelf(void)
{
	struct shelf_counters counters;
	struct shelf *shelf;

	CHECK(!shelf_attach(name, 0, &shelf, NULL));
	CHECK(!shelf_counters(shelf, &counters) && !counters.files_open && !counters.tasks);
	CHECK(shelf_check(shelf, say_fault, NULL) == 0);
	shelf_detach(shelf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct shelf_options options = {.size = 8 << 20};
	char path[64], *argv[] = {(char *)"put", name, path, NULL};
	int fd = memfd_create("archive", 0), status;
	struct shelf *shelf;

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!name[0])
		atexit(remove_shelf);
	CHECK(!shelf_create(fresh_name(name), &options, &shelf, NULL));
	shelf_detach(shelf);
	status = run(3, argv);
	CHECK(status == EXIT_OK || status == EXIT_FAILED);
	check_shelf();
	remove_shelf();
	close(fd);
	return 0;
}

/* ---- good archives to start from ---------------------------------------------------------- */

static const struct sample {
	const char *path, *link, *hard, *data;
	mode_t mode;
} samples[] = {
	{"d", NULL, NULL, NULL, S_IFDIR | 0755},
	{"d/file", NULL, NULL, "some text", S_IFREG | 0644},
	{"d/link", "file", NULL, NULL, S_IFLNK | 0777},
	{"d/hard", NULL, "d/file", NULL, S_IFREG | 0644},
	{"d/fifo", NULL, NULL, NULL, S_IFIFO | 0600},
	{"out", "../../tmp", NULL, NULL, S_IFLNK | 0777},
	{"out/x", NULL, NULL, "must not get there", S_IFREG | 04755},
	{"../up", NULL, NULL, "nor there", S_IFREG | 0644},
	{"/abs", NULL, NULL, "nor there", S_IFREG | 0644},
};

static void add_sample(struct archive *a, const struct sample *s)
{
	struct archive_entry *e = archive_entry_new();
	size_t n = s->data ? strlen(s->data) : 0;

	archive_entry_set_pathname(e, s->path);
	archive_entry_set_mode(e, s->mode);
	archive_entry_set_size(e, (int64_t)n);
	archive_entry_set_mtime(e, 1, 5);
	if (s->link)
		archive_entry_set_symlink(e, s->link);
	if (s->hard)
		archive_entry_set_hardlink(e, s->hard);
	if (s->data)
		archive_entry_xattr_add_entry(e, "user.x", "value", 5);
	archive_write_header(a, e);
	if (n)
		archive_write_data(a, s->data, n);
	archive_entry_free(e);
}

size_t fuzz_example(unsigned k, uint8_t *out, size_t room)
{
	static const int formats[] = {ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE, ARCHIVE_FORMAT_TAR_GNUTAR,
				      ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FORMAT_CPIO_POSIX, ARCHIVE_FORMAT_ZIP};
	struct archive *a;
	size_t used = 0;

	if (k >= sizeof(formats) / sizeof(formats[0]))
		return 0;
	a = archive_write_new();
	archive_write_set_format(a, formats[k]);
	archive_write_set_bytes_in_last_block(a, 1);
	CHECK(archive_write_open_memory(a, out, room, &used) == ARCHIVE_OK);
	for (unsigned i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		add_sample(a, &samples[i]);
	archive_write_close(a);
	archive_write_free(a);
	return used;
}

/* SPDX-License-Identifier: MIT */
/*
 * Whatever a segment holds, nobody crashes and nobody hangs.
 *
 * The first byte of an input says what it is.  A file: the bytes as they are; a good segment with some bytes of its header
 * changed; the same with the checksums made to fit again.  Attaching refuses it with a reason, or it works.  Else: changes
 * to what lies behind the header of a shelf with one of everything in it (lib/world.h), alone or with what a dead process
 * left.  The check tells what is wrong in words and mends what can be mended; what it finds good can be used, and
 * of what it cannot mend all calls give EIO.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "api/check_priv.h"
#include "segment/judge.h"
#include "world.h"

enum { EDITS_MAX = 32, HANG_SECONDS = 60 };
#define TRIAL_NS 2000000000L /* less than shelf check's, and yet enough on a machine that is busy */
enum kind { RAW, EDITED, SEALED, DEAD, DAMAGED };

static uint8_t *template;
static size_t template_size;
static char name[TEST_NAME_SIZE], path[128];

static void remove_file(void)
{
	unlink(path);
}

static unsigned *template_pages; /* those that are not all zero */
static size_t template_page_count;

static void note_pages(void)
{
	static const uint8_t zeros[PAGE_BYTES];

	template_pages = calloc(template_size / PAGE_BYTES, sizeof(*template_pages));
	CHECK(template_pages);
	for (size_t k = 0; k < template_size / PAGE_BYTES; k++)
		if (memcmp(template + k * PAGE_BYTES, zeros, PAGE_BYTES))
			template_pages[template_page_count++] = (unsigned)k;
}

/* The bytes of a good, small segment that was detached by its maker. */
static void make_template(void)
{
	const struct shelf_options options = {.size = 4 << 20};
	struct shelf *shelf;
	struct stat st;
	int fd;

	CHECK(!shelf_create(fresh_name(name), &options, &shelf, NULL));
	shelf_detach(shelf);
	snprintf(path, sizeof(path), "%s/shelf.%s", local_dir(), name);
	atexit(remove_file);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && !fstat(fd, &st));
	template_size = (size_t)st.st_size;
	template = malloc(template_size);
	CHECK(template && read(fd, template, template_size) == (ssize_t)template_size);
	close(fd);
	note_pages();
}

/* Holes stay holes: the file is cheap to make. */
static void write_template(int fd)
{
	CHECK(!ftruncate(fd, (off_t)template_size));
	for (size_t k = 0; k < template_page_count; k++) {
		off_t at = (off_t)template_pages[k] * PAGE_BYTES;

		CHECK(pwrite(fd, template + at, PAGE_BYTES, at) == PAGE_BYTES);
	}
}

/* Edits of the part that attaching reads before it trusts anything. */
static void edit_header(struct bytes *in, uint8_t *page)
{
	const size_t end = offsetof(struct seg_header, next_ino);

	for (unsigned k = 0; k < EDITS_MAX && in->left; k++) {
		size_t at = fuzz_below(in, (unsigned)end);
		unsigned n = 1u << fuzz_below(in, 4);
		uint64_t v = fuzz_take(in, n);

		memcpy(page + at, &v, min_of((size_t)n, end - at));
	}
}

static void make_file(struct bytes *in, enum kind kind)
{
	_Alignas(CACHE_LINE) uint8_t page[PAGE_BYTES];
	int fd;

	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0);
	if (kind == RAW) {
		CHECK(write(fd, in->at, in->left) == (ssize_t)in->left);
	} else {
		write_template(fd);
		memcpy(page, template, PAGE_BYTES);
		edit_header(in, page);
		if (kind == SEALED)
			layout_seal((struct seg_header *)(void *)page);
		CHECK(pwrite(fd, page, PAGE_BYTES, 0) == PAGE_BYTES);
	}
	close(fd);
}

/* Without a magic number, or if it says that it is not ready, it may be in the making, and is waited for. */
static bool would_wait(void)
{
	struct seg_header h = {0};
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, &h, sizeof(h));

	close(fd);
	return n == 0 || (n == (ssize_t)sizeof(h) && (!h.magic || !load_relaxed(&h.ready)));
}

static void use(unsigned flags)
{
	struct shelf_counters counters;
	struct shelf_task *t;
	struct shelf *shelf;
	char why[SHELF_WHY] = "";
	int err = shelf_attach(name, flags, &shelf, why);

	if (err) {
		CHECK(err < 0 && why[0] && memchr(why, 0, sizeof(why)));
		return;
	}
	CHECK(!shelf_counters(shelf, &counters));
	if (!flags && !shelf_task_create(shelf, NULL, &t))
		shelf_task_exit(t);
	shelf_detach(shelf);
}

static void run_file(struct bytes *in, enum kind kind)
{
	if (!template)
		make_template();
	make_file(in, kind);
	if (would_wait())
		return;
	use(SHELF_READ_ONLY);
	use(0);
}

/* ---- damage -------------------------------------------------------------------------------- */

static unsigned sentences;

static void hear(void *ctx, const char *sentence)
{
	size_t len = strlen(sentence);

	(void)ctx;
	CHECK(len > 0 && len < 256);
	for (size_t k = 0; k < len; k++)
		CHECK(sentence[k] != '\n');
	sentences++;
	if (getenv("FUZZ_VERBOSE"))
		fprintf(stderr, "shelf check: %s\n", sentence);
}

static struct shelf_check_report check(struct world *w, unsigned flags)
{
	const struct shelf_check_options o = {.flags = flags, .say = hear};
	struct shelf_check_report r;

	sentences = 0;
	CHECK(!shelf_verify(w->shelf, &o, &r));
	CHECK(r.mended <= r.faults && (sentences || !(r.faults + r.left)));
	return r;
}

/* What was mended is; the rest makes every call fail, and the reason is told. */
static void judge(struct world *w)
{
	struct shelf_check_report told = check(w, 0), mended = check(w, SHELF_VERIFY_REPAIR), after = check(w, 0);
	struct shelf_counters counters;
	struct shelf_task *t;

	CHECK(told.alone && mended.alone && after.alone);
	CHECK(!told.mended && (told.faults || !mended.faults));
	if (mended.faults == mended.mended) {
		CHECK(!after.faults && !after.left);
		return;
	}
	CHECK(after.faults && !shelf_counters(w->shelf, &counters) && counters.poisoned && counters.poison_reason[0]);
	CHECK(shelf_task_create(w->shelf, NULL, &t) == -EIO);
}

static void run_damaged(struct bytes *in, bool dead)
{
	struct world *w = world_of(dead);

	world_reset(w);
	world_damage(w, in);
	if (segment_bounds(w->self->seg)) { /* attaching would have refused it */
		CHECK(check(w, 0).faults == 1);
		return;
	}
	if (!segment_alone_begin(w->self)) /* a slot that says it is a living thread's: others at work are believed */
		return;
	segment_alone_end(w->self);
	judge(w);
	world_use(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = {data, size};
	enum kind kind = fuzz_below(&in, 64);

	check_trial_ns = TRIAL_NS;
	alarm(HANG_SECONDS);
	if (kind < DEAD)
		run_file(&in, kind);
	else
		run_damaged(&in, kind == DEAD);
	alarm(0);
	return 0;
}

static size_t damage_example(unsigned k, uint8_t *out)
{
	memset(out, 0, 16);
	out[0] = k % 32 ? DAMAGED : DEAD;
	out[1] = (uint8_t)k;
	for (unsigned n = 2; n < 10; n++)
		out[n] = (uint8_t)(k * 2654435761u >> n);
	return k ? 10 : 1;
}

size_t fuzz_example(unsigned k, uint8_t *out, size_t room)
{
	if (!template)
		make_template();
	if (k == 0) { /* a header alone */
		out[0] = RAW;
		memcpy(out + 1, template, min_of((size_t)PAGE_BYTES, room - 1));
		return 1 + PAGE_BYTES;
	}
	if (k > 40)
		return k <= 140 ? damage_example(k - 41, out) : 0;
	/* One edit of each word of the header. */
	memset(out, 0, 12);
	out[0] = k % 2 ? SEALED : EDITED;
	out[1] = (uint8_t)(k / 2 * 8);
	out[3] = 3;
	out[4] = (uint8_t)k;
	return 12;
}

/* SPDX-License-Identifier: MIT */
/* attach.c - tables and images of this process put together. */
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/syscall.h"
#include "run/attach.h"
#include "run/ready.h"

static const char *const attached[] = {"libc.so.6", "ld-linux-x86-64.so.2", "libaio.so.1"};
enum { LOADER = 1, NEEDED = 2 }; /* of these; others if they are there */

enum {
	KEPT_MAX = 8, /* images patched at a time */
};

struct kept_image {
	struct run_image im;
	const void *table;
	size_t size;
};

static struct kept_image kept[KEPT_MAX];
static uint32_t kept_count;
static bool any_ready;

static bool same_text(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static const char *last_part(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

/* The loader's own list, which debuggers read: no lock, and complete when a constructor runs. */
#pragma weak _r_debug
static const struct link_map *images; /* where that cannot be seen, as told by run_images_are */

void run_images_are(const struct link_map *first)
{
	images = first;
}

bool run_images_seen(void)
{
	return &_r_debug != NULL;
}

const struct link_map *run_images(void)
{
	return run_images_seen() ? _r_debug.r_map : images;
}

int run_find_image(const char *name, struct run_image *im)
{
	for (const struct link_map *lm = run_images(); lm; lm = lm->l_next) {
		int rc;

		if (!lm->l_addr || !lm->l_name || !same_text(last_part(lm->l_name), name))
			continue;
		rc = image_at(im, (const void *)lm->l_addr);
		im->path = lm->l_name;
		return rc;
	}
	return -ENOENT;
}

/* The sites as a table in memory of our own, as if it had been read from a file. */
static int scan_to_table(const struct run_image *im, const char *dir, const void **buf,
			 size_t *size)
{
	struct run_sites sites;
	long map;
	int rc = scan_image(im, &sites);

	if (rc)
		return rc;
	*size = table_size(&sites);
	map = sys_call6(SYS_mmap, 0, (long)*size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map < 0 && map > -4096) {
		rc = (int)map;
	} else {
		table_write(im, &sites, (void *)map);
		*buf = (const void *)map;
		/* A folder that cannot be written costs the next start a scan, no more. */
		if (dir)
			table_save(im, &sites, dir);
	}
	sites_free(&sites);
	return rc;
}

static void count_in(struct attach_result *result, const struct patch_count *n)
{
	result->images++;
	result->count.sites += n->sites;
	result->count.patched += n->patched;
	result->count.left += n->left;
}

/* What is known of an image, and what is wanted. */
struct patch_job {
	const struct run_image *im;
	const char *dir; /* of tables and ready copies, or NULL */
	const uint8_t *wanted;
	bool own; /* the ready copy that others made cannot be used */
	bool make, bad; /* there is no ready copy; or none that holds */
};

static int ready_use(const struct patch_job *job, struct attach_result *result)
{
	struct patch_count n;
	int rc = ready_map(job->im, job->dir, job->wanted, job->own, &n);

	if (rc)
		return rc;
	any_ready = true;
	result->ready++;
	count_in(result, &n);
	return 0;
}

/* Opens the table in BUF and patches; an image that is patched keeps its table for detaching. */
static int patch_with(const struct patch_job *job, const void *buf, size_t size, struct attach_result *result)
{
	struct patch_count n;
	struct table_cursor c;
	int rc = table_open(job->im, buf, size, &c);

	if (!rc && kept_count == KEPT_MAX)
		rc = -ENOSPC;
	/* A folder that cannot be written, or a library that cannot be done so, costs each start more, no more. */
	if (!rc && job->make && !ready_make(job->im, c, job->dir, job->wanted, job->own, job->bad) && !ready_use(job, result)) {
		table_unload(buf, size);
		return 0;
	}
	if (!rc)
		rc = patch_image(job->im, c, job->wanted, &n);
	if (rc) {
		table_unload(buf, size);
		return rc;
	}
	kept[kept_count++] = (struct kept_image){*job->im, buf, size};
	count_in(result, &n);
	return 0;
}

/* Whether scanning could help: the table is not to be trusted. */
static bool wants_scan(int rc)
{
	return rc == -ENOENT || rc == -ESTALE || rc == -EBADMSG || rc == -EPERM || rc == -EACCES;
}

static int attach_image(const struct run_image *im, const char *dir, const uint8_t *wanted,
			struct attach_result *result)
{
	struct patch_job job = {.im = im, .dir = dir, .wanted = wanted};
	const void *buf = NULL;
	size_t size;
	int rc = dir ? ready_use(&job, result) : -ENOTSUP;

	if (rc == -EACCES) {
		job.own = true;
		rc = ready_use(&job, result);
	}
	if (!rc)
		return 0;
	job.bad = rc == -EBADMSG;
	job.make = job.bad || rc == -ENOENT;
	if (rc == -EMFILE || rc == -ENFILE)
		ready_end(); /* what it kept open may be the last descriptor there is */
	/* Whatever keeps a table from us, as a folder that is none: there is none. */
	rc = dir && !table_load(im, dir, &buf, &size) ? patch_with(&job, buf, size, result) : -ENOENT;
	if (wants_scan(rc)) {
		result->scanned++;
		rc = scan_to_table(im, dir, &buf, &size);
		if (!rc)
			rc = patch_with(&job, buf, size, result);
	}
	return rc;
}

/* No ready copy: it would have to be mapped over what is there already, near slots of this process. */
int run_attach_program(const struct run_image *im, const char *dir, const uint8_t *wanted, struct attach_result *result)
{
	const struct patch_job job = {.im = im, .dir = dir, .wanted = wanted};
	const void *buf = NULL;
	size_t size;
	int rc = dir && !table_load(im, dir, &buf, &size) ? patch_with(&job, buf, size, result) : -ENOENT;

	if (!wants_scan(rc))
		return rc;
	result->scanned++;
	rc = scan_to_table(im, dir, &buf, &size);
	return rc ? rc : patch_with(&job, buf, size, result);
}

int run_attach_image(const struct run_image *im, const char *dir, const uint8_t *wanted,
		     struct attach_result *result)
{
	int rc = attach_image(im, dir, wanted, result);

	ready_end();
	return rc;
}

/*
 * libc knows of the threads it started, and a look at its flag costs nothing.  Where it has none:
 * a task folder has a link from itself, one from above, and one for each thread.
 */
extern char __libc_single_threaded __attribute__((weak));

static bool has_threads(void)
{
	struct stat st;

	if (&__libc_single_threaded)
		return !__libc_single_threaded;
	return sys_call3(SYS_stat, (long)"/proc/self/task", (long)&st, 0) == 0 && st.st_nlink > 3;
}

static void block_signals(uint64_t *old)
{
	uint64_t all = ~0UL;

	sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)old, sizeof(all), 0, 0);
}

static void restore_signals(const uint64_t *old)
{
	sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)old, 0, sizeof(*old), 0, 0);
}

/* All, but one that has been attached. */
static int attach_all_but(unsigned done, const char *dir, const uint8_t *wanted, struct attach_result *result)
{
	struct run_image im;
	uint64_t mask;
	int rc = 0;

	block_signals(&mask);
	for (unsigned i = 0; i < ARRAY_SIZE(attached) && !rc; i++) {
		if (i == done)
			continue;
		rc = run_find_image(attached[i], &im);
		if (rc == -ENOENT && i >= NEEDED) {
			rc = 0;
			continue;
		}
		if (!rc || rc == -ENODATA)
			rc = attach_image(&im, im.id_len ? dir : NULL, wanted, result);
	}
	ready_end();
	restore_signals(&mask);
	return rc;
}

int run_attach(const char *dir, const uint8_t *wanted, struct attach_result *result)
{
	*result = (struct attach_result){0};
	return has_threads() ? -EBUSY : attach_all_but(ARRAY_SIZE(attached), dir, wanted, result);
}

int run_attach_loader(const void *base, const char *dir, const uint8_t *wanted, struct attach_result *result)
{
	struct run_image im;
	uint64_t mask;
	int rc;

	*result = (struct attach_result){0};
	block_signals(&mask);
	rc = image_at(&im, base);
	im.path = "/lib64/ld-linux-x86-64.so.2"; /* the ABI's name for it */
	if (!rc || rc == -ENODATA)
		rc = attach_image(&im, im.id_len ? dir : NULL, wanted, result);
	ready_end();
	restore_signals(&mask);
	return rc;
}

int run_attach_libraries(const char *dir, const uint8_t *wanted, struct attach_result *result)
{
	return attach_all_but(LOADER, dir, wanted, result);
}

int run_detach(void)
{
	struct table_cursor c;
	uint64_t mask;
	int rc = 0;

	if (has_threads())
		return -EBUSY;
	if (any_ready)
		return -ENOTSUP;
	block_signals(&mask);
	while (kept_count && !rc) {
		struct kept_image *k = &kept[kept_count - 1];

		rc = table_open(&k->im, k->table, k->size, &c);
		if (!rc)
			rc = unpatch_image(&k->im, c);
		if (!rc) {
			table_unload(k->table, k->size);
			kept_count--;
		}
	}
	restore_signals(&mask);
	return rc;
}

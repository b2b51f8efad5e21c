/* SPDX-License-Identifier: MIT */
/*
 * ready.c - maps a ready copy over the text of this process's library.
 *
 * Runs while the process has one thread and signals wait.  Everything that can fail does so before the text is replaced,
 * which is one call.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>

#include "base/syscall.h"
#include "run/kept.h"
#include "run/ready_priv.h"

#define STACK_ROOM (1UL << 30) /* below the stack nothing of ours is in its way */

/* /proc/self/pagemap */
#define PAGE_THERE (3ULL << 62) /* in memory or swapped out */
#define PAGE_OF_FILE (1ULL << 61)

union scratch {
	uint64_t map[PAGE_BYTES / 8];
	char path[PATH_MAX];
	struct ready_tail tail;
};

uint64_t ready_key(const struct stat *source, const uint8_t *wanted, uint32_t first, bool own)
{
	const struct {
		uint64_t size, time, ns, wanted;
		uint32_t version, first;
		uint64_t user;
	} of = {(uint64_t)source->st_size, (uint64_t)source->st_mtim.tv_sec, (uint64_t)source->st_mtim.tv_nsec,
		table_sum_of(wanted, RUN_NUMBERS), READY_VERSION, first, own ? 1 + (uint64_t)sys_call3(SYS_geteuid, 0, 0, 0) : 0};

	return table_sum_of((const uint8_t *)&of, sizeof(of));
}

uint64_t ready_sum(const struct ready_tail *tail)
{
	const size_t skip = offsetof(struct ready_tail, key);

	return table_sum_of((const uint8_t *)tail + skip, offsetof(struct ready_tail, ends) + 4UL * tail->count - skip);
}

/* Whether no page of N at P has been written to: such a page is no longer the file's. */
static bool pages_untouched(const uint64_t *map, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (map[i] & PAGE_THERE && !(map[i] & PAGE_OF_FILE))
			return false;
	return true;
}

/* For all images of a start: opening it takes longer than all that is read there. */
static long pagemap = -1;

static int text_untouched(const struct run_image *im, uint64_t map[PAGE_BYTES / 8])
{
	uint64_t page = (im->bias + ready_text_start(im)) >> PAGE_SHIFT;
	uint32_t left = ready_text_pages(im), n;

	if (pagemap < 0)
		pagemap = sys_call3(SYS_open, (long)"/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
	for (; left; left -= n, page += n) {
		n = min_of(left, (uint32_t)(PAGE_BYTES / 8));
		if (sys_call6(SYS_pread64, pagemap, (long)map, (long)n * 8, (long)page * 8, 0, 0) != (long)n * 8)
			return -EIO;
		if (!pages_untouched(map, n))
			return -EPERM;
	}
	return 0;
}

void ready_end(void)
{
	if (pagemap >= 0)
		sys_call3(SYS_close, pagemap, 0, 0);
	pagemap = -1;
}

static bool tail_holds(const struct ready_tail *t, const struct run_image *im, uint64_t key, size_t size)
{
	if (t->magic != READY_MAGIC || t->version != READY_VERSION || t->key != key || !t->count || t->count > READY_SITES)
		return false;
	if (t->sum != ready_sum(t) || t->text != im->text || t->text_len != im->text_len)
		return false;
	for (unsigned int i = 0; i < im->id_len; i++)
		if (t->id[i] != im->id[i])
			return false;
	return t->slots_at + ready_slot_bytes(t->count) + PAGE_BYTES == size;
}

/* Opens the copy; its last page is in SCRATCH then. */
static long open_copy(const struct run_image *im, const char *dir, const uint8_t *wanted, bool own, union scratch *scratch)
{
	struct stat source;
	size_t size;
	uint64_t key;
	long fd, rc = sys_call3(SYS_stat, (long)im->path, (long)&source, 0);

	if (rc < 0)
		return -ESTALE;
	key = ready_key(&source, wanted, slots_next_page(), own);
	rc = kept_path(im, dir, key, 16, READY_ENDING, scratch->path);
	if (rc)
		return rc;
	fd = kept_open(scratch->path, READY_MAX, &size);
	if (fd < 0)
		return fd == -EPERM || fd == -ELOOP ? -EACCES : fd;
	rc = sys_call6(SYS_pread64, fd, (long)&scratch->tail, sizeof(scratch->tail), (long)(size - PAGE_BYTES), 0, 0);
	if (rc == sizeof(scratch->tail) && tail_holds(&scratch->tail, im, key, size))
		return fd;
	sys_call3(SYS_close, fd, 0, 0);
	return -EBADMSG;
}

static bool map_is_at(long map, uintptr_t at)
{
	return map == (long)at;
}

/* The words that the sites jump through: memory at an address that must be free. */
static int map_words(const struct run_image *im, const struct ready_tail *t)
{
	uintptr_t at = im->bias + ready_words(im), here = (uintptr_t)&at;
	size_t len = ALIGN_UP((size_t)t->count * 8, PAGE_BYTES);
	long map = -ENOMEM;

	if (here - at > STACK_ROOM)
		map = sys_call6(SYS_mmap, (long)at, (long)len, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (map_is_at(map, at)) {
		for (uint32_t i = 0; i < t->count; i++)
			((uint64_t *)at)[i] = slots_own_address(t->first + i);
		return 0;
	}
	if (map < 0 && map > -4096)
		return (int)map;
	sys_call3(SYS_munmap, map, (long)len, 0);
	return -EEXIST;
}

static void unmap_words(const struct run_image *im, const struct ready_tail *t)
{
	sys_call3(SYS_munmap, (long)(im->bias + ready_words(im)), (long)ALIGN_UP((size_t)t->count * 8, PAGE_BYTES), 0);
}

static int map_file(uintptr_t at, size_t len, int prot, long fd, uint32_t offset)
{
	long map = sys_call6(SYS_mmap, (long)at, (long)len, prot, MAP_PRIVATE | MAP_FIXED, fd, offset);

	return map_is_at(map, at) ? 0 : (int)map;
}

static void fill_links(struct run_links *links, const struct run_image *im, const struct ready_tail *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		links->back[t->first + i] = im->bias + t->ends[i];
	links->back[t->first + t->count] = im->bias;
}

/* First the slots, where a folder mounted noexec fails; then the text. */
static int map_copy(const struct run_image *im, const struct ready_tail *t, long fd)
{
	struct run_links *links = t->first + t->count < SLOTS_OWN ? slots_links() : NULL;
	int rc = links ? map_words(im, t) : -ENOSPC;

	if (rc)
		return rc;
	fill_links(links, im, t);
	rc = map_file(slots_own_address(t->first), ready_slot_bytes(t->count), PROT_READ | PROT_EXEC, fd, t->slots_at);
	if (!rc)
		rc = map_file(im->bias + ready_text_start(im), (size_t)ready_text_pages(im) << PAGE_SHIFT, im->text_prot, fd,
			      t->text_at);
	if (rc)
		unmap_words(im, t);
	else
		slots_take(t->first + t->count + 1);
	return rc;
}

int ready_map(const struct run_image *im, const char *dir, const uint8_t *wanted, bool own, struct patch_count *n)
{
	union scratch scratch;
	long fd;
	int rc;

	if (!ready_reaches(im))
		return -ENOTSUP;
	if (text_untouched(im, scratch.map))
		return -EPERM;
	fd = open_copy(im, dir, wanted, own, &scratch);
	if (fd < 0)
		return (int)fd;
	rc = map_copy(im, &scratch.tail, fd);
	if (!rc)
		*n = (struct patch_count){.sites = scratch.tail.sites, .patched = scratch.tail.count};
	sys_call3(SYS_close, fd, 0, 0);
	return rc;
}

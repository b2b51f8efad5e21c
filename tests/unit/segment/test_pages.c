/* SPDX-License-Identifier: MIT */
/* Pages and objects: what is handed out is nobody else's, and everything comes back. */
#include "lib/seg_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int make_large(void **state)
{
	(void)state;
	seg_test_make(256 << 20);
	return 0;
}

static uint64_t committed_kib(void)
{
	struct stat st;

	CHECK(stat(seg_test_path(), &st) == 0);
	return (uint64_t)st.st_blocks / 2;
}

static void runs_are_aligned_and_zeroed_when_asked(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	unsigned order, k;

	(void)state;
	for (order = 0; order <= PAGE_MAX_ORDER; order++) {
		size_t bytes = PAGE_BYTES << order;
		char *run = page_alloc(self, order, PAGE_DATA, 0);

		assert_non_null(run);
		assert_int_equal((uintptr_t)run & (bytes - 1), 0);
		assert_true(page_is_inside(seg_test.seg, run) && page_is_inside(seg_test.seg, run + bytes - 1));
		memset(run, 0xaa, bytes);
		page_free(self, run, order);
		run = page_alloc(self, order, PAGE_DATA, PAGE_ZERO);
		for (k = 0; k < bytes; k++)
			CHECK(run[k] == 0);
		page_free(self, run, order);
	}
	assert_null(page_alloc(self, PAGE_MAX_ORDER + 1, PAGE_DATA, 0));
	assert_false(page_is_inside(seg_test.seg, seg_test.seg->hdr));
	assert_false(page_is_inside(seg_test.seg, &order));
	seg_test_counts();
}

static void freed_pages_are_reused_warm(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	void *page = page_alloc(self, 0, PAGE_DATA, 0);

	(void)state;
	page_free(self, page, 0);
	assert_ptr_equal(page_alloc(self, 0, PAGE_DATA, 0), page);
}

static void growth_is_in_steps_and_trim_gives_it_back(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	static void *pages[8192];
	uint64_t small = committed_kib(), large;
	unsigned k;

	(void)state;
	assert_true(small < 64);
	assert_non_null(pages[0] = page_alloc(self, 0, PAGE_DATA, 0));
	assert_true(committed_kib() <= small + 128);
	for (k = 1; k < ARRAY_SIZE(pages); k++)
		assert_non_null(pages[k] = page_alloc(self, 0, PAGE_DATA, 0));
	large = committed_kib();
	assert_true(large >= ARRAY_SIZE(pages) * 4);
	for (k = 0; k < ARRAY_SIZE(pages); k++)
		page_free(self, pages[k], 0);
	assert_int_equal(committed_kib(), large);
	assert_true(pages_trim(self) >= ARRAY_SIZE(pages) - 2 * SEG_CHUNK_PAGES);
	assert_true(committed_kib() < large / 4);
	seg_test_counts();
	for (k = 0; k < ARRAY_SIZE(pages); k++) {
		assert_non_null(pages[k] = page_alloc(self, 0, PAGE_DATA, 0));
		*(unsigned *)pages[k] = k;
	}
	seg_test_counts();
}

static uint64_t stamp, safe;

static uint64_t stamp_now(struct segment *seg)
{
	(void)seg;
	return stamp;
}

static uint64_t stamp_safe(struct segment *seg)
{
	(void)seg;
	return safe;
}

static void trim_waits_for_readers(void **state)
{
	struct page_hooks hooks = {.now = stamp_now, .safe = stamp_safe}, none = {0};
	struct slot *self = slot_self(seg_test.seg);
	void *run;

	(void)state;
	seg_test.seg->hdr->epoch = (void *)seg_test.seg->hdr; /* there is an epoch layer */
	page_register_hooks(&hooks);
	stamp = 5;
	safe = 5;
	run = page_alloc(self, PAGE_MAX_ORDER, PAGE_DATA, 0);
	page_free(self, run, PAGE_MAX_ORDER);
	assert_int_equal(pages_trim(self), 0);
	safe = 6;
	assert_int_equal(pages_trim(self), SEG_CHUNK_PAGES);
	page_register_hooks(&none);
}

static void double_free_poisons(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	void *page = page_alloc(self, 0, PAGE_DATA, 0);

	(void)state;
	page_free(self, page, 0);
	page_free(self, page, 0);
	assert_true(segment_poisoned(seg_test.seg));
	assert_non_null(strstr(seg_test.seg->hdr->poison_reason, "not in use"));
}

static void freed_object_that_is_none_poisons(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	char *obj = cache_alloc(self, CACHE_192);

	(void)state;
	cache_free(self, CACHE_192, obj + 64);
	magazines_flush(self);
	assert_true(segment_poisoned(seg_test.seg));
}

static void objects_of_each_size_do_not_overlap(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	static char *obj[500];
	struct segment_counts c;
	unsigned id, k, b;

	(void)state;
	for (id = 0; id < CACHE_IDS; id++) {
		for (k = 0; k < ARRAY_SIZE(obj); k++) {
			assert_non_null(obj[k] = cache_alloc(self, (enum cache_id)id));
			assert_int_equal((uintptr_t)obj[k] % 64, 0);
			memset(obj[k], (int)k, slab_sizes[id]);
		}
		for (k = 0; k < ARRAY_SIZE(obj); k++)
			for (b = 0; b < slab_sizes[id]; b++)
				CHECK(obj[k][b] == (char)k);
		c = seg_test_counts();
		assert_int_equal(c.objects[id] - c.magazine[id], ARRAY_SIZE(obj));
		for (k = 0; k < ARRAY_SIZE(obj); k++)
			cache_free(self, (enum cache_id)id, obj[k]);
	}
	pages_trim(self);
	c = seg_test_counts();
	assert_int_equal(c.used, 0);
}

static void mem_alloc_gives_what_fits(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	size_t sizes[] = {1, 64, 65, 576, 577, 2048, 2049, 4096, 4097, 100000, PAGE_BYTES << PAGE_MAX_ORDER};
	unsigned k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		char *p = mem_alloc(self, sizes[k]);

		assert_non_null(p);
		memset(p, 1, sizes[k]);
		mem_free(self, p, sizes[k]);
	}
	assert_null(mem_alloc(self, (PAGE_BYTES << PAGE_MAX_ORDER) + 1));
	pages_trim(self);
	assert_int_equal(seg_test_counts().used, 0);
}

/* ---- torture: everyone owns slots of one table, and swaps what is in them ---------------------- */

/* ThreadSanitizer does not see what another process does in between, so there threads are alone. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PROCESSES 0
#endif
#endif
#ifndef PROCESSES
#define PROCESSES 2
#endif

enum { CELLS = 4096, THREADS = 4 };

/* In shared memory.  A cell is taken out whole, so each allocation has one owner at a time. */
struct cell {
	_Atomic(uint64_t) what; /* address | how, 0: empty, 1: taken out */
};
static struct cell *cells;

/* how: 1..10 run of order how - 1, 16.. object; both fit below the smallest alignment of 64 */
static void fill(void *p, uint64_t how, size_t bytes)
{
	uint64_t *w = p;

	w[0] = (uint64_t)(uintptr_t)p ^ how;
	w[bytes / 8 - 1] = (uint64_t)(uintptr_t)p + how;
}

static size_t bytes_of(uint64_t how)
{
	return how < 16 ? PAGE_BYTES << (how - 1) : slab_sizes[how - 16];
}

static void drop(struct slot *self, uint64_t what)
{
	uint64_t how = what & 63;
	uint64_t *w = (uint64_t *)(uintptr_t)(what & ~UINT64_C(63));

	CHECK(w[0] == ((uint64_t)(uintptr_t)w ^ how));
	if (bytes_of(how) > 64)
		CHECK(w[bytes_of(how) / 8 - 1] == (uint64_t)(uintptr_t)w + how);
	w[0] = 0;
	if (how < 16)
		page_free(self, w, (unsigned)how - 1);
	else
		cache_free(self, (enum cache_id)(how - 16), w);
}

static uint64_t take(struct slot *self, uint64_t *rnd)
{
	uint64_t r = test_random(rnd), how;
	void *p;

	if (r % 3 == 0)
		how = 16 + r / 3 % CACHE_IDS;
	else
		how = r % 64 ? 1 : 1 + r / 64 % (PAGE_MAX_ORDER + 1);
	p = how < 16 ? page_alloc(self, (unsigned)how - 1, PAGE_DATA, 0) :
		       cache_alloc(self, (enum cache_id)(how - 16));
	if (!p)
		return 0;
	fill(p, how, bytes_of(how));
	return (uint64_t)(uintptr_t)p | how;
}

static void *swapper(void *arg)
{
	struct slot *self = slot_self(seg_test.seg);
	uint64_t rnd = (uintptr_t)arg;
	unsigned long n;

	for (n = test_scaled(30000); n; n--) {
		struct cell *c = &cells[test_random(&rnd) % CELLS];
		uint64_t was = atomic_exchange(&c->what, 1);

		if (was == 1)
			continue; /* somebody else has it out and will put it back */
		if (was)
			drop(self, was);
		/* Empty it half of the time, so that the amount in use goes up and down. */
		atomic_store(&c->what, test_random(&rnd) & 1 ? take(self, &rnd) : 0);
	}
	return NULL;
}

static int swappers(void *arg)
{
	pthread_t t[THREADS];
	uintptr_t k;

	for (k = 0; k < THREADS; k++)
		CHECK(pthread_create(&t[k], NULL, swapper, (void *)((uintptr_t)arg + k)) == 0);
	for (k = 0; k < THREADS; k++)
		pthread_join(t[k], NULL);
	return 0;
}

static void torture(uint64_t size)
{
	uint64_t seed = test_seed();
	pid_t pid[PROCESSES + 1];
	unsigned k;

	seg_test_make(size);
	cells = mmap(NULL, CELLS * sizeof(*cells), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(cells != MAP_FAILED);
	for (k = 0; (int)k < PROCESSES; k++)
		pid[k] = test_fork(swappers, (void *)(uintptr_t)(seed + 100 * k));
	swappers((void *)(uintptr_t)(seed + 1000));
	for (k = 0; (int)k < PROCESSES; k++)
		assert_int_equal(test_wait(pid[k]), 0);
	/* The children's main threads left without a word: their slots are taken over. */
	slot_reap(slot_self(seg_test.seg));
	seg_test_counts();
	for (k = 0; k < CELLS; k++)
		if (cells[k].what > 1)
			drop(slot_self(seg_test.seg), cells[k].what);
	pages_trim(slot_self(seg_test.seg));
	assert_int_equal(seg_test_counts().used, 0);
	munmap(cells, CELLS * sizeof(*cells));
}

static void threads_and_processes_never_share_memory(void **state)
{
	(void)state;
	torture(512 << 20);
}

static void neither_do_they_in_a_full_segment(void **state)
{
	(void)state;
	torture(8 << 20);
}

#define WITH_SEGMENT(f) cmocka_unit_test_setup_teardown(f, make_large, seg_test_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SEGMENT(runs_are_aligned_and_zeroed_when_asked),
		WITH_SEGMENT(freed_pages_are_reused_warm),
		WITH_SEGMENT(growth_is_in_steps_and_trim_gives_it_back),
		WITH_SEGMENT(trim_waits_for_readers),
		WITH_SEGMENT(double_free_poisons),
		WITH_SEGMENT(freed_object_that_is_none_poisons),
		WITH_SEGMENT(objects_of_each_size_do_not_overlap),
		WITH_SEGMENT(mem_alloc_gives_what_fits),
		cmocka_unit_test_teardown(threads_and_processes_never_share_memory, seg_test_remove),
		cmocka_unit_test_teardown(neither_do_they_in_a_full_segment, seg_test_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

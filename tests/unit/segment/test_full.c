/* SPDX-License-Identifier: MIT */
/* A full segment, and a full file system under it: failures change nothing, and freeing makes room. */
#include "lib/seg_test.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static void *pages[8192];

static int make_small(void **state)
{
	(void)state;
	seg_test_make(4 << 20);
	return 0;
}

static unsigned fill_up(struct slot *self)
{
	unsigned n = 0;

	while (n < ARRAY_SIZE(pages) && (pages[n] = page_alloc(self, 0, PAGE_DATA, 0)))
		*(unsigned *)pages[n] = n, n++;
	return n;
}

static void a_full_segment_is_really_full(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	struct segment_space space;
	unsigned n = fill_up(self), k;

	(void)state;
	assert_int_equal(n, 1024);
	assert_null(cache_alloc(self, CACHE_64));
	assert_null(page_alloc(self, 3, PAGE_DATA, 0));
	segment_space(seg_test.seg, &space);
	assert_int_equal(space.free_pages, 0);
	seg_test_counts();
	for (k = 0; k < n; k++) {
		assert_int_equal(*(unsigned *)pages[k], k); /* failing has hurt nobody */
		page_free(self, pages[k], 0);
	}
	assert_int_equal(fill_up(self), n);
	for (k = 0; k < n; k++)
		page_free(self, pages[k], 0);
	segment_space(seg_test.seg, &space);
	assert_int_equal(space.free_pages, 1024);
	/* Two whole chunks again, in spite of the stock. */
	assert_non_null(pages[0] = page_alloc(self, PAGE_MAX_ORDER, PAGE_DATA, 0));
	assert_non_null(pages[1] = page_alloc(self, PAGE_MAX_ORDER, PAGE_DATA, 0));
	assert_null(page_alloc(self, 0, PAGE_DATA, 0));
}

static void one_freed_page_is_room_for_one(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	unsigned k, n = fill_up(self);

	(void)state;
	for (k = 0; k < n; k++) {
		page_free(self, pages[k], 0);
		assert_non_null(pages[k] = page_alloc(self, 0, PAGE_DATA, 0));
		assert_null(page_alloc(self, 0, PAGE_DATA, 0));
	}
}

static void a_full_segment_fills_with_objects_too(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	static void *obj[4096];
	unsigned n = 0, k;

	(void)state;
	while (n < ARRAY_SIZE(obj) && (obj[n] = cache_alloc(self, CACHE_2048)))
		n++;
	assert_int_equal(n, 2048);
	assert_null(page_alloc(self, 0, PAGE_DATA, 0));
	for (k = 0; k < n; k++)
		cache_free(self, CACHE_2048, obj[k]);
	assert_int_equal(fill_up(self), 1024);
}

/* ---- reclaiming ------------------------------------------------------------------------------- */

static void *waiting[16384];
static unsigned waiting_count;

/* As an epoch does when nobody reads any more: everything that waits is freed, here until the magazine is full. */
static uint64_t reclaim_all(struct slot *self)
{
	unsigned freed = 0;

	while (waiting_count && !(freed > ARRAY_SIZE(waiting) / 2 &&
				  load_relaxed(&self->mag[CACHE_128].count) == slot_local(self)->magazine[CACHE_128])) {
		cache_free(self, CACHE_128, waiting[--waiting_count]);
		freed++;
	}
	return freed;
}

static int make_large(void **state)
{
	(void)state;
	seg_test_make(64 << 20); /* magazines of full size */
	return 0;
}

static void what_is_reclaimed_into_a_magazine_leaves_room_in_it(void **state)
{
	const struct page_hooks hooks = {.reclaim = reclaim_all}, none = {.reclaim = NULL};
	struct slot *self = slot_self(seg_test.seg);
	struct magazine *m = &self->mag[CACHE_128];
	struct magazine after = self->mag[CACHE_128 + 1];

	(void)state;
	waiting_count = 0;
	while (waiting_count < ARRAY_SIZE(waiting))
		assert_non_null(waiting[waiting_count++] = cache_alloc(self, CACHE_128));
	while (page_alloc(self, 0, PAGE_DATA, 0))
		;
	while (cache_alloc(self, CACHE_128))
		;
	assert_int_equal(load_relaxed(&m->count), 0);
	page_register_hooks(&hooks);
	store_relaxed(&slot_local(self)->alloc->pressure, 0); /* the first to find that nothing is left */
	assert_non_null(cache_alloc(self, CACHE_128));
	page_register_hooks(&none);
	assert_true(load_relaxed(&m->count) < SLOT_OBJECTS);
	assert_memory_equal(&after, &self->mag[CACHE_128 + 1], sizeof(after));
	seg_test_counts();
}

/* ---- other threads' stocks --------------------------------------------------------------------- */

enum { IDLE = 12 };
static pthread_barrier_t barrier;

/* Fills its stock, then sleeps on it. */
static void *idler(void *arg)
{
	struct slot *self = slot_self(seg_test.seg);
	void *mine[8];
	unsigned k;

	for (k = 0; k < ARRAY_SIZE(mine); k++)
		CHECK((mine[k] = page_alloc(self, 0, PAGE_DATA, 0)));
	for (k = 0; k < ARRAY_SIZE(mine); k++)
		page_free(self, mine[k], 0);
	if (arg)
		CHECK(page_reserve(self, 3) == 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (k = 0; arg && k < 3; k++) /* the reserve was left alone */
		CHECK(page_alloc(self, 0, PAGE_DATA, 0));
	return NULL;
}

static void idle_threads_stocks_do_not_keep_pages_from_others(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	pthread_t t[IDLE];
	uintptr_t k;

	(void)state;
	pthread_barrier_init(&barrier, NULL, IDLE + 1);
	for (k = 0; k < IDLE; k++)
		CHECK(pthread_create(&t[k], NULL, idler, (void *)(uintptr_t)(k == 0)) == 0);
	pthread_barrier_wait(&barrier);
	assert_true(seg_test_counts().cached >= IDLE * 3);
	assert_int_equal(fill_up(self), 1024 - 3);
	seg_test_counts();
	pthread_barrier_wait(&barrier);
	for (k = 0; k < IDLE; k++)
		pthread_join(t[k], NULL);
	pthread_barrier_destroy(&barrier);
	seg_test_counts();
}

static int child_with_stock(void *arg)
{
	(void)arg;
	struct slot *self = slot_self(seg_test.seg);
	void *p = page_alloc(self, 0, PAGE_DATA, 0);

	page_free(self, p, 0);
	return load_relaxed(&self->page_count) ? 0 : 1;
}

static void neither_do_dead_processes_stocks(void **state)
{
	(void)state;
	assert_int_equal(test_in_child(child_with_stock, NULL), 0);
	assert_int_equal(fill_up(slot_self(seg_test.seg)), 1024);
}

static void *greedy(void *arg)
{
	struct slot *self = slot_self(seg_test.seg);
	unsigned long n, got = 0;
	void *mine[256];

	(void)arg;
	for (n = test_scaled(300); n; n--) {
		unsigned k, have = 0;

		while (have < ARRAY_SIZE(mine) && (mine[have] = page_alloc(self, 0, PAGE_DATA, 0)))
			have++;
		got += have;
		for (k = 0; k < have; k++)
			page_free(self, mine[k], 0);
	}
	return (void *)got;
}

/* Eight times 256 pages do not fit in 1024: all fail now and then, nothing gets lost or stuck. */
static void threads_that_fight_for_the_last_pages_go_on(void **state)
{
	pthread_t t[8];
	unsigned k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++)
		CHECK(pthread_create(&t[k], NULL, greedy, NULL) == 0);
	for (k = 0; k < ARRAY_SIZE(t); k++)
		pthread_join(t[k], NULL);
	assert_int_equal(seg_test_counts().used, 0);
	assert_int_equal(fill_up(slot_self(seg_test.seg)), 1024);
}

/* ---- reserve ------------------------------------------------------------------------------------ */

static void reserved_pages_are_there_when_all_others_are_gone(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	struct segment_counts c;
	unsigned k;

	(void)state;
	assert_int_equal(page_reserve(self, PAGE_RESERVE_MAX + 1), -ENOSPC);
	assert_int_equal(page_reserve(self, PAGE_RESERVE_MAX), 0);
	while (cache_alloc(self, CACHE_2048))
		; /* objects do not draw on it */
	for (k = 0; k < PAGE_RESERVE_MAX; k++)
		assert_non_null(page_alloc(self, 0, PAGE_DATA, 0));
	assert_null(page_alloc(self, 0, PAGE_DATA, 0));
	assert_int_equal(page_reserve(self, 1), -ENOSPC);
	c = seg_test_counts();
	assert_int_equal(c.used, 1024);
}

/* ---- a full file system --------------------------------------------------------------------------- */

static int in_small_tmpfs(void *arg)
{
	char dir[] = "/tmp/shelf-test-XXXXXX";
	struct segment_space space;
	struct slot *self;
	unsigned n, k, round;

	(void)arg;
	if (!mkdtemp(dir))
		return TEST_SKIP;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=3m")) {
		rmdir(dir);
		return TEST_SKIP;
	}
	setenv("SHELF_SHM_DIR", dir, 1);
	seg_test_make(64 << 20); /* much more than there is */
	self = slot_self(seg_test.seg);
	for (round = 0; round < 2; round++) {
		n = fill_up(self);
		/* 768 pages, less header, infos, slot, frames: nearly everything can be used. */
		CHECK(n >= 750 && n < 768);
		CHECK(!cache_alloc(self, CACHE_64) && !page_alloc(self, 5, PAGE_DATA, 0));
		CHECK(page_reserve(self, 4) == -ENOSPC);
		seg_test_counts();
		for (k = 0; k < n; k++) {
			CHECK(*(unsigned *)pages[k] == k);
			page_free(self, pages[k], 0);
		}
	}
	seg_test_counts();
	segment_space(seg_test.seg, &space);
	CHECK(space.free_pages == space.total_pages);
	if (pages_trim(self) != SEG_CHUNK_PAGES)
		return 3;
	/* A new thread's slot needs a page, and gets it; then all is used again. */
	CHECK(fill_up(self) >= 750);
	segment_remove(seg_test.name, NULL);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	return 0;
}

static void a_full_file_system_is_enospc_and_never_sigbus(void **state)
{
	int status = test_in_child(in_small_tmpfs, NULL);

	(void)state;
	seg_test.seg = NULL;
	if (status == TEST_SKIP)
		skip();
	assert_int_equal(status, 0);
}

enum { THIEVES = 3 };

static void *thief(void *arg)
{
	struct slot *self = slot_self(seg_test.seg);
	unsigned long n;

	CHECK(page_reserve(self, 4) == 0); /* so that the others find something to look at, always */
	pthread_barrier_wait(arg);
	for (n = test_scaled(20000); n; n--)
		steal_stocks(self);
	page_reserve(self, 0);
	return NULL;
}

/* No thief waits for its own stock while it holds the one that another thief waits for. */
static void thieves_of_one_another_go_on(void **state)
{
	pthread_barrier_t start;
	pthread_t t[THIEVES];
	unsigned k;

	(void)state;
	pthread_barrier_init(&start, NULL, THIEVES);
	for (k = 0; k < THIEVES; k++)
		assert_int_equal(pthread_create(&t[k], NULL, thief, &start), 0);
	for (k = 0; k < THIEVES; k++)
		pthread_join(t[k], NULL);
	pthread_barrier_destroy(&start);
	seg_test_counts();
}

static void growth_goes_on_when_the_name_is_gone(void **state)
{
	struct slot *self = slot_self(seg_test.seg);

	(void)state;
	assert_int_equal(segment_remove(seg_test.name, NULL), 0);
	assert_int_equal(fill_up(self), 1024);
	seg_test_counts();
}

static void another_segment_under_the_name_is_left_alone(void **state)
{
	struct slot *self = slot_self(seg_test.seg);
	FILE *f;
	struct stat st;

	(void)state;
	assert_int_equal(segment_remove(seg_test.name, NULL), 0);
	f = fopen(seg_test_path(), "w");
	fclose(f);
	assert_int_equal(fill_up(self), 1024);
	assert_int_equal(stat(seg_test_path(), &st), 0);
	assert_int_equal(st.st_blocks, 0);
}

#define WITH_SEGMENT(f) cmocka_unit_test_setup_teardown(f, make_small, seg_test_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SEGMENT(a_full_segment_is_really_full),
		WITH_SEGMENT(one_freed_page_is_room_for_one),
		WITH_SEGMENT(a_full_segment_fills_with_objects_too),
		WITH_SEGMENT(idle_threads_stocks_do_not_keep_pages_from_others),
		WITH_SEGMENT(neither_do_dead_processes_stocks),
		WITH_SEGMENT(threads_that_fight_for_the_last_pages_go_on),
		WITH_SEGMENT(thieves_of_one_another_go_on),
		WITH_SEGMENT(reserved_pages_are_there_when_all_others_are_gone),
		cmocka_unit_test(a_full_file_system_is_enospc_and_never_sigbus),
		WITH_SEGMENT(growth_goes_on_when_the_name_is_gone),
		WITH_SEGMENT(another_segment_under_the_name_is_left_alone),
		cmocka_unit_test_setup_teardown(what_is_reclaimed_into_a_magazine_leaves_room_in_it, make_large, seg_test_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

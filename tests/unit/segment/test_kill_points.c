/* SPDX-License-Identifier: MIT */
/*
 * A process is killed at its n-th tracked store inside the allocator, for every n; the
 * others go on, everything it had comes back, and nothing is handed out twice.
 * The layer is compiled into this file, since only here its stores count.
 */
#define SHELF_KILL_POINTS 1

#include "segment/attach.c"
#include "segment/base.c"
#include "segment/buddy.c"
#include "segment/check.c"
#include "segment/commit.c"
#include "segment/create.c"
#include "segment/grow.c"
#include "segment/identity.c"
#include "segment/intent.c"
#include "segment/layout.c"
#include "segment/local.c"
#include "segment/magazine.c"
#include "segment/open.c"
#include "segment/pages.c"
#include "segment/refuse.c"
#include "segment/run_list.c"
#include "segment/slab.c"
#include "segment/slot.c"
#include "segment/steal.c"
#include "segment/stock.c"
#include "segment/takeover.c"
#include "segment/touch.c"
#include "segment/trim.c"

#include "lib/seg_test.h"

/* What the victim holds, in shared memory: written after an allocation returned, erased before it is freed. */
enum { HELD = 512 };
struct held {
	void *p;
	uint64_t how; /* 0: nothing; 1..10 run of order how - 1; 16.. object */
};
static struct held *held;

static void hold(struct slot *self, unsigned k, uint64_t how)
{
	void *p = how < 16 ? page_alloc(self, (unsigned)how - 1, PAGE_DATA, 0) :
			     cache_alloc(self, (enum cache_id)(how - 16));

	held[k].p = p;
	held[k].how = p ? how : 0;
}

static void let_go(struct slot *self, unsigned k)
{
	uint64_t how = held[k].how;

	held[k].how = 0;
	if (how && how < 16)
		page_free(self, held[k].p, (unsigned)how - 1);
	else if (how)
		cache_free(self, (enum cache_id)(how - 16), held[k].p);
}

/* Growth, splits, refills, slabs, drains, merges, and giving back. */
static void work(struct slot *self)
{
	unsigned k;

	for (k = 0; k < 60; k++)
		hold(self, k, 1);
	for (k = 60; k < 70; k++)
		hold(self, k, 1 + k % 6);
	hold(self, 70, 1 + PAGE_MAX_ORDER);
	for (k = 71; k < 111; k++)
		hold(self, k, 16 + CACHE_2048);
	for (k = 111; k < 160; k++)
		hold(self, k, 16 + k % CACHE_IDS);
	for (k = 0; k < 160; k += 2)
		let_go(self, k);
	for (k = 1; k < 160; k += 2)
		let_go(self, k);
	pages_trim(self);
}

/* A little of everything, until the segment is full. */
static void work_until_full(struct slot *self)
{
	unsigned k;

	for (k = 0; k < 15; k++)
		hold(self, k, 7);
	for (; k < 100; k++)
		hold(self, k, 1 + 2 * (k % 2));
	for (; k < 160; k++)
		hold(self, k, 16 + CACHE_1024);
	for (k = 0; k < 160; k++)
		let_go(self, k);
}

static int victim(void *arg)
{
	uint64_t *how = arg;
	struct slot *self = slot_self(seg_test.seg);

	kill_point_arm(how[0]);
	(how[1] ? work_until_full : work)(self);
	how[2] = kill_point_count();
	return 0;
}

/* The dead one's slot is freed by reaping, or its locks are met first. */
static void survive(struct slot *self, bool by_lock)
{
	void *run;

	if (by_lock) {
		if ((run = page_alloc(self, 1, PAGE_DATA, 0)))
			page_free(self, run, 1);
		if ((run = cache_alloc(self, CACHE_2048)))
			cache_free(self, CACHE_2048, run);
	}
	slot_reap(self);
}

static void say_where(void)
{
	fprintf(stderr, "killed at %llu\n", (unsigned long long)((uint64_t *)(held + HELD))[0]);
}

/* One call of the victim was in flight: what it was given or was giving back may be lost, no more. */
static uint64_t check_after(struct slot *self)
{
	struct segment_counts c;
	uint64_t lost, objects = 0;
	unsigned k;

	if (segment_check(self, &c))
		say_where();
	seg_test_counts();
	for (k = 0; k < HELD; k++)
		let_go(self, k);
	pages_trim(self);
	c = seg_test_counts();
	for (k = 0; k < CACHE_IDS; k++)
		objects += c.objects[k];
	lost = c.used - c.kind[PAGE_SLAB];
	CHECK(objects + (lost != 0) <= 1);
	CHECK(c.kind[PAGE_SLAB] <= 1);
	CHECK((lost & (lost - 1)) == 0);
	CHECK(lost + objects == 0 || lost <= SEG_CHUNK_PAGES);
	return lost + objects;
}

static bool die_at(uint64_t n, uint64_t full, bool by_lock, uint64_t *lost)
{
	uint64_t *how = (uint64_t *)(held + HELD);
	int status;

	seg_test_make(full ? 4 << 20 : 32 << 20);
	memset(held, 0, HELD * sizeof(*held));
	how[0] = n;
	how[1] = full;
	slot_self(seg_test.seg);
	status = test_in_child(victim, how);

	CHECK(status == 0 || status == 128 + SIGKILL);
	survive(slot_self(seg_test.seg), by_lock);
	*lost += check_after(slot_self(seg_test.seg)) != 0;
	seg_test_remove(NULL);
	return status != 0;
}

static void kill_at_every(uint64_t full)
{
	uint64_t n, lost = 0, step = test_scaled(1) > 1 ? 1 : 5;

	/* A prime step in the quick run, another offset each time. */
	for (n = 1 + (step > 1 ? test_seed() % step : 0); die_at(n, full, n % 16 == 0, &lost); n += step)
		;
	printf("killed at %llu points, %llu times a call's own block was lost\n", (unsigned long long)(n / step),
	       (unsigned long long)lost);
	assert_true(n > 300);
}

static void a_death_at_any_store_of_the_allocator_is_repaired(void **state)
{
	(void)state;
	kill_at_every(0);
}

static void also_in_a_full_segment(void **state)
{
	(void)state;
	kill_at_every(1);
}

static int make_held(void **state)
{
	(void)state;
	held = mmap(NULL, HELD * sizeof(*held) + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return held == MAP_FAILED;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_at_any_store_of_the_allocator_is_repaired),
		cmocka_unit_test(also_in_a_full_segment),
	};

	return cmocka_run_group_tests(tests, make_held, NULL);
}

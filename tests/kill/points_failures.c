/* SPDX-License-Identifier: MIT */
/*
 * Each n-th request for memory, and each n-th fallocate, mmap, madvise, membarrier and futex call inside a call fails, for every n
 * and each kind of call.  The call may fail; it does not crash, nothing is damaged, nothing is left over, and a call
 * that does not change file data has happened or has not.  The same while a shelf is made, while one is attached to, and
 * while others clear away what a dead process left.
 */
#include "harness.h"

#include <signal.h>

#include "base/points.h"
#include "deeds.h"
#include "epoch/epoch.h"
#include "segment/slot.h"
#include "task/task.h"

enum { REQUESTS_MAX = 2000 };

static const char *const kind_names[FAIL_KINDS] = {"", "allocation", "fallocate", "mmap", "madvise", "membarrier", "futex"};

struct attempt {
	const struct deed *deed;
	enum fail_kind kind;
	uint64_t n;
};

/* 0: the n-th request was made, and failed; 1: there were not so many. */
static int unlucky(void *arg)
{
	const struct attempt *a = arg;
	struct shelf_task *t = deed_task();
	struct slot *self = slot_self((struct segment *)(void *)shelf);
	bool failed;

	fail_arm(a->kind, a->n);
	a->deed->run(t);
	failed = fail_count() >= a->n;
	fail_arm(FAIL_NONE, 0);
	shelf_task_exit(t); /* the deed of that name has done so: -ESRCH */
	slot_release(self);
	return !failed;
}

static void say(void *ctx, const char *sentence)
{
	const struct attempt *a = ctx;

	fprintf(stderr, "%s, %s %llu failed: %s\n", a->deed->name, kind_names[a->kind], (unsigned long long)a->n, sentence);
}

static void must_be_good(struct attempt *a, const char *before, const char *after)
{
	struct shelf_check_options o = {.say = say, .ctx = a};
	struct shelf_check_report r;
	char found[DUMP_SIZE];

	CHECK(shelf_verify(shelf, &o, &r) == 0);
	CHECK(r.alone && !r.faults && !r.left);
	tree_dump(found);
	if (a->deed->loose || !strcmp(found, before) || !strcmp(found, after))
		return;
	say(a, "neither as before nor as after:");
	fputs(found, stderr);
	abort();
}

static bool fail_once(struct attempt *a, char *before, char *after)
{
	int how;

	tree_make();
	if (!a->n)
		tree_dump(before);
	how = test_in_child(unlucky, a);
	CHECK(how == 0 || how == 1);
	if (!a->n)
		tree_dump(after);
	must_be_good(a, before, after);
	tree_remove();
	return how == 0;
}

static void what_fails_leaves_nothing(void **state)
{
	char before[DUMP_SIZE], after[DUMP_SIZE];
	uint64_t pairs[FAIL_KINDS] = {0};
	unsigned k, kind;

	(void)state;
	for (k = 0; k < deed_count; k++) {
		struct attempt a = {&deeds[k], FAIL_NONE, 0};

		if (!deed_wanted(&deeds[k]))
			continue;
		fail_once(&a, before, after);
		for (kind = FAIL_ALLOC; kind < FAIL_KINDS; kind++) {
			a.kind = (enum fail_kind)kind;
			for (a.n = 1; a.n < REQUESTS_MAX && fail_once(&a, before, after); a.n++)
				pairs[kind]++;
			CHECK(a.n < REQUESTS_MAX);
		}
	}
	for (kind = FAIL_ALLOC; kind < FAIL_KINDS; kind++)
		fprintf(stderr, "%llu failures of a call and its n-th %s\n", (unsigned long long)pairs[kind], kind_names[kind]);
	CHECK(pairs[FAIL_ALLOC] > 0 || getenv("DEED"));
}

/* Making a shelf and attaching to it: an error, and no file is left; or it is there. */
static void a_shelf_that_cannot_be_made_is_not_there(void **state)
{
	const struct shelf_options options = {.size = 16 << 20, .mode = 01777};
	char name[TEST_NAME_SIZE];
	uint64_t n, pairs = 0;
	struct shelf *other;
	unsigned kind;
	int err = 0;

	(void)state;
	for (kind = FAIL_ALLOC; kind < FAIL_KINDS; kind++)
		for (n = 1; n < REQUESTS_MAX; n++, pairs++) {
			uint64_t made;

			fail_arm((enum fail_kind)kind, n);
			err = shelf_create(fresh_name(name), &options, &other, NULL);
			made = fail_count();
			fail_arm(FAIL_NONE, 0);
			if (!err) {
				CHECK(shelf_verify(other, NULL, NULL) == 0);
				shelf_detach(other);
			}
			CHECK(shelf_remove(name, NULL) == (err ? -ENOENT : 0));
			if (made < n)
				break;
		}
	fprintf(stderr, "%llu failures while a shelf is made\n", (unsigned long long)pairs);
	CHECK(pairs > 10);
}

/* ---- attaching ------------------------------------------------------------------------------------------- */

/* A process that has nothing of the shelf but its name: 0: it was refused, or it worked; 1: there were not so many requests. */
static int unlucky_comer(void *arg)
{
	const struct attempt *a = arg;
	struct shelf_task *t = NULL;
	char why[SHELF_WHY] = "";
	struct shelf *mine;
	bool failed;
	int err;

	shelf_detach(shelf);
	fail_arm(a->kind, a->n);
	err = shelf_attach(deeds_name, 0, &mine, why);
	if (!err && shelf_task_create(mine, CRED, &t))
		t = NULL;
	if (t)
		shelf_close(t, shelf_open(t, "/a/one", O_RDWR, 0));
	failed = fail_count() >= a->n;
	fail_arm(FAIL_NONE, 0);
	CHECK(!err || why[0]);
	if (t)
		shelf_task_exit(t);
	if (!err)
		shelf_detach(mine);
	return !failed;
}

static void who_cannot_attach_leaves_nothing(void **state)
{
	static const struct deed attaching = {"attach", false, NULL};
	struct attempt a = {&attaching, FAIL_NONE, 0};
	char before[DUMP_SIZE];
	uint64_t pairs = 0;
	int how;

	(void)state;
	tree_make();
	tree_dump(before);
	for (a.kind = FAIL_ALLOC; a.kind < FAIL_KINDS; a.kind++)
		for (a.n = 1, how = 0; a.n < REQUESTS_MAX && !how; a.n++) {
			how = test_in_child(unlucky_comer, &a);
			CHECK(how == 0 || how == 1);
			pairs += !how;
			must_be_good(&a, before, before);
		}
	tree_remove();
	fprintf(stderr, "%llu failures while a shelf is attached to\n", (unsigned long long)pairs);
	CHECK(pairs > 3);
}

/* ---- recovery -------------------------------------------------------------------------------------------- */

struct death {
	const struct deed *deed;
	uint64_t store;
};

static int victim(void *arg)
{
	const struct death *d = arg;
	struct shelf_task *t = deed_task();

	kill_point_arm(d->store);
	d->deed->run(t);
	kill_point_arm(0);
	return 0;
}

static int unlucky_recoverer(void *arg)
{
	const struct attempt *a = arg;
	struct slot *self = slot_self((struct segment *)(void *)shelf);
	bool failed;

	fail_arm(a->kind, a->n);
	slot_reap(self);
	task_sweep(self);
	epoch_reclaim(self);
	failed = fail_count() >= a->n;
	fail_arm(FAIL_NONE, 0);
	slot_release(self);
	return !failed;
}

/* False: the call was over before that store. */
static bool die_and_fail(struct attempt *a, struct death *d, const char *before, const char *after, uint64_t *pairs)
{
	int died = 1, how = 0;

	for (a->n = 1; a->n < REQUESTS_MAX && !how; a->n++) {
		tree_make();
		died = test_in_child(victim, d);
		CHECK(died == 0 || died == 128 + SIGKILL);
		how = test_in_child(unlucky_recoverer, a);
		CHECK(how == 0 || how == 1);
		*pairs += !how;
		must_be_good(a, before, after);
		tree_remove();
	}
	CHECK(a->n < REQUESTS_MAX);
	return died;
}

static void plan(struct death *d, char *before, char *after)
{
	d->store = 0;
	tree_make();
	tree_dump(before);
	CHECK(test_in_child(victim, d) == 0);
	tree_dump(after);
	tree_remove();
}

static void what_the_dead_left_is_cleared_away_by_who_can(void **state)
{
	uint64_t random = test_seed(), stride = test_scaled(1) > 1 ? 4 : 40, pairs = 0;
	char before[DUMP_SIZE], after[DUMP_SIZE];
	bool died;

	(void)state;
	for (unsigned k = 0; k < deed_count; k++) {
		struct attempt a = {&deeds[k], FAIL_NONE, 0};
		struct death d = {&deeds[k], 0};

		if (!deed_wanted(&deeds[k]))
			continue;
		plan(&d, before, after);
		do {
			d.store += 1 + test_random(&random) % stride;
			for (a.kind = FAIL_ALLOC, died = true; a.kind < FAIL_KINDS && died; a.kind++)
				died = die_and_fail(&a, &d, before, after, &pairs);
		} while (died);
	}
	fprintf(stderr, "%llu failures after a death\n", (unsigned long long)pairs);
	CHECK(pairs > 0 || getenv("DEED"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fails_leaves_nothing),
		cmocka_unit_test(a_shelf_that_cannot_be_made_is_not_there),
		cmocka_unit_test(who_cannot_attach_leaves_nothing),
		cmocka_unit_test(what_the_dead_left_is_cleared_away_by_who_can),
	};

	return cmocka_run_group_tests(tests, deeds_setup, deeds_teardown);
}

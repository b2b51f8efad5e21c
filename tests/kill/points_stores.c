/* SPDX-License-Identifier: MIT */
/*
 * A process dies at its n-th tracked store inside a call, for every n and each kind of call; and another at the m-th
 * store of what it does to recover from that.  Afterwards there is no damage, the tree is as before the call or as after
 * it, and pages, objects and counts add up: nothing is left over for `shelf check --repair`.
 */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>

#include "base/points.h"
#include "deeds.h"
#include "epoch/epoch.h"
#include "segment/slot.h"
#include "task/task.h"

enum { STORES_MAX = 3000 };

static struct slot *self_of(void)
{
	return slot_self((struct segment *)(void *)shelf);
}

/* ---- dying -------------------------------------------------------------------------------------------- */

struct attempt {
	const struct deed *deed;
	uint64_t n;
};

static int victim(void *arg)
{
	const struct attempt *a = arg;
	struct shelf_task *t = deed_task();

	kill_point_arm(a->n);
	a->deed->run(t);
	kill_point_arm(0);
	return 0;
}

/* What others do when they find it dead. */
static int recoverer(void *arg)
{
	const struct attempt *a = arg;
	struct slot *self = self_of();

	kill_point_arm(a->n);
	slot_reap(self);
	task_sweep(self);
	epoch_reclaim(self);
	kill_point_arm(0);
	return 0;
}

static void say(void *ctx, const char *sentence)
{
	fprintf(stderr, "%s: %s\n", (const char *)ctx, sentence);
}

static void must_be_good(const struct deed *d, uint64_t n, uint64_t m)
{
	struct shelf_check_options o = {.say = say, .ctx = (void *)(uintptr_t)d->name};
	struct shelf_check_report r;

	CHECK(shelf_verify(shelf, &o, &r) == 0 && r.alone);
	if (!r.faults && !r.left)
		return;
	fprintf(stderr, "%s, dead at store %llu, recoverer at %llu: %llu faults, %llu left over\n", d->name,
		(unsigned long long)n, (unsigned long long)m, (unsigned long long)r.faults, (unsigned long long)r.left);
	abort();
}

static void must_be_either(const struct deed *d, uint64_t n, const char *before, const char *after)
{
	char found[DUMP_SIZE];

	tree_dump(found);
	if (d->loose || !strcmp(found, before) || !strcmp(found, after))
		return;
	fprintf(stderr, "%s, dead at store %llu: neither as before nor as after:\n%s", d->name, (unsigned long long)n, found);
	abort();
}

static void must_be_empty(const struct deed *d, const struct shelf_counters *empty)
{
	struct shelf_counters c;

	tree_remove();
	CHECK(shelf_verify(shelf, NULL, NULL) == 0);
	CHECK(shelf_counters(shelf, &c) == 0);
	if (c.inodes != empty->inodes || c.files_open != empty->files_open || c.tasks != empty->tasks)
		fprintf(stderr, "%s: %llu inodes, %llu files, %llu tasks are left\n", d->name, (unsigned long long)c.inodes,
			(unsigned long long)c.files_open, (unsigned long long)c.tasks);
	CHECK(c.inodes == empty->inodes && c.files_open == empty->files_open && c.tasks == empty->tasks && !c.poisoned);
}

struct plan {
	char before[DUMP_SIZE], after[DUMP_SIZE];
	struct shelf_counters empty;
};

/* False: the call was over before the n-th store; or, m not 0, the recovery before the m-th. */
static bool die_once(const struct deed *d, const struct plan *p, uint64_t n, uint64_t m)
{
	struct attempt a = {d, n}, b = {d, m};
	int how, again = 0;

	tree_make();
	how = test_in_child(victim, &a);
	CHECK(how == 0 || how == 128 + SIGKILL);
	if (m) {
		again = test_in_child(recoverer, &b);
		CHECK(again == 0 || again == 128 + SIGKILL);
	}
	must_be_good(d, n, m);
	must_be_either(d, n, p->before, p->after);
	must_be_empty(d, &p->empty);
	return m ? again != 0 : how != 0;
}

static void plan_make(const struct deed *d, struct plan *p)
{
	struct attempt a = {d, 0};

	CHECK(shelf_verify(shelf, NULL, NULL) == 0 && shelf_counters(shelf, &p->empty) == 0);
	tree_make();
	tree_dump(p->before);
	CHECK(test_in_child(victim, &a) == 0);
	must_be_good(d, 0, 0);
	tree_dump(p->after);
	must_be_empty(d, &p->empty);
}

static void a_death_at_any_store_leaves_a_call_done_or_not_done(void **state)
{
	uint64_t pairs = 0, n;
	struct plan p;
	unsigned k;

	(void)state;
	for (k = 0; k < deed_count; k++) {
		if (!deed_wanted(&deeds[k]))
			continue;
		plan_make(&deeds[k], &p);
		for (n = 1; n < STORES_MAX && die_once(&deeds[k], &p, n, 0); n++)
			pairs++;
		if (n == 1 || n == STORES_MAX)
			fprintf(stderr, "%s: %llu stores\n", deeds[k].name, (unsigned long long)n - 1);
		CHECK(n > 1 && n < STORES_MAX);
	}
	fprintf(stderr, "%llu deaths, of a call and a store\n", (unsigned long long)pairs);
}

/* Every store of the recovery, after deaths at stores that are far apart. */
static void a_recovery_that_dies_is_recovered(void **state)
{
	uint64_t random = test_seed(), stride = test_scaled(1) > 1 ? 1 : 12, pairs = 0, n, m;
	struct plan p;
	unsigned k;

	(void)state;
	for (k = 0; k < deed_count; k++) {
		if (!deed_wanted(&deeds[k]))
			continue;
		plan_make(&deeds[k], &p);
		for (n = 1 + test_random(&random) % stride; n < STORES_MAX; n += 1 + test_random(&random) % (2 * stride)) {
			for (m = 1 + test_random(&random) % stride; die_once(&deeds[k], &p, n, m); m += 1 + test_random(&random) % (2 * stride))
				pairs++;
			if (!die_once(&deeds[k], &p, n, 0))
				break;
		}
	}
	fprintf(stderr, "%llu deaths, of a call, a store and a store of its recovery\n", (unsigned long long)pairs);
}

/* ---- dying where a call has failed --------------------------------------------------------------------------- */

struct failure {
	const struct deed *deed;
	uint64_t request, n;
};

static int unlucky_victim(void *arg)
{
	const struct failure *a = arg;
	struct shelf_task *t = deed_task();
	bool failed;

	fail_arm(FAIL_ALLOC, a->request);
	kill_point_arm(a->n);
	a->deed->run(t);
	kill_point_arm(0);
	failed = fail_count() >= a->request;
	fail_arm(FAIL_NONE, 0);
	return failed ? 0 : TEST_SKIP;
}

/* False: there were not so many requests for memory. */
static bool fail_and_die(struct failure *a, const struct plan *p, uint64_t *pairs)
{
	int how;

	for (a->n = 1, how = 1; how != 0; a->n++) {
		tree_make();
		how = test_in_child(unlucky_victim, a);
		CHECK(how == 0 || how == TEST_SKIP || how == 128 + SIGKILL);
		must_be_good(a->deed, a->n, 0);
		must_be_either(a->deed, a->n, p->before, p->after);
		must_be_empty(a->deed, &p->empty);
		if (how == TEST_SKIP)
			return false;
		++*pairs;
	}
	return true;
}

/* The first name of a directory: its table is made once the record is written. */
static void first_create(struct shelf_task *t)
{
	shelf_open(t, "/a/empty/new", O_CREAT | O_RDWR, 0644);
}
static void first_mkdir(struct shelf_task *t)
{
	shelf_mkdir(t, "/a/empty/new", 0700);
}
static void first_symlink(struct shelf_task *t)
{
	shelf_symlink(t, "somewhere", "/a/empty/new");
}
static void first_link(struct shelf_task *t)
{
	shelf_link(t, "/a/one", "/a/empty/new");
}
static void first_rename(struct shelf_task *t)
{
	shelf_rename(t, "/a/one", "/a/empty/new");
}
static void first_whiteout(struct shelf_task *t)
{
	shelf_renameat2(t, AT_FDCWD, "/a/one", AT_FDCWD, "/a/empty/new", 4);
}

static void a_change_of_names_that_found_no_memory_may_die_in_that(void **state)
{
	static const struct deed firsts[] = {
		{"first create", false, first_create}, {"first mkdir", false, first_mkdir},
		{"first symlink", false, first_symlink}, {"first link", false, first_link},
		{"first rename", false, first_rename}, {"first whiteout", false, first_whiteout},
	};
	struct failure a;
	uint64_t pairs = 0;
	struct plan p;
	unsigned k;

	(void)state;
	for (k = 0; k < sizeof(firsts) / sizeof(firsts[0]); k++) {
		if (!deed_wanted(&firsts[k]))
			continue;
		a.deed = &firsts[k];
		plan_make(a.deed, &p);
		for (a.request = 1; fail_and_die(&a, &p, &pairs); a.request++)
			;
		CHECK(a.request > 2);
	}
	fprintf(stderr, "%llu deaths, of a call that found no memory and a store\n", (unsigned long long)pairs);
}

/* ---- what is freed beyond the magazine -------------------------------------------------------------------- */

enum { NODES = 250 }; /* more than a magazine holds, and less than a batch of the epoch */

static void nodes_come_and_go(struct shelf_task *t)
{
	char path[32];
	unsigned k;

	for (k = 0; k < NODES; k++) {
		snprintf(path, sizeof(path), "/n%u", k);
		CHECK(!shelf_mknod(t, path, S_IFCHR | 0600, 0x12345678));
	}
	for (k = 0; k < NODES; k++) {
		snprintf(path, sizeof(path), "/n%u", k);
		CHECK(!shelf_unlink(t, path));
	}
}

static int reclaiming_victim(void *arg)
{
	struct shelf_task *t;

	CHECK(!shelf_task_create(shelf, CRED, &t));
	nodes_come_and_go(t);
	kill_point_arm(*(const uint64_t *)arg);
	epoch_reclaim(self_of());
	kill_point_arm(0);
	return 0;
}

static void an_object_that_was_not_free_yet_is_freed_again(void **state)
{
	static const struct deed reclaim = {"reclaim", false, NULL};
	struct attempt again = {&reclaim, 0};
	uint64_t random = test_seed(), n;
	struct plan p;
	int how = 1;

	(void)state;
	if (!deed_wanted(&reclaim))
		return;
	CHECK(shelf_verify(shelf, NULL, NULL) == 0 && shelf_counters(shelf, &p.empty) == 0);
	for (n = 1; how; n += 1 + test_random(&random) % 5) {
		how = test_in_child(reclaiming_victim, &n);
		CHECK(how == 0 || how == 128 + SIGKILL);
		CHECK(test_in_child(recoverer, &again) == 0);
		must_be_good(&reclaim, n, 0);
		must_be_empty(&reclaim, &p.empty);
	}
	CHECK(n > NODES / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_at_any_store_leaves_a_call_done_or_not_done),
		cmocka_unit_test(a_recovery_that_dies_is_recovered),
		cmocka_unit_test(a_change_of_names_that_found_no_memory_may_die_in_that),
		cmocka_unit_test(an_object_that_was_not_free_yet_is_freed_again),
	};

	return cmocka_run_group_tests(tests, deeds_setup, deeds_teardown);
}

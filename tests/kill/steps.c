/* SPDX-License-Identifier: MIT */
/*
 * A process dies after its n-th instruction inside a call, for n all over each kind of call; the product as it ships.
 * Afterwards there is no damage, pages, objects and counts add up, and another goes on.  Where something is left over for `shelf
 * check --repair` it is told, and taken back, so that all such places are found in one run, which has failed then.
 *
 *   DEED      calls of that name only
 *   STRIDE    instructions from one death to the next, about; 1: each
 *   FROM      the first death, for one that went wrong
 */
#include "harness.h"

#include "deeds.h"
#include "step.h"

static struct shelf_task *victim;
static uint64_t deaths, objects, pages, others;

static void prepare(void *arg)
{
	(void)arg;
	victim = deed_task();
}

static void run(void *arg)
{
	((const struct deed *)arg)->run(victim);
}

static void say(void *ctx, const char *sentence)
{
	fprintf(stderr, "%s: %s\n", (const char *)ctx, sentence);
}

static void must_be_good(const struct deed *d, unsigned long n)
{
	struct shelf_check_options o = {.say = say, .ctx = (void *)(uintptr_t)d->name, .flags = SHELF_VERIFY_REPAIR};
	struct shelf_check_report r;

	CHECK(shelf_verify(shelf, &o, &r) == 0 && r.alone);
	objects += r.left_objects;
	pages += r.left_pages;
	others += r.left - (r.left_objects != 0) - (r.left_pages != 0);
	if (r.faults || r.left)
		fprintf(stderr, "%s: after %lu, at %#lx\n", d->name, n, step_last);
	CHECK(!r.faults);
	CHECK(shelf_verify(shelf, &o, &r) == 0 && !r.faults && !r.left);
}

static void die_all_over(const struct deed *d, uint64_t *random, unsigned stride)
{
	struct step_job job = {.prepare = prepare, .run = run, .arg = (void *)(uintptr_t)d};
	struct step_path path = {0};
	const char *from = getenv("FROM");
	unsigned long n = from ? strtoul(from, NULL, 10) : 1 + test_random(random) % stride;
	bool killed = true;

	for (; killed; n += 1 + test_random(random) % (2 * stride - 1)) {
		tree_make();
		killed = step_kill(&job, &path, n);
		must_be_good(d, n);
		tree_remove();
		deaths += killed;
	}
	step_path_end(&path);
}

static void a_death_at_any_instruction_damages_nothing_and_leaves_nothing_over(void **state)
{
	uint64_t random = test_seed();
	const char *wanted = getenv("STRIDE");
	unsigned k, stride = wanted ? (unsigned)atoi(wanted) : 6000 / test_scaled(1);

	(void)state;
	if (!step_possible())
		skip();
	for (k = 0; k < deed_count; k++)
		if (deed_wanted(&deeds[k]))
			die_all_over(&deeds[k], &random, stride);
	fprintf(stderr, "%llu deaths; left over: %llu objects, %llu pages, %llu counts\n", (unsigned long long)deaths,
		(unsigned long long)objects, (unsigned long long)pages, (unsigned long long)others);
	CHECK(!objects && !pages && !others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_at_any_instruction_damages_nothing_and_leaves_nothing_over),
	};

	return cmocka_run_group_tests(tests, deeds_setup, deeds_teardown);
}

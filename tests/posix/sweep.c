/* SPDX-License-Identifier: MIT */
/* Whose task is whose: sweepers that die, slots that are used again, tasks that change hands. */
#include <fcntl.h>
#include <signal.h>

#include "lib/fixture.h"

#include "task/task_priv.h"

static struct slot *self_of(struct px *px)
{
	return task_slot(px->t);
}

static uint64_t tasks(struct px *px)
{
	struct shelf_counters c;

	CHECK(!shelf_counters(px->shelf, &c));
	return c.tasks;
}

static int dies_in_its_exit(struct px *px, void *arg)
{
	uint64_t stuck;

	CHECK(shelf_open(px->t, "held", O_CREAT | O_RDWR, 0600) >= 0);
	*(uint32_t *)arg = slot_id(self_of(px));
	CHECK(task_claim(self_of(px), px->t, load_relaxed(&px->t->owner), &stuck));
	raise(SIGKILL);
	return 0;
}

/* The next thread to come has the dead one's slot, and lives. */
static void sweep_from_the_same_slot(struct px *px, void *arg, unsigned k)
{
	uint32_t *id = arg;

	CHECK(k == 0);
	CHECK(slot_id(self_of(px)) == *id);
	CHECK(task_sweep(self_of(px)) == 1);
}

static void a_task_whose_process_died_in_its_exit_goes_though_its_slot_is_used_again(void **state)
{
	struct px *px = *state;
	uint64_t before = tasks(px);
	uint32_t *id = mem_alloc(self_of(px), 64);

	assert_int_equal(test_wait(px_fork(px, 0, dies_in_its_exit, id)), 128 + SIGKILL);
	assert_int_equal(tasks(px), before + 1);
	assert_int_equal(slot_reap(self_of(px)), 1);
	px_threads(px, 1, sweep_from_the_same_slot, id);
	assert_int_equal(tasks(px), before);
	mem_free(self_of(px), id, 64);
}

static int dies_in_a_section(struct px *px, void *arg)
{
	(void)arg;
	epoch_enter(self_of(px));
	raise(SIGKILL);
	return 0;
}

/* Whatever a rename retires it retires under locks, where nobody is taken over. */
static void who_only_renames_takes_a_dead_reader_over(void **state)
{
	struct px *px = *state;
	struct epoch_root *root = epoch_root_of(self_of(px));
	uint64_t e;

	px_write_file(px->t, "a", "");
	assert_int_equal(test_wait(px_fork(px, 0, dies_in_a_section, NULL)), 128 + SIGKILL);
	e = load_relaxed(&root->global);
	while (load_relaxed(&root->global) < e + 2) {
		CHECK(shelf_rename(px->t, "a", "b") == 0);
		CHECK(shelf_rename(px->t, "b", "a") == 0);
	}
	assert_int_equal(task_sweep(self_of(px)), 1);
}

static int lives_on(struct px *px, void *arg)
{
	(void)arg;
	return shelf_task_exit(px->t);
}

/* The sweeper asked about the parent, and meanwhile the child has taken the task over. */
static void a_task_that_was_adopted_meanwhile_is_not_taken_apart(void **state)
{
	struct px *px = *state;
	struct shelf_task *t;
	uint64_t stale, stuck;

	assert_int_equal(shelf_task_fork(px->t, 0, &t), 0);
	stale = task_owner_word(task_owner_pid(load_relaxed(&t->owner)), 1);
	assert_false(task_claim(self_of(px), t, stale, &stuck));
	assert_int_equal(load_relaxed(&t->state), TASK_LIVE);
	assert_int_equal(shelf_task_adopt(t), 0);
	assert_int_equal(shelf_task_exit(t), 0);
	assert_int_equal(test_wait(px_fork(px, 0, lives_on, NULL)), 0);
}

static void who_adopts_a_task_that_is_being_swept_is_told(void **state)
{
	struct px *px = *state;
	struct shelf_task *t;
	uint64_t stuck;

	assert_int_equal(shelf_task_fork(px->t, 0, &t), 0);
	assert_true(task_claim(self_of(px), t, load_relaxed(&t->owner), &stuck));
	assert_int_equal(shelf_task_adopt(t), -ESRCH);
	task_release(self_of(px), t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PX_TEST(a_task_whose_process_died_in_its_exit_goes_though_its_slot_is_used_again),
		PX_TEST(who_only_renames_takes_a_dead_reader_over),
		PX_TEST(a_task_that_was_adopted_meanwhile_is_not_taken_apart),
		PX_TEST(who_adopts_a_task_that_is_being_swept_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

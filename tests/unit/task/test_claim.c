/* SPDX-License-Identifier: MIT */
/* Who takes a task apart: one thread, once. */
#include <pthread.h>

#include "harness.h"

#include <shelf/shelf.h>

#include "task/task_priv.h"

struct fixture {
	char name[TEST_NAME_SIZE];
	struct shelf *shelf;
	struct shelf_task *t;
	struct slot *self;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct shelf_options options = { .size = 8u << 20 };

	fresh_name(f->name);
	if (shelf_create(f->name, &options, &f->shelf, NULL) || shelf_task_create(f->shelf, NULL, &f->t))
		return -1;
	f->self = slot_self(shelf_segment(f->shelf));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	bool damaged = segment_poisoned(f->self->seg);

	shelf_detach(f->shelf);
	shelf_remove(f->name, NULL);
	free(f);
	return damaged ? -1 : 0;
}

static void *take_apart(void *arg)
{
	return (void *)(intptr_t)shelf_task_exit(arg);
}

static void a_task_that_is_gone_is_not_taken_apart_again_when_that_thread_has_ended(void **state)
{
	struct fixture *f = *state;
	uint64_t owner = load_relaxed(&f->t->owner), stuck; /* nobody changes it */
	pthread_t other;
	void *result;

	epoch_enter(f->self); /* as a sweeper that has just found it */
	assert_int_equal(pthread_create(&other, NULL, take_apart, f->t), 0);
	assert_int_equal(pthread_join(other, &result), 0);
	assert_null(result);
	assert_false(task_claim(f->self, f->t, owner, &stuck));
	epoch_exit(f->self);
}

static void a_task_adopted_meanwhile_is_not_swept(void **state)
{
	struct fixture *f = *state;
	uint64_t stuck;

	assert_false(task_claim(f->self, f->t, task_owner_word(1, 1), &stuck));
	assert_int_equal(shelf_task_adopt(f->t), 0);
	assert_int_equal(shelf_task_exit(f->t), 0);
}

static void a_task_that_is_being_swept_cannot_be_adopted(void **state)
{
	struct fixture *f = *state;
	uint64_t stuck;

	assert_true(task_claim(f->self, f->t, load_relaxed(&f->t->owner), &stuck));
	assert_int_equal(shelf_task_adopt(f->t), -ESRCH);
	task_release(f->self, f->t);
}

/* As a thread whose process calls exec in the middle of it, and attaches again. */
static int claim_and_disown(void *arg)
{
	struct fixture *f = arg;
	uint64_t stuck;

	CHECK(task_claim(slot_self(shelf_segment(f->shelf)), f->t, load_relaxed(&f->t->owner), &stuck)); /* nobody changes it */
	slot_tls_disown();
	return 0;
}

static void a_task_whose_sweeper_was_disowned_waits_until_that_slot_is_taken_over(void **state)
{
	struct fixture *f = *state;
	uint64_t owner = load_relaxed(&f->t->owner), stuck; /* nobody changes it */

	assert_int_equal(test_in_child(claim_and_disown, f), 0);
	assert_false(task_claim(f->self, f->t, owner, &stuck));
	assert_int_not_equal(stuck, 0);
	assert_int_not_equal(stuck & 0xffff, slot_id(f->self));
	assert_true(task_settle_releaser(f->self, stuck));
	assert_int_equal(slot_state_of(slot_by_id(f->self->seg, stuck & 0xffff)), SLOT_IDLE);
	assert_true(task_claim(f->self, f->t, owner, &stuck));
	task_release(f->self, f->t);
}

static void a_task_that_is_gone_is_not_handed_over_with_anothers_memory(void **state)
{
	struct fixture *f = *state;
	uint64_t owner = load_relaxed(&f->t->owner), cred_id = load_relaxed(&f->t->cred_id); /* nobody changes them */
	struct shelf_task *next = NULL;
	unsigned k;

	assert_int_equal(shelf_task_exit(f->t), 0);
	assert_int_equal(epoch_barrier(f->self, 1000000000), 0);
	for (k = 0; k < 100 && next != f->t; k++)
		assert_int_equal(shelf_task_create(f->shelf, NULL, &next), 0);
	assert_ptr_equal(next, f->t);
	task_hand_over(f->shelf, f->t, cred_id, 1, 1);
	assert_true(load_relaxed(&next->owner) == owner);
	task_hand_over(f->shelf, next, load_relaxed(&next->cred_id), 1, 1);
	assert_true(load_relaxed(&next->owner) == task_owner_word(1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_task_that_is_gone_is_not_taken_apart_again_when_that_thread_has_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(a_task_adopted_meanwhile_is_not_swept, setup, teardown),
		cmocka_unit_test_setup_teardown(a_task_that_is_being_swept_cannot_be_adopted, setup, teardown),
		cmocka_unit_test_setup_teardown(a_task_that_is_gone_is_not_handed_over_with_anothers_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(a_task_whose_sweeper_was_disowned_waits_until_that_slot_is_taken_over, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

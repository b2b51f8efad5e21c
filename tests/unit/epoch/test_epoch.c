/* SPDX-License-Identifier: MIT */
/* Read sections and deferred freeing: who holds what back, and who does not. */
#include "base/clock.h"
#include "epoch/epoch_priv.h"
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#define SECOND INT64_C(1000000000)
#define LIVE 0x11feu
#define FREED 0xdeadu

struct object {
	struct retired retired;
	atomic_u64 state;
};

/* What children report. */
struct shared {
	atomic_u64 freed;
	atomic_u32 ready, go;
};

static struct segment *seg;
static struct slot *self;
static struct shared *sh;

static void free_object(struct slot *by, struct retired *r)
{
	struct object *obj = container_of(r, struct object, retired);

	CHECK(load_relaxed(&obj->state) == LIVE);
	store_relaxed(&obj->state, FREED);
	add_relaxed(&sh->freed, 1);
	mem_free(by, obj, sizeof(*obj));
}

static struct object *object_make(struct slot *by)
{
	struct object *obj = mem_alloc(by, sizeof(*obj));

	CHECK(obj);
	store_relaxed(&obj->state, LIVE);
	return obj;
}

static void object_retire(struct slot *by, struct object *obj)
{
	epoch_retire(by, &obj->retired, RETIRE_SPECIAL, 0);
}

static void retire_many(struct slot *by, unsigned n)
{
	while (n--)
		object_retire(by, object_make(by));
}

static int setup(void **state)
{
	struct segment_options opt = {.size = 64 << 20};
	char name[TEST_NAME_SIZE], why[256];

	(void)state;
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(sh != MAP_FAILED);
	if (segment_create(fresh_name(name), &opt, &seg, why))
		fail_msg("%s", why);
	retire_register(RETIRE_SPECIAL, free_object);
	assert_int_equal(epoch_init(seg), 0);
	segment_set_ready(seg);
	assert_int_equal(epoch_attach(seg), 0);
	segment_remove(name, why);
	self = slot_self(seg);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	segment_detach(seg);
	return munmap(sh, sizeof(*sh));
}

static uint64_t freed(void)
{
	return load_relaxed(&sh->freed);
}

/* ---- one thread */

static void sections_nest(void **state)
{
	(void)state;
	epoch_enter(self);
	epoch_enter(self);
	epoch_exit(self);
	assert_true(epoch_inside(self));
	assert_true(load_relaxed(&self->epoch) != 0);
	epoch_exit(self);
	assert_false(epoch_inside(self));
	assert_int_equal(load_relaxed(&self->epoch), 0);
}

static void nobody_inside_means_freed_at_once(void **state)
{
	(void)state;
	retire_many(self, 10);
	assert_int_equal(freed(), 0);
	assert_int_equal(epoch_reclaim(self), 10);
	assert_int_equal(freed(), 10);
	assert_int_equal(load_relaxed(&epoch_root_of(self)->waiting), 0);
}

static void the_retirers_own_section_counts(void **state)
{
	struct object *obj = object_make(self);
	unsigned i;

	(void)state;
	epoch_enter(self);
	object_retire(self, obj);
	for (i = 0; i < 5; i++)
		epoch_reclaim(self);
	assert_int_equal(load_relaxed(&obj->state), LIVE);
	epoch_exit(self);
	epoch_reclaim(self);
	assert_int_equal(freed(), 1);
}

static void a_batch_is_reclaimed_without_being_asked(void **state)
{
	(void)state;
	retire_many(self, 3 * EPOCH_BATCH);
	assert_true(freed() >= 2 * EPOCH_BATCH);
}

static void a_batch_that_falls_due_inside_runs_at_the_exit(void **state)
{
	(void)state;
	epoch_enter(self);
	epoch_enter(self);
	retire_many(self, EPOCH_BATCH + 5);
	assert_int_equal(freed(), 0);
	epoch_exit(self);
	assert_true(epoch_inside(self));
	epoch_exit(self);
	assert_false(epoch_inside(self));
	assert_int_equal(load_relaxed(&self->epoch), 0);
	assert_int_equal(freed(), EPOCH_BATCH + 5);
}

static void retire_nested(struct slot *by, struct retired *r)
{
	struct object *obj = container_of(r, struct object, retired);
	uint64_t left = load_relaxed(&obj->state);

	mem_free(by, obj, sizeof(*obj));
	add_relaxed(&sh->freed, 1);
	if (left) {
		obj = object_make(by);
		store_relaxed(&obj->state, left - 1);
		epoch_retire(by, &obj->retired, RETIRE_TASK, 0);
	}
}

static void a_retire_function_may_retire(void **state)
{
	struct object *obj = object_make(self);

	(void)state;
	retire_register(RETIRE_TASK, retire_nested);
	store_relaxed(&obj->state, 20);
	epoch_retire(self, &obj->retired, RETIRE_TASK, 0);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(freed(), 21);
}

static void memory_and_pages_are_freed_by_kind(void **state)
{
	struct segment_space before, after;
	struct retired *r = mem_alloc(self, 1000);

	(void)state;
	segment_space(seg, &before);
	epoch_retire(self, r, RETIRE_MEM, 1000);
	r = page_alloc(self, 3, PAGE_DATA, 0);
	epoch_retire(self, r, RETIRE_PAGES, 3);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	segment_space(seg, &after);
	assert_int_equal(load_relaxed(&epoch_root_of(self)->lost), 0);
	assert_true(after.free_pages >= before.free_pages);
}

/* ---- bags */

static void a_seal_cut_short_at_any_step_loses_and_doubles_nothing(void **state)
{
	struct bag *open = &self->bags[BAG_OPEN], *sealed;
	struct object *a = object_make(self), *b = object_make(self);
	unsigned step;

	(void)state;
	for (step = 0; step < 3; step++) {
		uint64_t base = freed();

		a = object_make(self);
		b = object_make(self);
		object_retire(self, a);
		bags_seal(self, self);
		object_retire(self, b);
		sealed = self->bags[1].head == &a->retired ? &self->bags[1] : &self->bags[2];
		if (step >= 1)
			open->tail->next = sealed->head;
		if (step >= 2)
			sealed->head = open->head;
		bags_repair(self);
		assert_int_equal(epoch_barrier(self, SECOND), 0);
		assert_int_equal(freed() - base, 2);
	}
}

/* ---- other threads */

static void *sit_inside(void *arg)
{
	struct slot *me = slot_self(seg);

	(void)arg;
	epoch_enter(me);
	store_release(&sh->ready, 1);
	while (!load_acquire(&sh->go))
		usleep(100);
	epoch_exit(me);
	return NULL;
}

static pthread_t reader_start(void)
{
	pthread_t thread;

	store_relaxed(&sh->ready, 0);
	store_relaxed(&sh->go, 0);
	CHECK(!pthread_create(&thread, NULL, sit_inside, NULL));
	while (!load_acquire(&sh->ready))
		usleep(100);
	return thread;
}

static void reader_end(pthread_t thread)
{
	store_release(&sh->go, 1);
	pthread_join(thread, NULL);
}

static void a_reader_holds_back_what_is_retired_after_it_entered(void **state)
{
	pthread_t reader = reader_start();

	(void)state;
	retire_many(self, 10);
	assert_int_equal(epoch_barrier(self, SECOND / 50), -ETIMEDOUT);
	assert_int_equal(freed(), 0);
	reader_end(reader);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(freed(), 10);
}

static void a_long_section_is_named(void **state)
{
	pthread_t reader = reader_start();
	uint32_t id;
	int64_t age;

	(void)state;
	assert_false(epoch_stalled(seg, &id, &age));
	retire_many(self, 1);
	epoch_barrier(self, 2 * EPOCH_STALL_NS);
	assert_true(epoch_stalled(seg, &id, &age));
	assert_int_not_equal(id, self->locker.id);
	assert_in_range(age, EPOCH_STALL_NS, 20 * EPOCH_STALL_NS);
	reader_end(reader);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_false(epoch_stalled(seg, &id, &age));
}

static void *retire_and_leave(void *arg)
{
	(void)arg;
	retire_many(slot_self(seg), 30);
	return NULL;
}

static void what_a_departed_thread_left_is_freed(void **state)
{
	pthread_t reader = reader_start(), thread;

	(void)state;
	CHECK(!pthread_create(&thread, NULL, retire_and_leave, NULL));
	pthread_join(thread, NULL);
	assert_int_equal(freed(), 0);
	reader_end(reader);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(freed(), 30);
}

static void too_much_waiting_slows_retirers_down(void **state)
{
	pthread_t reader = reader_start();
	struct lock lock = {0};
	int64_t fast, slow;

	(void)state;
	retire_many(self, EPOCH_WAITING_HIGH + 2 * EPOCH_BATCH);
	lock_acquire(&lock, &self->locker, LOCK_INODE); /* not under a lock */
	fast = clock_now_monotonic();
	retire_many(self, 4 * EPOCH_BATCH);
	fast = clock_now_monotonic() - fast;
	lock_release(&lock, &self->locker, LOCK_INODE);
	slow = clock_now_monotonic();
	retire_many(self, 4 * EPOCH_BATCH);
	slow = clock_now_monotonic() - slow;
	assert_true(slow >= 2 * EPOCH_PRESSURE_NS);
	assert_true(fast < slow);
	reader_end(reader);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
}

static void who_waits_for_a_reader_is_slowed_down_once_a_batch(void **state)
{
	pthread_t reader = reader_start();
	struct epoch_root *root = epoch_root_of(self);

	(void)state;
	retire_many(self, EPOCH_WAITING_HIGH + 2 * EPOCH_BATCH);
	while (self->retired_since || self->retired_unmoved)
		retire_many(self, 1);
	store_relaxed(&root->blocked, 0);
	retire_many(self, EPOCH_BATCH - 1);
	assert_int_equal(load_relaxed(&root->blocked), 0); /* not waited for */
	retire_many(self, 1);
	assert_int_not_equal(load_relaxed(&root->blocked), 0);
	reader_end(reader);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
}

/* ---- without interrupting anybody */

/* Does what it is told, once each time. */
struct helper {
	pthread_t thread;
	atomic_u32 order, done;
	struct slot *slot;
};
enum order { PASS = 1, ENTER, EXIT, LEAVE };

static void *helper_run(void *arg)
{
	struct helper *h = arg;
	uint32_t n = 0, order;

	h->slot = slot_self(seg);
	store_release(&h->done, ++n);
	for (;;) {
		while ((order = load_acquire(&h->order)) >> 8 != n)
			sched_yield();
		order &= 0xff;
		if (order == PASS)
			retire_many(h->slot, EPOCH_PASS);
		else if (order == ENTER)
			epoch_enter(h->slot);
		else if (order == EXIT)
			epoch_exit(h->slot);
		store_release(&h->done, ++n);
		if (order == LEAVE)
			return NULL;
	}
}

static void helper_tell(struct helper *h, enum order order)
{
	uint32_t n = load_acquire(&h->done);

	store_release(&h->order, n << 8 | order);
	while (load_acquire(&h->done) == n)
		sched_yield();
}

static void helper_start(struct helper *h)
{
	memset(h, 0, sizeof(*h));
	CHECK(!pthread_create(&h->thread, NULL, helper_run, h));
	while (!load_acquire(&h->done))
		sched_yield();
}

static void helper_end(struct helper *h)
{
	helper_tell(h, LEAVE);
	pthread_join(h->thread, NULL);
}

static void threads_that_retire_advance_by_passing(void **state)
{
	struct helper h;
	unsigned i;

	(void)state;
	helper_start(&h);
	seg->membarrier = false; /* nobody can be interrupted */
	for (i = 0; i < 6; i++) {
		helper_tell(&h, PASS);
		retire_many(self, EPOCH_PASS);
	}
	assert_true(freed() >= 4 * EPOCH_PASS);
	seg->membarrier = true;
	helper_end(&h);
}

static void who_does_not_pass_holds_all_back(void **state)
{
	struct helper h;
	uint64_t e;

	(void)state;
	helper_start(&h);
	seg->membarrier = false;
	e = load_relaxed(&epoch_root_of(self)->global);
	retire_many(self, 3 * EPOCH_BATCH);
	assert_int_equal(load_relaxed(&epoch_root_of(self)->global), e);
	assert_int_equal(freed(), 0);
	seg->membarrier = true;
	helper_end(&h);
}

static void a_section_begun_before_the_pass_of_others_holds_back(void **state)
{
	struct helper h;
	struct object *obj = object_make(self);

	(void)state;
	helper_start(&h);
	helper_tell(&h, PASS);
	helper_tell(&h, ENTER);
	object_retire(self, obj); /* the section may have it */
	retire_many(self, 5 * EPOCH_BATCH);
	assert_int_equal(load_relaxed(&obj->state), LIVE);
	helper_tell(&h, EXIT);
	helper_end(&h);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
}

static void who_sleeps_does_not_hinder_and_wakes_at_the_next_entry(void **state)
{
	struct helper h;
	struct object *obj = object_make(self);

	(void)state;
	helper_start(&h);
	retire_many(self, 1);
	epoch_reclaim(self); /* interrupts it once */
	assert_int_equal(load_relaxed(&h.slot->asleep), ASLEEP);
	seg->membarrier = false;
	retire_many(self, EPOCH_PASS);
	assert_int_equal(freed(), EPOCH_PASS + 1);
	helper_tell(&h, ENTER);
	assert_int_equal(load_relaxed(&h.slot->asleep), 0);
	object_retire(self, obj);
	retire_many(self, 2 * EPOCH_PASS);
	assert_int_equal(load_relaxed(&obj->state), LIVE);
	helper_tell(&h, EXIT);
	seg->membarrier = true;
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	helper_end(&h);
}

/* ---- other processes */

static int child_inside(void *arg)
{
	struct slot *me = slot_self(seg);

	if (arg)
		retire_many(me, 40);
	epoch_enter(me);
	store_release(&sh->ready, 1);
	while (!load_acquire(&sh->go))
		usleep(1000);
	epoch_exit(me);
	return 0;
}

static pid_t child_start(void *arg)
{
	pid_t pid = test_fork(child_inside, arg);

	while (!load_acquire(&sh->ready))
		usleep(100);
	return pid;
}

static void a_killed_reader_holds_up_reclaim_for_less_than_a_second(void **state)
{
	pid_t pid = child_start(NULL);

	(void)state;
	retire_many(self, 10);
	assert_int_equal(epoch_barrier(self, SECOND / 20), -ETIMEDOUT);
	kill(pid, SIGKILL);
	test_wait(pid);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(freed(), 10);
}

static void a_stopped_reader_is_not_dead(void **state)
{
	pid_t pid = child_start(NULL);
	uint32_t id;
	int64_t age;

	(void)state;
	kill(pid, SIGSTOP);
	retire_many(self, 10);
	assert_int_equal(epoch_barrier(self, SECOND / 4), -ETIMEDOUT);
	assert_int_equal(freed(), 0);
	assert_true(epoch_stalled(seg, &id, &age));
	assert_true(slot_alive(seg, id));
	kill(pid, SIGCONT);
	store_release(&sh->go, 1);
	assert_int_equal(test_wait(pid), 0);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
}

static void what_a_killed_process_retired_is_freed(void **state)
{
	pid_t pid = child_start(self);

	(void)state;
	kill(pid, SIGKILL);
	test_wait(pid);
	assert_int_equal(slot_reap(self), 1);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(freed(), 40);
}

static int child_of_a_section(void *arg)
{
	struct slot *parent = arg, *me = slot_self(seg);

	epoch_inherit(me, parent);
	CHECK(me != parent && epoch_inside(me));
	epoch_exit(me);
	CHECK(!epoch_inside(me) && !load_relaxed(&me->epoch));
	return 0;
}

static void fork_inside_a_section_leaves_both_balanced(void **state)
{
	(void)state;
	epoch_enter(self);
	assert_int_equal(test_in_child(child_of_a_section, self), 0);
	assert_true(epoch_inside(self) && load_relaxed(&self->epoch));
	epoch_exit(self);
	assert_false(epoch_inside(self));
}

/* ---- without membarrier */

static void everybody_fences_from_the_moment_somebody_has_to(void **state)
{
	struct epoch_root *root = epoch_root_of(self);
	pthread_t reader = reader_start();

	(void)state;
	epoch_use_fence(root);
	assert_int_equal(load_relaxed(&root->need_fence), EPOCH_FENCE_DONE);
	seg->membarrier = false;
	retire_many(self, 10);
	assert_int_equal(epoch_barrier(self, SECOND / 50), -ETIMEDOUT);
	assert_int_equal(freed(), 0);
	reader_end(reader);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(freed(), 10);
}

static void whoever_cannot_fence_others_does_not_advance(void **state)
{
	struct epoch_root *root = epoch_root_of(self);
	pthread_t reader = reader_start(); /* in the present epoch: it would not be in the way */
	uint64_t e = load_relaxed(&root->global);

	(void)state;
	seg->membarrier = false;
	store_relaxed(&root->need_fence, EPOCH_FENCE_SET); /* the joining process was killed here */
	retire_many(self, 10);
	assert_int_equal(epoch_reclaim(self), 0);
	assert_int_equal(load_relaxed(&root->global), e);
	seg->membarrier = true; /* somebody who can finishes the hand-over */
	reader_end(reader);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(load_relaxed(&root->need_fence), EPOCH_FENCE_DONE);
}

static void who_is_alone_advances_without_fencing_others(void **state)
{
	(void)state;
	seg->membarrier = false;
	retire_many(self, 10);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(freed(), 10);
	seg->membarrier = true;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void *retires_one(void *arg)
{
	struct slot *by = slot_self(seg);

	CHECK(slot_id(by) == *(uint32_t *)arg);
	object_retire(by, object_make(by));
	return NULL;
}

static void a_slot_whose_sweeper_died_does_not_hinder(void **state)
{
	pid_t gone = test_fork(nothing, NULL);
	struct helper h;

	(void)state;
	test_wait(gone);
	helper_start(&h);
	helper_end(&h); /* its slot is there, and idle */
	store_relaxed(&h.slot->state, (uint32_t)gone << 8 | SLOT_CLAIMING);
	retire_many(self, 1);
	epoch_reclaim(self); /* interrupts it once */
	seg->membarrier = false;
	retire_many(self, EPOCH_PASS);
	assert_int_equal(freed(), EPOCH_PASS + 1);
	seg->membarrier = true;
}

static void a_sweeper_killed_in_a_seal_loses_and_doubles_nothing(void **state)
{
	struct object *obj = object_make(self);
	pid_t gone = test_fork(nothing, NULL);
	pthread_t t;
	uint32_t id = 2;
	struct slot *slot;

	(void)state;
	test_wait(gone);
	CHECK(pthread_create(&t, NULL, retires_one, &id) == 0);
	pthread_join(t, NULL); /* slot 2 is there, and idle */
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	slot = slot_by_id(seg, id);
	bag_put(&slot->bags[BAG_OPEN], (obj->retired.type = RETIRE_SPECIAL, &obj->retired));
	slot->bags[1] = slot->bags[BAG_OPEN]; /* died before it cleared the open head */
	slot->bags[1].epoch = 1;
	store_relaxed(&slot->state, (uint32_t)gone << 8 | SLOT_CLAIMING);
	CHECK(pthread_create(&t, NULL, retires_one, &id) == 0);
	pthread_join(t, NULL);
	assert_int_equal(epoch_barrier(self, SECOND), 0);
	assert_int_equal(freed(), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define EPOCH_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		EPOCH_TEST(sections_nest),
		EPOCH_TEST(nobody_inside_means_freed_at_once),
		EPOCH_TEST(the_retirers_own_section_counts),
		EPOCH_TEST(a_batch_is_reclaimed_without_being_asked),
		EPOCH_TEST(a_batch_that_falls_due_inside_runs_at_the_exit),
		EPOCH_TEST(a_retire_function_may_retire),
		EPOCH_TEST(memory_and_pages_are_freed_by_kind),
		EPOCH_TEST(a_seal_cut_short_at_any_step_loses_and_doubles_nothing),
		EPOCH_TEST(a_reader_holds_back_what_is_retired_after_it_entered),
		EPOCH_TEST(a_long_section_is_named),
		EPOCH_TEST(what_a_departed_thread_left_is_freed),
		EPOCH_TEST(too_much_waiting_slows_retirers_down),
		EPOCH_TEST(who_waits_for_a_reader_is_slowed_down_once_a_batch),
		EPOCH_TEST(threads_that_retire_advance_by_passing),
		EPOCH_TEST(who_does_not_pass_holds_all_back),
		EPOCH_TEST(a_section_begun_before_the_pass_of_others_holds_back),
		EPOCH_TEST(who_sleeps_does_not_hinder_and_wakes_at_the_next_entry),
		EPOCH_TEST(a_killed_reader_holds_up_reclaim_for_less_than_a_second),
		EPOCH_TEST(a_stopped_reader_is_not_dead),
		EPOCH_TEST(what_a_killed_process_retired_is_freed),
		EPOCH_TEST(fork_inside_a_section_leaves_both_balanced),
		EPOCH_TEST(everybody_fences_from_the_moment_somebody_has_to),
		EPOCH_TEST(whoever_cannot_fence_others_does_not_advance),
		EPOCH_TEST(who_is_alone_advances_without_fencing_others),
		EPOCH_TEST(a_slot_whose_sweeper_died_does_not_hinder),
		EPOCH_TEST(a_sweeper_killed_in_a_seal_loses_and_doubles_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

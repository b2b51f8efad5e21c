/* SPDX-License-Identifier: MIT */
/* Locks of lock/lock.h among threads and processes, with stand-ins for slots. */
#include "base/clock.h"
#include "harness.h"
#include "lock/lock.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum { LOCKERS = 8 };

/* In shared memory: what a segment holds. */
struct shared {
	struct lock lock, other;
	struct locker locker[LOCKERS];
	atomic_u32 dead; /* id of the locker whose process is gone */
	atomic_u32 recovered;
	atomic_u32 ready;
	uint64_t counter, half; /* under lock; equal when it is free */
};
static struct shared *sh;

static bool owner_dead(struct locker *self, uint32_t id)
{
	(void)self;
	return load_acquire(&sh->dead) == id;
}

static void recover(struct locker *self, uint32_t id, struct lock *l)
{
	struct locker *dead = &sh->locker[id - 1];
	uint32_t was = id;

	(void)l;
	if (!cas_acq_rel(&sh->dead, &was, 0)) /* claims the slot */
		return;
	lock_adopt(&sh->lock, dead, self, LOCK_INODE);
	CHECK(lock_held_by(&sh->lock, self));
	sh->half = sh->counter;
	lock_release(&sh->lock, self, LOCK_INODE);
	lock_release_dead(dead);
	add_acq_rel(&sh->recovered, 1u);
}

static const struct lock_hooks hooks = {.owner_dead = owner_dead, .recover = recover};

static int setup(void **state)
{
	uint32_t i;

	(void)state;
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(sh != MAP_FAILED);
	for (i = 0; i < LOCKERS; i++)
		locker_init(&sh->locker[i], i + 1, &hooks);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return munmap(sh, sizeof(*sh));
}

static void taken_is_owned_and_free_is_zero(void **state)
{
	struct locker *a = &sh->locker[0], *b = &sh->locker[1];

	(void)state;
	lock_acquire(&sh->lock, a, LOCK_DIR);
	assert_true(lock_held_by(&sh->lock, a));
	assert_false(lock_held_by(&sh->lock, b));
	assert_false(lock_try(&sh->lock, b, LOCK_DIR));
	lock_release(&sh->lock, a, LOCK_DIR);
	assert_int_equal(load_relaxed(&sh->lock.word), 0);
	assert_true(lock_try(&sh->lock, b, LOCK_DIR));
	lock_release(&sh->lock, b, LOCK_DIR);
	assert_int_equal(load_relaxed(&b->n_held), 0);
}

static void a_pair_is_taken_in_either_order_and_once_when_equal(void **state)
{
	struct locker *a = &sh->locker[0];

	(void)state;
	lock_acquire_pair(&sh->other, &sh->lock, a, LOCK_INODE);
	assert_true(lock_held_by(&sh->lock, a) && lock_held_by(&sh->other, a));
	lock_release_pair(&sh->lock, &sh->other, a, LOCK_INODE);
	lock_acquire_pair(&sh->lock, &sh->lock, a, LOCK_INODE);
	assert_int_equal(load_relaxed(&a->n_held), 1);
	lock_release_pair(&sh->lock, &sh->lock, a, LOCK_INODE);
	assert_int_equal(load_relaxed(&sh->lock.word) | load_relaxed(&sh->other.word), 0);
}

static void locks_may_be_released_in_any_order(void **state)
{
	struct locker *a = &sh->locker[0];
	struct lock l[5] = {0};
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++)
		lock_acquire(&l[i], a, (enum lock_class)(LOCK_DIR + i));
	lock_release(&l[2], a, LOCK_DIR + 2);
	lock_release(&l[0], a, LOCK_DIR);
	lock_release(&l[4], a, LOCK_DIR + 4);
	assert_int_equal(load_relaxed(&a->n_held), 2);
	assert_int_equal(lock_release_dead(a), 2); /* the list had exactly the others */
	for (i = 0; i < 5; i++)
		assert_int_equal(load_relaxed(&l[i].word), 0);
}

/* ---- many at once */

static void bump(struct locker *self, unsigned long n)
{
	while (n--) {
		lock_acquire(&sh->lock, self, LOCK_INODE);
		CHECK(sh->counter == sh->half);
		sh->counter++;
		sh->half++;
		lock_release(&sh->lock, self, LOCK_INODE);
	}
}

static void *bump_thread(void *arg)
{
	bump(arg, test_scaled(20000));
	return NULL;
}

static void threads_exclude_each_other(void **state)
{
	pthread_t thread[4];
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, bump_thread, &sh->locker[i]));
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(sh->counter, 4 * test_scaled(20000));
}

static int bump_child(void *arg)
{
	bump(arg, test_scaled(20000));
	return 0;
}

static void processes_exclude_each_other(void **state)
{
	pid_t pid[3];
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++)
		pid[i] = test_fork(bump_child, &sh->locker[i]);
	for (i = 0; i < 3; i++)
		assert_int_equal(test_wait(pid[i]), 0);
	assert_int_equal(sh->counter, 3 * test_scaled(20000));
}

/* Long holds, so that everybody sleeps; a lost wake-up costs LOCK_PATIENCE and shows in the time. */
static void *hold_long(void *arg)
{
	unsigned i;

	for (i = 0; i < 100; i++) {
		lock_acquire(&sh->lock, arg, LOCK_INODE);
		usleep(300);
		lock_release(&sh->lock, arg, LOCK_INODE);
	}
	return NULL;
}

static void sleepers_are_woken_at_once(void **state)
{
	pthread_t thread[4];
	int64_t start = clock_now_monotonic();
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, hold_long, &sh->locker[i]));
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_true(clock_now_monotonic() - start < 2000 * 1000000L); /* 400 holds take about 150 ms */
}

/* ---- death */

static int take_and_wait(void *arg)
{
	struct locker *self = arg;

	lock_acquire(&sh->lock, self, LOCK_INODE);
	lock_acquire(&sh->other, self, LOCK_LEAF);
	sh->counter++; /* half is not: an update torn by death */
	store_release(&sh->ready, 1);
	pause();
	return 0;
}

static void kill_owner(struct locker *owner)
{
	pid_t pid = test_fork(take_and_wait, owner);

	while (!load_acquire(&sh->ready))
		usleep(100);
	kill(pid, SIGKILL);
	test_wait(pid);
	store_release(&sh->dead, owner->id);
}

static void a_dead_owner_is_recovered_before_the_lock_is_given(void **state)
{
	int64_t start;

	(void)state;
	kill_owner(&sh->locker[3]);
	start = clock_now_monotonic();
	bump(&sh->locker[0], 1); /* would fail on counter != half */
	assert_in_range(clock_now_monotonic() - start, LOCK_PATIENCE_NS, 20 * LOCK_PATIENCE_NS);
	assert_int_equal(load_relaxed(&sh->recovered), 1);
	assert_int_equal(load_relaxed(&sh->other.word), 0); /* its other lock went too */
}

static void only_one_of_many_waiters_recovers(void **state)
{
	pthread_t thread[3];
	unsigned i;

	(void)state;
	kill_owner(&sh->locker[3]);
	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, bump_thread, &sh->locker[i]));
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(load_relaxed(&sh->recovered), 1);
	assert_int_equal(sh->counter, 3 * test_scaled(20000) + 1);
}

static void *take_once(void *arg)
{
	lock_acquire(&sh->lock, arg, LOCK_INODE);
	lock_release(&sh->lock, arg, LOCK_INODE);
	return NULL;
}

static void a_slow_owner_keeps_its_lock(void **state)
{
	pthread_t thread;

	(void)state;
	lock_acquire(&sh->lock, &sh->locker[0], LOCK_INODE);
	CHECK(!pthread_create(&thread, NULL, take_once, &sh->locker[1]));
	usleep(4 * LOCK_PATIENCE_NS / 1000);
	assert_true(lock_held_by(&sh->lock, &sh->locker[0]));
	lock_release(&sh->lock, &sh->locker[0], LOCK_INODE);
	pthread_join(thread, NULL);
	assert_int_equal(load_relaxed(&sh->recovered), 0);
}

static void release_dead_leaves_the_locks_of_others(void **state)
{
	struct locker *dead = &sh->locker[0], *live = &sh->locker[1];

	(void)state;
	/* Released by `dead`, still in its list, and now somebody else's. */
	lock_acquire(&sh->lock, dead, LOCK_INODE);
	store_relaxed(&sh->lock.word, 0);
	lock_acquire(&sh->lock, live, LOCK_INODE);
	assert_int_equal(lock_release_dead(dead), 0);
	assert_true(lock_held_by(&sh->lock, live));
	lock_release(&sh->lock, live, LOCK_INODE);
}

/* ---- order, in debug builds */

#ifdef SHELF_DEBUG
static int take_upwards(void *arg)
{
	(void)arg;
	lock_acquire(&sh->lock, &sh->locker[0], LOCK_INODE);
	lock_acquire(&sh->other, &sh->locker[0], LOCK_DIR);
	return 0;
}

static int take_twice(void *arg)
{
	(void)arg;
	lock_acquire(&sh->lock, &sh->locker[0], LOCK_INODE);
	lock_acquire(&sh->lock, &sh->locker[0], LOCK_INODE);
	return 0;
}

static int release_unowned(void *arg)
{
	(void)arg;
	lock_release(&sh->lock, &sh->locker[1], LOCK_INODE);
	return 0;
}

static void wrong_order_aborts(void **state)
{
	(void)state;
	assert_int_equal(test_in_child(take_upwards, NULL), 128 + SIGABRT);
	assert_int_equal(test_in_child(take_twice, NULL), 128 + SIGABRT);
	assert_int_equal(test_in_child(release_unowned, NULL), 128 + SIGABRT);
}
#endif

/* ---- futex */

static void futex_wait_reports_why_it_returned(void **state)
{
	atomic_u32 word = 5;
	int64_t start = clock_now_monotonic();

	(void)state;
	assert_int_equal(futex_wait(&word, 4, -1), -EAGAIN);
	assert_int_equal(futex_wait(&word, 5, 3000000), -ETIMEDOUT);
	assert_true(clock_now_monotonic() - start >= 3000000);
	assert_int_equal(futex_wake(&word, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define LOCK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		LOCK_TEST(taken_is_owned_and_free_is_zero),
		LOCK_TEST(a_pair_is_taken_in_either_order_and_once_when_equal),
		LOCK_TEST(locks_may_be_released_in_any_order),
		LOCK_TEST(threads_exclude_each_other),
		LOCK_TEST(processes_exclude_each_other),
		LOCK_TEST(sleepers_are_woken_at_once),
		LOCK_TEST(a_dead_owner_is_recovered_before_the_lock_is_given),
		LOCK_TEST(only_one_of_many_waiters_recovers),
		LOCK_TEST(a_slow_owner_keeps_its_lock),
		LOCK_TEST(release_dead_leaves_the_locks_of_others),
#ifdef SHELF_DEBUG
		LOCK_TEST(wrong_order_aborts),
#endif
		LOCK_TEST(futex_wait_reports_why_it_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Wait queues: no wake-up is lost, wakes of one, time-outs, signals. */
#include "lib/attr_world.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include "base/clock.h"

static struct attr_world world;

/* A counter of things to take, as a pipe or an eventfd has. */
static struct queue {
	struct waitq q;
	atomic_u32 things, taken;
	uint32_t wanted;
} *shared;

static bool take_one(void)
{
	uint32_t n = load_acquire(&shared->things);

	while (n)
		if (cas_acq_rel(&shared->things, &n, n - 1))
			return true;
	return false;
}

static int taker(void *arg)
{
	struct slot *self = slot_self(world.seg);

	(void)arg;
	while (load_acquire(&shared->taken) < shared->wanted) {
		uint32_t ticket = waitq_prepare(&shared->q);

		if (take_one())
			add_acq_rel(&shared->taken, 1u);
		else if (load_acquire(&shared->taken) < shared->wanted)
			waitq_sleep(self, &shared->q, ticket, -1);
	}
	waitq_wake(&shared->q, INT_MAX);
	return 0;
}

static void *taker_thread(void *arg)
{
	taker(arg);
	slot_release(slot_self(world.seg));
	return NULL;
}

static void give(uint32_t n, int count)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		add_acq_rel(&shared->things, 1u);
		waitq_wake(&shared->q, count);
	}
}

static void every_thing_given_is_taken(int count)
{
	pthread_t t[3];
	int64_t since = clock_now_monotonic();
	pid_t pid;
	unsigned i;

	memset(shared, 0, sizeof(*shared));
	shared->wanted = (uint32_t)test_scaled(20000);
	pid = test_fork(taker, NULL);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		CHECK(pthread_create(&t[i], NULL, taker_thread, NULL) == 0);
	give(shared->wanted, count);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	assert_int_equal(test_wait(pid), 0);
	assert_int_equal(load_acquire(&shared->taken), shared->wanted);
	assert_in_range(clock_now_monotonic() - since, 0, 20000000000);
}

static void no_wake_up_is_lost_among_threads_and_processes(void **state)
{
	(void)state;
	every_thing_given_is_taken(INT_MAX);
	every_thing_given_is_taken(1);
}

static void a_sleep_ends_at_its_time(void **state)
{
	int64_t since = clock_now_monotonic();
	uint32_t ticket;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	ticket = waitq_prepare(&shared->q);
	assert_int_equal(waitq_sleep(world.w.self, &shared->q, ticket, 20000000), -ETIMEDOUT);
	assert_in_range(clock_now_monotonic() - since, 20000000, 400000000);
}

static void a_wake_between_prepare_and_sleep_is_not_slept_through(void **state)
{
	int64_t since = clock_now_monotonic();
	uint32_t ticket;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	ticket = waitq_prepare(&shared->q);
	waitq_wake(&shared->q, INT_MAX);
	assert_int_equal(waitq_sleep(world.w.self, &shared->q, ticket, -1), 0);
	assert_in_range(clock_now_monotonic() - since, 0, 200000000);
	assert_int_equal(load_relaxed(&shared->q.waiting), 0); /* the next wake is one load */
}

static void on_signal(int sig)
{
	(void)sig;
}

static int sleep_until_signal(void *arg)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct slot *self = slot_self(world.seg);
	int err = 0;

	(void)arg;
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	store_release(&shared->things, 1u);
	while (!err)
		err = waitq_sleep(self, &shared->q, waitq_prepare(&shared->q), -1);
	store_release(&shared->taken, 1u);
	return -err;
}

static void a_signal_ends_the_sleep(void **state)
{
	pid_t pid;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	pid = test_fork(sleep_until_signal, NULL);
	while (!load_acquire(&shared->things))
		usleep(1000);
	do
		kill(pid, SIGUSR1);
	while (usleep(5000), !load_acquire(&shared->taken));
	assert_int_equal(test_wait(pid), EINTR);
}

static uint32_t noted;

static void note(struct slot *self, struct inode *inode, struct inode *dir, const char *name, uint32_t mask,
		 uint32_t cookie)
{
	(void)self, (void)inode, (void)dir, (void)name;
	noted += mask + cookie;
}

static void notification_reaches_the_hook_only_while_somebody_watches(void **state)
{
	struct slot *self = world.w.self;

	(void)state;
	notify(self, NULL, NULL, NULL, 1, 1);
	store_release(&self->seg->hdr->watchers, 1u);
	notify(self, NULL, NULL, NULL, 1, 1); /* no hook yet: nothing */
	notify_register(note);
	notify(self, NULL, NULL, NULL, 2, 3);
	assert_int_equal(noted, 5);
	store_release(&self->seg->hdr->watchers, 0u);
	notify(self, NULL, NULL, NULL, 2, 3);
	assert_int_equal(noted, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_wake_up_is_lost_among_threads_and_processes),
		cmocka_unit_test(a_sleep_ends_at_its_time),
		cmocka_unit_test(a_wake_between_prepare_and_sleep_is_not_slept_through),
		cmocka_unit_test(a_signal_ends_the_sleep),
		cmocka_unit_test(notification_reaches_the_hook_only_while_somebody_watches),
	};
	int failed;

	attr_world_open(&world, 0);
	shared = attr_shared(&world, sizeof(*shared));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	attr_world_close(&world);
	return failed;
}

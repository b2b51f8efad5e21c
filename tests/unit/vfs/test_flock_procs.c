/* SPDX-License-Identifier: MIT */
/* Locks between processes: who is named, who is woken, cycles, signals, and owners that are killed. */
#include "lib/attr_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "base/clock.h"

enum { PROCS = 6 };

static struct attr_world world;
static struct inode *inodes[PROCS];
static struct file *files[PROCS]; /* files[i] is open on inodes[i] */
static struct shared {
	atomic_u32 ready[PROCS], go, done[PROCS];
	atomic_u32 order[PROCS], next;
	struct fd_table *owner[PROCS]; /* never looked into: the address is the owner */
	char owners[PROCS][64];
} *shared;

static int setup(void **state)
{
	unsigned i;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	for (i = 0; i < PROCS; i++) {
		inodes[i] = attr_inode(&world.w, S_IFREG | 0644, 0, 0);
		files[i] = attr_open(&world.w, inodes[i], O_RDWR);
	}
	return 0;
}

static int teardown(void **state)
{
	unsigned i, k;

	(void)state;
	for (i = 0; i < PROCS; i++) {
		for (k = 0; k < PROCS; k++) {
			struct who w = attr_world_who(&world, shared->owners[k]);

			flock_close_posix(&w, inodes[i]);
		}
		fd_put(world.w.self, &files[i]->head);
		inode_put(world.w.self, inodes[i]);
	}
	assert_null(vfs_root_of(world.w.self)->flock_graph);
	return 0;
}

static struct who me(unsigned i)
{
	return attr_world_who(&world, shared->owners[i]);
}

static int lock_file(struct who *w, unsigned file, int cmd, int type, off_t start, off_t len)
{
	struct flock fl = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	return flock_posix(w, files[file], cmd, &fl);
}

static void wait_for(atomic_u32 *flag)
{
	int i;

	for (i = 0; i < 10000 && !load_acquire(flag); i++)
		usleep(1000);
	CHECK(load_acquire(flag));
}

static void wait_until_queued(unsigned file, unsigned n)
{
	unsigned i, have = 0;

	for (i = 0; i < 10000; i++) {
		struct flocks *fs = load_acquire(&inodes[file]->flocks);
		struct flock_waiter *w;

		have = 0;
		if (fs) {
			flocks_lock(world.w.self, fs);
			for (w = fs->waiters; w; w = w->next)
				have++;
			flocks_unlock(world.w.self, fs);
		}
		if (have == n)
			return;
		usleep(1000);
	}
	fprintf(stderr, "%u of %u wait\n", have, n);
	abort();
}

/* ---- holders and waiters --------------------------------------------------------------- */

struct job {
	unsigned id, file;
	int type, kind;
};

static int take(struct job *job, bool wait)
{
	struct who w = me(job->id);

	switch (job->kind) {
	case FLOCK_POSIX:
		return lock_file(&w, job->file, wait ? F_SETLKW : F_SETLK, job->type, 0, 0);
	case FLOCK_OFD:
		return lock_file(&w, job->file, wait ? F_OFD_SETLKW : F_OFD_SETLK, job->type, 0, 0);
	default:
		return flock_bsd(&w, files[job->file], (job->type == F_WRLCK ? LOCK_EX : LOCK_SH) | (wait ? 0 : LOCK_NB));
	}
}

/* Takes the lock and holds it until it is told to go, or for ever. */
static int hold(void *arg)
{
	struct job *job = arg;
	struct who w = me(job->id);

	CHECK(take(job, false) == 0);
	store_release(&shared->ready[job->id], 1u);
	wait_for(&shared->go);
	flock_close_posix(&w, inodes[job->file]);
	return 0;
}

static int wait_then_leave(void *arg)
{
	struct job *job = arg;
	struct who w = me(job->id);
	int err = take(job, true);

	if (!err)
		store_release(&shared->order[add_acq_rel(&shared->next, 1u)], job->id);
	store_release(&shared->done[job->id], 1u);
	flock_close_posix(&w, inodes[job->file]);
	return -err;
}

static void another_process_is_refused_and_told_the_pid(void **state)
{
	struct job job = {.id = 0, .type = F_WRLCK};
	struct flock fl = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 7, .l_len = 1};
	struct who w = me(1);
	pid_t pid = test_fork(hold, &job);

	(void)state;
	wait_for(&shared->ready[0]);
	assert_int_equal(lock_file(&w, 0, F_SETLK, F_RDLCK, 0, 1), -EAGAIN);
	assert_int_equal(flock_posix(&w, files[0], F_GETLK, &fl), 0);
	assert_int_equal(fl.l_type, F_WRLCK);
	assert_int_equal(fl.l_pid, pid);
	store_release(&shared->go, 1u);
	assert_int_equal(test_wait(pid), 0);
	assert_int_equal(lock_file(&w, 0, F_SETLK, F_RDLCK, 0, 1), 0);
}

static int64_t wake_time_after_unlock(int kind)
{
	struct job job = {.id = 1, .type = F_WRLCK, .kind = kind};
	struct job mine = {.id = 0, .type = F_WRLCK, .kind = FLOCK_POSIX};
	struct who w = me(0);
	int64_t since;
	pid_t pid;

	assert_int_equal(take(&mine, false), 0);
	pid = test_fork(wait_then_leave, &job);
	wait_until_queued(0, 1);
	usleep(20000);
	assert_false(load_acquire(&shared->done[1]));
	since = clock_now_monotonic();
	flock_close_posix(&w, inodes[0]);
	assert_int_equal(test_wait(pid), 0);
	flock_close_file(world.w.self, files[0]);
	return clock_now_monotonic() - since;
}

static void a_waiter_is_woken_by_the_unlock(void **state)
{
	(void)state;
	assert_in_range(wake_time_after_unlock(FLOCK_POSIX), 0, 150000000); /* less than a nap */
	setup(NULL);
	assert_in_range(wake_time_after_unlock(FLOCK_OFD), 0, 150000000);
}

static void writers_get_the_lock_in_order_of_arrival(void **state)
{
	struct job jobs[PROCS];
	struct job mine = {.id = 0, .type = F_WRLCK};
	struct who w = me(0);
	pid_t pids[PROCS];
	unsigned i;

	(void)state;
	assert_int_equal(take(&mine, false), 0);
	for (i = 1; i < PROCS; i++) {
		jobs[i] = (struct job){.id = i, .type = F_WRLCK};
		pids[i] = test_fork(wait_then_leave, &jobs[i]);
		wait_until_queued(0, i);
	}
	flock_close_posix(&w, inodes[0]);
	for (i = 1; i < PROCS; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	for (i = 1; i < PROCS; i++)
		assert_int_equal(load_acquire(&shared->order[i - 1]), i);
}

/* Waits for byte `id` of a file whose bytes the parent holds. */
static int wait_for_own_byte(void *arg)
{
	struct job *job = arg;
	struct who w = me(job->id);
	int err = lock_file(&w, 0, F_SETLKW, F_WRLCK, job->id, 1);

	store_release(&shared->done[job->id], 1u);
	return -err;
}

static void only_those_whose_range_is_freed_are_woken(void **state)
{
	struct job jobs[PROCS];
	struct who w = me(0);
	struct flocks *fs;
	struct flock_waiter *q;
	pid_t pids[PROCS];
	unsigned i, woken = 0;

	(void)state;
	assert_int_equal(lock_file(&w, 0, F_SETLK, F_WRLCK, 0, PROCS), 0);
	for (i = 1; i < PROCS; i++) {
		jobs[i] = (struct job){.id = i};
		pids[i] = test_fork(wait_for_own_byte, &jobs[i]);
		wait_until_queued(0, i);
	}
	fs = load_acquire(&inodes[0]->flocks);
	flocks_lock(world.w.self, fs); /* nobody wakes up while we look */
	assert_int_equal(flocks_change_locked(world.w.self, fs,
					      &(struct lock_request){.owner = w.files, .start = 2, .end = 2, .type = F_UNLCK}),
			 0);
	flocks_freed_locked(world.w.self, fs,
			    &(struct lock_request){.owner = w.files, .start = 2, .end = 2, .type = F_UNLCK},
			    &(struct flock_wakes){0});
	for (q = fs->waiters; q; q = q->next) {
		woken += load_relaxed(&q->woken);
		assert_int_equal(load_relaxed(&q->woken), q->want.start == 2);
	}
	flocks_unlock(world.w.self, fs);
	assert_int_equal(woken, 1);
	assert_int_equal(test_wait(pids[2]), 0);
	assert_int_equal(lock_file(&w, 0, F_SETLK, F_UNLCK, 0, 0), 0);
	for (i = 1; i < PROCS; i++)
		if (i != 2)
			assert_int_equal(test_wait(pids[i]), 0);
}

static void on_signal(int sig)
{
	(void)sig;
}

static bool ignore_interrupts;

static bool interrupt_hook(struct slot *self)
{
	(void)self;
	return !ignore_interrupts;
}

static int wait_with_handler(void *arg)
{
	struct sigaction sa = {.sa_handler = on_signal};

	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	return wait_then_leave(arg);
}

static void a_signal_ends_the_wait_with_eintr(void **state)
{
	struct job job = {.id = 1, .type = F_WRLCK}, mine = {.id = 0, .type = F_WRLCK};
	struct who w = me(0);
	pid_t pid;

	(void)state;
	assert_int_equal(take(&mine, false), 0);
	pid = test_fork(wait_with_handler, &job);
	wait_until_queued(0, 1);
	do
		kill(pid, SIGUSR1);
	while (usleep(10000), !load_acquire(&shared->done[1]));
	assert_int_equal(test_wait(pid), EINTR);
	wait_until_queued(0, 0);
	assert_int_equal(lock_file(&w, 0, F_SETLK, F_UNLCK, 0, 0), 0);
}

static void the_interrupt_hook_may_let_it_sleep_on(void **state)
{
	struct job job = {.id = 1, .type = F_WRLCK}, mine = {.id = 0, .type = F_WRLCK};
	struct who w = me(0);
	pid_t pid;
	int i;

	(void)state;
	assert_int_equal(take(&mine, false), 0);
	ignore_interrupts = true;
	wait_register_interrupt(interrupt_hook);
	pid = test_fork(wait_with_handler, &job);
	ignore_interrupts = false;
	wait_until_queued(0, 1);
	for (i = 0; i < 20; i++) {
		kill(pid, SIGUSR1);
		usleep(1000);
	}
	assert_false(load_acquire(&shared->done[1]));
	assert_int_equal(lock_file(&w, 0, F_SETLK, F_UNLCK, 0, 0), 0);
	assert_int_equal(test_wait(pid), 0);
}

/* ---- cycles ------------------------------------------------------------------------------- */

static unsigned ring;

/* Process i has file i and wants file i + 1; the last to ask closes the ring. */
static int ring_member(void *arg)
{
	struct job *job = arg;
	struct who w = me(job->id);
	int err;

	CHECK(lock_file(&w, job->id, F_SETLK, F_WRLCK, 0, 0) == 0);
	store_release(&shared->ready[job->id], 1u);
	wait_for(&shared->go);
	err = lock_file(&w, (job->id + 1) % ring, F_SETLKW, F_WRLCK, 5, 1);
	flock_close_posix(&w, inodes[job->id]);
	flock_close_posix(&w, inodes[(job->id + 1) % ring]);
	return -err;
}

static void ring_of(unsigned n)
{
	struct job jobs[PROCS];
	pid_t pids[PROCS];
	unsigned i, deadlocks = 0, fine = 0;

	ring = n;
	memset(shared->ready, 0, sizeof(shared->ready));
	store_release(&shared->go, 0u);
	for (i = 0; i < n; i++) {
		jobs[i] = (struct job){.id = i};
		pids[i] = test_fork(ring_member, &jobs[i]);
	}
	for (i = 0; i < n; i++)
		wait_for(&shared->ready[i]);
	store_release(&shared->go, 1u);
	for (i = 0; i < n; i++) {
		int status = test_wait(pids[i]);

		deadlocks += status == EDEADLK;
		fine += status == 0;
	}
	assert_int_equal(deadlocks, 1);
	assert_int_equal(fine, n - 1);
}

static void a_cycle_of_two_three_or_five_gets_edeadlk_once(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 10; i++) {
		ring_of(2);
		ring_of(3);
		ring_of(5);
	}
}

static int wait_for_dead_cycle(void *arg)
{
	struct job *job = arg;
	struct who w = me(job->id);

	CHECK(lock_file(&w, 1, F_SETLK, F_WRLCK, 0, 0) == 0);
	store_release(&shared->ready[job->id], 1u);
	return -lock_file(&w, 0, F_SETLKW, F_WRLCK, 0, 0);
}

/* The other half of what looks like a cycle was killed while it waited. */
static void a_cycle_through_a_dead_waiter_is_none(void **state)
{
	struct job job = {.id = 1};
	struct who w = me(0);
	pid_t pid;

	(void)state;
	assert_int_equal(lock_file(&w, 0, F_SETLK, F_WRLCK, 0, 0), 0);
	pid = test_fork(wait_for_dead_cycle, &job);
	wait_until_queued(0, 1);
	assert_int_equal(lock_file(&w, 1, F_SETLKW, F_RDLCK, 0, 0), -EDEADLK);
	kill(pid, SIGKILL);
	test_wait(pid);
	usleep(60000); /* the range was seen alive a moment ago */
	assert_int_equal(lock_file(&w, 1, F_SETLKW, F_RDLCK, 0, 0), 0);
	assert_int_equal(lock_file(&w, 0, F_SETLK, F_UNLCK, 0, 0), 0);
}

/* ---- death ------------------------------------------------------------------------------------ */

static void killing_the_owner_frees_its_record_locks(void **state)
{
	struct job holder = {.id = 1, .type = F_WRLCK}, waiter = {.id = 2, .type = F_WRLCK};
	pid_t pids[2];
	int64_t since;

	(void)state;
	pids[0] = test_fork(hold, &holder);
	wait_for(&shared->ready[1]);
	pids[1] = test_fork(wait_then_leave, &waiter);
	wait_until_queued(0, 1);
	since = clock_now_monotonic();
	kill(pids[0], SIGKILL); /* a zombie for now */
	assert_int_equal(test_wait(pids[1]), 0);
	assert_in_range(clock_now_monotonic() - since, 0, 1000000000);
	test_wait(pids[0]);
}

static uint32_t reaped_pid;

static void reap(struct slot *self, uint32_t pid, uint64_t start_time)
{
	(void)start_time;
	reaped_pid = pid;
	flock_close_file(self, files[0]); /* as task/ would, for the last table that had it */
}

static void a_dead_holder_of_flock_is_reported_to_whoever_reaps(void **state)
{
	struct job holder = {.id = 1, .type = F_WRLCK, .kind = FLOCK_BSD};
	struct file *again = attr_open(&world.w, inodes[0], O_RDWR);
	struct who w = me(2);
	pid_t pid;

	(void)state;
	pid = test_fork(hold, &holder);
	wait_for(&shared->ready[1]);
	store_release(&files[0]->has_flocks, 1u);
	kill(pid, SIGKILL);
	test_wait(pid);
	assert_int_equal(flock_bsd(&w, again, LOCK_EX | LOCK_NB), -EAGAIN); /* nobody to take its table down */
	flock_register_reap(reap);
	usleep(60000);
	assert_int_equal(flock_bsd(&w, again, LOCK_EX), 0);
	assert_int_equal(reaped_pid, pid);
	flock_register_reap(NULL);
	fd_put(world.w.self, &again->head);
}

static void killed_waiters_do_not_hold_up_the_queue_and_are_freed(void **state)
{
	struct segment_counts before, after;
	struct job mine = {.id = 0, .type = F_WRLCK}, jobs[PROCS];
	struct who w = me(0);
	pid_t pids[PROCS];
	unsigned i;

	(void)state;
	epoch_barrier(world.w.self, 1000000000);
	assert_int_equal(segment_check(world.w.self, &before), 0);
	assert_int_equal(take(&mine, false), 0);
	for (i = 1; i < PROCS; i++) {
		jobs[i] = (struct job){.id = i, .type = F_WRLCK};
		pids[i] = test_fork(wait_then_leave, &jobs[i]);
		wait_until_queued(0, i);
	}
	for (i = 1; i < PROCS - 1; i++) {
		kill(pids[i], SIGKILL);
		test_wait(pids[i]);
	}
	flock_close_posix(&w, inodes[0]);
	assert_int_equal(test_wait(pids[PROCS - 1]), 0);
	flocks_drop(world.w.self, inodes[0]); /* as the inode's last put */
	slot_reap(world.w.self);
	epoch_barrier(world.w.self, 1000000000);
	assert_int_equal(segment_check(world.w.self, &after), 0);
	assert_int_equal(after.objects[CACHE_128] - after.magazine[CACHE_128],
			 before.objects[CACHE_128] - before.magazine[CACHE_128]);
}

/* Record locks come and go in a process that is killed anywhere: the next finds sane trees. */
static int churn(void *arg)
{
	struct job *job = arg;
	struct who w = me(job->id);
	uint64_t rng = job->id + 1;

	store_release(&shared->ready[job->id], 1u);
	for (;;) {
		static const int types[] = {F_RDLCK, F_WRLCK, F_UNLCK};

		lock_file(&w, 0, F_SETLK, types[test_random(&rng) % 3], (off_t)(test_random(&rng) % 200),
			  1 + (off_t)(test_random(&rng) % 50));
	}
	return 0;
}

static void processes_killed_at_random_leave_sane_locks(void **state)
{
	uint64_t rng = test_seed();
	unsigned long round, rounds = test_scaled(40);

	(void)state;
	for (round = 0; round < rounds; round++) {
		struct job jobs[2] = {{.id = 1}, {.id = 2}};
		struct who w = me(0);
		pid_t pids[2];
		unsigned i;

		memset(shared->ready, 0, sizeof(shared->ready));
		for (i = 0; i < 2; i++) {
			jobs[i].id = 1 + i + 2 * (unsigned)(round % 2);
			pids[i] = test_fork(churn, &jobs[i]);
		}
		for (i = 0; i < 2; i++)
			wait_for(&shared->ready[jobs[i].id]);
		usleep((useconds_t)(test_random(&rng) % 5000));
		for (i = 0; i < 2; i++)
			kill(pids[i], SIGKILL);
		for (i = 0; i < 2; i++)
			test_wait(pids[i]);
		assert_int_equal(lock_file(&w, 0, F_SETLKW, F_WRLCK, 0, 0), 0);
		flocks_lock(world.w.self, load_acquire(&inodes[0]->flocks));
		assert_true(flocks_sane_locked(load_acquire(&inodes[0]->flocks)));
		assert_int_equal(load_acquire(&inodes[0]->flocks)->count[SPACE_POSIX], 1);
		flocks_unlock(world.w.self, load_acquire(&inodes[0]->flocks));
		assert_int_equal(lock_file(&w, 0, F_SETLK, F_UNLCK, 0, 0), 0);
		slot_reap(world.w.self);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(another_process_is_refused_and_told_the_pid),
		T(a_waiter_is_woken_by_the_unlock),
		T(writers_get_the_lock_in_order_of_arrival),
		T(only_those_whose_range_is_freed_are_woken),
		T(a_signal_ends_the_wait_with_eintr),
		T(the_interrupt_hook_may_let_it_sleep_on),
		T(a_cycle_of_two_three_or_five_gets_edeadlk_once),
		T(a_cycle_through_a_dead_waiter_is_none),
		T(killing_the_owner_frees_its_record_locks),
		T(a_dead_holder_of_flock_is_reported_to_whoever_reaps),
		T(killed_waiters_do_not_hold_up_the_queue_and_are_freed),
		T(processes_killed_at_random_leave_sane_locks),
	};
	int failed;

	attr_world_open(&world, 0);
	shared = attr_shared(&world, sizeof(*shared));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	attr_world_close(&world);
	return failed;
}

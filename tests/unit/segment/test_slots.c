/* SPDX-License-Identifier: MIT */
/* Threads' slots: claimed, given back, inherited by nobody, taken over from the dead. */
#include "lib/seg_test.h"

#include "segment/count.h"
#include "segment/intent_ops.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static char why[SEG_WHY_MAX];

static int make(void **state)
{
	(void)state;
	seg_test_make(64 << 20);
	return 0;
}

static struct segment *seg(void)
{
	return seg_test.seg;
}

static void *own_id(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)slot_id(slot_self(seg()));
}

static uintptr_t id_in_thread(void)
{
	pthread_t t;
	void *id;

	CHECK(pthread_create(&t, NULL, own_id, NULL) == 0);
	pthread_join(t, &id);
	return (uintptr_t)id;
}

static void threads_reuse_the_slots_of_threads_that_ended(void **state)
{
	unsigned k;

	(void)state;
	assert_int_equal(slot_id(slot_self(seg())), 1);
	assert_ptr_equal(slot_self(seg()), slot_self(seg()));
	for (k = 0; k < 50; k++)
		assert_int_equal(id_in_thread(), 2);
	assert_int_equal(slot_limit(seg()), 2);
	assert_int_equal(seg_test_counts().cached, 0);
}

static void released_slot_can_be_claimed_again_by_its_thread(void **state)
{
	struct slot *self = slot_self(seg());

	(void)state;
	page_free(self, page_alloc(self, 0, PAGE_DATA, 0), 0);
	slot_release(self);
	assert_false(slot_alive(seg(), 1));
	assert_int_equal(slot_id(slot_self(seg())), 1);
	assert_true(slot_alive(seg(), 1));
}

static int child_slot(void *arg)
{
	(void)arg;
	CHECK(slot_self(seg()) != slot_by_id(seg(), 1));
	CHECK(slot_alive(seg(), 1));
	return (int)slot_id(slot_self(seg()));
}

static void forked_child_gets_a_slot_of_its_own(void **state)
{
	struct slot *self = slot_self(seg());

	(void)state;
	assert_int_equal(test_in_child(child_slot, NULL), 2);
	assert_ptr_equal(slot_self(seg()), self);
	assert_int_equal(load_relaxed(&self->pid), getpid());
	assert_true(slot_alive(seg(), 1));
	assert_false(slot_alive(seg(), 2));
}

/* A child that claims a slot, does `arg` and waits to be killed. */
struct victim {
	pid_t pid;
	uint32_t id;
};
static int to_parent[2];

static void victim_says(uint32_t id)
{
	CHECK(write(to_parent[1], &id, sizeof(id)) == sizeof(id));
	for (;;)
		pause();
}

static struct victim start_victim(int (*fn)(void *), void *arg)
{
	struct victim v;

	CHECK(pipe(to_parent) == 0);
	v.pid = test_fork(fn, arg);
	CHECK(read(to_parent[0], &v.id, sizeof(v.id)) == sizeof(v.id));
	close(to_parent[0]);
	close(to_parent[1]);
	return v;
}

static void kill_victim(struct victim v)
{
	kill(v.pid, SIGKILL);
	test_wait(v.pid);
}

static int holds_memory(void *arg)
{
	struct slot *self = slot_self(seg());
	unsigned k;

	for (k = 0; k < CACHE_IDS; k++)
		cache_free(self, (enum cache_id)k, cache_alloc(self, (enum cache_id)k));
	page_free(self, page_alloc(self, 0, PAGE_DATA, 0), 0);
	CHECK(page_reserve(self, 10) == 0);
	*(void **)arg = page_alloc(self, 2, PAGE_DATA, 0);
	victim_says(slot_id(self));
	return 0;
}

static void killed_processes_stock_and_magazines_come_back(void **state)
{
	void **given = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct slot *self = slot_self(seg());
	struct segment_counts c;
	struct victim v = start_victim(holds_memory, given);

	(void)state;
	c = seg_test_counts();
	assert_true(c.cached >= 10 && c.objects[CACHE_64] > 0);
	assert_int_equal(slot_reap(self), 0);
	kill_victim(v);
	assert_int_equal(slot_reap(self), 1);
	c = seg_test_counts();
	assert_int_equal(c.objects[CACHE_64] + c.objects[CACHE_2048], 0);
	assert_int_equal(c.kind[PAGE_DATA], 4); /* what it had handed on stays */
	page_free(self, *given, 2);
	pages_trim(self);
	assert_int_equal(seg_test_counts().used, 0);
	assert_int_equal(slot_state_of(slot_by_id(seg(), v.id)), SLOT_IDLE);
	munmap(given, 4096);
}

static int holds_slot(void *arg)
{
	(void)arg;
	victim_says(slot_id(slot_self(seg())));
	return 0;
}

static void stopped_process_is_alive_and_a_zombie_is_dead(void **state)
{
	struct victim v = start_victim(holds_slot, NULL);
	siginfo_t info;
	int status;

	(void)state;
	kill(v.pid, SIGSTOP);
	waitpid(v.pid, &status, WUNTRACED);
	assert_true(slot_alive(seg(), v.id));
	assert_int_equal(slot_reap(slot_self(seg())), 0);
	kill(v.pid, SIGKILL);
	waitid(P_PID, (id_t)v.pid, &info, WEXITED | WNOWAIT); /* dead, not yet collected */
	assert_false(slot_alive(seg(), v.id));
	assert_int_equal(slot_reap(slot_self(seg())), 1);
	test_wait(v.pid);
}

static void reused_pid_is_another_process(void **state)
{
	struct victim v = start_victim(holds_slot, NULL);
	struct slot *s = slot_by_id(seg(), v.id);

	(void)state;
	assert_true(slot_alive(seg(), v.id));
	store_relaxed(&s->start_time, load_relaxed(&s->start_time) + 1);
	assert_false(slot_alive(seg(), v.id));
	kill_victim(v);
}

static bool under_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#elif defined(__has_feature)
	return __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
	return false;
#endif
}

static void *exits_raw(void *arg)
{
	(void)arg;
	slot_self(seg());
	syscall(SYS_exit, 0); /* no destructors run */
	return NULL;
}

static void thread_that_left_without_a_word_is_dead(void **state)
{
	pthread_t t;

	(void)state;
	if (under_sanitizer())
		skip(); /* such a thread is too much for their run-time libraries */
	slot_self(seg());
	assert_int_equal(pthread_create(&t, NULL, exits_raw, NULL), 0);
	pthread_join(t, NULL);
	assert_false(slot_alive(seg(), 2));
	assert_int_equal(slot_reap(slot_self(seg())), 1);
}

/* ---- intents ------------------------------------------------------------------------------------ */

static struct lock *shared_lock;
static uint64_t *shared_word;

static void finish(struct slot *self, struct intent *dead)
{
	lock_adopt(shared_lock, &intent_slot(dead)->locker, &self->locker, LOCK_INODE);
	*shared_word = load_relaxed(&dead->arg[0]) * 100 + load_relaxed(&dead->step);
	lock_release(shared_lock, &self->locker, LOCK_INODE);
}

static int dies_in_an_update(void *arg)
{
	struct slot *self = slot_self(seg());
	uint64_t args[1] = {7};

	(void)arg;
	lock_acquire(shared_lock, &self->locker, LOCK_INODE);
	intent_begin(self, INTENT_TRUNCATE, 1, args);
	intent_step(self, 3);
	CHECK(ledger_add(self, shared_lock, LEDGER_INODE) == 0);
	victim_says(slot_id(self));
	return 0;
}

static struct slot *gone_slot;
static uint64_t gone_ledger;

static void note_gone(struct slot *self, struct slot *gone)
{
	if (gone == self)
		return;
	gone_slot = gone;
	gone_ledger = load_relaxed(&gone->ledger[0]);
	store_relaxed(&gone->ledger[0], 0);
}

static void a_waiter_finishes_what_the_dead_owner_of_a_lock_began(void **state)
{
	struct slot *self = slot_self(seg());
	struct victim v;

	(void)state;
	shared_lock = mem_alloc(self, 64);
	shared_word = mem_alloc(self, 64);
	memset(shared_lock, 0, 64);
	*shared_word = 0;
	intent_register(INTENT_TRUNCATE, finish);
	slot_register_gone(note_gone);
	v = start_victim(dies_in_an_update, NULL);
	assert_false(lock_try(shared_lock, &self->locker, LOCK_INODE));
	kill_victim(v);
	lock_acquire(shared_lock, &self->locker, LOCK_INODE);
	assert_int_equal(*shared_word, 703); /* before the lock is ours */
	*shared_word = 0;
	lock_release(shared_lock, &self->locker, LOCK_INODE);
	assert_null(gone_slot); /* the rest is for those who hold no locks */
	assert_int_equal(slot_reap(self), 1);
	assert_int_equal(*shared_word, 0); /* once only */
	assert_ptr_equal(gone_slot, slot_by_id(seg(), v.id));
	assert_int_equal(gone_ledger, (uintptr_t)shared_lock | LEDGER_INODE);
}

static void dies_the_first_time(struct slot *self, struct intent *dead)
{
	lock_adopt(shared_lock, &intent_slot(dead)->locker, &self->locker, LOCK_INODE);
	if (!shared_word[1]++)
		raise(SIGKILL);
	*shared_word = load_relaxed(&dead->arg[0]) * 100 + load_relaxed(&dead->step);
	lock_release(shared_lock, &self->locker, LOCK_INODE);
}

static int waits_for_the_lock(void *arg)
{
	(void)arg;
	lock_acquire(shared_lock, &slot_self(seg())->locker, LOCK_INODE);
	return 1; /* not reached: its recovery kills it */
}

static void what_a_dead_recoverer_had_adopted_is_repaired_before_it_is_given_away(void **state)
{
	struct slot *self = slot_self(seg());
	struct victim v;
	pid_t pid;

	(void)state;
	shared_lock = mem_alloc(self, 64);
	shared_word = mem_alloc(self, 64);
	memset(shared_lock, 0, 64);
	memset(shared_word, 0, 64);
	intent_register(INTENT_TRUNCATE, dies_the_first_time);
	v = start_victim(dies_in_an_update, NULL);
	kill_victim(v);
	pid = test_fork(waits_for_the_lock, NULL);
	assert_int_equal(test_wait(pid), 128 + SIGKILL);
	lock_acquire(shared_lock, &self->locker, LOCK_INODE);
	assert_int_equal(*shared_word, 703); /* before the lock is ours */
	lock_release(shared_lock, &self->locker, LOCK_INODE);
	assert_int_equal(slot_reap(self), 2);
	assert_int_equal(shared_word[1], 2);
}

/* ---- crowds --------------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

/* Each end of a count's two stores, before and after the store that it is made for. */
static void a_count_that_a_death_interrupts_says_what_the_ledger_says(void **state)
{
	struct slot *self = slot_self(seg());
	void *obj = cache_alloc(self, CACHE_128);

	(void)state;
	count_set(&self->files, -5);
	count_up(&self->files, 3);
	count_settle(self, self);
	assert_int_equal(count_read(&self->files), -5);
	count_up(&self->files, 3);
	store_relaxed(&self->ledger[3], (uintptr_t)obj | LEDGER_FILE);
	count_settle(self, self);
	assert_int_equal(count_read(&self->files), -4);
	count_down(&self->files, 3);
	count_settle(self, self);
	assert_int_equal(count_read(&self->files), -4);
	count_down(&self->files, 3);
	store_relaxed(&self->ledger[3], 0);
	count_settle(self, self);
	count_settle(self, self);
	assert_int_equal(count_read(&self->files), -5);
	count_set(&self->files, 0);
	cache_free(self, CACHE_128, obj);
}

static void a_count_that_a_death_interrupts_says_whether_the_object_is_free(void **state)
{
	struct slot *self = slot_self(seg());
	struct retired *obj = cache_alloc(self, CACHE_256);

	(void)state;
	self->freeing = obj;
	count_down_freeing(&self->inodes);
	count_settle(self, self);
	assert_int_equal(count_read(&self->inodes), 0);
	count_down_freeing(&self->inodes);
	cache_free(self, CACHE_256, obj);
	count_settle(self, self);
	assert_int_equal(count_read(&self->inodes), -1);
	self->freeing = NULL;
	count_set(&self->inodes, 0);
}

static void *claims_and_waits(void *arg)
{
	struct slot *self = slot_self(seg());

	(void)arg;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return self;
}

static void crowd(unsigned n, struct slot **got)
{
	pthread_t t[16];
	unsigned k;

	pthread_barrier_init(&barrier, NULL, n + 1);
	for (k = 0; k < n; k++)
		CHECK(pthread_create(&t[k], NULL, claims_and_waits, NULL) == 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (k = 0; k < n; k++)
		pthread_join(t[k], (void **)&got[k]);
	pthread_barrier_destroy(&barrier);
}

static int crowd_and_die(void *arg)
{
	struct slot *got[16];
	unsigned k;
	pthread_t t;

	(void)arg;
	slot_self(seg());
	pthread_barrier_init(&barrier, NULL, 9);
	for (k = 0; k < 8; k++)
		CHECK(pthread_create(&t, NULL, claims_and_waits, NULL) == 0);
	(void)got;
	pthread_barrier_wait(&barrier);
	kill(getpid(), SIGKILL);
	return 0;
}

static void every_thread_has_its_own_slot(void **state)
{
	struct slot *got[16];
	unsigned a, b;

	(void)state;
	crowd(16, got);
	for (a = 0; a < 16; a++)
		for (b = 0; b < a; b++)
			assert_ptr_not_equal(got[a], got[b]);
}

static void when_all_slots_are_taken_the_dead_make_room(void **state)
{
	struct segment_options opt = {.size = 8 << 20, .max_slots = 9};
	struct slot *got[16];
	unsigned k, none = 0;

	(void)state;
	assert_int_equal(segment_create(seg_test.name, &opt, &seg_test.seg, why), 0);
	segment_set_ready(seg());
	assert_int_equal(test_in_child(crowd_and_die, NULL), 128 + SIGKILL);
	assert_int_equal(slot_limit(seg()), 9);
	crowd(12, got);
	for (k = 0; k < 12; k++)
		none += !got[k];
	assert_int_equal(none, 3); /* nine fit */
	seg_test_counts();
}

/* Who sweeps a slot's bags has it claimed for that long, and makes it idle again. */
static void a_spare_slot_that_is_being_swept_is_nobody_elses(void **state)
{
	struct segment_options opt = {.size = 8 << 20, .max_slots = 9};
	uint32_t held = SLOT_CLAIMING | (uint32_t)syscall(SYS_gettid) << 8;
	struct slot *got[16], *spare;

	(void)state;
	assert_int_equal(segment_create(seg_test.name, &opt, &seg_test.seg, why), 0);
	segment_set_ready(seg());
	assert_int_equal(test_in_child(crowd_and_die, NULL), 128 + SIGKILL);
	crowd(1, got); /* the spare slots have memory from here on */
	assert_non_null(got[0]);
	spare = slot_by_id(seg(), 10);
	assert_int_equal(load_relaxed(&spare->state), SLOT_IDLE);
	assert_int_equal(test_in_child(crowd_and_die, NULL), 128 + SIGKILL);
	store_relaxed(&spare->state, held);
	crowd(1, got);
	assert_non_null(got[0]);
	assert_int_equal(load_relaxed(&spare->state), held);
	store_relaxed(&spare->state, SLOT_IDLE);
	seg_test_counts();
}

static int no_segment(void **state)
{
	(void)state;
	fresh_name(seg_test.name);
	return 0;
}

/* ---- exec -------------------------------------------------------------------------------------------- */

static const char *program;

static int execs(void *arg)
{
	(void)arg;
	CHECK(slot_id(slot_self(seg())) == 2);
	setenv("SEG_TEST_EXEC", seg_test.name, 1);
	execl(program, program, (char *)NULL);
	return 99;
}

/* The new image. */
static int after_exec(const char *name)
{
	struct segment *s;

	intent_register(INTENT_TRUNCATE, finish); /* what the old image knew: a slot is for who knows as much */
	if (segment_attach(name, false, &s, why))
		return 1;
	if (slot_alive(s, 2))
		return 2;
	if (slot_id(slot_self(s)) != 3)
		return 3;
	return slot_reap_quick(slot_self(s)) == 1 ? 0 : 4;
}

static void slots_of_the_image_before_exec_are_dead(void **state)
{
	(void)state;
	slot_self(seg());
	assert_int_equal(test_in_child(execs, NULL), 0);
}

#define WITH_SEGMENT(f) cmocka_unit_test_setup_teardown(f, make, seg_test_remove)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH_SEGMENT(threads_reuse_the_slots_of_threads_that_ended),
		WITH_SEGMENT(released_slot_can_be_claimed_again_by_its_thread),
		WITH_SEGMENT(forked_child_gets_a_slot_of_its_own),
		WITH_SEGMENT(killed_processes_stock_and_magazines_come_back),
		WITH_SEGMENT(stopped_process_is_alive_and_a_zombie_is_dead),
		WITH_SEGMENT(reused_pid_is_another_process),
		WITH_SEGMENT(thread_that_left_without_a_word_is_dead),
		WITH_SEGMENT(a_waiter_finishes_what_the_dead_owner_of_a_lock_began),
		WITH_SEGMENT(a_count_that_a_death_interrupts_says_what_the_ledger_says),
		WITH_SEGMENT(a_count_that_a_death_interrupts_says_whether_the_object_is_free),
		WITH_SEGMENT(what_a_dead_recoverer_had_adopted_is_repaired_before_it_is_given_away),
		WITH_SEGMENT(every_thread_has_its_own_slot),
		cmocka_unit_test_setup_teardown(when_all_slots_are_taken_the_dead_make_room, no_segment, seg_test_remove),
		cmocka_unit_test_setup_teardown(a_spare_slot_that_is_being_swept_is_nobody_elses, no_segment, seg_test_remove),
		WITH_SEGMENT(slots_of_the_image_before_exec_are_dead),
	};

	(void)argc;
	program = argv[0];
	if (getenv("SEG_TEST_EXEC"))
		return after_exec(getenv("SEG_TEST_EXEC"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

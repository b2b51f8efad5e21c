/* SPDX-License-Identifier: MIT */
/*
 * Locks under load: threads and processes lock, convert and unlock ranges of one inode, waiting for one
 * another.  A byte array beside the locks is the oracle: whoever holds a range for writing is alone
 * in it, whoever holds it for reading sees no writer.  Cycles may end in EDEADLK; nobody may be left asleep.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>

#include "vfs/flock_priv.h"

enum { BYTES = 32, THREADS = 4, PROCESSES = 3, STEPS = 20000 };

static struct segment *seg;
static struct file *file;
static struct shelf_cred cred = {.caps = SHELF_CAP_ALL};
static struct shared {
	atomic_u32 writers[BYTES], readers[BYTES];
	atomic_u32 bsd_writers, bsd_readers, deadlocks;
	char owners[THREADS + PROCESSES][64]; /* their addresses stand for descriptor tables */
} *shared;

struct worker {
	struct who w;
	struct file *own; /* for flock() */
	uint64_t rng;
	unsigned long steps;
};

static int call(struct worker *me, int cmd, int type, unsigned start, unsigned len)
{
	struct flock fl = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	return flock_posix(&me->w, file, cmd, &fl);
}

static void enter(int type, unsigned start, unsigned len)
{
	unsigned i;

	for (i = start; i < start + len; i++) {
		if (type == F_WRLCK) {
			CHECK(add_acq_rel(&shared->writers[i], 1u) == 0);
			CHECK(load_acquire(&shared->readers[i]) == 0);
		} else {
			add_acq_rel(&shared->readers[i], 1u);
			CHECK(load_acquire(&shared->writers[i]) == 0);
		}
	}
}

static void leave(int type, unsigned start, unsigned len)
{
	unsigned i;

	for (i = start; i < start + len; i++)
		sub_acq_rel(type == F_WRLCK ? &shared->writers[i] : &shared->readers[i], 1u);
}

/* Two ranges at a time, so that cycles come up. */
static void two_ranges(struct worker *me)
{
	unsigned a = (unsigned)(test_random(&me->rng) % (BYTES / 2));
	unsigned b = BYTES / 2 + (unsigned)(test_random(&me->rng) % (BYTES / 2));
	unsigned len = 1 + (unsigned)(test_random(&me->rng) % 3);
	unsigned first = test_random(&me->rng) % 2 ? a : b, second = first == a ? b : a;
	int type = test_random(&me->rng) % 3 ? F_WRLCK : F_RDLCK;
	int err;

	len = min_of(len, BYTES / 2 - a);
	len = min_of(len, BYTES - b);
	err = call(me, F_SETLKW, type, first, len);
	CHECK(err == 0); /* holding nothing it cannot close a cycle */
	enter(type, first, len);
	if (test_random(&me->rng) % 4 == 0)
		sched_yield(); /* holding something: that is how cycles come about */
	err = call(me, test_random(&me->rng) % 2 ? F_SETLKW : F_SETLK, type, second, len);
	CHECK(err == 0 || err == -EDEADLK || err == -EAGAIN);
	if (err == -EDEADLK)
		add_acq_rel(&shared->deadlocks, 1u);
	if (!err) {
		enter(type, second, len);
		leave(type, second, len);
	}
	leave(type, first, len);
	if (test_random(&me->rng) % 2) {
		CHECK(call(me, F_SETLK, F_UNLCK, first, len) == 0);
		CHECK(call(me, F_SETLK, F_UNLCK, second, len) == 0);
	} else {
		flock_close_posix(&me->w, file->inode);
	}
}

static void whole_file(struct worker *me)
{
	bool write = test_random(&me->rng) % 2;

	CHECK(flock_bsd(&me->w, me->own, write ? LOCK_EX : LOCK_SH) == 0);
	if (write) {
		CHECK(add_acq_rel(&shared->bsd_writers, 1u) == 0);
		CHECK(load_acquire(&shared->bsd_readers) == 0);
		sub_acq_rel(&shared->bsd_writers, 1u);
	} else {
		add_acq_rel(&shared->bsd_readers, 1u);
		CHECK(load_acquire(&shared->bsd_writers) == 0);
		sub_acq_rel(&shared->bsd_readers, 1u);
	}
	CHECK(flock_bsd(&me->w, me->own, LOCK_UN) == 0);
}

static struct file *open_file(struct slot *self)
{
	struct file *f;
	int err, k;

	epoch_enter(self);
	CHECK(inode_get_epoch(self, file->inode, &k));
	epoch_exit(self);
	f = file_new(self, file->inode, FD_TYPE_REG, O_RDWR, &err);
	CHECK(f);
	return f;
}

static void work(unsigned id, uint64_t seed)
{
	struct worker me = {.rng = seed + id, .steps = test_scaled(STEPS)};
	unsigned long i;

	me.w = (struct who){.self = slot_self(seg), .cred = &cred, .files = (void *)shared->owners[id]};
	me.own = open_file(me.w.self);
	for (i = 0; i < me.steps; i++) {
		if (test_random(&me.rng) % 8)
			two_ranges(&me);
		else
			whole_file(&me);
	}
	flock_close_posix(&me.w, file->inode);
	fd_put(me.w.self, &me.own->head);
}

static uint64_t run_seed;

static void *thread_main(void *arg)
{
	work((unsigned)(uintptr_t)arg, run_seed);
	return NULL;
}

static int process_main(void *arg)
{
	work((unsigned)(uintptr_t)arg, run_seed);
	return 0;
}

static void setup(char *name)
{
	struct segment_options opt = {.size = 64UL << 20, .max_slots = 64};
	struct who w;
	int err;

	CHECK(segment_create(fresh_name(name), &opt, &seg, NULL) == 0);
	CHECK(epoch_init(seg) == 0 && epoch_attach(seg) == 0);
	CHECK(fd_layer_init(seg) == 0 && fd_layer_attach(seg) == 0);
	CHECK(vfs_attach(seg) == 0 && vfs_init(slot_self(seg), 0755, 0, 0) == 0);
	segment_set_ready(seg);
	w = (struct who){.self = slot_self(seg), .cred = &cred};
	file = file_new(w.self, inode_new(&w, S_IFREG | 0644, 0, 0), FD_TYPE_REG, O_RDWR, &err);
	CHECK(file);
	shared = mem_alloc(w.self, sizeof(*shared));
	CHECK(shared);
	memset(shared, 0, sizeof(*shared));
}

static void nobody_meets_a_foreign_writer_and_nobody_sleeps_on(void **state)
{
	pthread_t threads[THREADS];
	pid_t pids[PROCESSES];
	struct flocks *fs;
	uintptr_t i;

	(void)state;
	for (i = 0; i < PROCESSES; i++)
		pids[i] = test_fork(process_main, (void *)(THREADS + i));
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_main, (void *)i) == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (i = 0; i < PROCESSES; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	fs = load_acquire(&file->inode->flocks);
	assert_null(fs->waiters);
	assert_null(vfs_root_of(slot_self(seg))->flock_graph);
	assert_true(flocks_sane_locked(fs));
	assert_int_equal(fs->count[SPACE_POSIX], 0);
	assert_int_equal(fs->count[SPACE_BSD], 0);
	print_message("%u cycles refused\n", load_relaxed(&shared->deadlocks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_meets_a_foreign_writer_and_nobody_sleeps_on),
	};
	char name[TEST_NAME_SIZE];
	int failed;

	run_seed = test_seed();
	setup(name);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	segment_remove(name, NULL);
	segment_detach(seg);
	return failed;
}

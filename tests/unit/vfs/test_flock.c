/* SPDX-License-Identifier: MIT */
/* Record locks, OFD locks and flock() in one process: answers, a byte-by-byte model, and what they cost. */
#include "lib/attr_world.h"

#include <fcntl.h>
#include <sys/file.h>

static struct attr_world world;
static struct inode *inode;
static struct file *file, *other_file;
static struct who a, b;

static int lock_call(struct who *w, struct file *f, int cmd, int type, off_t start, off_t len)
{
	struct flock fl = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	return flock_posix(w, f, cmd, &fl);
}

static int set(struct who *w, int type, off_t start, off_t len)
{
	return lock_call(w, file, F_SETLK, type, start, len);
}

static struct flock get(struct who *w, int type, off_t start, off_t len)
{
	struct flock fl = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	assert_int_equal(flock_posix(w, file, F_GETLK, &fl), 0);
	return fl;
}

static int setup(void **state)
{
	(void)state;
	inode = attr_inode(&world.w, S_IFREG | 0644, 0, 0);
	file = attr_open(&world.w, inode, O_RDWR);
	other_file = attr_open(&world.w, inode, O_RDWR);
	a = attr_world_who(&world, &a);
	b = attr_world_who(&world, &b);
	return 0;
}

static bool sane(void)
{
	struct flocks *fs = load_acquire(&inode->flocks);
	bool ok;

	if (!fs)
		return true;
	flocks_lock(world.w.self, fs);
	ok = flocks_sane_locked(fs);
	flocks_unlock(world.w.self, fs);
	return ok;
}

static int teardown(void **state)
{
	(void)state;
	assert_true(sane());
	flock_close_posix(&a, inode);
	flock_close_posix(&b, inode);
	fd_put(world.w.self, &file->head);
	fd_put(world.w.self, &other_file->head);
	inode_put(world.w.self, inode);
	return 0;
}

/* ---- record locks ------------------------------------------------------------------- */

static void a_write_lock_excludes_and_names_its_process(void **state)
{
	struct flock fl;

	(void)state;
	assert_int_equal(set(&a, F_WRLCK, 10, 10), 0);
	assert_int_equal(set(&b, F_RDLCK, 19, 1), -EAGAIN);
	assert_int_equal(set(&b, F_WRLCK, 0, 11), -EAGAIN);
	assert_int_equal(set(&b, F_WRLCK, 0, 10), 0);
	assert_int_equal(set(&b, F_RDLCK, 20, 0), 0);
	fl = get(&b, F_WRLCK, 0, 0);
	assert_int_equal(fl.l_type, F_WRLCK);
	assert_int_equal(fl.l_start, 10);
	assert_int_equal(fl.l_len, 10);
	assert_int_equal(fl.l_whence, SEEK_SET);
	assert_int_equal(fl.l_pid, getpid());
	fl = get(&a, F_RDLCK, 15, 1);
	assert_int_equal(fl.l_type, F_UNLCK);
	assert_int_equal(fl.l_start, 15);
}

static void read_locks_share_and_upgrade_only_alone(void **state)
{
	(void)state;
	assert_int_equal(set(&a, F_RDLCK, 0, 0), 0);
	assert_int_equal(set(&b, F_RDLCK, 5, 5), 0);
	assert_int_equal(set(&a, F_WRLCK, 0, 0), -EAGAIN);
	assert_int_equal(get(&b, F_WRLCK, 0, 1).l_type, F_RDLCK); /* the failed upgrade kept what was there */
	assert_int_equal(set(&b, F_UNLCK, 0, 0), 0);
	assert_int_equal(set(&a, F_WRLCK, 0, 0), 0);
	assert_int_equal(set(&b, F_RDLCK, 5, 5), -EAGAIN);
	assert_int_equal(set(&a, F_RDLCK, 0, 0), 0);
	assert_int_equal(set(&b, F_RDLCK, 5, 5), 0);
}

static void unlocking_the_middle_splits(void **state)
{
	struct flock fl;

	(void)state;
	assert_int_equal(set(&a, F_WRLCK, 0, 100), 0);
	assert_int_equal(set(&a, F_UNLCK, 40, 20), 0);
	assert_int_equal(set(&b, F_WRLCK, 40, 20), 0);
	fl = get(&b, F_WRLCK, 60, 100);
	assert_int_equal(fl.l_start, 60);
	assert_int_equal(fl.l_len, 40);
	fl = get(&b, F_WRLCK, 0, 100);
	assert_int_equal(fl.l_start, 0);
	assert_int_equal(fl.l_len, 40);
}

static void neighbours_of_one_kind_merge(void **state)
{
	(void)state;
	assert_int_equal(set(&a, F_RDLCK, 0, 10), 0);
	assert_int_equal(set(&a, F_RDLCK, 20, 10), 0);
	assert_int_equal(set(&a, F_WRLCK, 30, 10), 0);
	assert_int_equal(set(&a, F_RDLCK, 10, 10), 0);
	assert_int_equal(load_relaxed(&load_relaxed(&inode->flocks)->held[SPACE_POSIX]), 2);
	assert_int_equal(get(&b, F_WRLCK, 0, 1).l_len, 30);
}

static void bad_arguments_get_their_errno(void **state)
{
	struct file *reader = attr_open(&world.w, inode, O_RDONLY);
	struct file *writer = attr_open(&world.w, inode, O_WRONLY);
	struct file *path = attr_open(&world.w, inode, O_PATH);
	struct flock fl = {.l_type = F_RDLCK, .l_whence = 7};

	(void)state;
	assert_int_equal(lock_call(&a, reader, F_SETLK, F_WRLCK, 0, 0), -EBADF);
	assert_int_equal(lock_call(&a, writer, F_SETLK, F_RDLCK, 0, 0), -EBADF);
	assert_int_equal(lock_call(&a, writer, F_SETLK, F_UNLCK, 0, 0), 0);
	assert_int_equal(lock_call(&a, writer, F_GETLK, F_RDLCK, 0, 0), 0);
	assert_int_equal(lock_call(&a, path, F_SETLK, F_UNLCK, 0, 0), -EBADF);
	assert_int_equal(flock_bsd(&a, path, LOCK_SH), -EBADF);
	assert_int_equal(flock_posix(&a, file, F_SETLK, &fl), -EINVAL);
	assert_int_equal(set(&a, 77, 0, 0), -EINVAL);
	assert_int_equal(lock_call(&a, file, F_GETLK, F_UNLCK, 0, 0), -EINVAL);
	assert_int_equal(set(&a, F_RDLCK, -1, 1), -EINVAL);
	assert_int_equal(set(&a, F_RDLCK, 5, -6), -EINVAL);
	assert_int_equal(set(&a, F_RDLCK, 5, -5), 0);
	assert_int_equal(get(&b, F_WRLCK, 0, 0).l_len, 5);
	assert_int_equal(set(&a, F_RDLCK, INT64_MAX, 1), 0);
	assert_int_equal(set(&a, F_RDLCK, INT64_MAX, 2), -EOVERFLOW);
	fl = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_CUR, .l_start = INT64_MAX};
	store_relaxed(&file->pos, 1);
	assert_int_equal(flock_posix(&a, file, F_SETLK, &fl), -EOVERFLOW);
	assert_int_equal(flock_bsd(&a, file, 77), -EINVAL);
	assert_int_equal(flock_posix(&a, file, 9999, &fl), -EINVAL);
	fd_put(world.w.self, &reader->head);
	fd_put(world.w.self, &writer->head);
	fd_put(world.w.self, &path->head);
}

static void whence_counts_from_position_and_end(void **state)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = -5, .l_len = 2};

	(void)state;
	store_relaxed(&file->pos, 50);
	store_relaxed(&inode->size, 1000);
	assert_int_equal(flock_posix(&a, file, F_SETLK, &fl), 0);
	assert_int_equal(get(&b, F_WRLCK, 0, 0).l_start, 45);
	assert_int_equal(set(&a, F_UNLCK, 0, 0), 0);
	fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = 0, .l_len = -10};
	assert_int_equal(flock_posix(&a, file, F_SETLK, &fl), 0);
	assert_int_equal(get(&b, F_WRLCK, 0, 0).l_start, 990);
	assert_int_equal(get(&b, F_WRLCK, 0, 0).l_len, 10);
	store_relaxed(&inode->size, 0);
}

static void any_close_of_the_file_drops_the_owners_record_locks(void **state)
{
	(void)state;
	assert_int_equal(set(&a, F_WRLCK, 0, 10), 0);
	assert_int_equal(set(&b, F_WRLCK, 10, 10), 0);
	assert_int_equal(lock_call(&a, file, F_OFD_SETLK, F_WRLCK, 50, 1), 0);
	flock_close_posix(&a, inode);
	assert_int_equal(set(&b, F_WRLCK, 0, 10), 0);
	assert_int_equal(set(&b, F_WRLCK, 50, 1), -EAGAIN); /* that is the file's */
	assert_int_equal(set(&a, F_WRLCK, 19, 1), -EAGAIN);
}

static void a_full_segment_gives_enolck_and_changes_nothing(void **state)
{
	struct attr_world small;
	struct inode *i;
	struct file *f;
	struct who one;
	int err = 0;
	off_t n = 0;

	(void)state;
	attr_world_open(&small, 4UL << 20);
	one = small.w;
	i = attr_inode(&one, S_IFREG | 0644, 0, 0);
	f = attr_open(&one, i, O_RDWR);
	while (!err && n < 200000)
		err = lock_call(&one, f, F_SETLK, F_WRLCK, 3 * n++, 2);
	assert_int_equal(err, -ENOLCK);
	n--;
	assert_int_equal(load_relaxed(&load_relaxed(&i->flocks)->held[SPACE_POSIX]), n);
	assert_int_equal(lock_call(&one, f, F_SETLK, F_WRLCK, 0, 3 * n), 0); /* a merge needs no memory */
	assert_int_equal(lock_call(&one, f, F_SETLK, F_WRLCK, 3 * n, 2), 0);
	flock_close_posix(&one, i);
	fd_put(one.self, &f->head);
	inode_put(one.self, i);
	attr_world_close(&small);
}

/* ---- OFD locks and flock() -------------------------------------------------------------- */

static void ofd_locks_belong_to_the_open_file(void **state)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_pid = 1};

	(void)state;
	assert_int_equal(lock_call(&a, file, F_OFD_SETLK, F_WRLCK, 0, 10), 0);
	assert_int_equal(lock_call(&a, other_file, F_OFD_SETLK, F_WRLCK, 0, 10), -EAGAIN);
	assert_int_equal(lock_call(&b, file, F_OFD_SETLK, F_WRLCK, 5, 10), 0); /* whoever comes through it */
	assert_int_equal(set(&a, F_RDLCK, 0, 1), -EAGAIN); /* a record lock of the same process too */
	assert_int_equal(get(&a, F_RDLCK, 0, 1).l_pid, -1);
	assert_int_equal(flock_posix(&a, file, F_OFD_SETLK, &fl), -EINVAL);
	assert_int_equal(flock_posix(&a, file, F_OFD_GETLK, &fl), -EINVAL);
	fl = (struct flock){.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 2, .l_len = 1};
	assert_int_equal(flock_posix(&a, file, F_OFD_GETLK, &fl), 0); /* asks for its own */
	assert_int_equal(fl.l_type, F_WRLCK);
	assert_int_equal(fl.l_len, 15);
	flock_close_file(world.w.self, file);
	assert_int_equal(lock_call(&a, other_file, F_OFD_SETLK, F_WRLCK, 0, 10), 0);
}

static void flock_converts_and_ignores_record_locks(void **state)
{
	(void)state;
	assert_int_equal(set(&a, F_WRLCK, 0, 0), 0);
	assert_int_equal(flock_bsd(&a, file, LOCK_SH), 0);
	assert_int_equal(flock_bsd(&a, other_file, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(flock_bsd(&a, other_file, LOCK_EX | LOCK_NB), -EAGAIN);
	/* Linux gives the old one up first: now other_file has none. */
	assert_int_equal(flock_bsd(&a, file, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(flock_bsd(&a, other_file, LOCK_SH | LOCK_NB), -EAGAIN);
	assert_int_equal(flock_bsd(&a, file, LOCK_SH), 0);
	assert_int_equal(flock_bsd(&a, other_file, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(flock_bsd(&a, file, LOCK_UN), 0);
	assert_int_equal(flock_bsd(&a, other_file, LOCK_EX | LOCK_NB), 0);
	flock_close_file(world.w.self, other_file);
	assert_int_equal(flock_bsd(&a, file, LOCK_EX | LOCK_NB), 0);
}

/* ---- against a model ------------------------------------------------------------------------ */

enum { BYTES = 24, OWNERS = 4, MODEL_STEPS = 100000 };
static char model[OWNERS][BYTES]; /* F_UNLCK, F_RDLCK, F_WRLCK */

static bool model_conflict(int who, int type, int start, int end, int *at)
{
	int o, i;

	for (i = start; i <= end; i++)
		for (o = 0; o < OWNERS; o++)
			if (o != who && model[o][i] != F_UNLCK && (type == F_WRLCK || model[o][i] == F_WRLCK)) {
				*at = i;
				return true;
			}
	return false;
}

static void model_check_getlk(struct who *w, int who, int type, int start, int end)
{
	struct flock fl = get(w, type, start, end - start + 1);
	int at = -1, i, o;

	if (!model_conflict(who, type, start, end, &at)) {
		assert_int_equal(fl.l_type, F_UNLCK);
		return;
	}
	/* What it names must be held in full by one other owner, and be in the way. */
	assert_in_range(fl.l_start, 0, end);
	assert_true(fl.l_start + fl.l_len > start);
	assert_true(fl.l_start <= at); /* the first one in the way */
	for (o = 0; o < OWNERS; o++) {
		bool all = o != who;

		for (i = (int)fl.l_start; all && i < fl.l_start + fl.l_len; i++)
			all = model[o][i] == fl.l_type;
		if (all)
			return;
	}
	fail();
}

static void model_step(struct who owners[OWNERS], uint64_t *rng)
{
	static const int types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
	int who = (int)(test_random(rng) % OWNERS);
	int type = types[test_random(rng) % 3];
	int start = (int)(test_random(rng) % BYTES);
	int end = start + (int)(test_random(rng) % (unsigned)(BYTES - start));
	int at, err;

	if (type != F_UNLCK)
		model_check_getlk(&owners[who], who, type, start, end);
	err = set(&owners[who], type, start, end - start + 1);
	if (type != F_UNLCK && model_conflict(who, type, start, end, &at)) {
		assert_int_equal(err, -EAGAIN);
		return;
	}
	assert_int_equal(err, 0);
	memset(&model[who][start], type, (size_t)(end - start + 1));
}

static uint32_t model_ranges(void)
{
	uint32_t n = 0;
	int o, i;

	for (o = 0; o < OWNERS; o++)
		for (i = 0; i < BYTES; i++)
			n += model[o][i] != F_UNLCK && (i == 0 || model[o][i - 1] != model[o][i]);
	return n;
}

static void random_locks_agree_with_a_byte_array(void **state)
{
	struct who owners[OWNERS];
	uint64_t rng = test_seed();
	unsigned long i, n = test_scaled(MODEL_STEPS);

	(void)state;
	memset(model, F_UNLCK, sizeof(model));
	for (i = 0; i < OWNERS; i++)
		owners[i] = attr_world_who(&world, &owners[i]);
	for (i = 0; i < n; i++) {
		model_step(owners, &rng);
		if (i % 64 == 0)
			assert_true(sane());
		if (load_relaxed(&inode->flocks))
			assert_int_equal(load_relaxed(&load_relaxed(&inode->flocks)->held[SPACE_POSIX]), model_ranges());
		if (test_random(&rng) % 1000 == 0) {
			flock_close_posix(&owners[i % OWNERS], inode);
			memset(model[i % OWNERS], F_UNLCK, BYTES);
		}
	}
	for (i = 0; i < OWNERS; i++)
		flock_close_posix(&owners[i], inode);
}

/* Every start, length and type for two owners over every pair of states of 5 bytes. */
static void load_state(struct who owners[2], unsigned code)
{
	int o, i;

	for (o = 0; o < 2; o++)
		for (i = 0; i < 5; i++, code /= 3) {
			int type = (int)(code % 3);

			model[o][i] = F_UNLCK;
			if (type != F_UNLCK && set(&owners[o], type, i, 1) == 0)
				model[o][i] = (char)type;
		}
}

static bool state_is_as_modelled(struct who *watcher)
{
	int i;

	for (i = 0; i < 5; i++) {
		bool any = model[0][i] != F_UNLCK || model[1][i] != F_UNLCK;
		bool write = model[0][i] == F_WRLCK || model[1][i] == F_WRLCK;

		if ((get(watcher, F_WRLCK, i, 1).l_type != F_UNLCK) != any ||
		    (get(watcher, F_RDLCK, i, 1).l_type != F_UNLCK) != write)
			return false;
	}
	return sane();
}

static void every_request_over_every_small_state(void **state)
{
	struct who owners[2] = {a, b}, watcher = attr_world_who(&world, &watcher);
	unsigned code, states = 59049; /* 3^(2*5) */

	(void)state;
	memset(model, F_UNLCK, sizeof(model));
	for (code = 0; code < states; code++) {
		unsigned q = code * 7919u;
		int type = (int)(q % 3), start = (int)(q / 3 % 5), len = 1 + (int)(q / 15 % (unsigned)(5 - start));
		int at, err;

		load_state(owners, code);
		err = set(&owners[0], type, start, len);
		if (type != F_UNLCK && model_conflict(0, type, start, start + len - 1, &at))
			assert_int_equal(err, -EAGAIN);
		else
			memset(&model[0][start], type, (size_t)len);
		assert_true(state_is_as_modelled(&watcher));
		flock_close_posix(&owners[0], inode);
		flock_close_posix(&owners[1], inode);
	}
}

/* ---- cost ------------------------------------------------------------------------------------------ */

/* Tree nodes looked at for lock + unlock, with `held` ranges there: of this owner and of another, both types. */
static double visits_with(unsigned held)
{
	struct flocks *fs;
	uint64_t rng = 1;
	uint64_t before;
	unsigned i;

	for (i = 0; i < held; i++)
		assert_int_equal(set(i % 2 ? &a : &b, i % 4 < 2 ? F_WRLCK : F_RDLCK, 10 * (off_t)i, 5), 0);
	fs = load_relaxed(&inode->flocks);
	assert_int_equal(load_relaxed(&fs->held[SPACE_POSIX]), held);
	before = fs->visits;
	for (i = 0; i < 10000; i++) {
		off_t at = 10 * (off_t)(test_random(&rng) % held) + 6;

		assert_int_equal(set(&a, i % 2 ? F_WRLCK : F_RDLCK, at, 2), 0);
		assert_int_equal(set(&a, F_UNLCK, at, 2), 0);
	}
	flock_close_posix(&a, inode);
	flock_close_posix(&b, inode);
	return (double)(fs->visits - before) / 10000;
}

static void five_thousand_held_cost_at_most_three_times_a_hundred(void **state)
{
	double few, many;

	(void)state;
	few = visits_with(100);
	many = visits_with(5000);
	print_message("nodes looked at for lock+unlock: %.1f with 100 held, %.1f with 5000\n", few, many);
	assert_true(many <= 3 * few);
}

/* A thousand readers of everything: a reader more does not look at them one by one. */
static void readers_do_not_look_at_readers(void **state)
{
	static char owners[1000];
	struct flocks *fs;
	uint64_t before;
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(owners); i++) {
		struct who w = attr_world_who(&world, &owners[i]);

		assert_int_equal(set(&w, F_RDLCK, 0, 0), 0);
	}
	fs = load_relaxed(&inode->flocks);
	before = fs->visits;
	assert_int_equal(set(&a, F_RDLCK, 0, 0), 0);
	assert_int_equal(set(&b, F_WRLCK, 5, 1), -EAGAIN);
	assert_true(fs->visits - before < 200);
	for (i = 0; i < ARRAY_SIZE(owners); i++) {
		struct who w = attr_world_who(&world, &owners[i]);

		flock_close_posix(&w, inode);
	}
}

/* The trees are lost in the middle of a change: whoever locks next makes them whole and finishes it. */
static void a_change_that_was_cut_off_is_finished_by_the_next(void **state)
{
	struct flocks *fs;
	struct lock_request rq = {.owner = &a, .start = 40, .end = 59, .kind = FLOCK_POSIX, .type = F_UNLCK, .pid = 1};
	struct range *r;

	(void)state;
	assert_int_equal(set(&a, F_WRLCK, 0, 100), 0);
	assert_int_equal(set(&b, F_RDLCK, 200, 100), 0);
	assert_int_equal(set(&a, F_RDLCK, 250, 100), 0);
	fs = load_relaxed(&inode->flocks);
	flocks_lock(world.w.self, fs);
	assert_int_equal(range_reserve_locked(world.w.self, fs, 2), 0);
	plan_make_locked(fs, &rq, &fs->plan);
	store_release(&fs->dirty, 1u);
	r = range_of_owner_locked(fs, SPACE_POSIX, &a, 0);
	range_remove_locked(fs, r); /* half of it done */
	fs->trees[SPACE_POSIX].readers.top = (void *)(uintptr_t)64; /* and the rest torn */
	fs->free = (void *)(uintptr_t)64;
	flocks_unlock(world.w.self, fs);
	assert_int_equal(set(&b, F_WRLCK, 40, 20), 0);
	assert_int_equal(set(&b, F_WRLCK, 39, 1), -EAGAIN);
	assert_int_equal(set(&b, F_WRLCK, 60, 1), -EAGAIN);
	assert_int_equal(set(&b, F_WRLCK, 300, 1), -EAGAIN);
	assert_true(sane());
}

/* Its last reference is dropped, and then the closer dies: nobody will give its locks up. */
static void locks_of_a_file_that_somebody_died_closing_are_in_nobody_s_way(void **state)
{
	struct file *lost = attr_open(&world.w, inode, O_RDWR);

	(void)state;
	assert_int_equal(flock_bsd(&a, lost, LOCK_EX), 0);
	assert_int_equal(lock_call(&a, lost, F_OFD_SETLK, F_WRLCK, 0, 10), 0);
	assert_int_equal(flock_bsd(&a, file, LOCK_SH | LOCK_NB), -EAGAIN);
	assert_int_equal(lock_call(&a, file, F_OFD_SETLK, F_RDLCK, 5, 1), -EAGAIN);
	epoch_enter(world.w.self);
	assert_true(ref_put(&lost->head.count));
	epoch_exit(world.w.self);
	assert_int_equal(flock_bsd(&a, file, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(lock_call(&a, file, F_OFD_SETLK, F_RDLCK, 5, 1), 0);
	fd_forget(world.w.self, &lost->head);
	inode_put(world.w.self, inode); /* its reference on the inode */
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(locks_of_a_file_that_somebody_died_closing_are_in_nobody_s_way),
		T(a_write_lock_excludes_and_names_its_process),
		T(read_locks_share_and_upgrade_only_alone),
		T(unlocking_the_middle_splits),
		T(neighbours_of_one_kind_merge),
		T(bad_arguments_get_their_errno),
		T(whence_counts_from_position_and_end),
		T(any_close_of_the_file_drops_the_owners_record_locks),
		T(a_full_segment_gives_enolck_and_changes_nothing),
		T(ofd_locks_belong_to_the_open_file),
		T(flock_converts_and_ignores_record_locks),
		T(random_locks_agree_with_a_byte_array),
		T(every_request_over_every_small_state),
		T(five_thousand_held_cost_at_most_three_times_a_hundred),
		T(readers_do_not_look_at_readers),
		T(a_change_that_was_cut_off_is_finished_by_the_next),
	};
	int failed;

	attr_world_open(&world, 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	attr_world_close(&world);
	return failed;
}

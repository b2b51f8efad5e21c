/* SPDX-License-Identifier: MIT */
/*
 * names.c - names under concurrent change, by threads and by processes, with what must always hold
 * checked while it goes on, and the whole tree and the number of inodes checked after it.
 */
#include "names_check.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define THREADS_MAX 32

/* ThreadSanitizer does not see what another process did between two of our threads. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ONLY_THREADS 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(ONLY_THREADS)
enum { PROCESSES = false };
#else
enum { PROCESSES = true };
#endif

static struct names_world nw;
static struct inode *world_root;
static int64_t inodes_before;
static atomic_u32 *stop; /* shared by all processes */

static int begin(void **state)
{
	struct who w;

	(void)state;
	if (!nw.seg) {
		names_world_open(&nw, 0);
		stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		CHECK(stop != MAP_FAILED);
	}
	w = names_who(&nw);
	world_root = vfs_root_of(w.self)->root;
	store_relaxed(stop, 0);
	inodes_before = vfs_inodes(nw.seg);
	return 0;
}

static int end(void **state)
{
	struct who w = names_who(&nw);

	(void)state;
	check_dir(&w, "");
	remove_tree(&w, "");
	check_dir(&w, "");
	slot_reap(w.self);
	CHECK(epoch_barrier(w.self, 10000000000) == 0);
	if (vfs_inodes(nw.seg) != inodes_before)
		fprintf(stderr, "inodes: %ld before, %ld after\n", (long)inodes_before, (long)vfs_inodes(nw.seg));
	CHECK(vfs_inodes(nw.seg) == inodes_before);
	CHECK(!segment_poisoned(nw.seg));
	return 0;
}

/* ---- running -------------------------------------------------------------------------------------- */

struct worker {
	void (*fn)(struct who *w, struct worker *me);
	unsigned id;
	unsigned long n;
	uint64_t rng;
	pthread_t thread;
	pid_t pid;
};
static struct worker workers[THREADS_MAX];
static unsigned worker_count;

static void *worker_main(void *arg)
{
	struct worker *me = arg;
	struct who w = names_who(&nw);

	me->fn(&w, me);
	return NULL;
}

static int worker_process(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	worker_main(arg);
	return 0;
}

static struct worker *worker_add(void (*fn)(struct who *, struct worker *), unsigned long n, bool process)
{
	struct worker *me = &workers[worker_count];

	*me = (struct worker){.fn = fn, .id = worker_count++, .n = n};
	me->rng = test_seed() + me->id * 7919u;
	if (process && PROCESSES)
		me->pid = test_fork(worker_process, me);
	return me;
}

/* Threads start after all processes have been forked. */
static void workers_run(void)
{
	unsigned k;

	for (k = 0; k < worker_count; k++)
		if (!workers[k].pid)
			CHECK(pthread_create(&workers[k].thread, NULL, worker_main, &workers[k]) == 0);
	for (k = 0; k < worker_count; k++) {
		if (workers[k].pid)
			CHECK(test_wait(workers[k].pid) == 0);
		else
			pthread_join(workers[k].thread, NULL);
	}
	worker_count = 0;
}

static unsigned pick(struct worker *me, unsigned n)
{
	return (unsigned)(test_random(&me->rng) >> 24) % n;
}

static bool stopped(void)
{
	return load_acquire(stop); /* pairs with stop_all */
}

static void stop_all(void)
{
	store_release(stop, 1); /* pairs with stopped */
}

/* ---- rename over a name ------------------------------------------------------------------------------ */

static void replace_name(struct who *w, struct worker *me)
{
	char from[32];
	unsigned long k;

	sprintf(from, me->id & 1 ? "/d/new%u" : "/new%u", me->id);
	for (k = 0; k < me->n; k++) {
		CHECK(n_create(w, from) == 0);
		CHECK(n_rename(w, from, "/d/target") == 0);
	}
	stop_all();
}

static void look_at_name(struct who *w, struct worker *me)
{
	struct stat st;

	(void)me;
	while (!stopped()) {
		CHECK(n_stat(w, "/d/target", &st) == 0);
		CHECK(st.st_nlink == 1 || st.st_nlink == 0); /* found, and replaced before its count was read */
		CHECK(n_try(w, "/d/target", O_RDWR, 0) == 0);
		CHECK(n_create(w, "/d/target") == -EEXIST);
	}
}

static void rename_over_never_leaves_the_name_absent(void **state)
{
	struct who w = names_who(&nw);

	(void)state;
	CHECK(n_mkdir(&w, "/d") == 0 && n_create(&w, "/d/target") == 0);
	worker_add(look_at_name, 0, true);
	worker_add(replace_name, test_scaled(10000), true);
	worker_add(replace_name, test_scaled(10000), false);
	worker_add(look_at_name, 0, false);
	worker_add(look_at_name, 0, false);
	workers_run();
}

/* ---- two names change places ------------------------------------------------------------------------------ */

static uint64_t inos[2];

static void exchange_names(struct who *w, struct worker *me)
{
	unsigned long k;

	for (k = 0; k < me->n; k++)
		CHECK(n_rename2(w, "/d/x", k & 1 ? "/e/y" : "/d/z", RENAME_EXCHANGE) == 0);
	stop_all();
}

/* Under both locks nobody is between the two names. */
static void look_at_both(struct who *w, struct worker *me)
{
	struct stat st;

	(void)me;
	while (!stopped()) {
		CHECK(n_stat(w, "/d/x", &st) == 0);
		CHECK(n_stat(w, "/d/z", &st) == 0);
		CHECK(n_stat(w, "/e/y", &st) == 0);
		CHECK(n_count(w, "/d") == 2 && n_count(w, "/e") == 1);
	}
}

static void exchange_keeps_both_names(void **state)
{
	struct who w = names_who(&nw);
	uint64_t sum = 0;
	struct stat st;

	(void)state;
	CHECK(n_mkdir(&w, "/d") == 0 && n_mkdir(&w, "/e") == 0);
	CHECK(n_create(&w, "/d/x") == 0 && n_mkdir(&w, "/e/y") == 0 && n_create(&w, "/d/z") == 0);
	CHECK(n_stat(&w, "/d/x", &st) == 0);
	inos[0] = st.st_ino;
	CHECK(n_stat(&w, "/e/y", &st) == 0);
	inos[1] = st.st_ino;
	worker_add(exchange_names, test_scaled(5000), true);
	worker_add(exchange_names, test_scaled(5000), false);
	worker_add(look_at_both, 0, false);
	worker_add(look_at_both, 0, false);
	workers_run();
	CHECK(n_stat(&w, "/d/x", &st) == 0);
	sum += st.st_ino;
	CHECK(n_stat(&w, "/e/y", &st) == 0);
	sum += st.st_ino;
	CHECK(n_stat(&w, "/d/z", &st) == 0);
	sum += st.st_ino;
	CHECK(sum > inos[0] + inos[1]);
}

/* ---- a file that moves between two free names -------------------------------------------------------------------- */

static void move_to_and_fro(struct who *w, struct worker *me)
{
	unsigned long k;

	for (k = 0; k < me->n; k++)
		CHECK(n_rename(w, k & 1 ? "/d/there" : "/d/here", k & 1 ? "/d/here" : "/d/there") == 0);
	stop_all();
}

static void list_moving(struct who *w, struct worker *me)
{
	(void)me;
	while (!stopped()) {
		long n = n_count(w, "/d");

		CHECK(n >= 0 && n <= 2); /* moved behind the listing's end: not seen */
	}
}

/* With O_EXCL, no name is taken twice: at each moment one of the two is free. */
static void claim_free_name(struct who *w, struct worker *me)
{
	struct stat a, b;

	(void)me;
	while (!stopped()) {
		int here = n_stat(w, "/d/here", &a), there = n_stat(w, "/d/there", &b);

		CHECK(here == 0 || here == -ENOENT);
		CHECK(there == 0 || there == -ENOENT);
		CHECK(here || there || a.st_ino == b.st_ino);
	}
}

static void a_listing_ends_while_a_file_moves_to_and_fro(void **state)
{
	struct who w = names_who(&nw);

	(void)state;
	CHECK(n_mkdir(&w, "/d") == 0 && n_create(&w, "/d/here") == 0);
	worker_add(move_to_and_fro, test_scaled(20000), false);
	worker_add(list_moving, 0, false);
	worker_add(list_moving, 0, true);
	worker_add(claim_free_name, 0, false);
	workers_run();
}

/* ---- directories that move while others walk through them ------------------------------------------------------------ */

static void move_directory(struct who *w, struct worker *me)
{
	unsigned long k;

	for (k = 0; k < me->n; k++) {
		CHECK(n_rename(w, "/p/d", "/q/e") == 0);
		CHECK(n_rename(w, "/q/e", "/p/d") == 0);
	}
	stop_all();
}

static void walk_through(struct who *w, struct worker *me)
{
	struct who inside = *w;
	char buf[256], *at;
	struct stat st;
	int err;

	(void)me;
	inside.fs = names_fs(w->self);
	while (n_chdir(&inside, "/p/d/sub"))
		;
	while (!stopped()) {
		CHECK(n_stat(&inside, "file", &st) == 0);
		CHECK(n_stat(&inside, "../sub/file", &st) == 0);
		err = n_stat(w, "/p/d/sub/file", &st);
		CHECK(err == 0 || err == -ENOENT);
		err = n_stat(&inside, "../../../p/d/sub/../../../q", &st);
		CHECK(err == 0 || err == -ENOENT);
		err = n_getcwd(&inside, buf, sizeof(buf), &at);
		CHECK(err == 0 || err == -ENOENT);
		CHECK(err || !strcmp(at, "/p/d/sub") || !strcmp(at, "/q/e/sub"));
	}
	CHECK(n_chdir(&inside, "/") == 0);
	n_put(w, load_relaxed(&inside.fs->cwd));
	n_put(w, load_relaxed(&inside.fs->root));
}

static void a_walk_goes_on_through_a_moving_directory(void **state)
{
	struct who w = names_who(&nw);

	(void)state;
	CHECK(n_mkdir(&w, "/p") == 0 && n_mkdir(&w, "/q") == 0 && n_mkdir(&w, "/p/d") == 0 && n_mkdir(&w, "/p/d/sub") == 0);
	CHECK(n_create(&w, "/p/d/sub/file") == 0);
	worker_add(walk_through, 0, true);
	worker_add(walk_through, 0, false);
	worker_add(walk_through, 0, false);
	worker_add(move_directory, test_scaled(10000), false);
	workers_run();
}

/* ---- random moves in a small tree: no cycle, nothing lost --------------------------------------------------------------- */

static void random_name(struct worker *me, char *out)
{
	static const char *const words[] = {"a", "b", "c"};
	unsigned n = 1 + pick(me, 4);

	for (; n; n--)
		out += sprintf(out, "/%s", words[pick(me, 3)]);
}

static void change_at_random(struct who *w, struct worker *me)
{
	char a[64], b[64];
	unsigned long k;
	struct stat st;

	for (k = 0; k < me->n; k++) {
		random_name(me, a);
		random_name(me, b);
		switch (pick(me, 10)) {
		case 0:
		case 1:
			n_mkdir(w, a);
			break;
		case 2:
			n_create(w, a);
			break;
		case 3:
			n_unlink(w, a);
			break;
		case 4:
			n_rmdir(w, a);
			break;
		case 5:
			n_link(w, a, b);
			break;
		case 6:
			n_rename2(w, a, b, RENAME_EXCHANGE);
			break;
		case 7:
			n_stat(w, a, &st);
			break;
		default:
			n_rename2(w, a, b, pick(me, 8) ? 0 : RENAME_WHITEOUT);
		}
	}
}

static void random_changes_keep_the_tree_whole(void **state)
{
	unsigned long rounds = test_scaled(20);
	struct who w = names_who(&nw);
	unsigned k;

	(void)state;
	/* Not longer at a time: moves make the tree ever deeper. */
	for (; rounds; rounds--) {
		for (k = 0; k < 6; k++)
			worker_add(change_at_random, 1000, k < 2)->rng += rounds;
		workers_run();
		check_dir(&w, "");
		remove_tree(&w, "");
	}
}

/* ---- many creates ---------------------------------------------------------------------------------------------------------- */

#define MANY 10000u

static void create_share(struct who *w, struct worker *me)
{
	char path[32];
	unsigned long k;

	for (k = me->id; k < MANY; k += me->n) {
		sprintf(path, "/d/f%lu", k);
		CHECK(n_create(w, path) == 0);
	}
}

static void parallel_creates_are_all_listed(void **state)
{
	struct who w = names_who(&nw);
	unsigned k;

	(void)state;
	CHECK(n_mkdir(&w, "/d") == 0);
	for (k = 0; k < 8; k++)
		worker_add(create_share, 8, k < 4);
	workers_run();
	CHECK(n_count(&w, "/d") == MANY);
}

static void temporary_files(struct who *w, struct worker *me)
{
	char path[32];
	unsigned long k;

	for (k = 0; k < me->n; k++) {
		int err;

		do {
			sprintf(path, "/d/tmp%06u", pick(me, 1000000));
			err = n_create(w, path);
		} while (err == -EEXIST);
		CHECK(err == 0);
		CHECK(n_unlink(w, path) == 0);
	}
}

static void temporary_files_storm_leaves_the_directory_empty(void **state)
{
	struct who w = names_who(&nw);
	unsigned k;

	(void)state;
	CHECK(n_mkdir(&w, "/d") == 0);
	for (k = 0; k < 28; k++) /* 20 threads, 8 processes: 40,000 in all */
		worker_add(temporary_files, 40000 / 28 + (k < 40000 % 28), k < 8);
	workers_run();
	CHECK(n_count(&w, "/d") == 0);
}

/* ---- one name, several who want it ------------------------------------------------------------------------------------------- */

#define ROUNDS_MAX 100000u
static struct {
	atomic_u32 round, ready, won[ROUNDS_MAX];
} *race;

static int claim(struct who *w, struct worker *me, const char *path)
{
	char own[32];

	switch (me->id % 5) {
	case 0:
		return n_mkdir(w, path);
	case 1:
		return n_create(w, path);
	case 2:
		return n_symlink(w, "target", path);
	case 3:
		return n_link(w, "/source", path);
	default:
		sprintf(own, "/own%u", me->id);
		CHECK(n_try(w, own, O_CREAT, 0600) == 0);
		return n_rename2(w, own, path, RENAME_NOREPLACE);
	}
}

static void claim_names(struct who *w, struct worker *me)
{
	char path[32];
	unsigned long k;

	for (k = 0; k < me->n; k++) {
		int err;

		sprintf(path, "/d/n%lu", k);
		err = claim(w, me, path);
		CHECK(err == 0 || err == -EEXIST);
		if (!err)
			add_acq_rel(&race->won[k], 1u);
		else if (!(k & 7))
			sched_yield();
	}
}

static void of_several_claims_exactly_one_succeeds(void **state)
{
	struct who w = names_who(&nw);
	unsigned long rounds = test_scaled(4000), k;

	(void)state;
	rounds = min_of(rounds, (unsigned long)ROUNDS_MAX);
	race = mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(race != MAP_FAILED);
	CHECK(n_mkdir(&w, "/d") == 0 && n_create(&w, "/source") == 0);
	for (k = 0; k < 5; k++)
		worker_add(claim_names, rounds, k == 2);
	workers_run();
	for (k = 0; k < rounds; k++)
		CHECK(load_relaxed(&race->won[k]) == 1);
	munmap(race, sizeof(*race));
}

/* ---- listing under change ------------------------------------------------------------------------------------------------------- */

#define STAYING 1000u

static void churn(struct who *w, struct worker *me)
{
	char path[32], to[32];

	while (!stopped()) {
		sprintf(path, "/d/churn%u-%u", me->id, pick(me, 50));
		sprintf(to, "/d/churn%u-%u", me->id, pick(me, 50));
		switch (pick(me, 3)) {
		case 0:
			n_try(w, path, O_CREAT, 0600);
			break;
		case 1:
			n_unlink(w, path);
			break;
		default:
			n_rename(w, path, to);
		}
	}
}

static void note_seen(void *ctx, const struct n_dirent *e)
{
	unsigned char *seen = ctx;

	if (!strncmp(e->name, "stay", 4)) {
		CHECK(!seen[atoi(e->name + 4)]);
		seen[atoi(e->name + 4)] = 1;
	}
}

static void list_all(struct who *w, struct worker *me)
{
	unsigned char seen[STAYING];
	struct inode *dir;
	unsigned long k, i;

	CHECK(n_open(w, "/d", O_RDONLY | O_DIRECTORY, 0, &dir) == 0);
	for (k = 0; k < me->n; k++) {
		memset(seen, 0, sizeof(seen));
		n_list(w, dir, note_seen, seen);
		for (i = 0; i < STAYING; i++)
			CHECK(seen[i]);
	}
	n_put(w, dir);
	stop_all();
}

static void a_listing_has_each_staying_entry_once(void **state)
{
	struct who w = names_who(&nw);
	char path[32];
	unsigned k;

	(void)state;
	CHECK(n_mkdir(&w, "/d") == 0);
	for (k = 0; k < STAYING; k++) {
		sprintf(path, "/d/stay%u", k);
		CHECK(n_create(&w, path) == 0);
	}
	worker_add(churn, 0, true);
	worker_add(churn, 0, false);
	worker_add(churn, 0, false);
	worker_add(list_all, test_scaled(200), false);
	workers_run();
}

/* ---- a directory that comes and goes ------------------------------------------------------------------------------------------------ */

static void make_and_remove(struct who *w, struct worker *me)
{
	unsigned long k;

	for (k = 0; k < me->n; k++) {
		int err = n_mkdir(w, "/d");

		CHECK(err == 0 || err == -EEXIST);
		err = n_rmdir(w, "/d");
		CHECK(err == 0 || err == -ENOTEMPTY || err == -ENOENT);
	}
	stop_all();
}

static void create_inside(struct who *w, struct worker *me)
{
	char path[32];

	sprintf(path, "/d/f%u", me->id);
	while (!stopped()) {
		int err = n_create(w, path);

		CHECK(err == 0 || err == -ENOENT);
		if (!err)
			CHECK(n_unlink(w, path) == 0); /* what is in it keeps it */
	}
}

static void nothing_is_created_in_a_removed_directory(void **state)
{
	(void)state;
	worker_add(make_and_remove, test_scaled(20000), false);
	worker_add(create_inside, 0, false);
	worker_add(create_inside, 0, true);
	workers_run();
}

#define NAMES_TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NAMES_TEST(rename_over_never_leaves_the_name_absent),
		NAMES_TEST(exchange_keeps_both_names),
		NAMES_TEST(a_listing_ends_while_a_file_moves_to_and_fro),
		NAMES_TEST(a_walk_goes_on_through_a_moving_directory),
		NAMES_TEST(random_changes_keep_the_tree_whole),
		NAMES_TEST(parallel_creates_are_all_listed),
		NAMES_TEST(temporary_files_storm_leaves_the_directory_empty),
		NAMES_TEST(of_several_claims_exactly_one_succeeds),
		NAMES_TEST(a_listing_has_each_staying_entry_once),
		NAMES_TEST(nothing_is_created_in_a_removed_directory),
	};
	int failed;

	test_seed();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (nw.seg)
		names_world_close(&nw);
	return failed;
}

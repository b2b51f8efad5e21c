/* SPDX-License-Identifier: MIT */
/*
 * Processes change one small tree at random, and are killed at random while they do.  The others go on
 * within a second, whatever the dead had locked, and the tree is whole afterwards.
 */
#include "names_check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/clock.h"

enum { WORKERS = 3 };

static struct names_world nw;

static unsigned pick(uint64_t *rng, unsigned n)
{
	return (unsigned)(test_random(rng) >> 24) % n;
}

static void random_name(uint64_t *rng, char *out)
{
	static const char *const words[] = {"a", "b", "c"};
	unsigned n = 1 + pick(rng, 3);

	for (; n; n--)
		out += sprintf(out, "/%s", words[pick(rng, 3)]);
}

static unsigned depth(const char *path)
{
	unsigned n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static void change(struct who *w, uint64_t *rng)
{
	char a[64], b[64];
	struct stat st;

	random_name(rng, a);
	random_name(rng, b);
	switch (pick(rng, 9)) {
	case 0:
	case 1:
		n_mkdir(w, a);
		break;
	case 2:
		n_try(w, a, O_CREAT, 0600);
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
		if (depth(a) == depth(b))
			n_rename2(w, a, b, RENAME_EXCHANGE);
		break;
	case 7:
		n_stat(w, a, &st);
		break;
	default: /* never deeper: the tree would grow without end */
		n_rename(w, depth(a) < depth(b) ? b : a, depth(a) < depth(b) ? a : b);
	}
}

static int worker(void *arg)
{
	uint64_t rng = *(uint64_t *)arg;
	struct who w = names_who(&nw);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		change(&w, &rng);
	return 0;
}

/* The longest that one of our own calls takes. */
static int64_t work_on(struct who *w, uint64_t *rng, int64_t until)
{
	int64_t longest = 0, before = clock_now_monotonic(), now;

	do {
		change(w, rng);
		now = clock_now_monotonic();
		longest = max_of(longest, now - before);
		before = now;
	} while (now < until);
	return longest;
}

static void survivors_go_on_and_the_tree_stays_whole(void **state)
{
	unsigned long kills = test_scaled(150), k;
	uint64_t rng = test_seed(), seed;
	int64_t longest = 0, before;
	pid_t pid[WORKERS];
	struct who w;

	(void)state;
	names_world_open(&nw, 64UL << 20);
	w = names_who(&nw);
	before = vfs_inodes(nw.seg);
	for (k = 0; k < WORKERS; k++) {
		seed = test_random(&rng);
		pid[k] = test_fork(worker, &seed);
	}
	for (k = 0; k < kills; k++) {
		unsigned victim = pick(&rng, WORKERS);

		longest = max_of(longest, work_on(&w, &rng, clock_now_monotonic() + pick(&rng, 10000000)));
		kill(pid[victim], SIGKILL);
		CHECK(test_wait(pid[victim]) == 128 + SIGKILL);
		seed = test_random(&rng);
		pid[victim] = test_fork(worker, &seed);
		if (k % 20 == 19)
			slot_reap(w.self);
	}
	for (k = 0; k < WORKERS; k++) {
		kill(pid[k], SIGKILL);
		test_wait(pid[k]);
	}
	slot_reap(w.self);
	CHECK(!segment_poisoned(nw.seg));
	check_dir(&w, "");
	remove_tree(&w, "");
	CHECK(!epoch_barrier(w.self, 10000000000));
	fprintf(stderr, "%lu deaths; longest call %ld ms; %ld inodes lost\n", kills, (long)(longest / 1000000),
		(long)(vfs_inodes(nw.seg) - before));
	CHECK(longest < 1000000000);
	CHECK(vfs_inodes(nw.seg) >= before && vfs_inodes(nw.seg) - before <= (long)(10 + kills / 20));
	names_world_close(&nw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survivors_go_on_and_the_tree_stays_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

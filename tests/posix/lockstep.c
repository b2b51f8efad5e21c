/* SPDX-License-Identifier: MIT */
/*
 * lockstep [STEPS]: random calls on a shelf and on the kernel's tmpfs give the same results, step by step, and the
 * same trees.  A child process does the kernel's half below its own mount, chrooted; results come back through
 * shared memory.  Without STEPS: 50,000 times SHELF_TEST_SCALE.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "harness.h"
#include "lib/lockstep.h"

enum { RING = 256, CONTEXT = 20, ROOT_MODE = 0777, MAX_SIZE_MB = 512 };

struct shared {
	sem_t filled, empty, ready;
	volatile int failed; /* the kernel's side: errno of what could not be set up */
	volatile int many_ids;
	struct ls_result ring[RING];
	char trees[2][LS_TREES][LS_TREE_TEXT];
};

static unsigned long steps_wanted;

static struct shared *shared_new(void)
{
	struct shared *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(sh != MAP_FAILED);
	CHECK(!sem_init(&sh->filled, 1, 0) && !sem_init(&sh->empty, 1, getenv("LOCKSTEP_TREES") ? LS_TREES / 2 : RING) && !sem_init(&sh->ready, 1, 0));
	return sh;
}

/* ---- the kernel's half ------------------------------------------------------------------------------ */

/* Where we are not root there is one user only, without the rights that the namespace lent him. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	CHECK(!syscall(SYS_capset, &header, none));
}

/* With our own user namespace where we are not root. */
static int own_mount(struct shared *sh)
{
	static const char map[] = "0 %u 1\n";
	unsigned uid = getuid(), gid = getgid();
	char text[40];
	int fd;

	sh->many_ids = uid == 0;
	if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)))
		return errno;
	if (uid) {
		fd = open("/proc/self/setgroups", O_WRONLY);
		CHECK(write(fd, "deny", 4) == 4);
		close(fd);
		fd = open("/proc/self/uid_map", O_WRONLY);
		snprintf(text, sizeof(text), map, uid);
		CHECK(write(fd, text, strlen(text)) > 0);
		close(fd);
		fd = open("/proc/self/gid_map", O_WRONLY);
		snprintf(text, sizeof(text), map, gid);
		CHECK(write(fd, text, strlen(text)) > 0);
		close(fd);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return errno;
	if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NODEV, "size=512m,mode=0777"))
		return errno;
	if (chdir("/dev/shm") || chroot(".") || chdir("/"))
		return errno;
	if (uid)
		drop_capabilities();
	return 0;
}

static void kernel_half(struct shared *sh, uint64_t seed)
{
	struct ls_side side = { .buf = malloc(LS_BUFFER), .trees = sh->trees[1][0] };
	struct ls_op op;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sh->failed = own_mount(sh);
	side.many_ids = (unsigned)sh->many_ids;
	sem_post(&sh->ready);
	if (sh->failed)
		_exit(0);
	syscall(SYS_close_range, 0, ~0u, 0);
	umask(022);
	signal(SIGIO, SIG_IGN);
	ls_setlimit(&side, LS_NOFILE);
	for (unsigned long i = 0; i < steps_wanted; i++) {
		struct ls_result *r = &sh->ring[i % RING];

		ls_next(&seed, &op);
		while (sem_wait(&sh->empty))
			;
		ls_run(&side, &op, r);
		sem_post(&sh->filled);
	}
	_exit(0);
}

/* ---- the shelf's half ---------------------------------------------------------------------------------- */

static void say_fault(void *ctx, const char *fault)
{
	(void)ctx;
	fprintf(stderr, "shelf check: %s\n", fault);
}

static void explain(uint64_t seed, unsigned long step, const struct ls_result *shelf, const struct ls_result *kernel)
{
	struct ls_op op;
	char text[600];

	fprintf(stderr, "step %lu differs; the last %d calls:\n", step, CONTEXT);
	for (unsigned long i = 0; i <= step; i++) {
		ls_next(&seed, &op);
		if (i + CONTEXT <= step)
			continue;
		ls_describe(&op, text, sizeof(text));
		fprintf(stderr, "%lu: %s\n", i, text);
	}
	fprintf(stderr, "shelf:  %lld %s hash %llx %s\n", (long long)shelf->ret,
		shelf->ret < 0 ? strerror((int)-shelf->ret) : "", (unsigned long long)shelf->hash, shelf->text);
	fprintf(stderr, "kernel: %lld %s hash %llx %s\n", (long long)kernel->ret,
		kernel->ret < 0 ? strerror((int)-kernel->ret) : "", (unsigned long long)kernel->hash, kernel->text);
}

/* The lines of the two trees that differ, up to a few. */
static void explain_tree(struct shared *sh, unsigned which)
{
	char *a = sh->trees[0][which], *b = sh->trees[1][which], *a_end, *b_end, *before = a;

	for (int shown = 0; *a && *b && shown < 6; before = a, a = a_end + 1, b = b_end + 1) {
		a_end = strchrnul(a, '\n');
		b_end = strchrnul(b, '\n');
		if (a_end - a == b_end - b && !memcmp(a, b, (size_t)(a_end - a)))
			continue;
		fprintf(stderr, "in %.*s\nshelf:  %.*s\nkernel: %.*s\n", (int)(a - before), before, (int)(a_end - a), a, (int)(b_end - b), b);
		shown++;
	}
}

static bool same(const struct ls_result *a, const struct ls_result *b)
{
	return a->ret == b->ret && a->hash == b->hash && !strcmp(a->text, b->text);
}

/* LOCKSTEP_LOG in the environment: every call with its result. */
static void log_step(unsigned long step, const struct ls_op *op, const struct ls_result *r)
{
	char text[600];

	if (!getenv("LOCKSTEP_LOG"))
		return;
	ls_describe(op, text, sizeof(text));
	fprintf(stderr, "%lu: = %lld %s; %s\n", step, (long long)r->ret, r->text, text);
}

/* Steps that agreed. */
static unsigned long compare(struct shared *sh, struct ls_side *side, uint64_t start)
{
	uint64_t seed = start;
	struct ls_result mine;
	struct ls_op op;

	for (unsigned long i = 0; i < steps_wanted; i++) {
		struct ls_result *theirs = &sh->ring[i % RING];

		ls_next(&seed, &op);
		ls_run(side, &op, &mine);
		log_step(i, &op, &mine);
		while (sem_wait(&sh->filled))
			;
		if (!same(&mine, theirs)) {
			explain(start, i, &mine, theirs);
			if (strstr(mine.text, "entries"))
				explain_tree(sh, (side->tree_count - 1) % LS_TREES);
			return i;
		}
		sem_post(&sh->empty);
	}
	return steps_wanted;
}

static void shelf_side(struct ls_side *side, struct shelf **shelf, const char *name, unsigned many_ids)
{
	struct shelf_options options = { .size = (uint64_t)MAX_SIZE_MB << 20, .mode = ROOT_MODE };
	struct shelf_cred root = { .caps = SHELF_CAP_ALL };
	char why[SHELF_WHY];

	if (shelf_create(name, &options, shelf, why)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	side->many_ids = many_ids;
	side->buf = malloc(LS_BUFFER);
	CHECK(!shelf_task_create(*shelf, &root, &side->task));
	ls_setids(side, 0);
	ls_setlimit(side, LS_NOFILE);
}

static void random_calls_agree_with_tmpfs(void **state)
{
	uint64_t seed = test_seed();
	struct shared *sh = shared_new();
	struct ls_side side = { .trees = sh->trees[0][0] };
	struct shelf *shelf;
	char name[TEST_NAME_SIZE];
	unsigned long agreed;
	pid_t kernel;
	int64_t faults;

	(void)state;
	fflush(NULL);
	kernel = fork();
	CHECK(kernel >= 0);
	if (!kernel)
		kernel_half(sh, seed);
	while (sem_wait(&sh->ready))
		;
	if (sh->failed)
		test_skip("no right to mount a tmpfs of our own, nor user namespaces");
	shelf_side(&side, &shelf, fresh_name(name), (unsigned)sh->many_ids);
	agreed = compare(sh, &side, seed);
	kill(kernel, SIGKILL);
	test_wait(kernel);
	ls_setids(&side, 0);
	faults = shelf_check(shelf, say_fault, NULL);
	shelf_task_exit(side.task);
	free(side.buf);
	shelf_detach(shelf);
	shelf_remove(name, NULL);
	fprintf(stderr, "%lu steps agreed\n", agreed);
	assert_int_equal(agreed, steps_wanted);
	assert_int_equal(faults, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_calls_agree_with_tmpfs),
	};

	steps_wanted = argc > 1 ? strtoul(argv[1], NULL, 0) : test_scaled(50000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

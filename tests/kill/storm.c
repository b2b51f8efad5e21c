/* SPDX-License-Identifier: MIT */
/*
 * Processes use one shelf at random and are killed at random while they do; others take their place.  Those that
 * live go on; afterwards the shelf passes its check, which takes back and tells what the dead left, and then there is nothing
 * of theirs: no descriptor, no page, no inode, no lock, no task.
 *
 *   OPS       which kinds of calls, letters of storm_ops[]; all if unset
 *   KILLS     how many deaths (150, times SHELF_TEST_SCALE)
 *   WORKERS   processes at a time (8)
 *   EVERY     after so many deaths all are ended, and the shelf is looked at (50; 0: at the end only)
 */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <shelf/shelf.h>

#include "base/atomic.h"
#include "base/clock.h"

enum { WORKERS_MAX = 16, HANG_S = 30, PATHS = 4 };

/* In memory that all share. */
struct progress {
	atomic_u64 since; /* when the present call began, ns */
	atomic_u64 longest; /* ns */
	atomic_u64 calls;
	atomic_u32 op;
};
static struct progress *progress;

static struct shelf *shelf;
static char shelf_name[TEST_NAME_SIZE];

struct worker {
	struct shelf_task *t;
	struct progress *progress;
	uint64_t rng;
	const char *ops;
};

static unsigned pick(struct worker *w, unsigned n)
{
	return (unsigned)(test_random(&w->rng) >> 24) % n;
}

static unsigned env_number(const char *name, unsigned standard)
{
	const char *env = getenv(name);

	return env ? (unsigned)strtoul(env, NULL, 0) : standard;
}

/* ---- what the processes do -------------------------------------------------------------------- */

static void random_path(struct worker *w, char *out)
{
	static const char *const words[] = {"a", "b", "c"};
	unsigned n = 1 + pick(w, 3);

	for (; n; n--)
		out += sprintf(out, "/%s", words[pick(w, 3)]);
}

static void random_file(struct worker *w, char *out)
{
	sprintf(out, "/f%u", pick(w, PATHS));
}

static int open_some(struct worker *w, int flags)
{
	char path[64];

	if (pick(w, 2))
		random_path(w, path);
	else
		random_file(w, path);
	return shelf_open(w->t, path, flags, 0644);
}

static void files(struct worker *w)
{
	static const int flags[] = {O_RDWR | O_CREAT, O_RDONLY, O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_CREAT | O_TRUNC,
				    O_WRONLY | O_APPEND, O_PATH};
	char path[64];
	int fd = open_some(w, flags[pick(w, 6)]);

	if (fd >= 0 && pick(w, 4))
		shelf_close(w->t, fd);
	if (!pick(w, 3)) {
		random_file(w, path);
		shelf_unlink(w->t, path);
	}
	if (!pick(w, 6) && (fd = shelf_open(w->t, "/", O_TMPFILE | O_RDWR, 0600)) >= 0) {
		random_file(w, path);
		if (pick(w, 2))
			shelf_linkat(w->t, fd, "", AT_FDCWD, path, AT_EMPTY_PATH);
		shelf_close(w->t, fd);
	}
}

static unsigned depth(const char *path)
{
	unsigned n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static void names(struct worker *w)
{
	char a[64], b[64];
	struct stat st;

	random_path(w, a);
	random_path(w, b);
	switch (pick(w, 9)) {
	case 0:
	case 1:
		shelf_mkdir(w->t, a, 0755);
		break;
	case 2:
		shelf_mknod(w->t, a, S_IFREG | 0600, 0);
		break;
	case 3:
		shelf_unlink(w->t, a);
		break;
	case 4:
		shelf_rmdir(w->t, a);
		break;
	case 5:
		shelf_link(w->t, a, b);
		break;
	case 6:
		if (depth(a) == depth(b))
			shelf_renameat2(w->t, AT_FDCWD, a, AT_FDCWD, b, 2 /* RENAME_EXCHANGE */);
		break;
	case 7:
		if (pick(w, 2))
			shelf_symlink(w->t, "somewhere", a);
		else
			shelf_stat(w->t, a, &st);
		break;
	default: /* never deeper: the tree would grow without end */
		shelf_rename(w->t, depth(a) < depth(b) ? b : a, depth(a) < depth(b) ? a : b);
	}
}

static void data(struct worker *w)
{
	static char bytes[200000];
	off_t from = pick(w, 50000), to = 100000 + from;
	char path[64];
	int fd;

	random_file(w, path);
	fd = shelf_open(w->t, path, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		return;
	switch (pick(w, 8)) {
	case 0:
	case 1:
	case 2:
		shelf_pwrite(w->t, fd, bytes, pick(w, 20000), pick(w, 100000));
		break;
	case 3:
		shelf_pwrite(w->t, fd, bytes, pick(w, sizeof(bytes)), pick(w, 400000));
		break;
	case 4:
		shelf_ftruncate(w->t, fd, pick(w, 200000));
		break;
	case 5:
		shelf_fallocate(w->t, fd, pick(w, 2) ? 3 /* PUNCH_HOLE | KEEP_SIZE */ : 0, pick(w, 100000), 1 + pick(w, 100000));
		break;
	case 6:
		shelf_copy_file_range(w->t, fd, &from, fd, &to, pick(w, 50000), 0);
		break;
	default:
		shelf_pread(w->t, fd, bytes, sizeof(bytes), 0);
	}
	shelf_close(w->t, fd);
}

static void descriptors(struct worker *w)
{
	int fd = (int)pick(w, 100);

	switch (pick(w, 7)) {
	case 0:
		open_some(w, O_RDWR | O_CREAT);
		break;
	case 1:
		shelf_dup(w->t, fd);
		break;
	case 2:
		shelf_dup2(w->t, fd, (int)pick(w, 100));
		break;
	case 3:
	case 4:
		shelf_close(w->t, fd);
		break;
	case 5:
		shelf_fcntl(w->t, fd, F_SETFD, FD_CLOEXEC);
		break;
	default:
		if (!pick(w, 20))
			shelf_close_range(w->t, (unsigned)fd, (unsigned)fd + 30, 0);
		else
			shelf_fcntl(w->t, fd, F_DUPFD, 64 + pick(w, 1000));
	}
}

static void locks(struct worker *w)
{
	static const short types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
	struct flock fl = {.l_whence = SEEK_SET, .l_type = types[pick(w, 3)], .l_start = pick(w, 10), .l_len = 1 + pick(w, 5)};
	char path[64];
	int fd;

	random_file(w, path);
	fd = shelf_open(w->t, path, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		return;
	switch (pick(w, 4)) {
	case 0:
	case 1:
		shelf_fcntl(w->t, fd, F_SETLK, (uintptr_t)&fl);
		break;
	case 2:
		shelf_fcntl(w->t, fd, F_OFD_SETLK, (uintptr_t)&fl);
		break;
	default:
		shelf_flock(w->t, fd, LOCK_NB | (pick(w, 2) ? LOCK_EX : LOCK_SH));
	}
	if (pick(w, 8))
		shelf_close(w->t, fd);
}

/* fork, what a child does, exec, exit: all in this process. */
static void tasks(struct worker *w)
{
	struct shelf_cred cred = {.caps = SHELF_CAP_ALL, .fsuid = pick(w, 3)};
	struct shelf_task *child;

	switch (pick(w, 6)) {
	case 0:
		shelf_task_setcred(w->t, &cred);
		shelf_task_setcred(w->t, &(struct shelf_cred){.caps = SHELF_CAP_ALL});
		break;
	case 1:
		shelf_chdir(w->t, pick(w, 2) ? "/" : "/a");
		break;
	case 2:
		shelf_task_unshare(w->t, pick(w, 4));
		break;
	default:
		if (shelf_task_fork(w->t, pick(w, 4), &child))
			return;
		if (pick(w, 2))
			shelf_open(child, "/f0", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (pick(w, 2))
			shelf_task_exec(child);
		if (pick(w, 2))
			shelf_task_unshare(child, pick(w, 4));
		CHECK(shelf_task_exit(child) == 0);
	}
}

/* A real child, which may outlive us: it has adopted its task by then, or finds it gone. */
static void processes(struct worker *w)
{
	struct shelf_task *child;
	pid_t pid;
	int k;

	if (pick(w, 20) || shelf_task_fork(w->t, pick(w, 4), &child))
		return;
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (shelf_task_adopt(child))
			_exit(1);
		for (k = 0; k < 10; k++)
			shelf_close(child, shelf_open(child, "/f1", O_RDWR | O_CREAT, 0644));
		if (w->rng & 1)
			kill(getpid(), SIGKILL);
		shelf_task_exit(child);
		_exit(0);
	}
	test_wait(pid);
}

static void attributes(struct worker *w)
{
	char path[64], name[32];

	random_file(w, path);
	sprintf(name, "user.%u", pick(w, 3));
	if (pick(w, 2))
		shelf_setxattr(w->t, path, name, "some value", pick(w, 10), 0);
	else if (pick(w, 2))
		shelf_removexattr(w->t, path, name);
	else
		shelf_chmod(w->t, path, 0600 + pick(w, 8));
}

/* Instances come and go; some stay, and hear of what all others do. */
static void watches(struct worker *w)
{
	static char events[4096];
	char path[64];
	int in = shelf_inotify_init(w->t, IN_NONBLOCK);

	if (in < 0)
		return;
	for (unsigned k = pick(w, 4); k; k--) {
		if (pick(w, 2))
			random_path(w, path);
		else
			random_file(w, path);
		shelf_inotify_add_watch(w->t, in, pick(w, 3) ? path : "/", pick(w, 5) ? IN_ALL_EVENTS : IN_ATTRIB | IN_ONESHOT);
	}
	files(w);
	if (pick(w, 2))
		shelf_inotify_rm_watch(w->t, in, (int)pick(w, 4));
	shelf_read(w->t, in, events, sizeof(events));
	if (pick(w, 8))
		shelf_close(w->t, in);
}

static const struct storm_op {
	char letter;
	void (*run)(struct worker *w);
} storm_ops[] = {
	{'f', files}, {'n', names}, {'d', data}, {'D', descriptors}, {'l', locks}, {'t', tasks}, {'p', processes},
	{'x', attributes}, {'w', watches},
};
enum { OPS = sizeof(storm_ops) / sizeof(storm_ops[0]) };

/* ---- a process -------------------------------------------------------------------------------------- */

static void one_call(struct worker *w)
{
	const struct storm_op *op;
	struct progress *p = w->progress;
	uint64_t began;

	do
		op = &storm_ops[pick(w, OPS)];
	while (w->ops && *w->ops && !strchr(w->ops, op->letter));
	began = (uint64_t)clock_now_monotonic();
	store_relaxed(&p->op, (uint32_t)op->letter); /* these are for the eye, and for the watch over all */
	store_relaxed(&p->since, began);
	op->run(w);
	store_relaxed(&p->since, 0);
	began = (uint64_t)clock_now_monotonic() - began;
	if (began > load_relaxed(&p->longest))
		store_relaxed(&p->longest, began);
	add_relaxed(&p->calls, 1);
}

static pid_t parent;

static int worker(void *arg)
{
	struct worker *w = arg;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before that */
		return 0;
	err = shelf_task_create(shelf, &(struct shelf_cred){.caps = SHELF_CAP_ALL}, &w->t);

	if (err)
		return -err;
	for (;;)
		one_call(w);
	return 0;
}

/* ---- the storm ------------------------------------------------------------------------------------------ */

static pid_t pids[WORKERS_MAX];
static unsigned workers;
static uint64_t storm_rng; /* when, and whom */
static unsigned long deaths_all, unstarted;

static void start(unsigned k)
{
	struct worker w = {.progress = &progress[k], .rng = test_random(&storm_rng), .ops = getenv("OPS")};

	store_relaxed(&progress[k].since, 0);
	pids[k] = test_fork(worker, &w);
}

static void end(unsigned k)
{
	int how;

	kill(pids[k], SIGKILL);
	how = test_wait(pids[k]);
	deaths_all += how == 128 + SIGKILL;
	unstarted += how == ENOSPC || how == ENOMEM;
	if (how == ENOSPC || how == ENOMEM) /* files that are removed and open can fill the shelf: there was no room for its task */
		return;
	if (how != 128 + SIGKILL) {
		struct shelf_counters c;

		shelf_counters(shelf, &c);
		fprintf(stderr, "process %d ended by itself: %d; %s\n", pids[k], how, c.poison_reason);
	}
	CHECK(how == 128 + SIGKILL);
}

/* Nobody has been in one call for too long. */
static void watch(void)
{
	uint64_t now = (uint64_t)clock_now_monotonic();
	unsigned k;

	for (k = 0; k < workers; k++) {
		uint64_t since = load_relaxed(&progress[k].since);

		if (!since || since > now || now - since < HANG_S * UINT64_C(1000000000))
			continue;
		fprintf(stderr, "process %d has been in a call of kind %c for %d s\n", pids[k],
			(char)load_relaxed(&progress[k].op), HANG_S);
		if (getenv("STORM_HOLD"))
			pause();
		abort();
	}
}

static void say(void *ctx, const char *fault)
{
	(void)ctx;
	fprintf(stderr, "  %s\n", fault);
}

static uint64_t left_objects, left_pages;

/* All are dead: no damage, every count adds up; a page or an object that is nobody's is taken back, and then nothing is left. */
static void must_be_good(unsigned long deaths)
{
	struct shelf_check_options o = {.say = say, .flags = SHELF_VERIFY_REPAIR};
	struct shelf_check_report r, again;
	struct shelf_counters c;

	CHECK(shelf_verify(shelf, &o, &r) == 0);
	CHECK(shelf_counters(shelf, &c) == 0);
	if (r.faults || c.poisoned)
		fprintf(stderr, "after %lu deaths: %llu faults; %s\n", deaths, (unsigned long long)r.faults, c.poison_reason);
	CHECK(r.faults == 0 && !c.poisoned && r.alone);
	CHECK(r.left == (r.left_objects ? 1u : 0u) + (r.left_pages ? 1u : 0u));
	left_objects += r.left_objects;
	left_pages += r.left_pages;
	CHECK(shelf_verify(shelf, &o, &again) == 0);
	CHECK(again.alone && !again.faults && !again.left);
}

static void remove_all(struct shelf_task *t, const char *dir)
{
	struct record {
		uint64_t ino;
		int64_t off;
		uint16_t len;
		uint8_t type;
		char name[];
	};
	_Alignas(8) char buf[4096];
	char path[128];
	ssize_t n, at;
	int fd = shelf_open(t, *dir ? dir : "/", O_RDONLY | O_DIRECTORY, 0);

	CHECK(fd >= 0);
	while ((n = shelf_getdents64(t, fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += ((struct record *)(void *)(buf + at))->len) {
			struct record *r = (void *)(buf + at);

			if (!strcmp(r->name, ".") || !strcmp(r->name, ".."))
				continue;
			snprintf(path, sizeof(path), "%s/%s", dir, r->name);
			if (r->type == 4 /* DT_DIR */) {
				remove_all(t, path);
				CHECK(shelf_rmdir(t, path) == 0);
			} else {
				CHECK(shelf_unlink(t, path) == 0);
			}
		}
	CHECK(n == 0);
	shelf_close(t, fd);
}

/* What is left once all is removed. */
static void count(struct shelf_counters *c)
{
	struct shelf_task *t;

	CHECK(shelf_task_create(shelf, &(struct shelf_cred){.caps = SHELF_CAP_ALL}, &t) == 0);
	remove_all(t, "");
	CHECK(shelf_task_exit(t) == 0);
	must_be_good(0);
	CHECK(shelf_counters(shelf, c) == 0);
}

static void end_all(unsigned long deaths)
{
	unsigned k;

	for (k = 0; k < workers; k++)
		end(k);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		; /* their children, who are killed with them */
	must_be_good(deaths);
}

static uint64_t longest(void)
{
	uint64_t ns = 0;
	unsigned k;

	for (k = 0; k < workers; k++)
		ns = load_relaxed(&progress[k].longest) > ns ? load_relaxed(&progress[k].longest) : ns;
	return ns;
}

static void survivors_go_on_and_what_the_dead_left_is_taken_back(void **state)
{
	unsigned long kills = env_number("KILLS", (unsigned)test_scaled(150)), k;
	unsigned every = env_number("EVERY", 50);
	struct shelf_options options = {.size = 64UL << 20, .uid = 0, .gid = 0, .mode = 01777};
	struct shelf_counters before, after;
	uint64_t calls = 0;
	char why[SHELF_WHY];
	unsigned n;

	(void)state;
	storm_rng = test_seed();
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	workers = env_number("WORKERS", 8);
	CHECK(workers >= 1 && workers <= WORKERS_MAX);
	parent = getpid();
	if (shelf_create(fresh_name(shelf_name), &options, &shelf, why))
		fprintf(stderr, "%s\n", why);
	CHECK(shelf);
	count(&before);
	for (n = 0; n < workers; n++)
		start(n);
	for (k = 0; k < kills; k++) {
		usleep((useconds_t)(test_random(&storm_rng) % 8000));
		watch();
		n = (unsigned)(test_random(&storm_rng) >> 24) % workers;
		end(n);
		start(n);
		if (every && k % every == every - 1) {
			end_all(k + workers);
			for (n = 0; n < workers; n++)
				start(n);
		}
	}
	end_all(k);
	count(&after);
	for (n = 0; n < workers; n++)
		calls += load_relaxed(&progress[n].calls);
	fprintf(stderr, "%lu deaths (%lu found no room), %llu calls; longest call %llu ms; %llu objects and %llu pages left over\n", deaths_all, unstarted,
		(unsigned long long)calls, (unsigned long long)longest() / 1000000, (unsigned long long)left_objects,
		(unsigned long long)left_pages);
	CHECK(after.inodes == before.inodes);
	CHECK(after.files_open == before.files_open);
	CHECK(after.tasks == before.tasks);
	/* Each page in use was come upon by the check.  The root's hash may have grown into a slab of another size. */
	CHECK(after.used_pages <= before.used_pages + 1);
	shelf_remove(shelf_name, NULL);
	shelf_detach(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survivors_go_on_and_what_the_dead_left_is_taken_back),
	};

	progress = mmap(NULL, WORKERS_MAX * sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(progress != MAP_FAILED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * flock.c - record locks: lock and unlock of two bytes while 100, and while 5,000 ranges of the
 * file are held, on a shelf and on the kernel's tmpfs, in turns.
 *
 *	flock [ROUNDS]		default 5; raw samples, then the medians and their ratio
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "vfs/flock_priv.h"

enum { FEW = 100, MANY = 5000, PAIRS = 20000, ROUNDS_MAX = 100, STRIDE = 10 };

static struct segment *seg;
static struct shelf_cred cred = {.caps = SHELF_CAP_ALL};
static struct who who;
static struct file *file;
static int kernel_fd;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "flock: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int shelf_lock(struct flock *fl)
{
	return flock_posix(&who, file, F_SETLK, fl);
}

static int kernel_lock(struct flock *fl)
{
	return fcntl(kernel_fd, F_SETLK, fl) ? -errno : 0;
}

typedef int lock_fn(struct flock *fl);

static void set(lock_fn *fn, int type, off_t start, off_t len)
{
	struct flock fl = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	if (fn(&fl))
		die("a lock was refused");
}

/* Pairs of lock and unlock a second. */
static double measure(lock_fn *fn, unsigned held)
{
	uint64_t at = 12345;
	int64_t since;
	unsigned i;

	for (i = 0; i < held; i++)
		set(fn, i % 2 ? F_WRLCK : F_RDLCK, (off_t)i * STRIDE, 5);
	since = clock_now_monotonic();
	for (i = 0; i < PAIRS; i++) {
		off_t start;

		at = at * 6364136223846793005u + 1442695040888963407u;
		start = (off_t)((at >> 33) % held) * STRIDE + 6;
		set(fn, i % 2 ? F_WRLCK : F_RDLCK, start, 2);
		set(fn, F_UNLCK, start, 2);
	}
	since = clock_now_monotonic() - since;
	set(fn, F_UNLCK, 0, 0);
	return PAIRS * 1e9 / (double)since;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static void setup_shelf(const char *name)
{
	struct segment_options opt = {.size = 64UL << 20, .max_slots = 16};
	char why[SHELF_WHY] = "";
	struct inode *inode;
	int err;

	if (segment_create(name, &opt, &seg, why)) {
		fprintf(stderr, "flock: %s\n", why);
		exit(1);
	}
	if (epoch_init(seg) || epoch_attach(seg) || fd_layer_init(seg) || fd_layer_attach(seg) || vfs_attach(seg) ||
	    vfs_init(slot_self(seg), 0755, 0, 0))
		die("the segment cannot be set up");
	segment_set_ready(seg);
	who = (struct who){.self = slot_self(seg), .cred = &cred, .files = (void *)&who};
	inode = inode_new(&who, S_IFREG | 0644, 0, 0);
	file = inode ? file_new(who.self, inode, FD_TYPE_REG, O_RDWR, &err) : NULL;
	if (!file)
		die("no file");
}

static void setup_kernel(void)
{
	char path[] = "/dev/shm/shelf-bench-XXXXXX";

	kernel_fd = mkstemp(path);
	if (kernel_fd < 0)
		die(path);
	unlink(path);
}

int main(int argc, char **argv)
{
	static const char *const label[] = {"shelf", "tmpfs"};
	static lock_fn *const fns[] = {shelf_lock, kernel_lock};
	static double few[2][ROUNDS_MAX], many[2][ROUNDS_MAX];
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 5, r, e;
	char name[64];

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: flock [ROUNDS]\n");
		return 2;
	}
	snprintf(name, sizeof(name), "bench-flock-%ld", (long)getpid());
	setup_shelf(name);
	setup_kernel();
	for (r = 0; r < rounds; r++)
		for (e = 0; e < 2; e++) {
			few[e][r] = measure(fns[e], FEW);
			many[e][r] = measure(fns[e], MANY);
			printf("%s round %u: %.0f pairs/s with %d held, %.0f with %d\n", label[e], r, few[e][r], FEW,
			       many[e][r], MANY);
		}
	for (e = 0; e < 2; e++) {
		double f = median(few[e], rounds), m = median(many[e], rounds);

		printf("%s median: %.0f pairs/s with %d held, %.0f with %d: a pair costs %.2f times as much\n", label[e],
		       f, FEW, m, MANY, f / m);
	}
	segment_remove(name, NULL);
	segment_detach(seg);
	return 0;
}

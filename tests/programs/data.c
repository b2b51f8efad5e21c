/* SPDX-License-Identifier: MIT */
/* data.c - what goes into files and comes out: appends, locks, copies, limits, odd arguments. */
#define _FORTIFY_SOURCE 2 /* the checked forms of read, pread, readlink, getcwd: programs of distributions are built so */
#include <sys/syscall.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "cases.h"

static int make(const char *name, int flags)
{
	return open(name, O_RDWR | O_CREAT | flags, 0644);
}

static long size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) ? -errno : (long)st.st_size;
}

/* ---- appends ------------------------------------------------------------------------------------ */

#define LINE 40

static void append_lines(void *arg)
{
	int fd = open("log", O_WRONLY | O_APPEND);
	char line[LINE + 1];
	unsigned k;

	for (k = 0; k < scaled(10000); k++) {
		snprintf(line, sizeof(line), "%c%0*u\n", (char)(intptr_t)arg, LINE - 2, k);
		if (write(fd, line, LINE) != LINE)
			_exit(1);
	}
}

/* Every writer's lines are whole and in its own order. */
static void check_lines(unsigned writers)
{
	unsigned next[4] = {0}, torn = 0, n = 0;
	char line[LINE + 2];
	FILE *f = fopen("log", "r");

	while (fgets(line, sizeof(line), f)) {
		unsigned who = (unsigned)(line[0] - 'a');

		n++;
		if (who >= writers || strlen(line) != LINE || strtoul(line + 1, NULL, 10) != next[who]++)
			torn++;
	}
	fclose(f);
	say("all lines %d, torn %u", n == writers * scaled(10000), torn);
}

static void appended_lines_of_four_processes_are_whole(void)
{
	pid_t pid[4];
	int k;

	close(make("log", 0));
	for (k = 0; k < 4; k++)
		pid[k] = child_start(append_lines, (void *)(intptr_t)('a' + k));
	for (k = 0; k < 4; k++)
		child_end("writer", pid[k]);
	check_lines(4);
	MUST(!unlink("log")); /* in which order they came is not the same twice */
}

static void append_lands_at_the_end_of_now(void)
{
	char block[32] = "0123456789abcdef0123456789abcde";
	int a = make("f", O_APPEND), b = make("f", 0), c;

	SAY(write(a, block, 32));
	say("size %ld", size_of("f"));
	SAY(ftruncate(b, 0));
	say("size %ld", size_of("f"));
	SAY(write(a, block, 32));
	say("size %ld", size_of("f"));
	SAY(pwrite(a, "xx", 2, 0)); /* Linux: appends */
	say("size %ld", size_of("f"));
	SAY(lseek(a, 0, SEEK_CUR));
	c = make("f", O_TRUNC | O_APPEND);
	SAY(write(c, "first", 5));
	say_file("f");
	SAY(fcntl(b, F_SETFL, O_APPEND));
	SAY(write(b, "+", 1));
	SAY(fcntl(b, F_SETFL, 0));
	SAY(pwrite(b, "F", 1, 0));
	say_file("f");
}

/* ---- record locks --------------------------------------------------------------------------------- */

static int lock_as(int cmd, int fd, short type, off_t start, off_t len)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	return fcntl(fd, cmd, &l);
}

static void look_at_parents_lock(void *arg)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
	int fd = open("f", O_RDWR);

	(void)arg;
	SAY(lock_as(F_SETLK, fd, F_WRLCK, 0, 10));
	SAY(lock_as(F_SETLK, fd, F_RDLCK, 5, 1));
	SAY(lock_as(F_SETLK, fd, F_WRLCK, 10, 10));
	SAY(fcntl(fd, F_GETLK, &l));
	say("type %d from %ld for %ld, the parent's %d", l.l_type, (long)l.l_start, (long)l.l_len,
	    l.l_pid == getppid());
}

static void a_lock_of_another_process_is_in_the_way(void)
{
	int fd = make("f", 0), other;

	SAY(lock_as(F_SETLK, fd, F_WRLCK, 0, 10));
	child_run("looker", look_at_parents_lock, NULL);
	other = open("f", O_RDONLY);
	SAY(close(other)); /* and with it all locks of the process */
	child_run("looker", look_at_parents_lock, NULL);
	SAY(lock_as(F_SETLK, open("f", O_RDONLY), F_WRLCK, 0, 1));
	SAY(lock_as(F_SETLK, fd, F_WRLCK, -1, 1));
	SAY(lock_as(F_SETLK, fd, 17, 0, 1));
	SAY(lock_as(F_SETLK, fd, F_WRLCK, 100, -50));
	SAY(lock_as(F_SETLK, fd, F_UNLCK, 0, 0));
}

struct holder {
	int told[2], go[2]; /* pipes */
};

static void hold(void *arg)
{
	struct holder *h = arg;
	int fd = open("f", O_RDWR);
	char c;

	close(h->go[1]);
	if (lock_as(F_SETLK, fd, F_WRLCK, 0, 0) || write(h->told[1], "x", 1) != 1)
		_exit(1);
	(void)!read(h->go[0], &c, 1); /* until the parent lets go, or for ever */
}

/* The waiter is released by FREE(holder): what it waits for it gets. */
static void wait_for_lock(void *arg)
{
	struct holder *h = arg;
	int fd = open("f", O_RDWR);

	close(h->go[1]); /* or the holder would wait for us */
	if (write(h->told[1], "y", 1) != 1 || lock_as(F_SETLKW, fd, F_WRLCK, 0, 0))
		_exit(1);
}

static void lock_wait_ends_with(bool killed)
{
	struct holder h;
	pid_t holder, waiter;
	char c;

	MUST(!pipe(h.told) && !pipe(h.go));
	close(make("f", 0));
	holder = child_start(hold, &h);
	MUST(read(h.told[0], &c, 1) == 1 && c == 'x');
	waiter = child_start(wait_for_lock, &h);
	MUST(read(h.told[0], &c, 1) == 1 && c == 'y');
	if (killed)
		kill(holder, SIGKILL);
	close(h.go[1]);
	close(h.go[0]);
	child_end("holder", holder);
	child_end("waiter", waiter);
}

static void waiting_for_a_lock_ends_when_its_holder_leaves_or_dies(void)
{
	lock_wait_ends_with(false);
	lock_wait_ends_with(true);
}

static void waits_for_the_first(void *arg)
{
	struct holder *h = arg;
	int fd = open("f", O_RDWR);

	if (lock_as(F_SETLK, fd, F_WRLCK, 1, 1) || write(h->told[1], "x", 1) != 1)
		_exit(1);
	if (lock_as(F_SETLKW, fd, F_WRLCK, 0, 1))
		_exit(2);
}

/* Whoever of the two waits second closes the cycle and is told so; the other gets its lock. */
static void a_cycle_of_waits_is_refused(void)
{
	struct holder h;
	int fd = make("f", 0), status;
	bool refused;
	pid_t pid;
	char c;

	MUST(!pipe(h.told));
	SAY(lock_as(F_SETLK, fd, F_WRLCK, 0, 1));
	pid = child_start(waits_for_the_first, &h);
	MUST(read(h.told[0], &c, 1) == 1);
	refused = lock_as(F_SETLKW, fd, F_WRLCK, 1, 1) && errno == EDEADLK;
	SAY(lock_as(F_SETLK, fd, F_UNLCK, 0, 0));
	MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	say("one was refused: %d", refused != (WEXITSTATUS(status) == 2));
}

static void open_file_locks_belong_to_the_description(void)
{
	int a = make("f", 0), b = make("f", 0), d = dup(a);
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	SAY(fcntl(a, F_OFD_SETLK, &l));
	SAY(fcntl(d, F_OFD_SETLK, &l));
	SAY(fcntl(b, F_OFD_SETLK, &l));
	SAY(fcntl(b, F_OFD_GETLK, &l));
	say("type %d pid %d", l.l_type, (int)l.l_pid);
	SAY(lock_as(F_SETLK, a, F_WRLCK, 0, 1)); /* the process is not the description */
	SAY(close(a));
	l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
	SAY(fcntl(b, F_OFD_SETLK, &l));
	SAY(close(d));
	SAY(fcntl(b, F_OFD_SETLK, &l));
	l.l_pid = 1;
	SAY(fcntl(b, F_OFD_SETLK, &l));
}

/* ---- copies between the shelf and elsewhere --------------------------------------------------------- */

#define LONG_FILE 300000

static int long_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), k;
	char buf[1000];

	for (k = 0; k < LONG_FILE / 1000; k++) {
		memset(buf, 'a' + k % 26, sizeof(buf));
		MUST(write(fd, buf, sizeof(buf)) == sizeof(buf));
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static bool same(int a, int b)
{
	char x[4096], y[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(a, x, sizeof(x), at)) > 0) {
		if (pread(b, y, sizeof(y), at) != n || memcmp(x, y, (size_t)n))
			return false;
		at += n;
	}
	return n == 0 && at == LONG_FILE && pread(b, y, 1, at) == 0;
}

typedef ssize_t copier(int in, int out, size_t n);

static ssize_t by_range(int in, int out, size_t n)
{
	return copy_file_range(in, NULL, out, NULL, n, 0);
}

static ssize_t by_sendfile(int in, int out, size_t n)
{
	return sendfile(out, in, NULL, n);
}

static ssize_t by_splice(int in, int out, size_t n)
{
	static int p[2];
	ssize_t got, put;

	if (!p[0])
		MUST(!pipe(p));
	got = splice(in, NULL, p[1], NULL, n, 0);
	if (got <= 0)
		return got;
	for (n = (size_t)got; n; n -= (size_t)put) {
		put = splice(p[0], NULL, out, NULL, n, 0);
		if (put <= 0)
			return put;
	}
	return got;
}

/* Until the end, or an error: never 0 with bytes left. */
static void copy_by(const char *what, copier *copy, const char *from, const char *to)
{
	int in = long_file(from), out = open(to, O_RDWR | O_CREAT | O_TRUNC, 0644);
	long sum = 0;
	ssize_t n;

	while ((n = copy(in, out, 70000)) > 0)
		sum += n;
	if (n < 0 && errno == EXDEV)
		say("%s: another file system", what);
	else
		say("%s: last %zd, sum %ld, the same %d, offsets %ld %ld", what, n, sum, same(in, out),
		    (long)lseek(in, 0, SEEK_CUR), (long)lseek(out, 0, SEEK_CUR));
	close(in);
	close(out);
}

static void copies_between_the_shelf_and_elsewhere_are_whole_or_refused(void)
{
	char host[PATH_MAX];

	snprintf(host, sizeof(host), "%s/there", host_dir());
	copy_by("range within", by_range, "a", "b");
	copy_by("sendfile within", by_sendfile, "a", "b");
	copy_by("splice within", by_splice, "a", "b");
	copy_by("sendfile out", by_sendfile, "a", host);
	copy_by("splice out", by_splice, "a", host);
	copy_by("sendfile in", by_sendfile, host, "b");
	copy_by("splice in", by_splice, host, "b");
	unlink(host);
}

/* Both kernels' and ours may refuse it by EXDEV; what they must not do is lose bytes. */
static void a_range_copied_across_is_whole_or_refused(void)
{
	int in = long_file("a"), out;
	char host[PATH_MAX];
	ssize_t n, sum = 0;

	snprintf(host, sizeof(host), "%s/there", host_dir());
	out = open(host, O_RDWR | O_CREAT | O_TRUNC, 0644);
	while ((n = by_range(in, out, 70000)) > 0)
		sum += n;
	say("right %d", (n < 0 && errno == EXDEV && sum == 0) || (n == 0 && sum == LONG_FILE && same(in, out)));
	unlink(host);
}

/* ---- the limit on a file's size ---------------------------------------------------------------------- */

static volatile sig_atomic_t told;

static void count_signal(int sig)
{
	(void)sig;
	told++;
}

static void limit_to(rlim_t bytes)
{
	SAY(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}));
}

static void writes_stop_at_the_limit(void)
{
	char buf[8192] = "";
	int fd = make("f", 0);

	signal(SIGXFSZ, count_signal);
	limit_to(10000);
	SAY(write(fd, buf, 8192));
	SAY(write(fd, buf, 8192)); /* what fits */
	say("told %d, size %ld", (int)told, size_of("f"));
	SAY(write(fd, buf, 1));
	SAY(write(fd, buf, 0));
	SAY(pwrite(fd, buf, 10, 9995));
	SAY(pwrite(fd, buf, 10, 10000));
	say("told %d", (int)told);
	SAY(writev(fd, (struct iovec[]){{buf, 1}, {buf, 1}}, 2));
	say("told %d", (int)told);
	SAY(ftruncate(fd, 10000));
	SAY(ftruncate(fd, 10001));
	SAY(truncate("f", 20000));
	say("told %d", (int)told);
	SAY(fallocate(fd, 0, 0, 10000));
	SAY(fallocate(fd, 0, 0, 10001));
	SAY(fallocate(fd, FALLOC_FL_KEEP_SIZE, 9000, 5000));
	say("told %d, size %ld", (int)told, size_of("f"));
	limit_to(RLIM_INFINITY);
	SAY(pwrite(fd, buf, 10, 20000));
	limit_to(5);
	SAY(ftruncate(fd, 12000)); /* smaller is always allowed */
	SAY(pwrite(fd, buf, 10, 0)); /* up to the limit, wherever the end is */
	say("told %d, size %ld", (int)told, size_of("f"));
	limit_to(RLIM_INFINITY); /* what was said is written to a file, too */
}

/* Not by SAY from here on: where it goes to is a file, too. */
static void write_too_much(void *arg)
{
	int fd = open("f", O_WRONLY | O_APPEND);

	(void)arg;
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){9, 9}) || write(fd, "1234567", 7) != 7 || write(fd, "89+", 3) != 2)
		_exit(1);
	(void)!write(fd, "more", 4);
}

static void exec_with_limit(void *arg)
{
	(void)arg;
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){9, 9}))
		_exit(1);
	execl("/bin/sh", "sh", "-c", "echo 0123456789abcdef >g 2>/dev/null; exit $?", NULL);
}

static void the_limit_is_inherited_and_its_signal_ends_a_program(void)
{
	close(make("f", 0));
	child_run("writer", write_too_much, NULL);
	say_file("f");
	child_run("shell", exec_with_limit, NULL);
	say_file("g");
}

/* ---- odd arguments -------------------------------------------------------------------------------------- */

static volatile size_t unknown; /* so that the checked forms are called, not chosen at compile time */

static void odd_reads_and_writes(void)
{
	char buf[64] = "0123456789", *volatile bad = (char *)8;
	int fd = make("f", 0), ro = open("f", O_RDONLY), wo = open("f", O_WRONLY);
	volatile int none = -1;
	struct iovec many[1100], v[3] = {{buf, 3}, {buf + 3, 0}, {buf + 3, 4}};

	unknown = 10;
	SAY(write(fd, buf, unknown));
	SAY(pread(fd, buf, unknown + 20, 5));
	SAY(pread(fd, buf, 5, 10));
	SAY(pread(fd, buf, 5, -1));
	SAY(pwrite(fd, buf, 5, -1));
	SAY(pwrite(fd, buf, 1, LONG_MAX));
	SAY(pwrite(fd, buf, 0, LONG_MAX));
	SAY(lseek(fd, -1, SEEK_SET));
	SAY(lseek(fd, LONG_MAX, SEEK_SET));
	SAY(lseek(fd, 1, SEEK_CUR));
	SAY(lseek(fd, 0, 77));
	SAY(write(ro, buf, 1));
	SAY(read(wo, buf, 1));
	SAY(read(fd, bad, 1));
	lseek(fd, 0, SEEK_SET);
	SAY(read(fd, bad, 1));
	SAY(write(fd, bad, 1));
	SAY(read(fd, bad, 0));
	SAY(readv(fd, v, 3));
	SAY(readv(fd, v, 0));
	SAY(readv(fd, v, none));
	memset(many, 0, sizeof(many));
	SAY(writev(fd, many, 1100));
	SAY(writev(fd, many, 1024));
	v[1] = (struct iovec){bad, 3};
	SAY(pwritev(fd, v, 3, 0));
	v[1].iov_len = SIZE_MAX;
	SAY(pwritev(fd, v, 3, 0));
	SAY(preadv2(fd, v, 1, 0, 0x4000));
	SAY(preadv2(fd, v, 1, -1, 0));
	SAY(pwritev2(fd, v, 1, 0, RWF_APPEND));
	say("size %ld", size_of("f"));
}

static void holes_are_found_and_made(void)
{
	int fd = make("f", 0);
	struct stat st;

	SAY(ftruncate(fd, 100000));
	SAY(pwrite(fd, "x", 1, 50000));
	SAY(lseek(fd, 0, SEEK_DATA));
	SAY(lseek(fd, 50000, SEEK_HOLE));
	SAY(lseek(fd, 60000, SEEK_DATA));
	SAY(lseek(fd, 100000, SEEK_HOLE));
	SAY(lseek(fd, 99999, SEEK_HOLE));
	SAY(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10));
	SAY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 49152, 4096));
	SAY(lseek(fd, 0, SEEK_DATA));
	SAY(fallocate(fd, 0, 0, 0));
	SAY(fallocate(fd, 0, -1, 10));
	SAY(fallocate(fd, 0, LONG_MAX, 10));
	SAY(fallocate(fd, 0x4000, 0, 10));
	SAY(fallocate(fd, FALLOC_FL_KEEP_SIZE, 100000, 8192));
	MUST(!fstat(fd, &st));
	say("size %ld blocks %ld", (long)st.st_size, (long)st.st_blocks);
	SAY(posix_fallocate(fd, 0, 4096));
	SAY(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	SAY(readahead(fd, 0, 4096));
	SAY(readahead(fd, 0, (size_t)-1));
	SAY(fsync(fd) + fdatasync(fd) + syncfs(fd) + sync_file_range(fd, 0, 0, 0));
}

/* ---- old entry points of libc ------------------------------------------------------------------------------ */

__asm__(".symver old_xstat, __xstat@GLIBC_2.2.5");
__asm__(".symver old_lxstat, __lxstat@GLIBC_2.2.5");
__asm__(".symver old_fxstat, __fxstat@GLIBC_2.2.5");
__asm__(".symver old_fxstatat, __fxstatat@GLIBC_2.4");
int old_xstat(int version, const char *path, struct stat *st);
int old_lxstat(int version, const char *path, struct stat *st);
int old_fxstat(int version, int fd, struct stat *st);
int old_fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);

static void programs_of_old_see_the_same_files(void)
{
	struct stat a, b, c, d;
	char link[16] = "";

	put_file("f", "12345");
	MUST(!symlink("f", "l"));
	SAY(old_xstat(1, "f", &a));
	SAY(old_lxstat(1, "l", &b));
	SAY(old_fxstat(1, open("f", O_RDONLY), &c));
	SAY(old_fxstatat(1, AT_FDCWD, "l", &d, 0));
	say("sizes %ld %ld %ld %ld", (long)a.st_size, (long)b.st_size, (long)c.st_size, (long)d.st_size);
	say("one file %d, one device %d", a.st_ino == c.st_ino && a.st_ino == d.st_ino,
	    a.st_dev == b.st_dev && a.st_dev == c.st_dev && a.st_dev == d.st_dev);
	SAY(old_xstat(1, "none", &a));
	unknown = sizeof(link);
	SAY(readlink("l", link, unknown));
	say("link %s", link);
}

static void bad_addresses_of_structs_are_refused(void)
{
	void *volatile bad = (void *)8;
	int fd = make("f", O_RDWR);

	SAY(fcntl(fd, F_GETLK, bad));
	SAY(fcntl(fd, F_SETLK, bad));
	SAY(fcntl(-1, F_SETLK, bad));
	SAY(readv(fd, bad, 1));
	SAY(writev(fd, bad, 2));
	SAY(futimens(fd, bad));
	SAY(sendfile(fd, fd, bad, 1));
	SAY(syscall(SYS_openat2, AT_FDCWD, "f", bad, 24L));
	SAY(syscall(SYS_close_range, ~0U, ~0U, 0));
	SAY(syscall(SYS_getdents64, open(".", O_RDONLY | O_DIRECTORY), bad, 4096L));
	SAY(syscall(SYS_getdents64, open(".", O_RDONLY | O_DIRECTORY), NULL, 8L));
	SAY(syscall(SYS_getdents64, open(".", O_RDONLY | O_DIRECTORY), NULL, 24L));
}

/* Half of the buffer is there: what fits into that is listed, and no more. */
static void a_listing_ends_where_its_memory_ends(void)
{
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int dir = open(".", O_RDONLY | O_DIRECTORY);

	MUST(two != MAP_FAILED && !munmap(two + 4096, 4096));
	for (int i = 0; i < 5; i++)
		make((char[2]){(char)('a' + i)}, O_RDONLY);
	SAY(syscall(SYS_getdents64, dir, two + 4096 - 60, 200L));
	SAY(syscall(SYS_getdents64, dir, two + 4096 - 60, 200L));
	SAY(syscall(SYS_getdents64, dir, two + 4096 - 8, 200L));
	SAY(syscall(SYS_getdents64, dir, two, 4096L));
	SAY(syscall(SYS_getdents64, dir, NULL, 4096L));
}

static void say_rare_commands(int fd)
{
	uint32_t uids[2] = {7, 7};

	for (int type = 2; type < 5; type++)
		SAY(fcntl(fd, F_SETLEASE, type));
	SAY(fcntl(fd, F_GETLEASE));
	SAY(fcntl(fd, F_NOTIFY, 0));
	SAY(fcntl(fd, F_NOTIFY, DN_MULTISHOT));
	SAY(fcntl(fd, 17 /* F_GETOWNER_UIDS */, NULL));
	SAY(fcntl(fd, 17, uids));
	say("uids %u %u", uids[0], uids[1]);
	SAY(fcntl(fd, 18));
}

static void rare_commands_of_fcntl(void)
{
	int fd = make("f", O_RDWR), dir = open(".", O_RDONLY | O_DIRECTORY);

	say_rare_commands(fd);
	say_rare_commands(dir);
	say_rare_commands(open("f", O_PATH));
	say_rare_commands(40);
	SAY(fcntl(fd, F_SETLEASE, F_RDLCK));
	SAY(fcntl(dir, F_SETLEASE, F_RDLCK));
	SAY(fcntl(fd, F_NOTIFY, DN_ACCESS));
	SAY(fcntl(open("f", O_PATH), F_NOTIFY, DN_ACCESS));
}

#define CREATED_QUERY 1028 /* since Linux 6.12 */

static void who_created_a_file_can_ask(void)
{
	int fd = open("f", O_CREAT | O_RDWR, 0600);

	if (fcntl(fd, CREATED_QUERY) < 0)
		return;
	SAY(fcntl(fd, CREATED_QUERY));
	SAY(fcntl(dup(fd), CREATED_QUERY));
	SAY(fcntl(open("f", O_CREAT | O_RDWR, 0600), CREATED_QUERY));
	SAY(fcntl(open("g", O_CREAT | O_EXCL | O_RDONLY, 0600), CREATED_QUERY));
	SAY(fcntl(open(".", O_TMPFILE | O_RDWR, 0600), CREATED_QUERY));
	SAY(fcntl(open(".", O_RDONLY | O_DIRECTORY), CREATED_QUERY));
	SAY(fcntl(open("f", O_PATH), CREATED_QUERY));
	SAY(fcntl(40, CREATED_QUERY));
}

static void unknown_flags_come_before_names(void)
{
	const struct timespec bad[2] = {{0, -1}, {0, -1}};
	int fd = make("f", O_RDWR);

	SAY(linkat(AT_FDCWD, "f", AT_FDCWD, "l", 0x8000));
	SAY(linkat(40, "f", AT_FDCWD, "l", 0x8000));
	SAY(linkat(AT_FDCWD, "f", 40, "l", 0x8000));
	SAY(linkat(AT_FDCWD, "f", AT_FDCWD, "/dev/null/l", 0x8000));
	SAY(syscall(SYS_linkat, 40, NULL, 40, NULL, 0x8000));
	SAY(linkat(40, "f", AT_FDCWD, "l", 0));
	SAY(renameat2(40, "f", AT_FDCWD, "l", 0x8000));
	SAY(renameat2(AT_FDCWD, "f", 40, "l", RENAME_EXCHANGE | RENAME_NOREPLACE));
	SAY(renameat2(AT_FDCWD, "f", AT_FDCWD, "/dev/null/l", RENAME_EXCHANGE | RENAME_WHITEOUT));
	for (int flags = 0; flags <= 0x8000; flags += 0x8000) {
		SAY(syscall(SYS_utimensat, fd, NULL, NULL, flags));
		SAY(syscall(SYS_utimensat, fd, NULL, bad, flags));
		SAY(syscall(SYS_utimensat, AT_FDCWD, NULL, NULL, flags));
		SAY(syscall(SYS_utimensat, 40, NULL, NULL, flags));
	}
	SAY(syscall(SYS_utimensat, fd, NULL, NULL, AT_SYMLINK_NOFOLLOW));
	SAY(syscall(SYS_utimensat, fd, NULL, NULL, AT_EMPTY_PATH));
	SAY(syscall(SYS_open_tree, AT_FDCWD, "f", 0x8000));
	SAY(syscall(SYS_open_tree, AT_FDCWD, "none", 0x40000000));
	SAY(syscall(SYS_open_tree, 40, NULL, 2));
}

const struct program_case program_cases[] = {
	CASE(appended_lines_of_four_processes_are_whole),
	CASE(append_lands_at_the_end_of_now),
	CASE(a_lock_of_another_process_is_in_the_way),
	CASE(waiting_for_a_lock_ends_when_its_holder_leaves_or_dies),
	CASE(a_cycle_of_waits_is_refused),
	CASE(open_file_locks_belong_to_the_description),
	CASE(copies_between_the_shelf_and_elsewhere_are_whole_or_refused),
	CASE(a_range_copied_across_is_whole_or_refused),
	CASE(writes_stop_at_the_limit),
	CASE(the_limit_is_inherited_and_its_signal_ends_a_program),
	CASE(odd_reads_and_writes),
	CASE(holes_are_found_and_made),
	CASE(bad_addresses_of_structs_are_refused),
	CASE(a_listing_ends_where_its_memory_ends),
	CASE(rare_commands_of_fcntl),
	CASE(who_created_a_file_can_ask),
	CASE(unknown_flags_come_before_names),
	CASE(programs_of_old_see_the_same_files),
	{NULL, NULL, 0},
};

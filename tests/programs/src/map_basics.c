/* SPDX-License-Identifier: MIT */
/*
 * map_basics DIR: maps of files in DIR, in every way a program may use them.  What it prints is the same on every file system
 * that keeps POSIX and Linux, so a run on a shelf is compared with one on tmpfs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096L

static sigjmp_buf jump;
static volatile int caught;

static void on_fault(int sig, siginfo_t *info, void *ctx)
{
	(void)info, (void)ctx;
	caught = sig;
	siglongjmp(jump, 1);
}

/* 0, or the signal that reading the byte raised. */
static int touch(volatile char *p)
{
	caught = 0;
	if (!sigsetjmp(jump, 1))
		(void)*p;
	return caught;
}

static int poke(volatile char *p, char c)
{
	caught = 0;
	if (!sigsetjmp(jump, 1))
		*p = c;
	return caught;
}

static int file(const char *name, long pages, char fill)
{
	char page[PAGE];
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	memset(page, fill, sizeof(page));
	for (long i = 0; i < pages; i++)
		if (write(fd, page, PAGE) != PAGE)
			exit(1);
	return fd;
}

static char *map(int fd, long pages, int prot, int flags)
{
	char *p = mmap(NULL, (size_t)(pages * PAGE), prot, flags, fd, 0);

	if (p == MAP_FAILED) {
		printf("mmap: %s\n", strerror(errno));
		exit(1);
	}
	return p;
}

static void say_err(const char *what, long result)
{
	printf("%s: %s\n", what, result == -1 ? strerror(errno) : "done");
}

static void coherent(void)
{
	int fd = file("coherent", 4, 'a');
	char *p = map(fd, 4, PROT_READ | PROT_WRITE, MAP_SHARED), *q = map(fd, 4, PROT_READ, MAP_SHARED), c;

	p[5000] = 'X';
	pread(fd, &c, 1, 5000);
	printf("coherent: map to read %c, to other map %c\n", c, q[5000]);
	pwrite(fd, "Y", 1, 9000);
	printf("coherent: write to maps %c %c\n", p[9000], q[9000]);
	if (!fork()) {
		p[100] = 'C';
		pwrite(fd, "D", 1, 200);
		_exit(0);
	}
	wait(NULL);
	printf("coherent: child's store %c, child's write %c\n", p[100], q[200]);
	close(fd);
	p[300] = 'E';
	munmap(p, 4 * PAGE);
	fd = open("coherent", O_RDONLY);
	pread(fd, &c, 1, 300);
	printf("coherent: stored after close %c, still in the other map %c\n", c, q[300]);
	munmap(q, 4 * PAGE);
	close(fd);
}

static void unlinked(void)
{
	int fd = file("unlinked", 2, 'u');
	char *p = map(fd, 2, PROT_READ | PROT_WRITE, MAP_SHARED);
	int other;

	close(fd);
	unlink("unlinked");
	other = file("other", 64, 'o'); /* would get the pages if they were free */
	p[10] = 'v';
	printf("unlinked: %c%c%c\n", p[0], p[10], p[PAGE]);
	close(other);
	munmap(p, 2 * PAGE);
}

static void ends(void)
{
	int fd = file("ends", 2, 'e');
	char *p = map(fd, 6, PROT_READ | PROT_WRITE, MAP_SHARED), *q = map(fd, 6, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	printf("ends: shared inside %d, beyond %d\n", touch(p + PAGE), touch(p + 2 * PAGE));
	printf("ends: private inside %d, beyond %d\n", touch(q + PAGE), touch(q + 2 * PAGE));
	ftruncate(fd, 3 * PAGE + 10);
	printf("ends: grown %d %d %d\n", poke(p + 2 * PAGE, 'g'), touch(p + 3 * PAGE), touch(p + 4 * PAGE));
	printf("ends: grown, private %d %d\n", touch(q + 3 * PAGE), touch(q + 4 * PAGE));
	printf("ends: in the last page %d %d\n", p[3 * PAGE + 9], p[3 * PAGE + 11]);
	ftruncate(fd, PAGE);
	printf("ends: cut %d %d %d\n", touch(p), touch(p + PAGE), touch(p + 2 * PAGE));
	printf("ends: cut, private %d %d\n", touch(q), touch(q + PAGE));
	ftruncate(fd, 4 * PAGE);
	printf("ends: grown again %d, reads as %d\n", touch(p + PAGE), p[PAGE]);
	pwrite(fd, "n", 1, PAGE);
	printf("ends: and the file's %c\n", p[PAGE]);
	munmap(p, 6 * PAGE);
	munmap(q, 6 * PAGE);
	close(fd);
}

static void others_cut(void)
{
	int fd = file("others", 8, 'o'), go[2], done[2];
	char *p = map(fd, 8, PROT_READ | PROT_WRITE, MAP_SHARED), c = 0;

	p[5 * PAGE] = '5';
	if (pipe(go) || pipe(done))
		exit(1);
	if (!fork()) {
		read(go[0], &c, 1);
		printf("others: cut by another process %d %d\n", touch(p + 5 * PAGE), touch(p + 2 * PAGE));
		fflush(stdout);
		write(done[1], "x", 1);
		_exit(0);
	}
	ftruncate(fd, 3 * PAGE);
	write(go[1], "x", 1);
	read(done[0], &c, 1);
	wait(NULL);
	munmap(p, 8 * PAGE);
	close(fd);
}

static void holes(void)
{
	int fd = open("holes", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct stat st;
	char *p, c = 1;

	ftruncate(fd, 64 * PAGE);
	p = map(fd, 64, PROT_READ | PROT_WRITE, MAP_SHARED);
	p[20 * PAGE] = 'h';
	pread(fd, &c, 1, 20 * PAGE);
	printf("holes: filled by a store %c\n", c);
	fstat(fd, &st);
	printf("holes: blocks %ld\n", (long)st.st_blocks);
	printf("holes: data at %ld\n", (long)lseek(fd, 0, SEEK_DATA) / PAGE);
	/* into and out of pages that are not there, by calls of both kinds */
	say_err("holes: write from a hole", pwrite(fd, p + 30 * PAGE, 2 * PAGE, 8 * PAGE) == 2 * PAGE ? 0 : -1);
	say_err("holes: read into a hole", pread(fd, p + 40 * PAGE, 3 * PAGE, 19 * PAGE) == 3 * PAGE ? 0 : -1);
	printf("holes: read %c\n", p[41 * PAGE]);
	int zero = open("/dev/zero", O_RDONLY), pair[2];
	say_err("holes: kernel's read into a hole", read(zero, p + 50 * PAGE, 2 * PAGE) == 2 * PAGE ? 0 : -1);
	pipe(pair);
	say_err("holes: kernel's write from a hole", write(pair[1], p + 55 * PAGE, 2 * PAGE) == 2 * PAGE ? 0 : -1);
	munmap(p + 63 * PAGE, PAGE); /* or what lies behind the map would be written over */
	say_err("holes: read into it beyond the end", read(pair[0], p + 63 * PAGE - 10, 20) >= 0 ? 0 : 0);
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20 * PAGE, PAGE);
	printf("holes: punched %d\n", p[20 * PAGE]);
	p[20 * PAGE] = 'i';
	pread(fd, &c, 1, 20 * PAGE);
	printf("holes: stored again %c\n", c);
	say_err("holes: MADV_REMOVE", madvise(p + 20 * PAGE, PAGE, MADV_REMOVE));
	printf("holes: removed %d\n", p[20 * PAGE]);
	close(zero);
	close(pair[0]);
	close(pair[1]);
	munmap(p, 64 * PAGE);
	close(fd);
}

static void private(long pages)
{
	int fd = file("private", pages, 'p');
	char *p = map(fd, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE), c;

	p[10] = 'q';
	p[(pages - 1) * PAGE] = 'r';
	pread(fd, &c, 1, 10);
	printf("private %ld: file %c, map %c\n", pages, c, p[10]);
	if (!fork()) {
		p[10] = 'f';
		_exit(p[(pages - 1) * PAGE]);
	}
	int status;
	wait(&status);
	printf("private: child saw %c, and changed nothing %c\n", WEXITSTATUS(status), p[10]);
	say_err("private: DONTNEED", madvise(p, (size_t)(pages * PAGE), MADV_DONTNEED));
	printf("private: the file again %c %c\n", p[10], p[(pages - 1) * PAGE]);
	close(fd);
	fd = open("private", O_RDONLY);
	char *x = map(fd, pages, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	printf("private: executable %c\n", x[5]);
	munmap(x, (size_t)(pages * PAGE));
	munmap(p, (size_t)(pages * PAGE));
	close(fd);
}

static void moves(int flags, const char *what)
{
	int fd = file("moves", 16, 'm');
	char *p, *q, *at, c;

	for (long i = 0; i < 16; i++) {
		c = (char)('a' + i);
		pwrite(fd, &c, 1, i * PAGE);
	}
	p = map(fd, 8, PROT_READ | PROT_WRITE, flags);
	p[3 * PAGE + 1] = 'S';
	q = mremap(p, 8 * PAGE, 12 * PAGE, MREMAP_MAYMOVE);
	printf("moves %s: grown %c %c %c\n", what, q[0], q[3 * PAGE + 1], touch(q + 11 * PAGE) ? '!' : q[11 * PAGE]);
	at = mmap(NULL, 20 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = mremap(q, 12 * PAGE, 12 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 2 * PAGE);
	printf("moves %s: fixed %d %c %c\n", what, p == at + 2 * PAGE, p[3 * PAGE + 1], p[7 * PAGE]);
	printf("moves %s: left %d\n", what, touch(q));
	q = mremap(p, 12 * PAGE, 2 * PAGE, 0);
	printf("moves %s: shrunk %d %c, behind %d\n", what, q == p, q[PAGE], touch(q + 2 * PAGE));
	say_err("moves: over the end", (long)mremap(q, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE));
	say_err("moves: no flag for it", (long)mremap(q, PAGE, PAGE, 16));
	say_err("moves: to 0", (long)mremap(q, PAGE, 0, 0));
	munmap(at, 20 * PAGE);
	close(fd);
}

static void parts(void)
{
	int fd = file("parts", 10, 'x');
	char *p = map(fd, 10, PROT_READ | PROT_WRITE, MAP_SHARED), *q;
	unsigned char in[10];

	say_err("parts: unmap the middle", munmap(p + 3 * PAGE, 2 * PAGE));
	printf("parts: %d %d %d %d\n", touch(p + 2 * PAGE), touch(p + 3 * PAGE), touch(p + 4 * PAGE), touch(p + 5 * PAGE));
	say_err("parts: protect a part", mprotect(p + 6 * PAGE, 2 * PAGE, PROT_READ));
	printf("parts: %d %d %d\n", poke(p + 5 * PAGE, 1), poke(p + 6 * PAGE, 1), poke(p + 8 * PAGE, 1));
	say_err("parts: none", mprotect(p + 6 * PAGE, PAGE, PROT_NONE));
	printf("parts: %d %d\n", touch(p + 6 * PAGE), touch(p + 7 * PAGE));
	q = mmap(p + 8 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	printf("parts: memory over it %d, behind %c\n", q[0], p[9 * PAGE]);
	q = mmap(p + 3 * PAGE, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 5 * PAGE);
	printf("parts: the file again %d\n", q[0]);
	say_err("parts: over what is there", (long)mmap(p, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0));
	say_err("parts: msync", msync(p, 3 * PAGE, MS_SYNC));
	say_err("parts: msync, both", msync(p, PAGE, MS_SYNC | MS_ASYNC));
	say_err("parts: msync, not aligned", msync(p + 1, PAGE, MS_SYNC));
	say_err("parts: mincore", mincore(p, 3 * PAGE, in));
	say_err("parts: mlock", mlock(p, PAGE));
	say_err("parts: willneed", madvise(p, PAGE, MADV_WILLNEED));
	say_err("parts: dontneed", madvise(p, PAGE, MADV_DONTNEED));
	printf("parts: still %c\n", p[1]);
	say_err("parts: unmap all", munmap(p, 10 * PAGE));
	say_err("parts: msync of nothing", msync(p, PAGE, MS_SYNC));
	close(fd);
}

static void one_check(const char *what, int fd, size_t len, int prot, int flags, off_t off)
{
	char *p = mmap(NULL, len, prot, flags, fd, off);

	printf("%s: %s\n", what, p == MAP_FAILED ? strerror(errno) : "done");
	if (p != MAP_FAILED)
		munmap(p, len);
}

static void checks(void)
{
	int rw = file("checks", 2, 'c'), ro = open("checks", O_RDONLY), wo = open("checks", O_WRONLY);
	int dir = open(".", O_RDONLY), path = open("checks", O_PATH), app = open("checks", O_RDWR | O_APPEND);
	char *p;

	one_check("length 0", rw, 0, PROT_READ, MAP_SHARED, 0);
	one_check("offset not aligned", rw, PAGE, PROT_READ, MAP_SHARED, 100);
	one_check("neither shared nor private", rw, PAGE, PROT_READ, 0, 0);
	one_check("offset overflows", rw, PAGE * 4, PROT_READ, MAP_SHARED, (off_t)0x7ffffffffffff000);
	one_check("offset negative", rw, PAGE, PROT_READ, MAP_SHARED, (off_t)-4096);
	one_check("too long", rw, (size_t)1 << 48, PROT_READ, MAP_SHARED, 0);
	one_check("read-only, shared, written", ro, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	one_check("read-only, private, written", ro, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
	one_check("write-only, shared", wo, PAGE, PROT_WRITE, MAP_SHARED, 0);
	one_check("write-only, private", wo, PAGE, PROT_READ, MAP_PRIVATE, 0);
	one_check("append", app, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	one_check("directory", dir, PAGE, PROT_READ, MAP_PRIVATE, 0);
	one_check("path", path, PAGE, PROT_READ, MAP_PRIVATE, 0);
	one_check("closed", 999, PAGE, PROT_READ, MAP_PRIVATE, 0);
	one_check("validated", rw, PAGE, PROT_READ, MAP_SHARED_VALIDATE, 0);
	one_check("sync", rw, PAGE, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, 0);
	one_check("populated", rw, PAGE * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, 0);
	one_check("huge", rw, PAGE, PROT_READ, MAP_SHARED | MAP_HUGETLB, 0);
	p = map(ro, 1, PROT_READ, MAP_SHARED);
	say_err("made writable", mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	munmap(p, PAGE);
	close(rw), close(ro), close(wo), close(dir), close(path), close(app);
}

static void times(void)
{
	int fd = file("times", 1, 't');
	struct timespec old[2] = {{1000, 0}, {1000, 0}};
	struct stat st;
	char *p = map(fd, 1, PROT_READ | PROT_WRITE, MAP_SHARED);

	futimens(fd, old);
	fstat(fd, &st);
	printf("times: mapped %d\n", st.st_mtime != 1000);
	p[0] = 'u';
	fstat(fd, &st);
	printf("times: stored to %d\n", st.st_mtime != 1000);
	munmap(p, PAGE);
	close(fd);
}

static void locks(void)
{
	int fd = file("locks", 1, 'l'), other;
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char *p;

	fcntl(fd, F_SETLK, &fl);
	p = map(fd, 1, PROT_READ, MAP_SHARED);
	munmap(p, PAGE);
	if (!fork()) {
		other = open("locks", O_RDWR);
		fl.l_type = F_WRLCK;
		say_err("locks: another's lock after munmap", fcntl(other, F_SETLK, &fl));
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	close(fd);
}

static void pieces(void)
{
	int fd = open("pieces", O_RDWR | O_CREAT | O_TRUNC, 0600), other = open("between", O_RDWR | O_CREAT | O_TRUNC, 0600);
	long n = 3000, bad = 0;
	char page[PAGE], *p;

	for (long i = 0; i < n; i++) { /* so that neighbours do not lie side by side */
		memset(page, (int)(i % 251), PAGE);
		pwrite(fd, page, PAGE, (i * 7 % n) * PAGE);
		pwrite(other, page, PAGE, i * PAGE);
	}
	p = map(fd, n, PROT_READ | PROT_WRITE, MAP_SHARED);
	for (long i = 0; i < n; i++)
		bad += p[(i * 7 % n) * PAGE + 17] != (char)(i % 251);
	printf("pieces: shared, wrong %ld\n", bad);
	munmap(p, (size_t)(n * PAGE));
	p = map(fd, n, PROT_READ, MAP_PRIVATE);
	for (long i = 0; i < n; i++)
		bad += p[(i * 7 % n) * PAGE + 17] != (char)(i % 251);
	printf("pieces: private, wrong %ld\n", bad);
	munmap(p, (size_t)(n * PAGE));
	close(fd);
	close(other);
	unlink("between");
}

static void blocked(void)
{
	int fd = file("blocked", 4, 'b');
	char *p = map(fd, 4, PROT_READ | PROT_WRITE, MAP_SHARED);
	sigset_t all, now;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	p[PAGE] = 'k';
	sigprocmask(SIG_UNBLOCK, &all, &now);
	printf("blocked: all signals %d, stored %c\n", sigismember(&now, SIGBUS), p[PAGE]);
	munmap(p, 4 * PAGE);
	close(fd);
}

static void killed(void)
{
	int fd = file("killed", 1, 'k'), status;
	char *p = map(fd, 2, PROT_READ | PROT_WRITE, MAP_SHARED);

	if (!fork()) {
		signal(SIGBUS, SIG_DFL);
		p[PAGE] = 1;
		_exit(0);
	}
	wait(&status);
	printf("killed: by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	munmap(p, 2 * PAGE);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	if (argc < 2 || chdir(argv[1]))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	coherent();
	unlinked();
	ends();
	others_cut();
	holes();
	private(4);
	private(700);
	moves(MAP_SHARED, "shared");
	moves(MAP_PRIVATE, "private");
	parts();
	checks();
	times();
	locks();
	pieces();
	blocked();
	killed();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* limits.c - no free number, the longest of names and paths, too many links, the largest file allowed. */
#include <limits.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "cases.h"

/* ---- no number is free -------------------------------------------------------------------------- */

/* All numbers below 32 are taken; who wants more may raise the limit. */
static void take_all_numbers(void)
{
	struct rlimit old;

	MUST(!getrlimit(RLIMIT_NOFILE, &old));
	MUST(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){32, old.rlim_max}));
	while (dup(0) >= 0)
		;
	MUST(errno == EMFILE);
}

static void calls_that_give_no_number(void)
{
	char text[100] = "", cwd[PATH_MAX];
	struct statfs fs;
	struct stat st;

	SAY(stat("f", &st));
	SAY(access("f", W_OK));
	SAY(truncate("f", 3));
	SAY(stat("f", &st));
	say("size %ld", (long)st.st_size);
	SAY(chmod("f", 0600));
	SAY(rename("f", "g"));
	SAY(link("g", "f"));
	SAY(unlink("g"));
	SAY(symlink("f", "l"));
	SAY(readlink("l", text, sizeof(text)));
	SAY(mkdir("d", 0755));
	SAY(mkfifo("p", 0644));
	SAY(stat("p", &st));
	SAY(unlink("p"));
	SAY(setxattr("f", "user.x", "y", 1, 0));
	SAY(getxattr("f", "user.x", text, sizeof(text)));
	SAY(statfs("f", &fs));
	SAY(chdir("d"));
	MUST(getcwd(cwd, sizeof(cwd)));
	SAY(chdir(".."));
	SAY(rmdir("d"));
	SAY(open("f", O_RDWR));
	SAY(open("new", O_RDWR | O_CREAT, 0644));
	SAY(access("new", F_OK));
	SAY(open("f", O_RDWR | O_TRUNC));
	SAY(stat("f", &st));
	say("size %ld", (long)st.st_size);
	SAY(unlink("l"));
}

static void no_number_is_free(void)
{
	put_file("f", "12345");
	take_all_numbers();
	calls_that_give_no_number();
	SAY(open("none", O_RDWR));
	close(5);
	say_file("f");
	say_names(".");
}

static void calls_with_a_number(void)
{
	char path[PATH_MAX], buf[100] = "";
	int file, in, s[2], n;

	snprintf(path, sizeof(path), "%s/there", host_dir());
	put_file("f", "1234567890");
	file = open("f", O_RDWR);
	in = inotify_init1(IN_NONBLOCK);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	take_all_numbers();
	SAY(pread(file, buf, 5, 2));
	SAY(pwrite(file, "ab", 2, 100000));
	SAY(ftruncate(file, 3 << 20));
	SAY(pwrite(file, "ab", 2, 2 << 20));
	SAY(fallocate(file, 0, 0, 3 << 20));
	SAY(fchmod(file, 0640));
	void *p = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	MUST(p != MAP_FAILED);
	SAY(((char *)p)[2 << 20]);
	memset(p, 'x', 3 << 20);
	SAY(munmap(p, 3 << 20));
	SAY(pread(file, buf, 5, 1 << 20));
	SAY(inotify_add_watch(in, "f", IN_MODIFY));
	SAY(write(file, "z", 1));
	n = (int)read(in, buf, sizeof(buf));
	say("event of %d", n);
	SAY(lseek(file, 0, SEEK_SET));
	SAY(sendfile(s[0], file, NULL, 100));
	SAY(read(s[1], buf, sizeof(buf)));
	SAY(lockf(file, F_TLOCK, 10));
	SAY(lockf(file, F_ULOCK, 10));
	SAY(dup2(file, 7));
	SAY(dup2(7, 8));
	SAY(dup2(0, 7));
	SAY(dup(8));
	SAY(fcntl(8, F_DUPFD, 3));
	SAY(close(8));
	SAY(dup(file));
	SAY(dup(file));
}

/* A process that has nothing of the shelf yet, with no number free. */
static void a_first_use_with_no_number_free(void)
{
	char home[PATH_MAX];

	put_file("f", "12345");
	MUST(getcwd(home, sizeof(home)));
	say_flush();
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (!pid) {
			MUST(!chdir("/"));
			say_flush();
			execl(self_path, self_path, "--helper", i ? "number" : "path", home, (char *)NULL);
			_exit(1);
		}
		child_end(i ? "number" : "path", pid);
	}
}

int main_helper(int argc, char **argv)
{
	char *home = argv[1];

	(void)argc;
	take_all_numbers();
	if (!strcmp(argv[0], "number")) {
		char path[PATH_MAX + 10];

		snprintf(path, sizeof(path), "%s/f", home);
		SAY(open(path, O_RDONLY));
		close(9);
		SAY(open(path, O_RDONLY));
		SAY(open(path, O_RDONLY));
		close(9);
		close(10);
		SAY(open(path, O_RDONLY));
		SAY(open("/dev/null", O_RDONLY));
		SAY(open("/dev/null", O_RDONLY));
		return 0;
	}
	SAY(chdir(home));
	calls_that_give_no_number();
	close(5);
	return 0;
}

static int child_of_system(void)
{
	int status = 0;
	char *argv[] = {(char *)(uintptr_t)"/bin/true", NULL}, *env[] = {NULL};
	pid_t pid = vfork();

	if (!pid) {
		execve("/bin/true", argv, env);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void exec_with_no_number_free(void)
{
	int fd;

	put_file("f", "12345");
	fd = open("f", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){32, 32});
	while (fcntl(fd, F_DUPFD_CLOEXEC, 3) >= 0)
		;
	say("those of the shelf are closed: %d", child_of_system());
	for (int i = 3; i < 32; i++)
		close(i);
	while (fcntl(0, F_DUPFD_CLOEXEC, 3) >= 0)
		;
	say("those of the kernel are closed: %d", child_of_system());
}

/* ---- names and paths ------------------------------------------------------------------------------ */

static void say_each(const char *what, const char *path)
{
	char buf[10];
	struct stat st;
	int fd;

	say("%s", what);
	SAY(stat(path, &st));
	SAY(access(path, R_OK));
	SAY(readlink(path, buf, sizeof(buf)));
	SAY(mkdir(path, 0755));
	SAY(rmdir(path));
	SAY(symlink("x", path));
	SAY(rename(path, "other"));
	SAY(rename("other", path));
	SAY(link(path, "other"));
	SAY(unlink(path));
	SAY(rename("other", path));
	SAY(unlink(path));
	SAY(unlink("other"));
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
	say("created %d", fd >= 0 ? 0 : errno);
	close(fd);
	SAY(truncate(path, 1));
	SAY(setxattr(path, "user.x", "y", 1, 0));
	SAY(mkfifo(path, 0644));
	SAY(unlink(path));
	SAY(mkfifo(path, 0644));
	SAY(unlink(path));
	SAY(chdir(path));
	SAY(inotify_add_watch(inotify_init1(IN_CLOEXEC), path, IN_MODIFY));
}

/* A path of LEN bytes to NAME here: "./././name", from START. */
static char *long_path(char *buf, const char *start, const char *name, size_t len)
{
	size_t at = strlen(start), n = strlen(name);

	memset(buf, '/', len);
	memcpy(buf, start, at);
	for (; at + n + 2 <= len; at += 2)
		memcpy(buf + at, "./", 2);
	memcpy(buf + len - n, name, n);
	buf[len] = '\0';
	return buf;
}

static void names_of_the_greatest_length(void)
{
	static char name[300], buf[5000], home[PATH_MAX];

	for (size_t n = 254; n <= 257; n++) {
		memset(name, 'n', n);
		name[n] = '\0';
		say("%zu", n);
		say_each("a name", name);
		snprintf(buf, sizeof(buf), "%s/", name);
		say_each("with a slash", buf);
		SAY(symlink(name, "link"));
		say_each("by a link", "link");
		SAY(unlink("link"));
	}
	MUST(getcwd(home, sizeof(home)));
	strcat(home, "/");
	for (size_t n = 4094; n <= 4097; n++) {
		say("%zu", n);
		say_each("a path", long_path(buf, "", "f", n));
		say_each("from the root", long_path(buf, home, "f", n));
		say_each("a path of a directory", long_path(buf, "", "f/", n));
		SAY(symlink(long_path(buf, "", "target", n), "link"));
		say("its length %zd", readlink("link", buf, sizeof(buf)));
		say_each("by a link", "link");
		SAY(unlink("link"));
		SAY(symlink(long_path(buf, home, "target", n), "link"));
		say_each("by a link from the root", "link");
		SAY(unlink("link"));
	}
}

/* The working directory lies deeper than a path can tell. */
static void a_place_too_deep_for_a_path(void)
{
	static char name[201], buf[8000];
	struct stat st, here;
	int fd, depth;

	memset(name, 'd', 200);
	for (depth = 0; depth < 25; depth++) {
		MUST(!mkdir(name, 0755));
		MUST(!chdir(name));
		if (depth % 5 == 4 || (depth > 17 && depth < 23)) {
			say("depth %d", depth);
			errno = 0;
			char *p = getcwd(buf, sizeof(buf));
			say("getcwd %d %d", p != NULL, errno);
			p = realpath(".", NULL);
			say("realpath %d %d", p != NULL, p ? 0 : errno);
			free(p);
		}
	}
	put_file("f", "deep");
	say_file("f");
	SAY(stat("f", &st));
	SAY(symlink("f", "l"));
	say_file("l");
	fd = open(".", O_RDONLY | O_DIRECTORY);
	MUST(fd >= 0);
	SAY(stat("..", &here));
	SAY(chdir(".."));
	SAY(stat(".", &st));
	MUST(st.st_ino == here.st_ino);
	SAY(fchdir(fd));
	SAY(rename("f", "../g"));
	SAY(rename("../g", "f"));
	child_run("a child there", (void (*)(void *))say_file, (void *)(uintptr_t)"f");
	say("status %d", system("cat f; echo x >g; cat g"));
	say_names(".");
	SAY(readlink("/proc/self/cwd", buf, 100) > 0);
	SAY(unlink("f"));
	SAY(unlink("g"));
	SAY(unlink("l"));
	close(fd);
	for (; depth > 0; depth--) {
		MUST(!chdir(".."));
		MUST(!rmdir(name));
	}
}

/* ---- chains of links ---------------------------------------------------------------------------------- */

/* l0 is the target, each further one a link to the one before; every STEP-th is on the other file system. */
static void make_chain(const char *home, const char *there, int length, int step)
{
	char to[PATH_MAX * 2], at[PATH_MAX * 2];

	for (int i = 1; i <= length; i++) {
		snprintf(to, sizeof(to), "%s/l%d", step && (i - 1) % step == 0 && i > 1 ? there : home, i - 1);
		snprintf(at, sizeof(at), "%s/l%d", step && i % step == 0 ? there : home, i);
		unlink(at);
		MUST(!symlink(to, at));
	}
}

static void follow_chain(const char *home, const char *there, int length, int step)
{
	char path[PATH_MAX * 2];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/l%d", step && length % step == 0 ? there : home, length);
	say("chain of %d, each %d.", length, step);
	SAY(stat(path, &st));
	SAY(lstat(path, &st));
	fd = open(path, O_RDWR);
	say("open %d", fd < 0 ? errno : 0);
	close(fd);
	fd = open(path, O_RDWR | O_CREAT, 0644);
	say("create %d", fd < 0 ? errno : 0);
	close(fd);
	SAY(open(path, O_RDWR | O_NOFOLLOW));
	SAY(truncate(path, 5));
	SAY(chmod(path, 0644));
	strcat(path, "/x");
	SAY(stat(path, &st));
	SAY(mkdir(path, 0755));
	SAY(rmdir(path));
}

static void chains_of_links_end_at_forty(void)
{
	char home[PATH_MAX], there[PATH_MAX + 10], path[PATH_MAX + 40];
	struct stat st;

	MUST(getcwd(home, sizeof(home)));
	snprintf(there, sizeof(there), "%s/chain", host_dir());
	mkdir(there, 0755);
	for (int dir = 0; dir < 3; dir++)
		for (int step = 0; step < 4; step++) {
			unlink("l0");
			rmdir("l0");
			if (dir == 1)
				MUST(!mkdir("l0", 0755));
			else if (!dir)
				put_file("l0", "target");
			say("target %s", dir == 1 ? "directory" : dir ? "missing" : "file");
			make_chain(home, there, 42, step);
			for (int n = 38; n <= 42; n++) {
				follow_chain(home, there, n, step);
				if (dir == 2)
					unlink("l0");
			}
			for (int i = 1; i <= 42; i++) {
				snprintf(path, sizeof(path), "%s/l%d", there, i);
				unlink(path);
				snprintf(path, sizeof(path), "l%d", i);
				unlink(path);
			}
		}
	rmdir("l0");
	snprintf(path, sizeof(path), "%s/loop", there);
	MUST(!symlink(path, "loop"));
	snprintf(path, sizeof(path), "%s/loop", home);
	strcat(there, "/loop");
	unlink(there);
	MUST(!symlink(path, there));
	SAY(stat("loop", &st));
	SAY(stat(there, &st));
	SAY(open("loop", O_RDWR | O_CREAT, 0644));
	SAY(open("loop", O_RDWR | O_CREAT | O_EXCL, 0644));
	SAY(open(there, O_RDONLY));
	SAY(chdir("loop"));
	SAY(mkdir("loop/x", 0755));
	SAY(mkdir("loop", 0755));
	SAY(rename("loop", "loop2"));
	SAY(unlink("loop2"));
	SAY(unlink(there));
}

/* ---- the largest file ----------------------------------------------------------------------------------- */

static volatile sig_atomic_t told;

static void count_signal(int sig)
{
	(void)sig;
	told++;
}

/* Ways of writing other than write. */
static void other_writers_stop_at_the_limit(void)
{
	char host[PATH_MAX], buf[20000] = "";
	int fd, in, p[2], s[2];

	snprintf(host, sizeof(host), "%s/source", host_dir());
	in = open(host, O_RDWR | O_CREAT | O_TRUNC, 0644);
	MUST(write(in, buf, sizeof(buf)) == sizeof(buf));
	put_file("source", "");
	truncate("source", 20000);
	MUST(!pipe(p) && !socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	signal(SIGXFSZ, count_signal);
	say_flush();
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){10000, RLIM_INFINITY});
	fd = open("f", O_RDWR | O_CREAT, 0644);
	MUST(fd >= 0);
	SAY(lseek(in, 0, SEEK_SET));
	SAY(sendfile(fd, in, NULL, 8192) > 0);
	say("told %d", (int)told);
	SAY(lseek(fd, 10000, SEEK_SET));
	SAY(sendfile(fd, in, NULL, 100));
	say("told %d", (int)told);
	int from = open("source", O_RDONLY);
	SAY(lseek(fd, 9000, SEEK_SET));
	SAY(copy_file_range(from, NULL, fd, NULL, 5000, 0));
	SAY(copy_file_range(from, NULL, fd, NULL, 5000, 0));
	say("told %d", (int)told);
	MUST(write(p[1], buf, 3000) == 3000);
	SAY(lseek(fd, 9000, SEEK_SET));
	SAY(splice(p[0], NULL, fd, NULL, 500, 0));
	SAY(lseek(fd, 10000, SEEK_SET));
	SAY(splice(p[0], NULL, fd, NULL, 500, 0));
	say("told %d", (int)told);
	void *m = mmap(NULL, 20000, PROT_READ | PROT_WRITE, MAP_SHARED, from = open("source", O_RDWR), 0);
	MUST(m != MAP_FAILED);
	memset(m, 'x', 20000); /* that is not limited */
	int ap = open("a", O_WRONLY | O_CREAT | O_APPEND, 0644);
	SAY(write(ap, buf, 9999));
	SAY(write(ap, buf, 2));
	SAY(write(ap, buf, 2));
	say("told %d", (int)told);
	signal(SIGXFSZ, SIG_IGN);
	SAY(write(ap, buf, 2));
	SAY(pwritev(ap, (struct iovec[]){{buf, 10}, {buf, 20}}, 2, 5));
	SAY(open("g", O_CREAT | O_TRUNC | O_RDWR, 0644) >= 0);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
}

const struct program_case program_cases[] = {
	CASE(no_number_is_free),
	CASE(calls_with_a_number),
	CASE(a_first_use_with_no_number_free),
	CASE(exec_with_no_number_free),
	CASE(names_of_the_greatest_length),
	CASE(a_place_too_deep_for_a_path),
	CASE(chains_of_links_end_at_forty),
	CASE(other_writers_stop_at_the_limit),
	{NULL, NULL, 0},
};

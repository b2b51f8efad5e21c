/* SPDX-License-Identifier: MIT */
/* places.c - paths: where the process stands, ways in and out of the prefix, links, /proc names. */
#include <limits.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <ftw.h>
#include <fts.h>
#include <glob.h>

#include "cases.h"

static char home[PATH_MAX]; /* where the case runs */

static void find_home(void)
{
	MUST(getcwd(home, sizeof(home)));
}

static const char *at(const char *rest)
{
	static char buf[8][PATH_MAX * 2];
	static int k;

	k = (k + 1) % 8;
	snprintf(buf[k], sizeof(buf[k]), "%s%s", home, rest);
	return buf[k];
}

static void say_cwd(const char *what)
{
	char buf[PATH_MAX];

	say("%s: %s", what, getcwd(buf, sizeof(buf)) ? buf : strerrorname_np(errno));
}

static void say_real(const char *path)
{
	char buf[PATH_MAX];

	say("realpath %s: %s", path, realpath(path, buf) ? buf : strerrorname_np(errno));
}

static void chdir_getcwd_realpath(void)
{
	find_home();
	MUST(!mkdir("a", 0755) && !mkdir("a/b", 0755) && !mkdir("a/b/c", 0755));
	put_file("a/b/f", "text");
	SAY(chdir("a/b"));
	say_cwd("relative");
	say_real(".");
	say_real("..");
	say_real("c/../../b/./c//");
	say_real("f");
	say_real("none");
	SAY(chdir(at("/a")));
	say_cwd("absolute");
	SAY(chdir("../a/b/../b/c"));
	say_cwd("with dots");
	SAY(chdir("/"));
	say_cwd("root");
	SAY(chdir(at("/a/b/f")));
	say_cwd("still root");
	SAY(chdir(at("/none")));
	int d = open(at("/a/b"), O_RDONLY | O_DIRECTORY);
	SAY(fchdir(d));
	say_cwd("by descriptor");
	SAY(openat(d, "f", O_RDONLY));
	SAY(openat(d, "../../a/b/f", O_RDONLY));
	SAY(access("f", R_OK));
	char small[4];
	errno = 0;
	say("%s", getcwd(small, sizeof(small)) ? small : strerrorname_np(errno));
}

static void dotdot_above_the_root_leaves_the_prefix(void)
{
	char up[PATH_MAX] = "", *p;
	struct stat st, root;

	find_home();
	for (p = home; (p = strchr(p, '/')); p++)
		strcat(up, "../");
	strcat(up, "etc/passwd");
	SAY(access(up, R_OK));
	SAY(stat(up, &st));
	SAY(stat("/etc/passwd", &root));
	say("the same %d", st.st_ino == root.st_ino && st.st_dev == root.st_dev);
	int d = open(".", O_RDONLY | O_DIRECTORY);
	SAY(faccessat(d, up, R_OK, 0));
	SAY(access(at("/../../../../../../../../../../etc/passwd"), R_OK));
	SAY(chdir("../../.."));
	say_cwd("three up");
	SAY(chdir(home));
	SAY(chdir(at("/../../..")));
	say_cwd("three up");
	SAY(chdir(".."));
	say_cwd("four up");
	SAY(access(home + 1, F_OK));
	chdir("/");
	SAY(access(home + 1, F_OK));
	SAY(chdir(home + 1));
	say_cwd("from the root");
}

static void links_into_and_out_of_the_prefix(void)
{
	char link[PATH_MAX], text[PATH_MAX] = "";
	struct stat st;

	find_home();
	put_file("f", "inside");
	MUST(!mkdir("d", 0755));
	put_file("d/g", "deeper");
	snprintf(link, sizeof(link), "%s/into", host_dir());
	unlink(link);
	SAY(symlink(at("/f"), link));
	say_file(link);
	SAY(stat(link, &st));
	say("size %ld", (long)st.st_size);
	SAY(lstat(link, &st));
	say("a link %d", S_ISLNK(st.st_mode));
	SAY(readlink(link, text, sizeof(text)) > 0);
	say("the text %d", !strcmp(text, at("/f")));
	SAY(unlink(link));
	SAY(access("f", F_OK));
	SAY(symlink(at(""), link));
	snprintf(text, sizeof(text), "%s/into/d/g", host_dir());
	say_file(text);
	snprintf(text, sizeof(text), "%s/into/d/new", host_dir());
	put_file(text, "made through the link");
	say_file("d/new");
	SAY(chdir(link));
	say_cwd("through the link");
	SAY(chdir(home));
	say_real(text);
	SAY(unlink(link));
	say("out:");
	SAY(symlink("/etc/passwd", "passwd"));
	SAY(access("passwd", R_OK));
	SAY(open("passwd", O_RDONLY));
	SAY(lstat("passwd", &st));
	SAY(stat("passwd", &st));
	say("a file %d", S_ISREG(st.st_mode));
	SAY(symlink("/etc", "etc"));
	SAY(access("etc/passwd", R_OK));
	SAY(access("etc/../etc/passwd", R_OK));
	SAY(open("etc/none", O_RDONLY));
	SAY(open("passwd", O_RDONLY | O_NOFOLLOW));
	SAY(chdir("etc"));
	say_cwd("out");
	SAY(chdir(home));
	say_real("passwd");
	say_real("etc/passwd");
	SAY(symlink("../../../../../../../../../../../etc", "up"));
	SAY(access("up/passwd", R_OK));
	say_real("up/passwd");
	SAY(symlink(at("/f"), "abs"));
	say_file("abs");
	SAY(symlink("loop", "loop"));
	SAY(open("loop", O_RDONLY));
	SAY(symlink("none", "dangling"));
	SAY(open("dangling", O_RDONLY));
	SAY(open("dangling", O_WRONLY | O_CREAT | O_EXCL, 0644));
	SAY(open("dangling", O_WRONLY | O_CREAT | O_NOFOLLOW, 0644));
	SAY(open("dangling", O_WRONLY | O_CREAT, 0644));
	SAY(access("none", F_OK));
	SAY(open("f/", O_RDONLY));
	SAY(open("d/", O_RDONLY));
	SAY(open("f/x", O_RDONLY));
	SAY(open("", O_RDONLY));
	SAY(stat("", &st));
}

static void a_dangling_link_out_creates_outside(void)
{
	char target[PATH_MAX];

	snprintf(target, sizeof(target), "%s/made_outside", host_dir());
	unlink(target);
	SAY(symlink(target, "out"));
	SAY(access("out", F_OK));
	put_file("out", "text");
	say_file(target);
	SAY(truncate("out", 2));
	say_file(target);
	SAY(chmod("out", 0600));
	SAY(rename("out", "out2"));
	SAY(link("out2", "out3"));
	SAY(unlink("out2"));
	SAY(access(target, F_OK));
	SAY(unlink(target));
}

static void a_removed_working_directory_is_gone(void)
{
	MUST(!mkdir("d", 0755) && !chdir("d"));
	SAY(rmdir("../d"));
	say_cwd("removed");
	SAY(open("new", O_WRONLY | O_CREAT, 0644));
	SAY(mkdir("new", 0755));
	SAY(access(".", F_OK));
	struct stat st;
	SAY(stat(".", &st));
	say("links %ld", (long)st.st_nlink);
	SAY(stat("..", &st));
	say_real(".");
	SAY(chdir("."));
	SAY(chdir(".."));
	say_cwd("up");
}

static void a_renamed_working_directory_follows(void)
{
	MUST(!mkdir("d", 0755) && !mkdir("d/e", 0755) && !mkdir("de", 0755));
	put_file("de/f", "sibling");
	int fd = open("d/e/f", O_RDWR | O_CREAT, 0644);
	MUST(!chdir("d/e"));
	SAY(rename("../../d", "../../moved"));
	say_cwd("moved");
	SAY(write(fd, "x", 1));
	SAY(access("f", F_OK));
	SAY(access("../../de/f", F_OK));
	SAY(access("../../moved/e/f", F_OK));
	char buf[PATH_MAX], name[64];
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	long n = readlink(name, buf, sizeof(buf) - 1);
	buf[n < 0 ? 0 : n] = '\0';
	say("%s", buf);
}

static void proc_names_of_descriptors(void)
{
	char buf[PATH_MAX], name[64];
	struct stat st;
	int fd = open("f", O_RDWR | O_CREAT, 0600), d = open(".", O_RDONLY | O_DIRECTORY);

	MUST(write(fd, "text", 4) == 4);
	for (int k = 0; k < 4; k++) {
		static const char *const ways[] = {"/proc/self/fd/%d", "/dev/fd/%d", "/proc/thread-self/fd/%d", "/proc//self/./fd/%d"};

		snprintf(name, sizeof(name), ways[k], fd);
		say_file(name);
		SAY(stat(name, &st));
		say("size %ld", (long)st.st_size);
		SAY(lstat(name, &st));
		say("link %d", S_ISLNK(st.st_mode));
		long n = readlink(name, buf, sizeof(buf) - 1);
		buf[n < 0 ? 0 : n] = '\0';
		say("to %s", buf);
		SAY(access(name, W_OK));
		SAY(truncate(name, 3));
		SAY(truncate(name, 4));
		SAY(chmod(name, 0640));
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d/f", d);
	SAY(access(name, F_OK));
	say_real("/proc/self/cwd/f");
	SAY(access("/proc/self/cwd/f", F_OK));
	SAY(readlink("/proc/self/cwd", buf, sizeof(buf)) > 0);
	SAY(unlink("f"));
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	long n = readlink(name, buf, sizeof(buf) - 1);
	buf[n < 0 ? 0 : n] = '\0';
	say("removed: %d", !strcmp(buf + n - 10, " (deleted)"));
	MUST(open(name, O_RDONLY) >= 0);
	SAY(close(fd));
	SAY(access(name, F_OK));
	SAY(readlink(name, buf, sizeof(buf)));
	snprintf(name, sizeof(name), "/proc/%d/cwd", getpid());
	say("%s", realpath(name, buf) ? buf : strerrorname_np(errno));
	SAY(open("/dev/stdin", O_RDONLY) >= 0);
	dup2(open("g", O_RDWR | O_CREAT, 0644), 0);
	SAY(write(0, "in", 2));
	say_file("/dev/stdin");
}

static void names_by_descriptor_and_empty_path(void)
{
	struct statx sx;
	struct stat st;
	int fd = open("f", O_RDWR | O_CREAT, 0644), p = open("f", O_PATH), d = open(".", O_PATH | O_DIRECTORY);

	SAY(fstatat(fd, "", &st, AT_EMPTY_PATH));
	SAY(fstatat(p, "", &st, AT_EMPTY_PATH));
	SAY(fstatat(AT_FDCWD, "", &st, AT_EMPTY_PATH));
	SAY(statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &sx));
	say("mask %x, birth %d", sx.stx_mask & 0xfff, sx.stx_btime.tv_sec > 0);
	SAY(statx(d, "f", 0, STATX_BASIC_STATS, &sx));
	SAY(fstat(fd, &st));
	say("device the same %d, minor below 256 %d",
	    sx.stx_dev_minor == (st.st_dev & 0xff) && sx.stx_dev_major == ((st.st_dev >> 8) & 0xfff), sx.stx_dev_minor < 256);
	SAY(read(p, &st, 1));
	SAY(fchmod(p, 0600));
	SAY(fchmodat(d, "f", 0600, 0));
	SAY(fchownat(p, "", (uid_t)-1, (gid_t)-1, AT_EMPTY_PATH));
	SAY(linkat(fd, "", AT_FDCWD, "linked", AT_EMPTY_PATH));
	SAY(openat(d, "f", O_RDONLY));
	SAY(openat(fd, "f", O_RDONLY));
	SAY(mkdirat(d, "sub", 0755));
	SAY(unlinkat(d, "sub", 0));
	SAY(unlinkat(d, "sub", AT_REMOVEDIR));
	SAY(openat(40, "f", O_RDONLY));
	SAY(openat(40, at("/f"), O_RDONLY));
	close(d);
	SAY(openat(d, "f", O_RDONLY));
	SAY(fstatat(d, "f", &st, 0));
	SAY(fchdir(d));
	SAY(fchdir(fd));
}

static void tmpfile_gets_a_name_once(void)
{
	char name[64];
	struct stat st;
	int fd = open(".", O_TMPFILE | O_RDWR, 0644);

	SAY(fd >= 0);
	SAY(write(fd, "text", 4));
	SAY(fstat(fd, &st));
	say("links %ld", (long)st.st_nlink);
	SAY(linkat(fd, "", AT_FDCWD, "one", AT_EMPTY_PATH));
	say_file("one");
	SAY(linkat(fd, "", AT_FDCWD, "two", AT_EMPTY_PATH));
	fd = open(".", O_TMPFILE | O_RDWR, 0644);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	SAY(linkat(AT_FDCWD, name, AT_FDCWD, "three", AT_SYMLINK_FOLLOW));
	SAY(access("three", F_OK));
	fd = open(".", O_TMPFILE | O_RDWR | O_EXCL, 0644);
	SAY(linkat(fd, "", AT_FDCWD, "four", AT_EMPTY_PATH));
	FILE *f = tmpfile();
	SAY(fprintf(f, "x"));
	fclose(f);
}

static void across_the_prefix_names_cannot_move(void)
{
	char out[PATH_MAX];

	put_file("f", "text");
	snprintf(out, sizeof(out), "%s/other", host_dir());
	unlink(out);
	SAY(rename("f", out));
	SAY(link("f", out));
	put_file(out, "outside");
	SAY(rename(out, "g"));
	SAY(link(out, "g"));
	SAY(rename(out, "none/g"));
	SAY(rename("none", out));
	SAY(renameat2(AT_FDCWD, "f", AT_FDCWD, out, RENAME_EXCHANGE));
	SAY(access("f", F_OK));
	SAY(access(out, F_OK));
	SAY(unlink(out));
}

static void statfs_tells_of_the_shelf(void)
{
	struct statfs s, t;
	struct statvfs v;
	int fd = open("f", O_RDWR | O_CREAT, 0644);

	SAY(statfs(".", &s));
	SAY(fstatfs(fd, &t));
	SAY(statvfs("f", &v));
	say("types equal %d, sizes equal %d, block %ld, names %ld", s.f_type == t.f_type, s.f_blocks == t.f_blocks,
	    (long)s.f_bsize, (long)s.f_namelen);
	MUST(!ftruncate(fd, 0) && !posix_fallocate(fd, 0, 8 << 20));
	SAY(statfs(".", &t));
	/* The kernel's tmpfs is used by others at the same time. */
	MUST(s.f_type == 0x01021994 || (s.f_bfree - t.f_bfree >= 2048 && s.f_bfree - t.f_bfree < 2100));
	SAY(statfs("none", &s));
}

static int walked;

static int count_entry(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)path, (void)st, (void)flag, (void)f;
	walked++;
	return 0;
}

static void walks_of_trees_agree(void)
{
	char name[64];
	glob_t g;

	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		MUST(!mkdir(name, 0755));
		for (int k = 0; k < 20; k++) {
			snprintf(name, sizeof(name), "d%d/f%d", i, k);
			put_file(name, name);
		}
	}
	SAY(nftw(".", count_entry, 10, FTW_PHYS));
	SAY(nftw(".", count_entry, 3, FTW_PHYS | FTW_CHDIR | FTW_DEPTH));
	say("%d", walked);
	say_cwd("after");
	char *paths[] = {".", NULL};
	FTS *f = fts_open(paths, FTS_PHYSICAL, NULL);
	int n = 0, files = 0;
	for (FTSENT *e; (e = fts_read(f)); n++)
		files += e->fts_info == FTS_F;
	fts_close(f);
	say("fts %d entries, %d files", n, files);
	SAY(glob("d*/f1?", 0, NULL, &g));
	say("glob %zu", g.gl_pathc);
}

static void bad_addresses_and_long_names(void)
{
	static char long_name[300], long_path[5000];
	struct stat st;

	memset(long_name, 'n', sizeof(long_name) - 1);
	for (size_t i = 0; i < sizeof(long_path) - 1; i++)
		long_path[i] = i & 1 ? '/' : '.';
	SAY(open(long_name, O_RDONLY));
	SAY(open(long_name, O_RDWR | O_CREAT, 0644));
	SAY(mkdir(long_name, 0755));
	long_name[255] = '\0';
	SAY(mkdir(long_name, 0755));
	SAY(stat(long_path, &st));
	SAY(syscall(SYS_open, (char *)8, O_RDONLY));
	SAY(syscall(SYS_stat, ".", (struct stat *)8));
	SAY(syscall(SYS_stat, NULL, &st));
	SAY(syscall(SYS_rename, "a", (char *)8));
	SAY(syscall(SYS_getcwd, (char *)8, 4096));
	SAY(syscall(SYS_readlink, ".", (char *)8, 100));
	SAY(syscall(SYS_openat, AT_FDCWD, NULL, O_RDONLY));
	SAY(syscall(SYS_unlinkat, AT_FDCWD, ".", 0x4000000));
	int fd = open("f", O_RDWR | O_CREAT, 0644);
	SAY(syscall(SYS_write, fd, (char *)8, 100));
	SAY(write(fd, "abc", 3));
	SAY(lseek(fd, 0, SEEK_SET));
	SAY(syscall(SYS_read, fd, (char *)8, 100));
	SAY(syscall(SYS_fstat, fd, (char *)8));
}

static void creat_and_open_without_a_mode(void)
{
	struct stat st;

	put_file("f", "text");
	SAY(creat("f", 0644));
	SAY(stat("f", &st));
	say("size %ld", (long)st.st_size);
	SAY(creat("new", 0640));
	SAY(stat("new", &st));
	say("mode %o", st.st_mode);
	SAY(write(4, "x", 1));
	SAY(read(4, &st, 1));
	SAY(syscall(SYS_open, "plain", O_CREAT | O_RDWR, 0));
	SAY(stat("plain", &st));
	say("mode %o", st.st_mode);
}

static void renameat2_flags(void)
{
	put_file("a", "a");
	put_file("b", "b");
	SAY(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE));
	SAY(renameat2(AT_FDCWD, "a", AT_FDCWD, "c", RENAME_NOREPLACE));
	SAY(renameat2(AT_FDCWD, "c", AT_FDCWD, "b", RENAME_EXCHANGE));
	say_file("c");
	say_file("b");
	SAY(renameat2(AT_FDCWD, "c", AT_FDCWD, "none", RENAME_EXCHANGE));
	SAY(renameat2(AT_FDCWD, "c", AT_FDCWD, "b", 64));
	SAY(renameat2(AT_FDCWD, "c", AT_FDCWD, "b", RENAME_EXCHANGE | RENAME_NOREPLACE));
	SAY(renameat2(AT_FDCWD, "c", AT_FDCWD, "w", RENAME_WHITEOUT) < 0 && errno == EINVAL);
}

static void the_prefix_itself(void)
{
	char top[PATH_MAX];
	struct stat a, b;

	find_home();
	snprintf(top, sizeof(top), "%s", home);
	*strrchr(top, '/') = '\0'; /* the copy's */
	*strrchr(top, '/') = '\0'; /* the prefix */
	SAY(stat(top, &a));
	SAY(chdir(top));
	say_cwd("top");
	SAY(stat(".", &b));
	say("the same %d, a directory %d", a.st_ino == b.st_ino && a.st_dev == b.st_dev, S_ISDIR(a.st_mode));
	SAY(rmdir("1") == -1 && errno == ENOTEMPTY);
	SAY(access("1", F_OK));
	strcat(top, "/");
	SAY(stat(top, &b));
	say("the same %d", a.st_ino == b.st_ino);
	strcat(top, ".");
	SAY(access(top, F_OK));
	strcat(top, "/1");
	SAY(access(top, F_OK));
	SAY(chdir(".."));
	say("names in the host's directory above: %d", access("none", F_OK));
}

const struct program_case program_cases[] = {
	CASE(chdir_getcwd_realpath),
	CASE(dotdot_above_the_root_leaves_the_prefix),
	CASE(links_into_and_out_of_the_prefix),
	CASE(a_dangling_link_out_creates_outside),
	CASE(a_removed_working_directory_is_gone),
	CASE(a_renamed_working_directory_follows),
	CASE(proc_names_of_descriptors),
	CASE(names_by_descriptor_and_empty_path),
	CASE(tmpfile_gets_a_name_once),
	CASE(across_the_prefix_names_cannot_move),
	CASE(statfs_tells_of_the_shelf),
	CASE(walks_of_trees_agree),
	CASE(bad_addresses_and_long_names),
	CASE(creat_and_open_without_a_mode),
	CASE(renameat2_flags),
	CASE(the_prefix_itself),
	{0},
};

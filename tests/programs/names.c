/* SPDX-License-Identifier: MIT */
/* names.c - rename, link, unlink, directories, alone and several at once. */
#include <pthread.h>
#include <sys/time.h>
#include <utime.h>

#include "cases.h"

static void say_stat(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		say("%s: %s", path, strerrorname_np(errno));
	else
		say("%s: mode %o links %ld size %ld blocks %ld", path, st.st_mode, (long)st.st_nlink,
		    S_ISDIR(st.st_mode) ? 0L : (long)st.st_size, S_ISDIR(st.st_mode) ? 0L : (long)st.st_blocks);
}

static void renamed_directories_take_all_along(void)
{
	MUST(!mkdir("d", 0755) && !mkdir("d/e", 0755) && !mkdir("d_new", 0755));
	put_file("d/e/f", "deep");
	put_file("d_new/f", "sibling");
	int fd = open("d/e/f", O_RDWR), dir = open("d/e", O_RDONLY | O_DIRECTORY);
	SAY(rename("d", "moved"));
	say_file("moved/e/f");
	say_file("d/e/f");
	say_file("d_new/f");
	SAY(write(fd, "D", 1));
	SAY(faccessat(dir, "f", F_OK, 0));
	SAY(openat(dir, "g", O_RDWR | O_CREAT, 0644));
	say_file("moved/e/g");
	SAY(rename("moved", "moved/e/x"));
	SAY(rename("moved/e", "moved/e"));
	put_file("f", "f");
	SAY(rename("f", "f_new"));
	say_names(".");
}

static void rename_replaces_by_the_rules(void)
{
	put_file("f", "f"), put_file("g", "g");
	MUST(!mkdir("d", 0755) && !mkdir("full", 0755) && !mkdir("empty", 0755));
	put_file("full/x", "x");
	SAY(rename("f", "d"));
	SAY(rename("d", "f"));
	SAY(rename("d", "full"));
	SAY(rename("d", "empty"));
	SAY(rename("f", "f"));
	SAY(link("f", "hard"));
	SAY(rename("f", "hard"));
	say_stat("f");
	say_stat("hard");
	SAY(rename("empty/.", "x"));
	SAY(rename("empty/..", "x"));
	SAY(rename("f", "full/."));
	SAY(rename("f", "g/"));
	SAY(rename("f/", "z"));
	SAY(rename("empty/", "z/"));
	SAY(rename("none", "x"));
	SAY(rename("f", "none/x"));
	SAY(rename("f", "g/x"));
	SAY(rename("f", ""));
	SAY(rename("", "f"));
	say_names(".");
}

static void rename_over_an_open_file_keeps_the_old_data(void)
{
	put_file("old", "old data"), put_file("new", "new data");
	int fd = open("old", O_RDONLY);
	struct stat st;
	SAY(rename("new", "old"));
	say_rest("the descriptor", fd);
	SAY(fstat(fd, &st));
	say("links %ld", (long)st.st_nlink);
	say_file("old");
	SAY(open("new", O_RDONLY));
}

static void renames_over(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < scaled(5000); i++) {
		put_file("tmp", "xx");
		MUST(!rename("tmp", "target"));
	}
}

static void during_rename_over_the_name_is_never_absent(void)
{
	struct stat st;
	long missing = 0;
	pid_t pid;
	int status;

	put_file("target", "xx");
	pid = child_start(renames_over, NULL);
	while (waitpid(pid, &status, WNOHANG) == 0)
		missing += stat("target", &st) != 0;
	say("%ld missing, status %d", missing, status);
}

static int won;

static void *create_one(void *arg)
{
	int fd = open("winner", O_RDWR | O_CREAT | O_EXCL, 0644);
	bool d = !mkdir("winner_dir", 0755), l = !link("source", "winner_link"), s = !symlink("x", "winner_symlink");

	(void)arg;
	__atomic_add_fetch(&won, (fd >= 0) + d * 100 + l * 10000 + s * 1000000, __ATOMIC_RELAXED); /* read after the joins */
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void of_several_makers_of_a_name_one_wins(void)
{
	pthread_t t[8];

	put_file("source", "");
	for (unsigned round = 0; round < scaled(200); round++) {
		won = 0;
		for (int i = 0; i < 8; i++)
			pthread_create(&t[i], NULL, create_one, NULL);
		for (int i = 0; i < 8; i++)
			pthread_join(t[i], NULL);
		if (won != 1010101)
			say("round %u: %d", round, won);
		MUST(!unlink("winner") && !rmdir("winner_dir") && !unlink("winner_link") && !unlink("winner_symlink"));
	}
	say_names(".");
}

static void creates_many(void *arg)
{
	char name[64];

	for (int i = 0; i < 2500; i++) {
		snprintf(name, sizeof(name), "dir/%ld_%d", (long)(intptr_t)arg, i);
		put_file(name, "x");
	}
}

static int count_names(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void ten_thousand_parallel_creates_are_all_listed(void)
{
	pid_t pid[4];

	MUST(!mkdir("dir", 0755));
	for (long i = 0; i < 4; i++)
		pid[i] = child_start(creates_many, (void *)(intptr_t)i);
	for (int i = 0; i < 4; i++)
		child_end("child", pid[i]);
	say("%d", count_names("dir"));
}

static void *makes_temporaries(void *arg)
{
	long *fine = arg;

	for (unsigned i = 0; i < scaled(200); i++) {
		char name[] = "temp/XXXXXX";
		int fd = mkstemp(name);

		*fine += fd >= 0 && !close(fd) && !unlink(name);
	}
	return NULL;
}

static void temporaries_in_threads(void *arg)
{
	pthread_t t[20];
	long fine[20] = {0}, all = 0;

	(void)arg;
	for (int i = 0; i < 20; i++)
		pthread_create(&t[i], NULL, makes_temporaries, &fine[i]);
	for (int i = 0; i < 20; i++) {
		pthread_join(t[i], NULL);
		all += fine[i];
	}
	_exit(all != 20 * (long)scaled(200));
}

static void forty_thousand_temporaries_come_and_go(void)
{
	pid_t pid[8];

	MUST(!mkdir("temp", 0755));
	for (int i = 0; i < 8; i++)
		pid[i] = child_start(temporaries_in_threads, NULL);
	for (int i = 0; i < 8; i++)
		child_end("child", pid[i]);
	say("%d left", count_names("temp"));
}

static void positions_in_a_directory_stay_good(void)
{
	char name[300];
	int seen = 0, again = 0;
	long middle = -1;
	DIR *d;

	MUST(!mkdir("dir", 0755));
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "dir/f%d", i);
		put_file(name, "");
	}
	d = opendir("dir");
	for (struct dirent *e; (e = readdir(d));) {
		seen += e->d_name[0] == 'f';
		if (seen == 500 && middle < 0)
			middle = telldir(d);
	}
	seekdir(d, middle);
	while (readdir(d))
		again++;
	say("%d, then %d from the middle (no dots: %d)", seen, again > 490 && again < 510, again >= 500 - 2);
	rewinddir(d);
	seen = 0;
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] != 'f')
			continue;
		seen++;
		snprintf(name, sizeof(name), "dir/%s", e->d_name);
		MUST(!unlink(name));
	}
	say("%d seen while they were unlinked", seen);
	closedir(d);
	SAY(rmdir("dir"));
}

static void link_counts_and_blocks(void)
{
	struct stat a, b;
	int fd;

	put_file("f", "x");
	SAY(link("f", "g"));
	say_stat("f");
	SAY(unlink("f"));
	say_stat("g");
	MUST(!mkdir("d", 0755));
	say_stat("d");
	MUST(!mkdir("d/1", 0755) && !mkdir("d/2", 0755));
	say_stat("d");
	SAY(rename("d/1", "1"));
	say_stat("d");
	SAY(rmdir("d/2"));
	say_stat("d");
	SAY(stat("g", &a));
	SAY(rename("g", "d/h"));
	SAY(stat("d/h", &b));
	say("the same inode %d", a.st_ino == b.st_ino);
	fd = open("sparse", O_RDWR | O_CREAT, 0644);
	SAY(ftruncate(fd, 1 << 20));
	say_stat("sparse");
	SAY(pwrite(fd, "x", 1, 500000));
	say_stat("sparse");
	SAY(lseek(fd, 0, SEEK_DATA));
	SAY(lseek(fd, 500000, SEEK_HOLE));
	SAY(link("d", "hard"));
	SAY(link("none", "x"));
	SAY(link("sparse", "d"));
	SAY(unlink("d"));
	SAY(rmdir("sparse"));
	SAY(symlink("sparse", "s"));
	SAY(link("s", "s2"));
	say_stat("s2");
	SAY(linkat(AT_FDCWD, "s", AT_FDCWD, "s3", AT_SYMLINK_FOLLOW));
	say_stat("s3");
}

static void removed_directories_and_dots(void)
{
	int d;

	MUST(!mkdir("d", 0755) && !mkdir("e", 0755));
	d = open("d", O_RDONLY | O_DIRECTORY);
	SAY(rmdir("d"));
	SAY(openat(d, "f", O_RDWR | O_CREAT, 0644));
	SAY(mkdirat(d, "x", 0755));
	SAY(faccessat(d, ".", F_OK, 0));
	SAY(rmdir("e/."));
	SAY(rmdir("e/.."));
	SAY(rmdir("e/"));
	put_file("f", "");
	SAY(rmdir("f"));
	SAY(unlink("f/"));
	SAY(mkdir("f", 0755));
	SAY(mkdir("f/x", 0755));
	SAY(mkdir("none/x", 0755));
	SAY(mkdir(".", 0755));
	SAY(mkdir("/", 0755));
	SAY(unlink("."));
	SAY(symlink("f", "f"));
	SAY(symlink("", "empty"));
}

static void say_times(const char *path)
{
	struct stat st;

	MUST(!lstat(path, &st));
	say("%s: %ld.%09ld %ld.%09ld", path, st.st_atim.tv_sec, st.st_atim.tv_nsec, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static void times_are_set_to_the_nanosecond(void)
{
	struct timespec ts[2] = {{1000000001, 123456789}, {1000000002, 987654321}};
	struct timeval tv[2] = {{1000000003, 111}, {1000000004, 222}};
	struct utimbuf u = {1000000005, 1000000006};
	struct stat a, b;
	int fd;

	put_file("f", "x");
	MUST(!symlink("f", "s"));
	SAY(utimensat(AT_FDCWD, "f", ts, 0));
	say_times("f");
	SAY(utimensat(AT_FDCWD, "s", ts, AT_SYMLINK_NOFOLLOW));
	say_times("s");
	SAY(utimes("f", tv));
	say_times("f");
	SAY(utime("f", &u));
	say_times("f");
	SAY(lutimes("s", tv));
	say_times("s");
	fd = open("f", O_RDONLY);
	ts[0].tv_nsec = UTIME_OMIT;
	SAY(futimens(fd, ts));
	say_times("f");
	ts[1].tv_nsec = UTIME_OMIT;
	SAY(utimensat(AT_FDCWD, "none", ts, 0));
	SAY(utimensat(AT_FDCWD, "f", ts, 0));
	ts[1].tv_nsec = 2000000000;
	SAY(utimensat(AT_FDCWD, "f", ts, 0));
	SAY(futimens(fd, NULL));
	MUST(!stat("f", &a));
	put_file("g", "x");
	MUST(!stat("g", &b));
	say("now %d", b.st_mtime - a.st_mtime < 5 && a.st_mtime > 1600000000);
	if (!getuid() && !seteuid(65534)) {
		SAY(utimensat(AT_FDCWD, "f", ts, 0));
		ts[1].tv_nsec = 5;
		SAY(utimensat(AT_FDCWD, "f", ts, 0));
		SAY(utimensat(AT_FDCWD, "f", NULL, 0));
		SAY(chmod("f", 0666));
		SAY(open("new", O_RDWR | O_CREAT, 0644));
		MUST(!seteuid(0));
	}
}

static void rights_are_looked_at(void)
{
	struct stat st;

	MUST(!mkdir("closed", 0700) && !mkdir("open", 0777) && !chmod("open", 0777) && !mkdir("sticky", 0777) && !chmod("sticky", 01777));
	put_file("closed/f", "secret");
	put_file("open/f", "x");
	put_file("sticky/f", "x");
	MUST(!chmod("open/f", 0640));
	if (getuid()) {
		say("not root");
		return;
	}
	MUST(!setegid(65534) && !seteuid(65534));
	SAY(open("closed/f", O_RDONLY));
	SAY(stat("closed/f", &st));
	SAY(chdir("closed"));
	SAY(open("open/f", O_RDONLY));
	SAY(access("open/f", R_OK));
	SAY(faccessat(AT_FDCWD, "open/f", R_OK, AT_EACCESS));
	SAY(unlink("sticky/f"));
	SAY(rename("sticky/f", "sticky/g"));
	SAY(unlink("open/f"));
	SAY(open("open/mine", O_RDWR | O_CREAT, 0604));
	MUST(!stat("open/mine", &st));
	say("owner %d %d mode %o", st.st_uid, st.st_gid, st.st_mode);
	SAY(chown("open/mine", 0, 0));
	SAY(rmdir("closed"));
	SAY(mknod("open/dev", S_IFCHR | 0600, 0x103));
	MUST(!seteuid(0) && !setegid(0));
	SAY(chown("open/mine", 12, 34));
	SAY(stat("open/mine", &st));
	say("owner %d %d mode %o", st.st_uid, st.st_gid, st.st_mode);
}

static void a_read_only_mode_does_not_stop_its_creator(void)
{
	int fd = open("f", O_CREAT | O_RDWR, 0444);

	SAY(write(fd, "abc", 3));
	SAY(ftruncate(fd, 2));
	SAY(fchmod(fd, 0));
	SAY(write(fd, "abc", 3));
	SAY(lseek(fd, 0, SEEK_SET));
	say_rest("f", fd);
}

const struct program_case program_cases[] = {
	CASE(renamed_directories_take_all_along),
	CASE(rename_replaces_by_the_rules),
	CASE(rename_over_an_open_file_keeps_the_old_data),
	CASE(during_rename_over_the_name_is_never_absent),
	CASE(of_several_makers_of_a_name_one_wins),
	CASE(ten_thousand_parallel_creates_are_all_listed),
	{"forty_thousand_temporaries_come_and_go", forty_thousand_temporaries_come_and_go, 200},
	CASE(positions_in_a_directory_stay_good),
	CASE(link_counts_and_blocks),
	CASE(removed_directories_and_dots),
	CASE(times_are_set_to_the_nanosecond),
	CASE(rights_are_looked_at),
	CASE(a_read_only_mode_does_not_stop_its_creator),
	{0},
};

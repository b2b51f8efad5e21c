/* SPDX-License-Identifier: MIT */
/* inotify.c - what is told of files and directories, field by field, and how it waits to be read. */
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#include "events.h"

#ifndef IN_MASK_CREATE
#define IN_MASK_CREATE 0x10000000
#endif

/* ---- what is told ------------------------------------------------------------------------------------- */

static void changes_in_a_directory(void)
{
	char buf[100];
	int in, fd;

	MUST(!mkdir("d", 0755));
	in = watching("d", IN_ALL_EVENTS);
	fd = open("d/file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	told("created", in);
	MUST(write(fd, "some text", 9) == 9 && write(fd, "", 0) == 0);
	MUST(pread(fd, buf, sizeof(buf), 0) == 9 && pread(fd, buf, sizeof(buf), 9) == 0);
	MUST(pwrite(fd, "x", 1, 5000) == 1 && !ftruncate(fd, 100) && !fallocate(fd, 0, 0, 8192));
	told("written and read", in);
	MUST(!fchmod(fd, 0600) && !fchown(fd, -1, getgid()) && !fchown(fd, -1, -1));
	told("attributes", in);
	close(fd);
	told("closed", in);
	close(open("d/file", O_RDONLY | O_CLOEXEC));
	close(open("d/file", O_PATH | O_CLOEXEC));
	close(open("d/file", O_WRONLY | O_TRUNC | O_CLOEXEC));
	MUST(!truncate("d/file", 10) && !truncate("d/file", 10) && !chmod("d/file", 0644));
	told("by path", in);
	MUST(!mkdir("d/sub", 0755) && !symlink("nowhere", "d/link") && !mknod("d/fifo", S_IFIFO | 0600, 0) && !link("d/file", "d/other"));
	told("names", in);
	MUST(!unlink("d/other") && !unlink("d/file") && !unlink("d/link") && !unlink("d/fifo") && !rmdir("d/sub"));
	told("removed", in);
}

static void times_and_attributes(void)
{
	struct timespec both[2] = {{1, 0}, {2, 0}}, access[2] = {{1, 0}, {0, UTIME_OMIT}}, mod[2] = {{0, UTIME_OMIT}, {1, 0}},
			none[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
	int in;

	put_file("f", "text");
	in = watching(".", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, "f", IN_ALL_EVENTS));
	MUST(!utimensat(AT_FDCWD, "f", both, 0));
	told("both times", in);
	MUST(!utimensat(AT_FDCWD, "f", access, 0));
	told("one", in);
	MUST(!utimensat(AT_FDCWD, "f", mod, 0) && !utimensat(AT_FDCWD, "f", none, 0));
	told("the other", in);
	MUST(!utimensat(AT_FDCWD, "f", NULL, 0));
	told("now", in);
	SAY(setxattr("f", "user.name", "value", 5, 0));
	SAY(removexattr("f", "user.name"));
	SAY(removexattr("f", "user.name"));
	told("xattrs", in);
	MUST(!mkdir("d", 0755));
	told("mkdir", in);
	SAY(inotify_add_watch(in, "d", IN_ALL_EVENTS));
	MUST(!chmod("d", 0700));
	told("a directory", in);
}

static void a_file_and_its_directory(void)
{
	int in, fd;

	put_file("f", "text");
	in = watching(".", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, "f", IN_ALL_EVENTS));
	fd = open("f", O_RDWR | O_CLOEXEC);
	MUST(write(fd, "abc", 3) == 3);
	told("both hear", in);
	MUST(!rename("f", "g"));
	told("renamed", in);
	MUST(!unlink("g"));
	told("unlinked, open", in);
	MUST(write(fd, "abc", 3) == 3);
	close(fd);
	told("closed", in);
	put_file("h", "text");
	told("made", in);
	SAY(inotify_add_watch(in, "h", IN_ALL_EVENTS));
	MUST(!unlink("h"));
	told("unlinked, closed", in);
	SAY(inotify_rm_watch(in, 2));
	MUST(!mkdir("d", 0755) && inotify_add_watch(in, "d", IN_ALL_EVENTS) == 4 && !rmdir("d"));
	told("a directory removed", in);
}

static void a_map_puts_the_close_off(void)
{
	int in, fd, other;
	char *at, *more;
	pid_t pid;

	MUST(!mkdir("d", 0755));
	put_file("d/file", "text");
	in = watching("d", IN_OPEN | IN_CLOSE);
	fd = open("d/file", O_RDWR | O_CLOEXEC);
	other = open("d/file", O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	more = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, other, 0);
	MUST(at != MAP_FAILED && more != MAP_FAILED);
	close(fd);
	told("closed, and mapped", in);
	MUST(!munmap(at + 4096, 4096));
	told("a part of the map less", in);
	close(other);
	MUST(!munmap(more, 4096));
	told("another open file, and its map", in);
	pid = fork();
	if (pid == 0)
		_exit(at[0] != 't');
	waitpid(pid, NULL, 0);
	told("a child has ended that had it", in);
	at[0] = 'T';
	MUST(!munmap(at, 3 * 4096));
	told("the map is gone", in);
	fd = open("d/file", O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	more = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	MUST(!munmap(at, 4096));
	told("one of two maps is gone", in);
	MUST(mmap(more, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == more);
	told("both", in);
	close(open("d/file", O_RDONLY | O_CLOEXEC));
	told("end", in);
}

static void moves(void)
{
	int in;

	MUST(!mkdir("a", 0755) && !mkdir("b", 0755) && !mkdir("out", 0755) && !mkdir("a/sub", 0755));
	put_file("a/f", "f"), put_file("b/victim", "v"), put_file("out/o", "o"), put_file("a/x", "x"), put_file("b/y", "y");
	in = watching("a", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, "b", IN_ALL_EVENTS));
	SAY(inotify_add_watch(in, "a/f", IN_ALL_EVENTS));
	SAY(inotify_add_watch(in, "b/victim", IN_ALL_EVENTS));
	SAY(inotify_add_watch(in, "a/sub", IN_ALL_EVENTS));
	MUST(!rename("a/f", "a/g"));
	told("within", in);
	MUST(!rename("a/g", "b/g"));
	told("across", in);
	MUST(!rename("b/g", "b/victim"));
	told("over", in);
	MUST(!rename("b/victim", "out/v"));
	told("out", in);
	MUST(!rename("out/o", "a/o"));
	told("in", in);
	MUST(!rename("a/sub", "b/sub"));
	told("a directory", in);
	MUST(!renameat2(AT_FDCWD, "a/x", AT_FDCWD, "b/y", RENAME_EXCHANGE));
	told("exchanged", in);
	MUST(!rename("a/o", "a/o"));
	told("onto itself", in);
	MUST(!mkdir("b/empty", 0755) && inotify_add_watch(in, "b/empty", IN_ALL_EVENTS) == 6 && !rename("b/sub", "b/empty"));
	told("a directory over one", in);
}

static void links(void)
{
	int in, fd;

	put_file("f", "text");
	in = watching("f", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, ".", IN_ALL_EVENTS));
	MUST(!link("f", "g"));
	told("linked", in);
	SAY(inotify_add_watch(in, "g", IN_ATTRIB | IN_OPEN));
	MUST(!mkdir("d", 0755) && !link("f", "d/h"));
	told("linked elsewhere", in);
	fd = open("g", O_RDONLY | O_CLOEXEC);
	told("opened by its second name", in);
	MUST(!unlink("g") && !unlink("f"));
	told("two names less", in);
	close(fd);
	told("closed", in);
	MUST(!unlink("d/h"));
	told("the last", in);
}

static void listing_a_directory(void)
{
	int in, fd;
	DIR *dir;

	MUST(!mkdir("d", 0755) && !mkdir("d/e", 0755));
	in = watching("d", IN_ALL_EVENTS);
	SAY(inotify_add_watch(in, "d/e", IN_ALL_EVENTS));
	dir = opendir("d/e");
	told("opened", in);
	while (readdir(dir))
		;
	told("listed", in);
	closedir(dir);
	told("closed", in);
	fd = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(fd);
	told("the other", in);
}

static void copies(void)
{
	int in, from, to;

	put_file("from", "some text of the source");
	put_file("to", "");
	in = watching(".", IN_ALL_EVENTS);
	from = open("from", O_RDONLY | O_CLOEXEC), to = open("to", O_WRONLY | O_CLOEXEC);
	told("opened", in);
	MUST(sendfile(to, from, NULL, 4) == 4);
	told("sent", in);
	MUST(copy_file_range(from, NULL, to, NULL, 4, 0) == 4);
	told("copied", in);
}

static void the_mask_decides(void)
{
	static const uint32_t one[] = {IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_CLOSE_NOWRITE, IN_OPEN, IN_MOVED_FROM,
				       IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF};
	int in[12];
	char buf[10];

	MUST(!mkdir("d", 0755));
	for (unsigned k = 0; k < 12; k++)
		in[k] = watching("d", one[k]);
	put_file("d/f", "text");
	int fd = open("d/f", O_RDONLY | O_CLOEXEC);
	MUST(read(fd, buf, 10) == 4);
	close(fd);
	MUST(!chmod("d/f", 0600) && !rename("d/f", "d/g") && !unlink("d/g") && !rename("d", "e") && !rmdir("e"));
	for (unsigned k = 0; k < 12; k++)
		told("one bit", in[k]);
}

static void flags_of_a_watch(void)
{
	int in, fd;

	MUST(!mkdir("d", 0755) && !symlink("d", "link"));
	put_file("f", "text");
	in = inotify_init1(IN_NONBLOCK);
	SAY(inotify_add_watch(in, "f", IN_ONLYDIR | IN_OPEN));
	SAY(inotify_add_watch(in, "link", IN_DONT_FOLLOW | IN_DELETE_SELF | IN_ATTRIB));
	SAY(inotify_add_watch(in, "link", IN_ALL_EVENTS));
	SAY(inotify_add_watch(in, "link", IN_ALL_EVENTS | IN_DONT_FOLLOW | IN_ONLYDIR));
	MUST(!unlink("link"));
	told("the link", in);
	SAY(inotify_add_watch(in, "f", IN_ONESHOT | IN_OPEN | IN_CLOSE));
	close(open("f", O_RDONLY));
	close(open("f", O_RDONLY));
	told("once", in);
	SAY(inotify_add_watch(in, "f", IN_OPEN));
	SAY(inotify_add_watch(in, "f", IN_MASK_CREATE | IN_OPEN));
	SAY(inotify_add_watch(in, "f", IN_MASK_ADD | IN_ATTRIB));
	MUST(!chmod("f", 0600));
	close(open("f", O_RDONLY));
	told("added to", in);
	SAY(inotify_add_watch(in, "f", IN_CLOSE));
	MUST(!chmod("f", 0644));
	close(open("f", O_RDONLY));
	told("replaced", in);
	SAY(inotify_add_watch(in, "d", IN_ALL_EVENTS | IN_EXCL_UNLINK));
	fd = open("d/x", O_WRONLY | O_CREAT, 0644);
	MUST(write(fd, "a", 1) == 1 && !unlink("d/x") && write(fd, "b", 1) == 1);
	close(fd);
	told("unlinked ones excluded", in);
	SAY(inotify_add_watch(in, "d", IN_MASK_ADD));
	SAY(inotify_add_watch(in, "d", IN_ISDIR));
}

static void what_is_wrong(void)
{
	int in = inotify_init1(IN_NONBLOCK), fd;

	put_file("f", "text");
	fd = open("f", O_RDONLY);
	SAY(inotify_init1(1));
	SAY(inotify_add_watch(in, "none", IN_OPEN));
	SAY(inotify_add_watch(in, "f/x", IN_OPEN));
	SAY(inotify_add_watch(in, "", IN_OPEN));
	SAY(inotify_add_watch(in, "f", 0));
	SAY(inotify_add_watch(in, "f", 0x00010000));
	SAY(inotify_add_watch(in, "f", IN_OPEN | IN_MASK_ADD | IN_MASK_CREATE));
	SAY(inotify_add_watch(77, "f", IN_OPEN));
	SAY(inotify_add_watch(fd, "f", IN_OPEN));
	SAY(inotify_add_watch(1, "f", IN_OPEN));
	SAY(inotify_rm_watch(in, 1));
	SAY(inotify_rm_watch(fd, 1));
	SAY(inotify_rm_watch(77, 1));
	SAY(inotify_add_watch(in, "f", IN_OPEN));
	SAY(inotify_rm_watch(in, 5));
	SAY(inotify_rm_watch(in, -1));
	SAY(read(in, &fd, 4));
	SAY(write(in, "x", 1));
	SAY(lseek(in, 0, SEEK_SET));
	SAY(pread(in, &fd, 4, 0));
	SAY(ftruncate(in, 0));
	SAY(inotify_rm_watch(in, 1));
	told("removed", in);
	SAY(inotify_add_watch(in, "f", IN_OPEN));
	SAY(fcntl(in, F_GETFL));
}

/* ---- the queue --------------------------------------------------------------------------------------------- */

static void reading_in_pieces(void)
{
	_Alignas(8) char a[40], b[100];
	struct iovec iov[2] = {{a, 32}, {b, sizeof(b)}};
	int in = watching(".", IN_CREATE);
	ssize_t n;

	touch("short"), touch("a_name_of_15_by"), touch("a_name_of_16_byt"), touch("x");
	read_once(in, 0);
	read_once(in, 15);
	read_once(in, 16);
	read_once(in, 31);
	read_once(in, 32);
	read_once(in, 47);
	read_once(in, 80);
	read_once(in, 100);
	read_once(in, 100);
	touch("one"), touch("two"), touch("three");
	n = SAY(readv(in, iov, 2));
	say_events(a, 32);
	say_events(b, n - 32);
	touch("four");
	n = SAY(preadv2(in, iov, 1, -1, 0));
	say_events(a, n);
	SAY(preadv2(in, iov, 1, 0, 0));
	SAY(syscall(SYS_read, in, (void *)8, 100));
	told("the rest", in);
}

static void equal_events_are_merged(void)
{
	int in = watching(".", IN_ATTRIB | IN_CREATE), k;

	touch("f"), touch("g");
	for (k = 0; k < 5; k++)
		MUST(!chmod("f", 0600));
	MUST(!chmod("g", 0600));
	for (k = 0; k < 5; k++)
		MUST(!chmod("f", 0600));
	told("merged", in);
}

static void too_many_events(void)
{
	int in = watching(".", IN_ATTRIB), waits = -1, events = 0, k;
	static _Alignas(8) char buf[65536];
	uint32_t last = 0;
	ssize_t n, at;

	touch("f"), touch("g");
	for (k = 0; k < 8500; k++)
		MUST(!chmod("f", 0600) && !chmod("g", 0600));
	MUST(!ioctl(in, FIONREAD, &waits));
	say("%d bytes", waits);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; events++) {
			struct inotify_event e;

			memcpy(&e, buf + at, sizeof(e));
			if (e.mask == IN_Q_OVERFLOW)
				say("overflow: wd %d len %u, event %d", e.wd, e.len, events);
			last = e.mask;
			at += (ssize_t)(sizeof(e) + e.len);
		}
	say("%d events, the last %x", events, last);
	MUST(!chmod("f", 0600));
	told("afterwards", in);
}

const struct program_case program_cases[] = {
	CASE(changes_in_a_directory), CASE(times_and_attributes), CASE(a_file_and_its_directory), CASE(a_map_puts_the_close_off), CASE(moves), CASE(links),
	CASE(listing_a_directory), CASE(copies), CASE(the_mask_decides), CASE(flags_of_a_watch), CASE(what_is_wrong),
	CASE(reading_in_pieces), CASE(equal_events_are_merged), CASE(too_many_events), {NULL, NULL, 0},
};

/* SPDX-License-Identifier: MIT */
/*
 * A path of any bytes with any flags, on a small tree of files, links, loops and closed directories:
 * what finds a name agrees with what else finds it, and only O_CREAT makes one.
 */
#include <fcntl.h>
#include <linux/openat2.h>

#include "fuzz.h"

enum { PATH_ROOM = 5000, BUF = 300 };

struct scene {
	struct shelf_task *t;
	int dir, file;
	char path[PATH_ROOM];
};

static void make_file(struct shelf_task *t, const char *path, mode_t mode)
{
	int fd = shelf_open(t, path, O_CREAT | O_WRONLY | O_EXCL, mode);

	CHECK(fd >= 0 && shelf_write(t, fd, path, strlen(path)) > 0);
	shelf_close(t, fd);
}

static void scene_make(struct scene *s, bool other_user)
{
	const struct shelf_cred other = {.uid = 1000, .euid = 1000, .suid = 1000, .fsuid = 1000,
					 .gid = 1000, .egid = 1000, .sgid = 1000, .fsgid = 1000};
	struct shelf_task *t = s->t = fuzz_task();

	CHECK(!shelf_mkdir(t, "/d", 0777) && !shelf_mkdir(t, "/d/e", 0755) && !shelf_mkdir(t, "/shut", 0700));
	make_file(t, "/f", 0644);
	make_file(t, "/d/f", 0666);
	make_file(t, "/d/e/x", 0755);
	make_file(t, "/shut/g", 0666);
	CHECK(!shelf_symlink(t, "d/e", "/l") && !shelf_symlink(t, "/f", "/d/abs") &&
	      !shelf_symlink(t, "../l/../f", "/d/up") && !shelf_symlink(t, "o", "/o") &&
	      !shelf_symlink(t, "nowhere", "/n") && !shelf_symlink(t, "../shut/g", "/d/s"));
	s->dir = shelf_open(t, "/d", O_PATH, 0);
	s->file = shelf_open(t, "/f", O_RDONLY, 0);
	CHECK(s->dir >= 0 && s->file >= 0 && !shelf_chdir(t, "/d/e"));
	if (other_user)
		CHECK(!shelf_task_setcred(t, &other));
}

static int a_dirfd(struct scene *s, struct bytes *in)
{
	const int dirfds[] = {AT_FDCWD, s->dir, s->file, -1, 77, INT32_MAX, INT32_MIN};

	return dirfds[fuzz_below(in, sizeof(dirfds) / sizeof(dirfds[0]))];
}

static void check_file(struct scene *s, int fd, const struct stat *before, int found, int flags)
{
	struct stat st;

	CHECK(!shelf_fstat(s->t, fd, &st));
	if (!found && !(flags & O_TMPFILE & ~O_DIRECTORY))
		CHECK(st.st_ino == before->st_ino);
	else
		CHECK(flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)));
	if ((flags & O_DIRECTORY) && !(flags & O_TMPFILE & ~O_DIRECTORY))
		CHECK(S_ISDIR(st.st_mode));
	CHECK(!shelf_close(s->t, fd));
}

static void look(struct scene *s, int at)
{
	struct stat st, lst;
	char *buf = fuzz_buffer(BUF);
	int found = shelf_fstatat(s->t, at, s->path, &st, 0);
	int lfound = shelf_fstatat(s->t, at, s->path, &lst, AT_SYMLINK_NOFOLLOW);
	int64_t n = shelf_readlinkat(s->t, at, s->path, buf, BUF);

	fuzz_result(found);
	fuzz_result(n);
	fuzz_buffer_intact(BUF);
	if (!found)
		CHECK(!lfound);
	CHECK((n > 0) == (!lfound && S_ISLNK(lst.st_mode)));
	CHECK((fuzz_result(shelf_faccessat2(s->t, at, s->path, F_OK, AT_EACCESS)) == 0) == (found == 0));
}

static void try_openat(struct scene *s, int at, int flags, mode_t mode)
{
	struct stat before;
	int found = shelf_fstatat(s->t, at, s->path, &before, (flags & O_NOFOLLOW) ? AT_SYMLINK_NOFOLLOW : 0);
	int64_t fd = fuzz_result(shelf_openat(s->t, at, s->path, flags, mode));

	if (fd >= 0)
		check_file(s, (int)fd, &before, found, flags);
}

static void try_openat2(struct scene *s, int at, struct bytes *in)
{
	struct {
		struct open_how how;
		uint64_t more[2];
	} args = {.how = {.flags = fuzz_take(in, 4), .mode = fuzz_take(in, 2), .resolve = fuzz_take(in, 1)}};
	const size_t sizes[] = {sizeof(args.how), sizeof(args.how), 0, 8, 23, sizeof(args), 4096};
	size_t size = sizes[fuzz_below(in, 7)];
	int64_t fd;

	if (size == 4096)
		size = sizeof(args);
	else if (size == sizeof(args))
		args.more[1] = 1;
	fd = fuzz_result(shelf_openat2(s->t, at, s->path, &args.how, size));
	if (fd >= 0)
		CHECK(!shelf_close(s->t, (int)fd));
}

static void change(struct scene *s, int at, struct bytes *in)
{
	int64_t made;

	switch (fuzz_below(in, 6)) {
	case 0:
		made = fuzz_result(shelf_mkdirat(s->t, at, s->path, 0777));
		if (!made)
			CHECK(shelf_mkdirat(s->t, at, s->path, 0777) == -EEXIST);
		break;
	case 1:
		fuzz_result(shelf_unlinkat(s->t, at, s->path, (int)fuzz_take(in, 2)));
		break;
	case 2:
		fuzz_result(shelf_renameat2(s->t, at, s->path, s->dir, "moved", (unsigned)fuzz_take(in, 1)));
		break;
	case 3:
		fuzz_result(shelf_linkat(s->t, at, s->path, s->dir, "linked", (int)fuzz_take(in, 2)));
		break;
	case 4:
		fuzz_result(shelf_symlinkat(s->t, s->path, s->dir, "new"));
		break;
	default:
		fuzz_result(shelf_chdir(s->t, s->path));
		fuzz_result(shelf_getcwd(s->t, fuzz_buffer(BUF), BUF));
		fuzz_buffer_intact(BUF);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = {data, size}, how;
	struct scene s;
	uint8_t head[24] = {0};
	int at;

	fuzz_take_block(&in, head, sizeof(head));
	s.path[fuzz_take_block(&in, s.path, sizeof(s.path) - 1)] = 0;
	how = (struct bytes){head, sizeof(head)};
	scene_make(&s, fuzz_below(&how, 2));
	at = a_dirfd(&s, &how);
	look(&s, at);
	try_openat(&s, at, (int)fuzz_take(&how, 4), (mode_t)fuzz_take(&how, 4));
	try_openat2(&s, at, &how);
	change(&s, at, &how);
	look(&s, at);
	shelf_task_exit(s.t);
	fuzz_settle();
	return 0;
}

size_t fuzz_example(unsigned k, uint8_t *out, size_t room)
{
	static const char *const paths[] = {"/d/f", "../../l/x", "/d/up", "o/..", "/n", "e/", "../d/../d/abs", "/d/s",
					    "/shut/g/..", "//d//.//e/x", ""};
	static const int flags[] = {O_RDONLY, O_RDWR | O_CREAT, O_DIRECTORY, O_PATH | O_NOFOLLOW,
				    O_CREAT | O_EXCL | O_WRONLY, O_WRONLY | O_TRUNC, O_TMPFILE | O_RDWR};
	size_t n;

	if (k >= 11 * 7)
		return 0;
	n = strlen(paths[k % 11]);
	if (24 + n > room)
		return 0;
	memset(out, 0, 24);
	out[0] = k & 1;
	memcpy(out + 2, &flags[k / 11], 4);
	memcpy(out + 10, &flags[k / 11], 4);
	out[17] = (uint8_t)k;
	out[18] = (uint8_t)k;
	memcpy(out + 24, paths[k % 11], n);
	return 24 + n;
}

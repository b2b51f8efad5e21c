/* SPDX-License-Identifier: MIT */
/* world.c - the shelf of world.h: what is in it, and how it is put back. */
#include "world.h"

#include "task/task.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>

enum { WORLD_BYTES = 4 << 20, SLOTS_USED = 8, MANY = 12 };

static char bytes[66 * PAGE_BYTES];

/* ---- what is in it ------------------------------------------------------------------------- */

static int put_file(struct shelf_task *t, const char *path, size_t n)
{
	int fd = shelf_open(t, path, O_CREAT | O_RDWR, 0644);

	CHECK(fd >= 0 && shelf_pwrite(t, fd, bytes, n, 0) == (ssize_t)n);
	return fd;
}

static void make_names(struct shelf_task *t)
{
	char path[300];

	for (int k = 0; k < MANY; k++) {
		snprintf(path, sizeof(path), "/many/%d", k);
		CHECK(!shelf_close(t, put_file(t, path, (size_t)k)));
	}
	snprintf(path, sizeof(path), "/many/%0200d", 1); /* an entry of the longer kind */
	CHECK(!shelf_close(t, put_file(t, path, 5000)));
	CHECK(!shelf_mkdir(t, "/a/b", 0755) && !shelf_mkdir(t, "/a/b/c", 0700) && !shelf_mkdir(t, "/a/gone", 0755));
	CHECK(!shelf_link(t, "/many/1", "/a/one") && !shelf_link(t, "/many/1", "/a/b/one"));
	CHECK(!shelf_symlink(t, "../many/2", "/a/link"));
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	CHECK(!shelf_symlink(t, path, "/a/long"));
	CHECK(!shelf_mknod(t, "/a/pipe", S_IFIFO | 0600, 0) && !shelf_mknod(t, "/a/socket", S_IFSOCK | 0600, 0));
}

static void make_attributes(struct shelf_task *t)
{
	/* Version 2; the owner, the user 1000, the group, the mask, others. */
	static const uint8_t acl[] = {2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 232, 3, 0, 0,
				      4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 4, 0, 255, 255, 255, 255,
				      32, 0, 4, 0, 255, 255, 255, 255};

	CHECK(!shelf_setxattr(t, "/a/one", "user.one", "1", 1, 0) && !shelf_setxattr(t, "/a/one", "user.two", bytes, 500, 0));
	CHECK(!shelf_setxattr(t, "/a", "system.posix_acl_default", acl, sizeof(acl), 0));
	CHECK(!shelf_setxattr(t, "/a/one", "system.posix_acl_access", acl, sizeof(acl), 0));
}

static void lock_range(struct shelf_task *t, int fd, short type, off_t start)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 10};

	CHECK(!shelf_fcntl(t, fd, F_SETLK, (uintptr_t)&l));
}

static void make_open(struct shelf_task *t)
{
	int fd, watch = shelf_inotify_init(t, IN_NONBLOCK);

	CHECK(watch >= 0 && shelf_inotify_add_watch(t, watch, "/a", IN_ALL_EVENTS) >= 0 &&
	      shelf_inotify_add_watch(t, watch, "/many/3", IN_ALL_EVENTS) >= 0);
	fd = put_file(t, "/a/large", sizeof(bytes));
	CHECK(shelf_pwrite(t, fd, bytes, 10, 1L << 30) == 10);
	for (int k = 0; k < 5; k++)
		lock_range(t, fd, k % 2 ? F_RDLCK : F_WRLCK, 100 * k);
	CHECK(!shelf_flock(t, fd, LOCK_SH));
	CHECK(shelf_fcntl(t, fd, F_DUPFD, 100) == 100 && shelf_fcntl(t, fd, F_DUPFD_CLOEXEC, 700) == 700);
	CHECK(put_file(t, "/a/removed", 9000) >= 0 && !shelf_unlink(t, "/a/removed"));
	CHECK(shelf_open(t, "/a/gone", O_RDONLY | O_DIRECTORY, 0) >= 0 && !shelf_rmdir(t, "/a/gone"));
	CHECK(shelf_open(t, "/many", O_RDONLY | O_DIRECTORY, 0) >= 0 && shelf_open(t, "/a/link", O_PATH | O_NOFOLLOW, 0) >= 0);
	CHECK(!shelf_rename(t, "/many/5", "/a/b/five"));
}

static void die_inside(const char *name)
{
	const struct shelf_cred root = {.caps = SHELF_CAP_ALL};
	struct shelf_task *t;
	struct shelf *shelf;
	int fd;

	CHECK(!shelf_attach(name, 0, &shelf, NULL) && !shelf_task_create(shelf, &root, &t));
	fd = put_file(t, "/a/dying", 20000);
	lock_range(t, fd, F_WRLCK, 0);
	CHECK(!shelf_unlink(t, "/a/dying") && !shelf_unlink(t, "/many/7") && !shelf_chdir(t, "/a/b"));
	raise(SIGKILL);
}

static void tell(void *ctx, const char *sentence)
{
	(void)ctx;
	fprintf(stderr, "shelf check: %s\n", sentence);
}

static void populate(struct world *w, bool dead)
{
	const struct shelf_options options = {.size = WORLD_BYTES};
	const struct shelf_cred root = {.caps = SHELF_CAP_ALL};
	pid_t pid;

	CHECK(!shelf_create(fresh_name(w->name), &options, &w->shelf, NULL));
	w->self = slot_self((struct segment *)(void *)w->shelf);
	CHECK(w->self && !shelf_task_create(w->shelf, &root, &w->task[0]));
	CHECK(!shelf_mkdir(w->task[0], "/a", 0755) && !shelf_mkdir(w->task[0], "/many", 01777));
	make_names(w->task[0]);
	make_attributes(w->task[0]);
	make_open(w->task[0]);
	CHECK(!shelf_task_fork(w->task[0], 0, &w->task[1]) && !shelf_chdir(w->task[1], "/a/b"));
	CHECK(!shelf_check(w->shelf, tell, NULL)); /* and nothing waits to be freed */
	if (!dead)
		return;
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		die_inside(w->name);
	CHECK(test_wait(pid) == 128 + SIGKILL);
}

/* ---- what may be damaged --------------------------------------------------------------------- */

/* Not the part of the header that attaching has compared with its sums, nor our own slot. */
static bool may_be_damaged(const struct world *w, size_t at)
{
	if (at < PAGE_BYTES)
		return at >= offsetof(struct seg_header, next_ino) && at < sizeof(struct seg_header);
	return (at & ~(size_t)PAGE_MASK) != (size_t)((char *)w->self - w->base);
}

static void note_word(struct world *w, size_t at)
{
	uint64_t v = *(uint64_t *)(void *)(w->base + at);

	if (!v || !may_be_damaged(w, at))
		return;
	if (v - (uintptr_t)w->base < w->bytes)
		w->pointer[w->pointers++] = (uint32_t)(at / 8);
	else
		w->number[w->numbers++] = (uint32_t)(at / 8);
}

/* Contents of files are no structure: one page of them will do. */
static bool is_data(const struct world *w, size_t page)
{
	const struct seg_local *sl = slot_local(w->self);
	const char *at = w->base + page * PAGE_BYTES;

	return frame_has(sl, at) && frame_kind(load_relaxed(&sl->frames[frame_index(sl, at)].word)) == PAGE_DATA;
}

static void note_page(struct world *w, size_t k)
{
	static const uint8_t zeros[PAGE_BYTES];
	size_t at = k * PAGE_BYTES;

	if (is_data(w, k) || !memcmp(w->base + at, zeros, PAGE_BYTES) || !may_be_damaged(w, at + PAGE_BYTES / 4))
		return;
	w->page[w->pages++] = (uint32_t)k;
	for (size_t n = at; n < at + PAGE_BYTES; n += 8)
		note_word(w, n);
}

static void note_all(struct world *w)
{
	size_t words = w->bytes / 8;

	w->page = calloc(w->bytes / PAGE_BYTES, sizeof(*w->page));
	w->pointer = calloc(words, sizeof(*w->pointer));
	w->number = calloc(words, sizeof(*w->number));
	CHECK(w->page && w->pointer && w->number);
	for (size_t k = 0; k < w->bytes / PAGE_BYTES; k++)
		note_page(w, k);
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static struct world worlds[2];

static void remove_worlds(void)
{
	for (int k = 0; k < 2; k++)
		if (worlds[k].shelf)
			shelf_remove(worlds[k].name, NULL);
}

static void map_privately(struct world *w)
{
	struct segment *seg = w->self->seg;
	int fd = segment_open_file(seg);

	seg->copied = true;
	w->base = (char *)seg->hdr;
	w->bytes = segment_file_bytes(seg);
	CHECK(fd >= 0);
	CHECK(mmap(w->base, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == (void *)w->base);
	close(fd);
}

/* What anything is ever written to: all but the slots beyond the first few. */
static bool may_change(const struct world *w, size_t at)
{
	const struct seg_header *h = w->self->seg->hdr;

	return at < h->slots_at + SLOTS_USED * PAGE_BYTES || at >= h->frames_at;
}

static void keep_copy(struct world *w)
{
	w->copy = malloc(w->bytes);
	CHECK(w->copy);
	for (size_t at = 0; at < w->bytes; at += PAGE_BYTES)
		if (may_change(w, at))
			memcpy(w->copy + at, w->base + at, PAGE_BYTES);
}

struct world *world_of(bool dead)
{
	struct world *w = &worlds[dead];

	if (w->shelf)
		return w;
	if (!worlds[!dead].shelf)
		atexit(remove_worlds);
	populate(w, dead);
	map_privately(w);
	note_all(w);
	keep_copy(w);
	return w;
}

/* By copying: mapping it anew would cost a fault for each page. */
void world_reset(struct world *w)
{
	for (size_t at = 0; at < w->bytes; at += PAGE_BYTES)
		if (may_change(w, at) && memcmp(w->base + at, w->copy + at, PAGE_BYTES))
			memcpy(w->base + at, w->copy + at, PAGE_BYTES);
}

/* ---- damage --------------------------------------------------------------------------------------- */

enum { DAMAGES_MAX = 4 };
enum damage { OTHER_POINTER, NO_POINTER, OTHER_NUMBER, ANY_WORD, ANY_BITS, COPIED_WORD, PAGES_SWAPPED, PAGE_COPIED, PAGE_CLEARED,
	      DAMAGES };

static uint64_t *word_at(struct world *w, uint32_t n)
{
	return (uint64_t *)(void *)(w->base + 8 * (size_t)n);
}

static uint64_t *a_pointer(struct world *w, struct bytes *in)
{
	return word_at(w, w->pointer[fuzz_take(in, 2) % w->pointers]);
}

static uint64_t *a_number(struct world *w, struct bytes *in)
{
	return word_at(w, w->number[fuzz_take(in, 2) % w->numbers]);
}

static char *a_page(struct world *w, struct bytes *in)
{
	return w->base + (size_t)w->page[fuzz_take(in, 2) % w->pages] * PAGE_BYTES;
}

static uint64_t *any_word(struct world *w, struct bytes *in)
{
	char *page = a_page(w, in);
	size_t at = fuzz_take(in, 2) % PAGE_BYTES & ~7u;

	if (!may_be_damaged(w, (size_t)(page - w->base) + at))
		at = PAGE_BYTES / 4;
	return (uint64_t *)(void *)(page + at);
}

static uint64_t a_value(struct world *w, struct bytes *in)
{
	static const uint64_t odd[] = {0, 1, 2, 3, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 1ULL << 62,
				       1ULL << 63, UINT64_MAX, UINT64_MAX - 1, 0xfffffffe00000001, 0x8000000080000000, 64};
	unsigned how = (unsigned)fuzz_take(in, 1);

	if (how < 64)
		return odd[how % ARRAY_SIZE(odd)];
	if (how < 96)
		return (uintptr_t)a_page(w, in) + (fuzz_take(in, 1) & 63) * 64;
	if (how < 128)
		return (uintptr_t)w->base + w->bytes - 4096 + how;
	if (how < 160)
		return *a_number(w, in);
	return how < 192 ? fuzz_take(in, 1) : fuzz_take(in, 8);
}

static void change_number(uint64_t *p, struct world *w, struct bytes *in)
{
	unsigned how = (unsigned)fuzz_take(in, 1);
	uint32_t *half = (uint32_t *)(void *)p + (how & 1);

	switch (how >> 1 & 7) {
	case 0:
		*half += 1 + (how >> 4);
		break;
	case 1:
		*half -= 1 + (how >> 4);
		break;
	case 2:
		*half = (uint32_t)a_value(w, in);
		break;
	case 3:
		*p ^= 1ULL << (fuzz_take(in, 1) & 63);
		break;
	default:
		*p = a_value(w, in);
	}
}

static void swap_pages(char *a, char *b)
{
	char other[PAGE_BYTES];

	if (a == b)
		return;
	memcpy(other, a, PAGE_BYTES);
	memcpy(a, b, PAGE_BYTES);
	memcpy(b, other, PAGE_BYTES);
}

static bool is_header(const struct world *w, const char *page)
{
	return page == w->base;
}

static void change_pages(struct world *w, struct bytes *in, enum damage kind)
{
	char *a = a_page(w, in), *b = a_page(w, in);

	if (is_header(w, a) || is_header(w, b))
		return;
	if (kind == PAGES_SWAPPED)
		swap_pages(a, b);
	else if (kind == PAGE_COPIED && a != b)
		memcpy(a, b, PAGE_BYTES);
	else
		memset(a, 0, PAGE_BYTES);
}

static void damage_one(struct world *w, struct bytes *in)
{
	enum damage kind = fuzz_below(in, 32) % DAMAGES;

	switch (kind) {
	case OTHER_POINTER:
		*a_pointer(w, in) = *a_pointer(w, in);
		break;
	case NO_POINTER:
		*a_pointer(w, in) = a_value(w, in);
		break;
	case OTHER_NUMBER:
		change_number(a_number(w, in), w, in);
		break;
	case ANY_WORD:
		*any_word(w, in) = a_value(w, in);
		break;
	case ANY_BITS:
		*any_word(w, in) ^= 1ULL << (fuzz_take(in, 1) & 63);
		break;
	case COPIED_WORD:
		*any_word(w, in) = *any_word(w, in);
		break;
	default:
		change_pages(w, in, kind);
	}
}

void world_damage(struct world *w, struct bytes *in)
{
	for (unsigned k = 0; k < DAMAGES_MAX && in->left; k++)
		damage_one(w, in);
}

/* ---- use --------------------------------------------------------------------------------------------- */

enum { ENTRIES_MAX = 2000, DEPTH_MAX = 20, WHOLE = 1 << 13 };

struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static void use_tree(struct shelf_task *t, int dirfd, unsigned depth, unsigned *left);

static void use_entry(struct shelf_task *t, int dirfd, const char *name, unsigned depth, unsigned *left)
{
	static char buf[WHOLE];
	struct stat st;
	int fd;

	shelf_fstatat(t, dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
	shelf_readlinkat(t, dirfd, name, buf, sizeof(buf));
	fd = shelf_openat(t, dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		fd = shelf_openat(t, dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return;
	shelf_flistxattr(t, fd, buf, sizeof(buf));
	shelf_fgetxattr(t, fd, "user.two", buf, sizeof(buf));
	shelf_fgetxattr(t, fd, "system.posix_acl_access", buf, sizeof(buf));
	shelf_pread(t, fd, buf, sizeof(buf), 0);
	shelf_lseek(t, fd, 0, SEEK_HOLE);
	shelf_lseek(t, fd, 300000, SEEK_DATA);
	shelf_pwrite(t, fd, "x", 1, 0);
	shelf_pwrite(t, fd, "xy", 2, 5000);
	if (shelf_fstat(t, fd, &st) == 0 && S_ISDIR(st.st_mode))
		use_tree(t, fd, depth + 1, left);
	shelf_close(t, fd);
}

static void use_tree(struct shelf_task *t, int dirfd, unsigned depth, unsigned *left)
{
	_Alignas(8) char list[2048];
	ssize_t n;

	while (depth < DEPTH_MAX && (n = shelf_getdents64(t, dirfd, list, sizeof(list))) > 0)
		for (char *p = list; p < list + n; p += ((struct entry *)(void *)p)->reclen) {
			const char *name = ((struct entry *)(void *)p)->name;

			if (!*left)
				return;
			--*left;
			if (strcmp(name, ".") && strcmp(name, ".."))
				use_entry(t, dirfd, name, depth, left);
		}
}

static void use_names(struct shelf_task *t)
{
	struct stat st;
	int fd = shelf_open(t, "/a/new", O_CREAT | O_RDWR, 0600);

	shelf_write(t, fd, bytes, 10000);
	shelf_ftruncate(t, fd, 10);
	shelf_close(t, fd);
	shelf_mkdir(t, "/many/sub", 0755);
	shelf_rename(t, "/a/new", "/many/sub/new");
	shelf_rename(t, "/a/b", "/many/sub/b");
	shelf_link(t, "/many/2", "/a/two");
	shelf_stat(t, "/many/sub/b/one", &st);
	for (int k = 0; k < MANY; k++) {
		char path[32];

		snprintf(path, sizeof(path), "/many/%d", k);
		if (k % 3 == 0)
			shelf_unlink(t, path);
	}
	shelf_unlink(t, "/a/one");
	shelf_unlink(t, "/a/large");
	shelf_removexattr(t, "/many/1", "user.one");
	shelf_setxattr(t, "/many/1", "user.new", bytes, 100, 0);
	shelf_chmod(t, "/a", 0711);
}

static void use_open(struct shelf_task *t)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 300};
	char buf[512];
	struct stat st;

	for (int fd = 0; fd < 12; fd++) {
		shelf_fstat(t, fd, &st);
		shelf_read(t, fd, buf, sizeof(buf));
		shelf_getdents64(t, fd, buf, sizeof(buf));
		shelf_fcntl(t, fd, F_GETLK, (uintptr_t)&l);
		l.l_type = F_WRLCK;
		shelf_fcntl(t, fd, F_SETLK, (uintptr_t)&l);
		shelf_flock(t, fd, LOCK_EX | LOCK_NB);
	}
	shelf_getcwd(t, buf, sizeof(buf));
	shelf_dup(t, 1);
	shelf_dup2(t, 1, 700);
	shelf_close(t, 100);
	shelf_close_range(t, 3, 5, 0);
}

/* A damaged owner makes it a dead process's, and it is gone. */
static bool task_is_there(struct world *w, const struct shelf_task *t)
{
	struct shelf_task *at = NULL;

	epoch_enter(w->self);
	do
		at = task_next_epoch(w->self, at);
	while (at && at != t);
	epoch_exit(w->self);
	return at;
}

void world_use(struct world *w)
{
	const struct shelf_cred root = {.caps = SHELF_CAP_ALL};
	unsigned left = ENTRIES_MAX;
	struct shelf_counters counters;
	struct shelf_task *t;
	int fd;

	CHECK(!shelf_counters(w->shelf, &counters));
	if (shelf_task_create(w->shelf, &root, &t))
		return;
	fd = shelf_open(t, "/", O_RDONLY | O_DIRECTORY, 0);
	use_tree(t, fd, 0, &left);
	use_names(t);
	for (int k = 0; k < WORLD_TASKS; k++)
		if (task_is_there(w, w->task[k]))
			use_open(w->task[k]);
	if (task_is_there(w, w->task[1]))
		shelf_task_exit(w->task[1]);
	shelf_task_exit(t);
}

/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>

static void say_fault(void *ctx, const char *fault)
{
	(void)ctx;
	fprintf(stderr, "shelf check: %s\n", fault);
}

struct px *px_make(uint64_t size)
{
	struct shelf_options options = { .size = size, .mode = 0777 };
	struct shelf_cred root = { .caps = SHELF_CAP_ALL };
	struct px *px = calloc(1, sizeof(*px));
	char why[SHELF_WHY] = "";

	if (shelf_create(fresh_name(px->name), &options, &px->shelf, why)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	CHECK(!shelf_task_create(px->shelf, &root, &px->t));
	return px;
}

void px_drop(struct px *px)
{
	int64_t faults;

	px_become(px->t, 0, 0);
	faults = shelf_check(px->shelf, say_fault, NULL);
	CHECK(faults == 0);
	CHECK(!shelf_task_exit(px->t));
	shelf_detach(px->shelf);
	CHECK(!shelf_remove(px->name, NULL));
	free(px);
}

int px_setup(void **state)
{
	*state = px_make(256u << 20);
	return 0;
}

int px_teardown(void **state)
{
	px_drop(*state);
	return 0;
}

pid_t px_fork(struct px *px, unsigned clone_flags, px_child_fn *fn, void *arg)
{
	struct px child = *px;
	pid_t pid;

	CHECK(!shelf_task_fork(px->t, clone_flags, &child.t));
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	CHECK(!shelf_task_adopt(child.t));
	_exit(fn(&child, arg));
}

struct start {
	struct px *px;
	px_thread_fn *fn;
	void *arg;
	unsigned k;
};

static void *run_thread(void *arg)
{
	struct start *s = arg;

	s->fn(s->px, s->arg, s->k);
	return NULL;
}

void px_threads(struct px *px, unsigned n, px_thread_fn *fn, void *arg)
{
	struct start starts[64];
	pthread_t threads[64];

	CHECK(n <= 64);
	for (unsigned k = 0; k < n; k++) {
		starts[k] = (struct start){ px, fn, arg, k };
		CHECK(!pthread_create(&threads[k], NULL, run_thread, &starts[k]));
	}
	for (unsigned k = 0; k < n; k++)
		CHECK(!pthread_join(threads[k], NULL));
}

void px_become(struct shelf_task *t, uid_t uid, gid_t gid)
{
	struct shelf_cred c = { uid, uid, uid, uid, gid, gid, gid, gid, 0, { 0 }, uid ? 0 : SHELF_CAP_ALL };

	CHECK(!shelf_task_setcred(t, &c));
}

void px_write_file(struct shelf_task *t, const char *path, const char *text)
{
	int fd = shelf_open(t, path, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	CHECK(fd >= 0);
	CHECK(shelf_write(t, fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(!shelf_close(t, fd));
}

bool px_file_is(struct shelf_task *t, const char *path, const char *text)
{
	char buf[4096];
	int fd = shelf_open(t, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : shelf_read(t, fd, buf, sizeof(buf));

	if (fd >= 0)
		shelf_close(t, fd);
	return n == (ssize_t)strlen(text) && !memcmp(buf, text, (size_t)n);
}

int px_count_entries(struct shelf_task *t, const char *path)
{
	int fd = shelf_open(t, path, O_RDONLY | O_DIRECTORY, 0), count = 0;
	_Alignas(8) char buf[4096];
	ssize_t n;

	CHECK(fd >= 0);
	while ((n = shelf_getdents64(t, fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n; count++)
			at += ((struct px_dirent *)(buf + at))->reclen;
	CHECK(!n && !shelf_close(t, fd));
	return count - 2;
}

bool px_exists(struct shelf_task *t, const char *path)
{
	struct stat st;

	return !shelf_lstat(t, path, &st);
}

ino_t px_ino(struct shelf_task *t, const char *path)
{
	struct stat st;

	CHECK(!shelf_lstat(t, path, &st));
	return st.st_ino;
}

nlink_t px_nlink(struct shelf_task *t, const char *path)
{
	struct stat st;

	CHECK(!shelf_lstat(t, path, &st));
	return st.st_nlink;
}
